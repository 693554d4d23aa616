"""Join keys on their way to a site: one batch of Arrow, measured before anything of it is unpacked."""

import struct
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from wjoin.sites.failures import SiteError
from wjoin.sites.limits import Limits

NESTED_ROWS = 10_000
"""Keys of one request where a column is nested: such are compared as Python's objects."""

_NESTED_VALUES = 10 * NESTED_ROWS
_BATCH = 3
"""A RecordBatch among the kinds of messages (Arrow's format/Message.fbs)."""


def encode_keys(keys: pa.RecordBatch) -> bytes:
    """Return the rows of keys as an Arrow stream, compressed."""
    keys = plain_keys(keys)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, keys.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(keys)
    return bytes(sink.getvalue())


def plain_keys(keys: pa.RecordBatch) -> pa.RecordBatch:
    """Return keys without dictionaries, which a site does not read."""
    columns = [
        each.dictionary_decode() if pa.types.is_dictionary(each.type) else each for each in keys.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=keys.schema.names)


def is_nested(keys: pa.RecordBatch) -> bool:
    """Return whether a column of keys is a list or a struct."""
    return any(pa.types.is_nested(each.type) for each in keys.schema)


def distinct_keys(keys: pa.RecordBatch) -> pa.RecordBatch:
    """Return the keys, each once."""
    if keys.num_rows == 0:
        return keys
    if is_nested(keys):
        texts = {repr(row): at for at, row in enumerate(keys.to_pylist())}
        return keys.take(pa.array(sorted(texts.values()), pa.int64()))
    table = pa.Table.from_batches([keys])
    found = table.group_by(keys.schema.names, use_threads=False).aggregate([]).select(keys.schema.names)
    return found.combine_chunks().to_batches()[0]


@dataclass(frozen=True)
class PackedKeys:
    """Keys that have come and are measured, but not unpacked; ``size`` is their bytes then."""

    schema: pa.Schema
    message: pa.ipc.Message
    size: int

    def unpack(self) -> pa.RecordBatch:
        """Return them, each once. Raises SiteError "broken"."""
        try:
            keys = pa.ipc.read_record_batch(self.message, self.schema)
            keys.validate(full=True)
            return distinct_keys(keys)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _unreadable(error) from error


def decode_keys(body: memoryview, limits: Limits) -> PackedKeys:
    """Return the keys of ``encode_keys``, checked by what their metadata tell.

    Raises SiteError "broken", "schema", and "limit" where they have more rows than a request may have, or
    before compression more bytes.
    """
    try:
        reader = pa.ipc.MessageReader.open_stream(pa.py_buffer(body))
        head = reader.read_next_message()
        if head.type != "schema":
            # Arrow would take it for one, and end the process.
            raise ValueError("the first message is no schema")
        schema = pa.ipc.read_schema(head)
        message = reader.read_next_message()
        _check_one(reader)
        for each in schema:
            _check_field(each)
        if len(set(schema.names)) < len(schema.names):
            raise SiteError("broken", "the keys of the request have a column twice")
        return PackedKeys(schema, message, _checked_size(message, limits))
    except (pa.ArrowException, OSError, ValueError, StopIteration, EOFError, struct.error) as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> SiteError:
    return SiteError("broken", f"the keys of the request cannot be read: {error!r:.200}")


def _check_one(reader: pa.ipc.MessageReader) -> None:
    try:
        reader.read_next_message()
    except (StopIteration, EOFError):
        return
    raise SiteError("broken", "the keys of the request are not one batch")


def _check_field(field: pa.Field) -> None:
    """Refuse types of which a value may stand for many, or for one elsewhere, and names that are no UTF-8."""
    kind, _ = field.type, field.name
    if pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        for at in range(kind.num_fields):
            _check_field(kind.field(at))
        return
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    if not (pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or any(each(kind) for each in text)):
        raise SiteError("schema", f"a key cannot have the type {kind}")


def _checked_size(message: pa.ipc.Message, limits: Limits) -> int:
    """Return the bytes of a batch once it is unpacked. Raises SiteError "limit"."""
    rows, lengths, size = measured(message)
    nested = sum(lengths) - rows
    if rows < 0 or min(lengths, default=0) < 0:
        raise SiteError("broken", "the keys of the request have less than no rows")
    limits.check_rows(rows)
    inner = [each for each in lengths if each != rows]
    if inner and max(nested, rows) > _NESTED_VALUES:
        raise SiteError("limit", f"keys with lists have {nested} values, and the limit is {_NESTED_VALUES}")
    limits.check_bytes(size, "the keys before compression have")
    return size


def measured(message: pa.ipc.Message) -> tuple[int, list[int], int]:
    """Return of a batch's message the rows, the lengths of all columns and children, and its bytes unpacked.

    Only its metadata and the first bytes of each buffer are read. Raises ValueError or struct.error.
    """
    table = _Table(message.metadata.to_pybytes())
    if table.number(1, "<B") != _BATCH:
        raise ValueError("the message is no batch")
    batch = table.table(2)
    lengths = [length for length, _ in batch.pairs(1)]
    body = message.body
    packed = batch.field(3) is not None
    sizes = [
        _unpacked(body, offset, length) if packed and length else length for offset, length in batch.pairs(2)
    ]
    if min(sizes, default=0) < 0:
        raise ValueError("a buffer has less than no bytes")
    return batch.number(0, "<q"), lengths, sum(sizes)


def _unpacked(body: pa.Buffer, offset: int, length: int) -> int:
    """Return the bytes of a compressed buffer: they stand before it, or -1 where it is as it was."""
    if offset < 0 or length < 8 or offset + length > body.size:
        raise ValueError("a buffer is not in the message")
    (size,) = struct.unpack("<q", body.slice(offset, 8).to_pybytes())
    return length - 8 if size == -1 else int(size)


class _Table:
    """A table of a flatbuffer, whose fields have numbers; pyarrow does not show them."""

    def __init__(self, data: bytes, at: int | None = None) -> None:
        self._data = data
        self._at = self._number(0, "<I") if at is None else at

    def _number(self, at: int, form: str) -> int:
        if at < 0:
            raise ValueError("a place is before the message")
        (found,) = struct.unpack_from(form, self._data, at)
        return int(found)

    def field(self, number: int) -> int | None:
        """Return where a field is, None where it has its default."""
        fields = self._at - self._number(self._at, "<i")
        slot = 4 + 2 * number
        if slot >= self._number(fields, "<H"):
            return None
        offset = self._number(fields + slot, "<H")
        return self._at + offset if offset else None

    def number(self, number: int, form: str) -> int:
        """Return a field that is a number."""
        at = self.field(number)
        return 0 if at is None else self._number(at, form)

    def table(self, number: int) -> "_Table":
        """Return a field that is a table."""
        at = self.field(number)
        if at is None:
            raise ValueError("a part of the message is missing")
        return _Table(self._data, at + self._number(at, "<I"))

    def pairs(self, number: int) -> list[tuple[int, int]]:
        """Return the structs of two int64 of a field that is a vector of such."""
        at = self.field(number)
        if at is None:
            return []
        at += self._number(at, "<I")
        count = self._number(at, "<I")
        if at + 4 + 16 * count > len(self._data):
            raise ValueError("a list is longer than the message")
        found = np.frombuffer(self._data, "<i8", 2 * count, at + 4)
        return [(one, other) for one, other in found.reshape(-1, 2).tolist()]
