"""A folder of this user alone: for sockets between Spark and its Python processes, and files of Java's."""

import atexit
import contextlib
import functools
import shutil
import socket
import tempfile
from pathlib import Path

LONGEST_FOLDER = 61
"""How many characters Spark lets the path of the folder have: those of a socket are limited by the system."""


@functools.cache
def socket_folder() -> Path | None:
    """Return a folder of this user alone, which goes with this process; None where it can have no sockets."""
    for parent in dict.fromkeys((tempfile.gettempdir(), "/tmp")):
        with contextlib.suppress(OSError):
            folder = Path(tempfile.mkdtemp(prefix="wjoin-", dir=parent))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            if len(str(folder)) <= LONGEST_FOLDER and _takes_sockets(folder):
                return folder
    return None


def _takes_sockets(folder: Path) -> bool:
    """Return whether the file system of a folder has sockets: not every one has."""
    name = folder / "tried"
    with socket.socket(socket.AF_UNIX) as tried:
        tried.bind(str(name))
    name.unlink()
    return True
