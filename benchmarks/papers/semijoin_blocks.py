"""SPJ and SMJ in blocks, at the query's end: the rows of a micro-batch at once, over a client of a site.

The pairs are those that ``semijoin_tuples`` finds tuple by tuple: streams come in turns, tuple n of stream 2
right after tuple n of stream 1. In SMJ a micro-batch asks once for the full tuples that the mirror lacks.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from wjoin.parts.kernels.runs import Int64Array, int64_view
from wjoin.sites.client import SiteClient
from wjoin.sites.protocol import ROW

_SHIFT = 32


@dataclass(frozen=True)
class Remote:
    """Stream 1: where it is, and its columns; the time and the key are a partial tuple."""

    client: SiteClient
    stream: str
    lineage: str
    time: str
    key: str
    payload: str


@dataclass
class Found:
    """Result pairs: how many, and a sum over their payloads that depends on no order."""

    count: int = 0
    checksum: int = 0


@dataclass
class Simple:
    """SPJ: rows come whole."""

    payloads: dict[int, bytes] = field(default_factory=dict)

    def arriving(self, remote: Remote, start: int, stop: int) -> Int64Array:
        """Fetch new rows whole; return their keys."""
        columns = (remote.time, remote.key, remote.payload)
        batch = _whole(remote, start, stop, columns)
        numbers = int64_view(batch.column(ROW)).tolist()
        self.payloads.update(zip(numbers, batch.column(remote.payload).to_pylist(), strict=True))
        return int64_view(batch.column(remote.key))

    def complete(self, remote: Remote, numbers: Int64Array) -> None:
        """Have nothing to do."""


@dataclass
class Semijoin:
    """SMJ: partial tuples come first; ``payloads`` are the full tuples of the mirror window."""

    payloads: dict[int, bytes] = field(default_factory=dict)
    asked: int = 0

    def arriving(self, remote: Remote, start: int, stop: int) -> Int64Array:
        """Fetch the partial tuples of new rows; return their keys."""
        return int64_view(_whole(remote, start, stop, (remote.time, remote.key)).column(remote.key))

    def complete(self, remote: Remote, numbers: Int64Array) -> None:
        """Fetch the full tuples that the mirror window lacks, in one request."""
        missing = np.array([each for each in numbers.tolist() if each not in self.payloads], np.int64)
        self.asked += len(missing)
        if len(missing):
            batch = remote.client.full(remote.stream, remote.lineage, missing, (remote.payload,))
            self.payloads.update(zip(missing.tolist(), batch.column(remote.payload).to_pylist(), strict=True))


@dataclass
class BlockJoin:
    """Joins blocks of two streams by tuple-based windows of ``window`` tuples.

    ``second``: the keys of all of stream 2, int64.
    """

    window: int
    second: Int64Array
    shipped: Simple | Semijoin
    found: Found = field(default_factory=Found)
    _keys: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    _begin: int = 0
    _reached: int = 0

    def batch(self, remote: Remote, rows: int) -> None:
        """Take the next rows of each stream."""
        start, stop = self._reached, self._reached + rows
        first = np.concatenate([self._keys, self.shipped.arriving(remote, start, stop)])
        least = max(0, start - self.window)
        # A new row of stream 1 meets what has come of stream 2 before it; one of stream 2 the row beside
        # it, too.
        numbers = np.arange(start, stop)
        ours, theirs = _matches(
            first[start - self._begin :],
            numbers,
            self.second[least:stop],
            least,
            numbers - self.window,
            numbers,
        )
        other, mine = _matches(
            self.second[start:stop], numbers, first, self._begin, numbers - self.window + 1, numbers + 1
        )
        rows_of_results = np.concatenate([ours, mine])
        self.shipped.complete(remote, np.unique(rows_of_results))
        self._results(rows_of_results, np.concatenate([theirs, other]))
        kept = max(0, stop - self.window)
        for number in range(self._begin, kept):
            self.shipped.payloads.pop(number, None)
        self._keys, self._begin, self._reached = first[kept - self._begin :], kept, stop

    def _results(self, first: Int64Array, second: Int64Array) -> None:
        self.found.count += len(first)
        for one, other in zip(first.tolist(), second.tolist(), strict=True):
            self.found.checksum += zlib.crc32(self.shipped.payloads[one], other)


def _matches(
    keys: Int64Array, numbers: Int64Array, others: Int64Array, begin: int, low: Int64Array, high: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return the pairs of rows of one key: others, numbered from ``begin``, count from low to before high."""
    marked = others << _SHIFT | np.arange(begin, begin + len(others))
    order = np.sort(marked)
    first = np.searchsorted(order, keys << _SHIFT | np.maximum(low, 0))
    last = np.searchsorted(order, keys << _SHIFT | high)
    counts = np.maximum(last - first, 0)
    ends = np.cumsum(counts)
    places = (
        np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts) + np.repeat(first, counts)
    )
    return np.repeat(numbers, counts), order[places] & ((1 << _SHIFT) - 1)


def _whole(remote: Remote, start: int, stop: int, columns: Sequence[str]) -> pa.RecordBatch:
    """Return the rows start..stop-1 as one batch."""
    batches = list(remote.client.rows(remote.stream, remote.lineage, start, stop, columns))
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
