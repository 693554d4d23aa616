"""The log of a stream's newest rows: a file of frames, each with rows and where the source stood after them.

A frame is written at once, with a checksum; rows and the source's position are there together or not at all.
What a kill has left behind the last whole frame is cut off when the log is opened again.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

Position = dict[str, Any]
"""Where a source stands, as JSON; what it means only the source knows."""

# Magic, checksum of all that follows, bytes of the position, bytes of the rows; filled up to 64 bytes, so
# that the rows of a mapped frame are aligned as Arrow wants them.
_HEAD = struct.Struct("<4sIQQ")
_MAGIC = b"WJL1"
_ALIGNED = 64


@dataclass(frozen=True)
class Frame:
    """Rows and the source's position after them."""

    rows: pa.RecordBatch
    position: Position


def _padded(length: int) -> int:
    return -(-length // _ALIGNED) * _ALIGNED


class Log:
    """A log that is open for more frames; one thread writes at a time."""

    def __init__(self, path: Path, sync: bool) -> None:
        self._file = path.open("ab", buffering=0)
        self._sync = sync

    def append(self, frame: Frame) -> int:
        """Write a frame and return its bytes. Raises OSError, the log then being as it was before."""
        before = self._file.seek(0, os.SEEK_END)
        data = encode_frame(frame)
        try:
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) :]
            if self._sync:
                os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(before)
            raise
        return len(data)

    def close(self) -> None:
        """Write no more."""
        self._file.close()


def encode_frame(frame: Frame) -> bytes:
    """Return a frame as bytes."""
    position = json.dumps(frame.position, separators=(",", ":")).encode()
    rows = frame.rows.serialize().to_pybytes()
    fill = b"\0" * (_padded(len(position)) - len(position))
    last = b"\0" * (_padded(len(rows)) - len(rows))
    body = b"".join((struct.pack("<QQ", len(position), len(rows)), position, fill, rows, last))
    head = _HEAD.pack(_MAGIC, zlib.crc32(body), len(position), len(rows))
    return head.ljust(_ALIGNED, b"\0") + body[16:]


def recover(path: Path, schema: pa.Schema) -> list[Frame]:
    """Return the whole frames of a log, and cut off what follows them."""
    data = path.read_bytes()
    frames, end = [], 0
    for frame, after in _frames(data, schema):
        frames.append(frame)
        end = after
    if end < len(data):
        os.truncate(path, end)
    return frames


def _frames(data: bytes, schema: pa.Schema) -> Iterator[tuple[Frame, int]]:
    whole, at = pa.py_buffer(data), 0
    while at + _ALIGNED <= len(data):
        magic, checksum, length, size = _HEAD.unpack_from(data, at)
        begin = at + _ALIGNED
        rows = begin + _padded(length)
        after = rows + _padded(size)
        if magic != _MAGIC or after > len(data):
            return
        found = zlib.crc32(memoryview(data)[begin:after], zlib.crc32(struct.pack("<QQ", length, size)))
        if found != checksum:
            return
        batch = pa.ipc.read_record_batch(whole.slice(rows, size), schema)
        yield Frame(batch, json.loads(data[begin : begin + length])), after
        at = after
