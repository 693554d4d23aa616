"""The folder in which a site keeps its data: its user's alone, and one site's at a time."""

import fcntl
from collections.abc import Collection
from pathlib import Path
from typing import IO

from wjoin.grammar.errors import WJoinError

_LOCK = ".lock"


def locked(folder: Path, streams: Collection[str]) -> IO[bytes]:
    """Return the lock of a data folder, held until it is closed or the process ends.

    The folder is made where it is not there; nobody but its user may look into those of the ``streams``
    afterwards. Raises WJoinError WJ903 or WJ906.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _close(folder, streams)
        lock = (folder / _LOCK).open("ab")
    except OSError as error:
        raise WJoinError("WJ903", f"{folder} cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise WJoinError("WJ906", f"another site uses the data folder {folder}") from error
    return lock


def _close(folder: Path, streams: Collection[str]) -> None:
    """Take the rights of others from what is the site's own: earlier versions have left them."""
    own = {*streams, _LOCK}
    for name in streams:
        if (folder / name).is_dir():
            (folder / name).chmod(0o700)
            for file in (folder / name).iterdir():
                file.chmod(0o600)
    if all(each.name in own for each in folder.iterdir()):
        # Where something else is, somebody else may use the folder, too.
        folder.chmod(0o700)
