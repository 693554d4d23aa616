"""Tuple blocks: batches of rows as Arrow IPC bytes, the unit that travels and is stored (S2J)."""

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.lib.stride_tricks import sliding_window_view

_OFFSET_BYTES = 4
_OUTPUT = b"wjoin.output"
_LARGE = (pa.types.is_large_string, pa.types.is_large_binary)


def encoded(batch: pa.RecordBatch) -> pa.Buffer:
    """Return a record batch as one Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def encode_block(batch: pa.RecordBatch) -> bytes:
    """Return a record batch as one Arrow IPC stream, as bytes of Python."""
    return bytes(encoded(batch).to_pybytes())


def decode_block(block: bytes | pa.Buffer) -> pa.RecordBatch:
    """Return the record batch of an Arrow IPC stream, without copying its columns."""
    with pa.ipc.open_stream(block) as reader:
        return reader.read_next_batch()


def for_output(batch: pa.RecordBatch, number: int) -> pa.RecordBatch:
    """Return results that are for one output of a plan alone, and say so wherever they go."""
    return batch.replace_schema_metadata({_OUTPUT: str(number)})


def only_output(batch: pa.RecordBatch) -> int | None:
    """Return the number of the one output that results are for, None for all."""
    found = (batch.schema.metadata or {}).get(_OUTPUT)
    return None if found is None else int(found)


def compressed(data: pa.Buffer, compression: str | None) -> bytes:
    """Return bytes compressed, as they are without a compression."""
    return bytes(data.to_pybytes() if compression is None else pa.compress(data, compression, asbytes=True))


def decompressed(data: bytes, compression: str | None) -> bytes:
    """Return what ``compressed`` was given."""
    if compression is None:
        return data
    with pa.CompressedInputStream(pa.BufferReader(data), compression) as stream:
        return bytes(stream.read())


def concatenate(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return one batch with the rows of all; they share a schema."""
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches)


