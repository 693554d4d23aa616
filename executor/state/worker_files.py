"""State in files of a folder that all workers reach: slices that are mapped, and a manifest per micro-batch.

A worker has a folder of its own. A slice is written once and never changed; it counts once a manifest
names it, and the manifest of a micro-batch counts once Spark has committed that. Many attempts may work at
one micro-batch, at once or one after the other: their slices have different names unless they are equal, and
the manifest of the first stays. All workers of a stage write one in the same micro-batches.
"""

import contextlib
import errno
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import pyarrow as pa

from wjoin.executor.blocks import decode_block, encoded
from wjoin.executor.faults import fault_point
from wjoin.executor.state.manifest import written_manifest
from wjoin.executor.state.slices import Slice, Stored, digest_of
from wjoin.executor.state.writing import Cutting
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import counted
from wjoin.sites.disk import synced

KEPT = 2
"""Manifests before that of a running micro-batch that stay, with their slices.

A restart reads the last one. The other is for whoever copies a checkpoint while its query runs.
"""

_UNFINISHED = ".unfinished"
_MANIFEST = re.compile(rf"(\d+)\.manifest(\..*{_UNFINISHED})?")
_SLICE = re.compile(rf"(\d+)-[0-9a-f]{{32}}\.slice(\..*{_UNFINISHED})?")
_NONE = "none"

_verified: dict[str, tuple[int, int]] = {}
"""The slices that this process has compared with their digests, with what changes when a file does."""

_MOST_VERIFIED = 1 << 14

_SYNCED_AT_ONCE = 8
"""Files that a process syncs at once."""


def stage_folder(state: Path, number: int) -> Path:
    """Return the folder of stage ``number`` below that of a join's state."""
    return state / str(number)


def slice_file(name: str, digest: str) -> str:
    """Return the name of the file of a slice."""
    return f"{name}-{digest}.slice"


def worker_folder(stage: Path, place: int) -> Path:
    """Return the folder of a worker of a stage, by its place among them."""
    return stage / str(place)


@dataclass(frozen=True)
class WorkerFiles:
    """The state of one worker in micro-batch ``number``, in the files of its folder."""

    folder: Path
    number: int
    _saved: list[Path] = field(default_factory=list, init=False, compare=False)

    def manifest(self) -> bytes | None:
        """Return the manifest of the last micro-batch before this one, None where there is none.

        Raises WJoinError WJ719 where it is damaged.
        """
        return self._bodies[-1] if self._bodies else None

    @cached_property
    def _names(self) -> list[str]:
        """What lies in the folder when the micro-batch begins. Raises WJoinError WJ719."""
        return _names(self.folder)

    @cached_property
    def _before(self) -> list[int]:
        """The numbers of the micro-batches before this one that have a manifest, ascending."""
        return sorted(number for number in _numbers(self._names) if number < self.number)

    @cached_property
    def _bodies(self) -> list[bytes]:
        """The manifests of the last of them, which stay."""
        return [read_manifest(self.folder, number).body for number in self._before[-KEPT:]]

    def load(self, stored: Slice) -> pa.RecordBatch:
        """Return the rows of a slice, mapped. Raises WJoinError WJ719 where it is missing or damaged."""
        path = self.folder / slice_file(stored.name, stored.digest)
        try:
            found = path.stat()
            if found.st_size != stored.size:
                raise damaged(path, f"has {counted(found.st_size, 'byte')} instead of {stored.size:,}")
            with pa.memory_map(str(path)) as mapped:
                data = mapped.read_buffer()
        except OSError as error:
            raise damaged(path, f"cannot be read: {error.strerror}") from error
        if _verified.get(str(path)) != _version(found):
            if digest_of(data) != stored.digest:
                raise damaged(path, "has other content than was written")
            _note(path, found)
        return decode_block(data)

    def save(self, name: str, batch: pa.RecordBatch, cutting: Cutting) -> Stored:
        """Write a slice under a new name, which lasts from the commit on.

        Raises WJoinError WJ718 where the disk is full.
        """
        data = encoded(batch)
        digest = digest_of(data)
        path = self.folder / slice_file(name, digest)
        with _told(self.folder):
            _unfinished(path, data).replace(path)
            self._saved.append(path)
            _note(path, path.stat())
        fault_point("slice-written")
        return Stored(len(data), digest)

    def remove(self, stored: Slice) -> None:
        """Leave a slice where it is: manifests before need it (see ``commit``)."""

    def commit(self, manifest: bytes) -> None:
        """Write the manifest of the micro-batch, unless another attempt has; remove what is not needed.

        The files are synced all at once, which takes a file system hardly longer than one of them. Raises
        WJoinError WJ718 where the disk is full.
        """
        told = f"{self._before[-1] if self._before else _NONE} {digest_of(manifest)}\n".encode()
        path = self.folder / f"{self.number}.manifest"
        fault_point("before-manifest")
        with _told(self.folder):
            unfinished = _unfinished(path, pa.py_buffer(told + manifest))
            written = [*self._saved, unfinished]
            try:
                waited = [_pool().submit(self._sweep), *(_pool().submit(synced, each) for each in written)]
                wait(waited)
                for each in waited:
                    each.result()
                with contextlib.suppress(FileExistsError):
                    os.link(unfinished, path)
            finally:
                unfinished.unlink(missing_ok=True)
            synced(self.folder)
        fault_point("manifest-written")

    def _sweep(self) -> None:
        """Remove what no micro-batch needs from which the query may go on, or be copied."""
        if not self._before:
            return
        manifests = [written_manifest(body) for body in self._bodies]
        needed = {slice_file(each.name, each.digest) for one in manifests for each in one.all_slices}
        written, first = manifests[-1].written, self._before[-KEPT:][0]
        for name in self._names:
            slice_, manifest = _SLICE.fullmatch(name), _MANIFEST.fullmatch(name)
            # What has a later number may be of an attempt that is under way.
            spent = slice_ is not None and int(slice_[1]) < written and name not in needed
            spent |= manifest is not None and int(manifest[1]) < (self.number if manifest[2] else first)
            if spent:
                _verified.pop(str(self.folder / name), None)
                (self.folder / name).unlink(missing_ok=True)


