"""What is known of a stream's rows: widths, rate and distinct values, for the choice of a plan."""

from collections.abc import Sequence

import pyarrow as pa

from wjoin.sites.key_index import estimate, united
from wjoin.sites.records import empty
from wjoin.sites.segments import Piece, latest_of

_SAMPLE = 10_000
_UNKNOWN = 16.0
_PACKED_SAMPLE = 1_000
"""Rows that are compressed to see how well they do: about a block over a slow link."""


def widths(pieces: Sequence[Piece], schema: pa.Schema) -> dict[str, float]:
    """Return the average bytes of a row by column, of some of the newest rows: others are on disk."""
    if not pieces:
        return {each.name: _declared(each.type) for each in schema}
    some = _newest(pieces, _SAMPLE)
    return {name: some.column(name).nbytes / some.num_rows for name in schema.names}


def packed(pieces: Sequence[Piece], schema: pa.Schema) -> dict[str, float]:
    """Return the average bytes of a row by column in compressed blocks, of some of the newest rows."""
    if not pieces:
        return {}
    some = _newest(pieces, _PACKED_SAMPLE)
    return {name: _packed(some.select([name])) / some.num_rows for name in schema.names}


def _packed(column: pa.RecordBatch) -> int:
    """Return the bytes of one column's values in a compressed block, without what any block has besides."""
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    sizes: list[int] = []
    for rows in (column, empty(column.schema)):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
            writer.write_batch(rows)
        sizes.append(sink.tell())
    return max(0, sizes[0] - sizes[1])


def _newest(pieces: Sequence[Piece], most: int) -> pa.RecordBatch:
    largest = max(pieces[-2:], key=lambda each: each.rows.num_rows).rows
    return largest.slice(max(0, largest.num_rows - most))


def _declared(kind: pa.DataType) -> float:
    return float(kind.bit_width) / 8 if pa.types.is_primitive(kind) else _UNKNOWN


def rate(pieces: Sequence[Piece], kind: pa.DataType) -> float:
    """Return the rows per second of event time in the newest pieces; a unit where it is a number."""
    last = pieces[-2:]
    if not last:
        return 0.0
    latest = latest_of(last)
    span = 0 if latest is None else latest - min(each.least for each in last)
    unit = 1e6 if pa.types.is_timestamp(kind) else 1.0
    return float(sum(each.rows.num_rows for each in last) * unit / max(span, 1))


def distinct(pieces: Sequence[Piece], keys: Sequence[str]) -> dict[str, float]:
    """Return estimates of the distinct values of each key column."""
    return {name: estimate(united([each.sketches[name] for each in pieces])) for name in keys}
