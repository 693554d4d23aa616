"""HW kernel: the rows of one key, then the exact time range inside them (W-join 2002, 3.1.2)."""

import numpy as np

from wjoin.executor.kernels.candidates import Candidates, Probe
from wjoin.executor.kernels.runs import Int64Array, Order, SortedRun

TABLE_LIMIT = 4
"""How much longer than the probing tuples a table of the codes may be, to be built for one probe."""


class HashWindow:
    """Runs in the order (code, time): the rows of a code stand together, in the order of time."""

    order = Order.KEY

    def candidates(self, run: SortedRun, probe: Probe) -> Candidates:
        """Return the rows with the tuple's code and a time in range; the tuples' codes ascend."""
        none = np.zeros(0, np.int64)
        codes, lows, highs = probe.codes, probe.lows, probe.highs
        if run.rows == 0 or len(codes) == 0:
            return Candidates(none, none, none)
        earliest, latest = run.span
        probes = np.flatnonzero((highs >= earliest) & (lows <= latest))
        if len(probes) < len(codes):
            codes, lows, highs = codes[probes], lows[probes], highs[probes]
        start, end = _key_ranges(run.codes, codes)
        hits = np.flatnonzero(end > start)
        start, end = start[hits], end[hits]
        times = run.times[0]
        first = _search(times, start, end, lows[hits])
        last = _search(times, first, end, highs[hits] + 1)
        filled = np.flatnonzero(last > first)
        return Candidates(probes[hits[filled]], first[filled], last[filled])

    def agree(self, run: SortedRun, probe: Probe, tuples: Int64Array, rows: Int64Array) -> None:
        """Candidates have the code and a time in range: nothing is left to check."""


def _key_ranges(codes: Int64Array, wanted: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return for each wanted code, ascending, its half-open row range in the ascending ``codes``."""
    least, span = int(codes[0]), int(codes[-1]) - int(codes[0]) + 1
    if len(wanted) and max(span, len(codes)) <= TABLE_LIMIT * len(wanted):
        edges = np.zeros(span + 1, np.int64)
        np.cumsum(np.bincount(codes - least, minlength=span), out=edges[1:])
        known = (wanted >= least) & (wanted < least + span)
        places = np.where(known, wanted - least, 0)
        return np.where(known, edges[places], 0), np.where(known, edges[places + 1], 0)
    groups = np.flatnonzero(np.concatenate(([True], wanted[1:] != wanted[:-1]))[: len(wanted)])
    distinct = wanted[groups]
    start = np.searchsorted(codes, distinct, side="left")
    end = start.copy()
    found = np.flatnonzero(codes[np.minimum(start, len(codes) - 1)] == distinct)
    end[found] = np.searchsorted(codes, distinct[found], side="right")
    sizes = np.diff(groups, append=len(wanted))
    return np.repeat(start, sizes), np.repeat(end, sizes)


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
