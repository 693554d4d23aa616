"""Tuple blocks: batches of rows as Arrow IPC bytes, the unit that travels and is stored (S2J)."""

from collections.abc import Iterator

import pyarrow as pa


def encode_block(batch: pa.RecordBatch) -> bytes:
    """Return a record batch as one Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def decode_block(block: bytes | pa.Buffer) -> pa.RecordBatch:
    """Return the record batch of an Arrow IPC stream, without copying its columns."""
    with pa.ipc.open_stream(block) as reader:
        return reader.read_next_batch()


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


def stable(array: pa.Array) -> pa.Array:
    """Return a column with its time zones as UTC, so that blocks outlive the session's time zone."""
    wanted = _stable_type(array.type)
    return array if wanted == array.type else array.cast(wanted)


def _stable_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, tz="UTC")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_stable_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(
            kind.key_field.with_type(_stable_type(kind.key_type)),
            kind.item_field.with_type(_stable_type(kind.item_type)),
        )
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_stable_type(kind.value_type)))
    return kind