@dataclass(frozen=True)
class WrittenManifest:
    """A manifest as it lies in a file, and the number of the one before, None where it is the first."""

    body: bytes
    before: int | None


def numbers(folder: Path) -> list[int]:
    """Return the numbers of the micro-batches that have a manifest in a folder, ascending."""
    return sorted(_numbers(_names(folder)))


def _names(folder: Path) -> list[str]:
    try:
        return [each.name for each in folder.iterdir()]
    except OSError as error:
        raise damaged(folder, f"cannot be read: {error.strerror}") from error


def _numbers(names: Sequence[str]) -> Iterator[int]:
    for name in names:
        found = _MANIFEST.fullmatch(name)
        if found is not None and not found[2]:
            yield int(found[1])


def read_manifest(folder: Path, number: int) -> WrittenManifest:
    """Return the manifest of a micro-batch. Raises WJoinError WJ719 where it is damaged."""
    path = folder / f"{number}.manifest"
    try:
        head, _, body = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise damaged(path, f"cannot be read: {error.strerror}") from error
    before, _, digest = head.decode(errors="replace").partition(" ")
    if digest != digest_of(body) or not (before == _NONE or before.isdecimal()):
        raise damaged(path, "has other content than was written")
    return WrittenManifest(body, None if before == _NONE else int(before))


def write_once(path: Path, data: bytes) -> None:
    """Write a file that lasts, unless another task has: the first one stays. Raises WJoinError WJ718."""
    with _told(path.parent):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        unfinished = _unfinished(path, pa.py_buffer(data))
        try:
            synced(unfinished)
            with contextlib.suppress(FileExistsError):
                os.link(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
        synced(path.parent)


def damaged(path: Path, why: str) -> WJoinError:
    """Return the error for a file of the state that cannot be read."""
    return WJoinError("WJ719", f"{path}, a file of the state, {why}")


def _unfinished(path: Path, data: pa.Buffer) -> Path:
    """Write a file under a name of its own beside that which it will have, and return it. Raises OSError."""
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}{_UNFINISHED}")
    try:
        with unfinished.open("xb") as file:
            file.write(data)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
    return unfinished


@cache
def _pool() -> ThreadPoolExecutor:
    """Return threads that this process keeps: to start them takes as long as a small commit."""
    return ThreadPoolExecutor(_SYNCED_AT_ONCE)


@contextlib.contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Tell of what cannot be written by an error of wjoin's. Raises WJoinError WJ718."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        help = "make room on the disk and start the query again: it resumes from its checkpoint"
        message = f"the state cannot be written to {folder}: {error.strerror}"
        raise WJoinError("WJ718", message, help=help if full else None) from error


def _version(found: os.stat_result) -> tuple[int, int]:
    return found.st_ino, found.st_ctime_ns


def _note(path: Path, found: os.stat_result) -> None:
    if len(_verified) >= _MOST_VERIFIED:
        _verified.clear()
    _verified[str(path)] = _version(found)
