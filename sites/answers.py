"""What a site answers to a request for rows: checked first, then a schema and blocks."""

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import pyarrow as pa

from wjoin.sites.failures import SiteError
from wjoin.sites.held import decode_wanted, parts_of_wanted
from wjoin.sites.protocol import ROW, RowsRequest, count_of_numbers, decode_numbers
from wjoin.sites.reduction import Passing
from wjoin.sites.site import Site
from wjoin.sites.store import StreamStore
from wjoin.sites.value_filter import ValueFilter, unpacked_size

Answer = tuple[pa.Schema, Iterator[pa.RecordBatch]]

_MOST_NOISE = 8_000_000
_NOISE_BLOCK = 500_000


def answer(site: Site, request: RowsRequest, body: memoryview) -> Answer:
    """Return the schema of an answer, and its blocks. Raises SiteError."""
    if request.compression not in (None, "zstd", "lz4"):
        raise SiteError("broken", f"the compression {request.compression:.20} is neither zstd nor lz4")
    if request.kind == "probe":
        if request.stream or request.lineage or request.columns:
            raise SiteError("broken", "a probe is of no stream")
        return _noise(request.stop)
    if request.kind not in _KINDS:
        raise SiteError("broken", f"there is no request of the kind {request.kind:.60}")
    store = site.store(request.stream, request.lineage)
    if not request.columns and request.kind == "full":
        raise SiteError("broken", "full rows are asked for without a column")
    check_columns(store, request.columns)
    if request.block_bytes is not None and request.block_bytes < 1:
        raise SiteError("broken", "a block has at least one byte")
    if body and request.kind == "rows":
        raise SiteError("broken", "a request for all rows has no body")
    return _KINDS[request.kind](site, store, request, body)


def weight(request: RowsRequest, body: memoryview) -> int:
    """Return about how many bytes a request takes while it is answered. Raises SiteError."""
    _, keys = parts_of_wanted(body) if request.kind == "reduced" else (body, body[:0])
    return 2 * len(body) + (unpacked_size(keys) if len(keys) else 0)


def check_columns(store: StreamStore, columns: Sequence[str]) -> None:
    """Raise SiteError for columns that a stream does not have, or twice."""
    known = store.stream.schema.names
    for name in columns:
        if name not in known:
            message = f"stream {store.stream.name} has no column {name:.100}"
            raise SiteError("schema", message, help=f"its columns are {', '.join(known)}")
    if len(set(columns)) < len(columns):
        raise SiteError("broken", "a column is asked for twice")


def _schema(store: StreamStore, columns: Sequence[str], *, numbered: bool = True) -> pa.Schema:
    own = [store.stream.schema.field(name) for name in columns]
    return pa.schema([pa.field(ROW, pa.int64(), nullable=False), *own] if numbered else own)


def _block(site: Site, store: StreamStore, request: RowsRequest) -> int:
    widths = store.widths()
    width = 8 + sum(widths[name] for name in request.columns)
    return site.config.limits.block_rows(request.block_bytes, width)


def _rows(site: Site, store: StreamStore, request: RowsRequest, body: memoryview) -> Answer:
    site.config.limits.check_rows(request.stop - request.start)
    rows = store.rows(request.start, request.stop, request.columns, _block(site, store, request))
    return _schema(store, request.columns), rows


def _full(site: Site, store: StreamStore, request: RowsRequest, body: memoryview) -> Answer:
    site.config.limits.check_rows(count_of_numbers(body))
    numbers = decode_numbers(body)
    block = _block(site, store, request)
    parts = (
        store.full(numbers[low : low + block], request.columns)
        for low in range(0, max(1, len(numbers)), block)
    )
    # The first block is looked up at once: what is gone is told before the answer begins.
    return _schema(store, request.columns, numbered=False), chain([next(parts)], parts)


def _reduced(site: Site, store: StreamStore, request: RowsRequest, body: memoryview) -> Answer:
    wanted, rest = decode_wanted(body)
    check_columns(store, [wanted.column])
    kind = store.stream.schema.field(wanted.column).type
    filters = [] if wanted.filter is None else [site.filters.find(wanted.filter)]
    if len(rest):
        most = site.config.limits.max_request_bytes
        filters.append(ValueFilter.decode(bytes(rest), most_bytes=most, limit="max_request_bytes"))
    if not filters:
        raise SiteError("broken", "held rows are asked for without a filter")
    for each in filters:
        # A filter of another kind is told before the answer begins.
        each.contains(pa.array([], kind))
    passing = Passing(wanted.column, tuple(filters))
    block = _block(site, store, request)
    rows = store.reduced(wanted.ranges, passing, wanted.high, request.columns, block)
    return _schema(store, request.columns), rows


def _noise(count: int) -> Answer:
    if not 0 < count <= _MOST_NOISE:
        raise SiteError("limit", f"a probe has 1 to {_MOST_NOISE} bytes")
    schema = pa.schema([pa.field("noise", pa.binary())])
    sizes = [min(_NOISE_BLOCK, count - low) for low in range(0, count, _NOISE_BLOCK)]
    blocks = (pa.record_batch([pa.array([os.urandom(each)], pa.binary())], schema=schema) for each in sizes)
    return schema, blocks


_KINDS: dict[str, Callable[[Site, StreamStore, RowsRequest, memoryview], Answer]] = {
    "rows": _rows,
    "full": _full,
    "reduced": _reduced,
}
