"""A cache of state slices on the disks of the machine that runs a worker.

A file is named by the digest of its content, so that it is the slice or absent, whatever other queries,
copied checkpoints or repeated micro-batches write. It may be absent at any time: then Spark's state is
read. Reading maps the file into memory, so a micro-batch loads only the pages that it touches.
"""

import contextlib
import logging
import os
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pyarrow as pa

from wjoin.executor.state.slices import digest_of
from wjoin.grammar.plurals import counted

UNUSED_SECONDS = 3600.0
"""How long a file stays that nobody reads: its query has ended, or the worker is on another machine now."""

SPARE_BYTES = 1 << 30
"""What is left free on a disk: Spark shuffles on it, too."""

SWEEP_SECONDS = 600.0
"""How often a process looks for such files."""

_log = logging.getLogger("wjoin")


class SliceCache:
    """Files in some folders; no method fails for what is wrong with them, and that is logged once."""

    def __init__(
        self,
        folders: Sequence[Path],
        spare: int = SPARE_BYTES,
        sweep_seconds: float = SWEEP_SECONDS,
    ) -> None:
        self._folders = folders
        self._spare = spare
        self._sweep_seconds = sweep_seconds
        self._verified: dict[str, tuple[int, int]] = {}
        self._swept = time.monotonic()
        self._told = False

    def get(self, digest: str, size: int) -> pa.Buffer | None:
        """Return a slice of ``size`` bytes as a memory-mapped buffer, None where it is not here.

        What a file holds is compared with its name once in a process and again when it has changed, its
        size always.
        """
        found = None
        if self._folders:
            with self._optional():
                found = self._read(self._path(digest), digest, size)
        return found

    def _read(self, path: Path, digest: str, size: int) -> pa.Buffer | None:
        found = path.stat()
        if found.st_size != size:
            self._unfit(path, f"has {counted(found.st_size, 'byte')} instead of {size:,}")
            return None
        with pa.memory_map(str(path)) as mapped:
            data = mapped.read_buffer()
        if self._verified.get(digest) != _version(found):
            if digest_of(data) != digest:
                self._unfit(path, "has other content than was written")
                return None
            self._verified[digest] = _version(found)
        if time.time() - found.st_mtime > UNUSED_SECONDS / 4:
            os.utime(path)
            self._verified[digest] = _version(path.stat())
        return data

    def put(self, digest: str, data: bytes | pa.Buffer) -> None:
        """Keep a slice; it appears whole or not at all. Drops files that have not been read for long."""
        if not self._folders:
            return
        path = self._path(digest)
        unfinished = path.with_suffix(f".{os.getpid()}")
        with self._optional():
            self._sweep()
            path.parent.mkdir(mode=0o700, exist_ok=True)
            room = os.statvfs(path.parent)
            if room.f_bavail * room.f_frsize < self._spare + len(data):
                self._tell(f"the disk of {path.parent} is almost full")
                return
            try:
                with unfinished.open("wb") as file:
                    file.write(data)
                unfinished.replace(path)
            except OSError:
                with contextlib.suppress(OSError):
                    unfinished.unlink()
                raise
            self._verified[digest] = _version(path.stat())

    def remove(self, digest: str) -> None:
        """Drop a slice; another query that has the same reads Spark's state."""
        self._verified.pop(digest, None)
        if self._folders:
            with self._optional():
                self._path(digest).unlink()

    def _path(self, digest: str) -> Path:
        return self._folders[int(digest[:8], 16) % len(self._folders)] / digest

    def _sweep(self) -> None:
        """Now and then remove the files that nobody has read for long."""
        if time.monotonic() - self._swept < self._sweep_seconds:
            return
        self._swept = time.monotonic()
        there = set()
        for folder in self._folders:
            with self._optional():
                for path in folder.iterdir():
                    # Another worker may remove it meanwhile.
                    with contextlib.suppress(FileNotFoundError):
                        if time.time() - path.stat().st_mtime > UNUSED_SECONDS:
                            path.unlink()
                        else:
                            there.add(path.name)
        self._verified = {name: each for name, each in self._verified.items() if name in there}

    @contextlib.contextmanager
    def _optional(self) -> Iterator[None]:
        """Go on without the cache where its files cannot be used."""
        try:
            yield
        except FileNotFoundError:
            return
        except (OSError, pa.ArrowException) as error:
            self._tell(str(error))

    def _unfit(self, path: Path, why: str) -> None:
        self._tell(f"{path} {why}")
        path.unlink()

    def _tell(self, why: str) -> None:
        if not self._told:
            self._told = True
            _log.warning("the local copy of the state cannot be used, so it is read from Spark: %s", why)


def _version(found: os.stat_result) -> tuple[int, int]:
    """Return what is another one when a file is replaced or written to."""
    return found.st_ino, found.st_ctime_ns


def cache_of_this_process() -> SliceCache:
    """Return the cache of the Spark application that this Python worker serves."""
    return _cache_in(os.environ.get("SPARK_LOCAL_DIRS", ""))


@cache
def _cache_in(folders: str) -> SliceCache:
    """Return the cache in Spark's local folders, a list with commas; Spark removes them at its end."""
    return SliceCache([Path(each) / "wjoin-slices" for each in folders.split(",") if each])
