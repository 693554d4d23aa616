"""Blocks set down on local disk and mapped back: what a task holds beyond what shall be in memory."""

import mmap
import os
import tempfile
import weakref
from pathlib import Path

import pyarrow as pa

from wjoin.executor.blocks import decode_block, encoded
from wjoin.grammar.errors import WJoinError

_MAPPED_BYTES = 1 << 28
"""Bytes of the file that are mapped at once; what of them is not written takes no disk."""

_ALIGNED = 64


class Spool:
    """A temporary file without a name: it is gone with the process, however that ends.

    It is made in ``folder`` (that of temporary files by default) once a block is put there.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder or tempfile.gettempdir()
        self._file: int | None = None
        self._end = 0
        self._mapped: memoryview = memoryview(b"")
        self._begin = 0

    def put(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Set a batch down; return it mapped, so that only the pages that are touched take memory.

        Raises WJoinError WJ705 where the disk is full or cannot be written.
        """
        data = encoded(batch)
        try:
            if self._file is None:
                self._file, name = tempfile.mkstemp(prefix="wjoin-", dir=self._folder)
                self._close = weakref.finalize(self, os.close, self._file)
                Path(name).unlink()
            if self._end + len(data) > self._begin + len(self._mapped):
                self._map(self._file, len(data))
            _write(self._file, data, self._end)
        except OSError as error:
            raise WJoinError(
                "WJ705",
                f"a micro-batch is larger than memory, and its rows cannot be written to {self._folder}: "
                f"{error.strerror}",
                help="point spark.local.dir at a disk with room for the rows of one micro-batch, or let the "
                "source read less per micro-batch (maxFilesPerTrigger, maxOffsetsPerTrigger)",
            ) from error
        place = self._end - self._begin
        self._end += -(-len(data) // _ALIGNED) * _ALIGNED
        return decode_block(pa.py_buffer(self._mapped[place : place + len(data)]))

    def _map(self, file: int, least: int) -> None:
        """Map the next part of the file, for many blocks: each mapping holds a file descriptor."""
        unit = mmap.ALLOCATIONGRANULARITY
        self._begin = self._end = -(-self._end // unit) * unit
        size = max(_MAPPED_BYTES, least)
        os.ftruncate(file, self._begin + size)
        self._mapped = memoryview(mmap.mmap(file, size, access=mmap.ACCESS_READ, offset=self._begin))

    def close(self) -> None:
        """Give the disk back, as soon as nothing is mapped any more."""
        if self._file is not None:
            self._close()
            self._file = None


def _write(file: int, data: pa.Buffer, place: int) -> None:
    rest = memoryview(data)
    while len(rest):
        written = os.pwrite(file, rest, place)
        rest, place = rest[written:], place + written


def local_folder() -> str | None:
    """Return the first of the folders that Spark gives a worker for temporary files, None outside of one."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
