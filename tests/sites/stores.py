"""Stores of streams that tests open, which are closed after each test (conftest.py)."""

import operator
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from wjoin.sites.held import Extent
from wjoin.sites.retention import StoreRetention
from wjoin.sites.sources import StreamConfig
from wjoin.sites.store import StreamStore

FOREVER = StoreRetention(None, 1 << 40, None, 3600.0)

_OPEN: list[StreamStore] = []


def opened(
    folder: Path, schema: pa.Schema, keys: Sequence[str], retention: StoreRetention, segment_bytes: int
) -> StreamStore:
    """Open the store of a stream with the event time ``ts``."""
    stream = StreamConfig("a", "", schema, "ts", tuple(keys), retention)
    _OPEN.append(StreamStore(folder, stream, operator.or_, segment_bytes=segment_bytes))
    return _OPEN[-1]


def close_all() -> None:
    """Close what has been opened."""
    while _OPEN:
        _OPEN.pop().close()


def batch(schema: pa.Schema, rows: Sequence[Sequence[object]]) -> pa.RecordBatch:
    """Return rows of a schema."""
    columns = [*zip(*rows, strict=True)] or [()] * len(schema)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def extent_by_hand(times: list[int], ceiling: int, mark: int | None) -> dict:
    ahead, others = [t for t in times if t > ceiling], [t for t in times if t <= ceiling]
    return {
        "rows": len(times),
        "ahead": len(ahead),
        "furthest": max(ahead, default=None),
        "earliest": min(others, default=None),
        "latest": max(others, default=None),
        "late": sum(mark is not None and t < mark for t in times),
    }


def without_size(extent: Extent) -> dict:
    return {name: value for name, value in asdict(extent).items() if name != "size"}
