"""HW kernel: the rows of one key, then the exact time range inside them (W-join 2002, 3.1.2)."""

import numpy as np

from wjoin.executor.kernels.runs import Int64Array, SortedRun


def probe(
    run: SortedRun, codes: Int64Array, lows: Int64Array, highs: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Find for each probing tuple the rows of ``run`` with its code and a time in [low, high].

    ``codes``, ``lows`` and ``highs`` are int64 of one length, ``codes`` ascending. Returns
    (probe numbers, first row, end row), int64 of one length: the half-open row ranges that
    are not empty.
    """
    groups = np.flatnonzero(np.append(np.ones(min(1, len(codes)), bool), codes[1:] != codes[:-1]))
    distinct = codes[groups]
    start = np.searchsorted(run.codes, distinct, side="left")
    end = np.searchsorted(run.codes, distinct, side="right")
    sizes = np.diff(np.append(groups, len(codes)))
    found = end > start
    probes = np.flatnonzero(np.repeat(found, sizes))
    start = np.repeat(start[found], sizes[found])
    end = np.repeat(end[found], sizes[found])
    times = run.times[0]
    first = _search(times, start, end, lows[probes])
    last = _search(times, first, end, highs[probes] + 1)
    filled = np.flatnonzero(last > first)
    return probes[filled], first[filled], last[filled]


def expand(probes: Int64Array, first: Int64Array, last: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Turn row ranges into pairs: (probe number, row), int64 of one length."""
    counts = last - first
    total = int(counts.sum())
    skipped = np.repeat(np.cumsum(counts) - counts, counts)
    rows = np.arange(total, dtype=np.int64) - skipped + np.repeat(first, counts)
    return np.repeat(probes, counts), rows


def _search(times: Int64Array, start: Int64Array, end: Int64Array, values: Int64Array) -> Int64Array:
    """Return for each range [start, end) of ascending times the first place not below its value."""
    if len(start) == 0:
        return start
    low, high = start.copy(), end.copy()
    top = len(times) - 1
    for _ in range(int((end - start).max()).bit_length()):
        middle = (low + high) >> 1
        below = (times[np.minimum(middle, top)] < values) & (low < high)
        low = np.where(below, middle + 1, low)
        high = np.where(below, high, middle)
    return low