def cut(batch: pa.RecordBatch, rows: int, size: int) -> Iterator[pa.RecordBatch]:
    """Yield the batch in pieces of at most ``rows`` rows and about ``size`` bytes."""
    if batch.nbytes > size:
        rows = min(rows, max(1, batch.num_rows * size // batch.nbytes))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def gathered(batches: Iterable[pa.RecordBatch], rows: int, size: float = inf) -> Iterator[pa.RecordBatch]:
    """Yield many small batches as few large ones, of about so many rows and bytes at the most.

    Only those of one schema that follow each other come together.
    """
    waiting: list[pa.RecordBatch] = []
    held = held_bytes = 0
    for batch in batches:
        full = held + batch.num_rows > rows or held_bytes + batch.nbytes > size
        if waiting and (full or batch.schema != waiting[0].schema):
            yield concatenate(waiting)
            waiting, held, held_bytes = [], 0, 0
        waiting.append(batch)
        held += batch.num_rows
        held_bytes += batch.nbytes
    if waiting:
        yield concatenate(waiting)


def stable(array: pa.Array) -> pa.Array:
    """Return a column with its time zones as UTC, so that blocks outlive the session's time zone."""
    return _cast(array, _stable_leaf)


def stable_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column with its time zones as UTC."""
    return _with_leaves(kind, _stable_leaf)


def without_times(array: pa.Array) -> pa.Array:
    """Return a column with dates and times as whole numbers: Python has no dates beyond the year 9999."""
    return _cast(array, _whole_leaf)


def _stable_leaf(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, tz="UTC")
    return kind


def _whole_leaf(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) else kind


def _cast(array: pa.Array, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.Array:
    wanted = _with_leaves(array.type, leaf)
    return array if wanted == array.type else array.cast(wanted)


def _with_leaves(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type with others in the place of the types that hold no more types."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_leaves(field.type, leaf)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(
            kind.key_field.with_type(_with_leaves(kind.key_type, leaf)),
            kind.item_field.with_type(_with_leaves(kind.item_type, leaf)),
        )
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_leaves(kind.value_type, leaf)))
    return leaf(kind)


def value_bytes(batch: pa.RecordBatch) -> int:
    """Return the bytes of the values of some rows: the same however rows are cut into batches."""
    return sum(_value_bytes(column) for column in batch.columns)


def _value_bytes(array: pa.Array) -> int:
    kind = array.type
    types = pa.types
    if types.is_primitive(kind):
        return max(1, int(kind.bit_width) // 8) * len(array)
    if types.is_struct(kind):
        return sum(_value_bytes(child) for child in array.flatten())
    if types.is_fixed_size_list(kind):
        return _value_bytes(array.flatten())
    if types.is_map(kind) or types.is_list(kind) or types.is_large_list(kind):
        children = [array.keys, array.items] if types.is_map(kind) else [array.values]
        begin, end = ends(array)
        inside = sum(_value_bytes(child.slice(begin, end - begin)) for child in children)
        return inside + _OFFSET_BYTES * len(array)
    if any(check(kind) for check in (types.is_string, types.is_binary, *_LARGE)):
        begin, end = ends(array)
        return end - begin + _OFFSET_BYTES * len(array)
    if types.is_null(kind):
        return 0
    width: int = kind.bit_width // 8
    return max(1, width) * len(array)


def restored(values: pa.Array, spark_type: str) -> pa.Array:
    """Return values of an event time or a code (int64) in the type of the column that they stand for."""
    if spark_type == "timestamp":
        return values.view(pa.timestamp("us", tz="UTC"))
    if spark_type == "timestamp_ntz":
        return values.view(pa.timestamp("us"))
    return values


def taken(array: pa.Array, places: pa.Array) -> pa.Array:
    """Return the values at some places (int64) of an array.

    Arrow copies lists slowly. Those of numbers that have one length are copied here as the lines of a matrix.
    """
    kind = array.type
    if not len(places) or not _lists_numbers(kind) or places.null_count:
        return array.take(places)
    if array.null_count or array.values.null_count:
        return array.take(places)
    rows, offsets = places.to_numpy(), _offsets(array)
    begins = offsets[rows]
    lengths = offsets[1:][rows] - begins
    length = int(lengths[0])
    if not 0 < length * len(rows) <= np.iinfo(offsets.dtype).max or (lengths != length).any():
        return array.take(places)
    lines = _lines(array.values.to_numpy(), begins, length)
    edges = np.arange(0, length * len(rows) + 1, length, dtype=offsets.dtype)
    return type(array).from_arrays(pa.array(edges), pa.array(lines.reshape(-1)), type=kind)


def matrix(array: pa.Array) -> npt.NDArray[Any] | None:
    """Return lists of numbers, or the bytes of BINARY values, as the lines of a matrix, without copying them.

    None of any other type, and where there are NULLs or several lengths.
    """
    kind = array.type
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    if not len(array) or not (binary or _lists_numbers(kind)) or array.null_count:
        return None
    offsets = _offsets(array)[: len(array) + 1]
    begin, end, length = int(offsets[0]), int(offsets[-1]), int(offsets[1] - offsets[0])
    if (offsets[1:] - offsets[:-1] != length).any():
        return None
    if binary:
        data = array.buffers()[2]
        flat = np.frombuffer(data, np.uint8)[begin:end] if length else np.zeros(0, np.uint8)
    else:
        values = array.values.slice(begin, end - begin)
        if values.null_count:
            return None
        flat = np.asarray(values)
    lines: npt.NDArray[Any] = flat.reshape(len(array), length)
    return lines


def _lists_numbers(kind: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    return bool(pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type))


def _lines(values: npt.NDArray[Any], begins: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """Return the stretches of one length that begin at some places of an array, as the lines of a matrix."""
    first = int(begins[0]) % length
    numbers, odd = np.divmod(begins - first, length)
    whole = (len(values) - first) // length
    lines: npt.NDArray[Any] = (
        sliding_window_view(values, length)[begins]
        if odd.any()
        else values[first : first + whole * length].reshape(whole, length).take(numbers, axis=0)
    )
    return lines


def taken_bytes(array: pa.Array, places: pa.Array) -> int:
    """Return about how many bytes the values at some places (int64) of an array take."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        begins = _offsets(array)
        rows = places.to_numpy()
        return int((begins[1:][rows] - begins[rows]).sum(dtype=np.int64)) + _OFFSET_BYTES * len(rows)
    if pa.types.is_primitive(kind):
        width: int = kind.bit_width // 8
        return max(1, width) * len(places)
    return -(-_value_bytes(array) * len(places) // max(1, len(array)))


def ends(array: pa.Array) -> tuple[int, int]:
    """Return where the values of an array with offsets begin and end."""
    offsets = _offsets(array)
    return int(offsets[0]), int(offsets[len(array)])


def _offsets(array: pa.Array) -> npt.NDArray[Any]:
    """Return where each value of an array begins, and the last one ends."""
    offsets = array.buffers()[1]
    if not len(array) or offsets is None:
        return np.zeros(len(array) + 1, np.int32)
    large = any(check(array.type) for check in (*_LARGE, pa.types.is_large_list))
    return np.frombuffer(offsets, np.int64 if large else np.int32)[array.offset :]
