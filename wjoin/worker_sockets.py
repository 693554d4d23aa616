"""The folder of the sockets between the embedded Spark and its Python workers."""

import atexit
import contextlib
import functools
import shutil
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path

FIRST_VERSION = (4, 1)
"""The version of Spark that can first talk to its workers through Unix domain sockets."""

LONGEST_FOLDER = 61
"""How many characters Spark lets the path of the folder have: those of a socket are limited by the system."""


def socket_settings(version: str) -> Mapping[str, str]:
    """Return the settings with which Spark's Python workers do without TCP; none where that cannot be.

    Over TCP every task waits 40 ms for nothing: Spark makes small writes, which its system holds back until
    the ones before are acknowledged, which the other side delays. ``version`` is Spark's.
    """
    major, minor = map(int, version.split(".")[:2])
    if (major, minor) < FIRST_VERSION:
        return {}
    folder = socket_folder()
    if folder is None:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        # Whoever may open the socket of a worker may have it run code: the default is the common /tmp.
        "spark.python.unix.domain.socket.dir": str(folder),
    }


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
