"""What has been typed before, in a file. Nothing that is wrong with the file stops the shell."""

import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory


def history_path() -> Path:
    """Return the file of the history: WJOIN_HISTORY, or one below the user's folder for such things."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(os.environ.get("WJOIN_HISTORY") or Path(state) / "wjoin" / "history")


class StatementHistory(FileHistory):
    """Keeps statements; one that begins with a blank, as one with a password may, is not kept.

    ``trouble`` says why nothing can be kept, None where all is well.
    """

    def __init__(self, path: Path) -> None:
        self.trouble: str | None = None
        super().__init__(str(path))
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            self.trouble = f"the history cannot be saved in {path}: {error.strerror or error}"

    def append_string(self, string: str) -> None:
        """Add what has been typed to the history of this shell and, where it is to be kept, to the file."""
        if string.strip() and not string.startswith(" "):
            super().append_string(string)

    def load_history_strings(self) -> Iterable[str]:
        """Return what the file holds, the newest first."""
        return [] if self.trouble else super().load_history_strings()

    def store_string(self, string: str) -> None:
        """Write a statement to the file, as long as that can be written."""
        try:
            if not self.trouble:
                super().store_string(string)
        except (OSError, UnicodeError) as error:
            self.trouble = f"the history cannot be saved: {error}"
