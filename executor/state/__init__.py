"""What a worker keeps between micro-batches."""
