"""What has been typed before, in a file. Nothing that is wrong with the file stops the shell."""

import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory

_KEPT_BYTES = 2_000_000
"""To what the file is cut where it has become longer than ``_MOST_BYTES`` when a shell starts."""

_MOST_BYTES = 4_000_000

_LONGEST = 100_000
"""Signs of a statement that is kept: a longer one is in a file anyway."""


def history_path() -> Path:
    """Return the file of the history: WJOIN_HISTORY, or one below the user's folder for such things."""
    if given := os.environ.get("WJOIN_HISTORY"):
        return Path(given)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "wjoin" / "history"


class StatementHistory(FileHistory):
    """Keeps statements; one that begins with a blank, as one with a password may, is not kept.

    ``trouble`` says why nothing can be kept, None where all is well.
    """

    def __init__(self, path: Path) -> None:
        self.trouble: str | None = None
        self._path = path
        super().__init__(str(path))
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
            self._shorten()
        except OSError as error:
            self.trouble = f"the history cannot be saved in {path}: {error.strerror or error}"

    def append_string(self, string: str) -> None:
        """Add what has been typed to the history of this shell and, where it is to be kept, to the file."""
        if string.strip() and not string.startswith(" "):
            super().append_string(string)

    def load_history_strings(self) -> Iterable[str]:
        """Return what the file holds, the newest first."""
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Write a statement to the file, as long as that can be written."""
        if self.trouble is not None or len(string) > _LONGEST:
            return
        try:
            super().store_string(string)
        except (OSError, UnicodeError) as error:
            self.trouble = f"the history cannot be saved in {self._path}: {error}"

    def _shorten(self) -> None:
        """Cut a file that has become too long, at once, as another shell may be reading it."""
        if self._path.stat().st_size <= _MOST_BYTES:
            return
        with self._path.open("rb") as file:
            file.seek(-_KEPT_BYTES, os.SEEK_END)
            end = file.read()
        shorter = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        shorter.touch(mode=0o600)
        # From the beginning of an entry on.
        shorter.write_bytes(end[end.find(b"\n# ") + 1 :])
        shorter.replace(self._path)
