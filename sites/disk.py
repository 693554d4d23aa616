"""What is on a disk for good."""

import os
from pathlib import Path


def synced(path: Path) -> None:
    """Have a file, or the names in a folder, survive a loss of power before going on. Raises OSError."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
