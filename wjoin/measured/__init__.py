"""What queries measure while they run: told to the user, kept beside the checkpoint for the next start."""
