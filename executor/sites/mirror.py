"""The mirror window: full tuples that a worker has fetched, on its local disk (Semijoin streams, section
4.2).

A file holds the tuples of one fetch, sorted by their numbers. Any of them may be missing: then its tuples are
fetched again. So nothing of the mirror is in Spark's state, and the oldest files go where it grows too large.
"""

import contextlib
import itertools
import logging
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from wjoin.parts.kernels.runs import Int64Array, int64_view
from wjoin.sites.protocol import ROW

MIRROR_BYTES = 1 << 28
"""What the tuples of one stream take at the most on the disk of one worker."""

MOST_FILES = 16
"""Files that are searched at the most; then all are made one."""

FREE_SHARE = 0.1
"""What is left free of a disk at the least: where it is full, others fail that cannot do without it."""

_log = logging.getLogger("wjoin")
_counter = itertools.count()


@dataclass(frozen=True)
class Mirror:
    """The tuples of one stream that one worker has fetched; ``folder`` is its alone, None where it has none.

    No method fails for what is wrong with the files.
    """

    folder: Path | None
    most_bytes: int = MIRROR_BYTES

    def find(self, numbers: Int64Array) -> tuple[list[pa.RecordBatch], Int64Array]:
        """Return the tuples that are here, and the numbers (int64, ascending) of those that are not."""
        found: list[pa.RecordBatch] = []
        for path in self._files():
            if not len(numbers):
                break
            with self._optional():
                batch = _read(path)
                own = int64_view(batch.column(ROW))
                places = np.searchsorted(own, numbers)
                here = places < len(own)
                here[here] = own[places[here]] == numbers[here]
                if here.any():
                    found.append(batch.take(pa.array(places[here])))
                    numbers = numbers[~here]
        return found, numbers

    def keep(self, tuples: pa.RecordBatch) -> None:
        """Keep tuples that were fetched, sorted by their numbers; the oldest of all go where space ends."""
        if self.folder is None or not tuples.num_rows:
            return
        with self._optional():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            files = self._files()
            if len(files) >= MOST_FILES:
                tuples = self._together(files, tuples)
                self._shrink(0)
            most = self._space(self.folder)
            if tuples.nbytes <= most:
                self._shrink(most - tuples.nbytes)
                self._write(tuples)
            self._shrink(most)

    def _space(self, folder: Path) -> int:
        """Return how many bytes the files may have, those that are there among them."""
        disk = shutil.disk_usage(folder)
        own = sum(path.stat().st_size for path in self._files())
        return min(self.most_bytes, disk.free + own - int(FREE_SHARE * disk.total))

    def _together(self, files: list[Path], tuples: pa.RecordBatch) -> pa.RecordBatch:
        """Return the newest tuples of all files and some more as one, as many as half of the space holds."""
        batches, size = [tuples], tuples.nbytes
        for path in files:
            batch = _read(path)
            size += batch.nbytes
            if size > self.most_bytes // 2:
                break
            if batch.schema == tuples.schema:
                batches.append(batch)
        whole = pa.concat_batches(batches)
        own = int64_view(whole.column(ROW))
        _, first = np.unique(own, return_index=True)
        return whole.take(pa.array(first))

    def _write(self, tuples: pa.RecordBatch) -> None:
        if self.folder is None:
            return
        name = f"{time.time_ns():020d}-{os.getpid()}-{next(_counter)}"
        unfinished = self.folder / f".{name}"
        try:
            with pa.OSFile(str(unfinished), "wb") as file, pa.ipc.new_file(file, tuples.schema) as writer:
                writer.write_batch(tuples)
            unfinished.replace(self.folder / name)
        except BaseException:
            # Half a file would take space for as long as the worker runs.
            unfinished.unlink(missing_ok=True)
            raise

    def _shrink(self, most: int) -> None:
        """Remove the oldest files until the others have so many bytes."""
        size = 0
        for path in self._files():
            size += path.stat().st_size
            if size > most:
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """Return the files, the newest first."""
        if self.folder is None or not self.folder.is_dir():
            return []
        return sorted((each for each in self.folder.iterdir() if each.name[0] != "."), reverse=True)

    @contextlib.contextmanager
    def _optional(self) -> Iterator[None]:
        """Go on without the mirror where its files cannot be used."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            _log.warning("the local mirror cannot be used, so full rows are fetched again: %s", error)


def _read(path: Path) -> pa.RecordBatch:
    with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as reader:
        return reader.get_batch(0)
