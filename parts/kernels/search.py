"""Binary searches for many tuples at once, in runs that are sorted by (code, something)."""

from typing import Any

import numpy as np

from wjoin.parts.kernels.candidates import Search
from wjoin.parts.kernels.runs import Int64Array, SortedRun, Values

TABLE_LIMIT = 4
"""How much longer than the probing tuples a table of the codes may be, to be built for one search."""


def rows_of_keys(run: SortedRun, search: Search) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the tuples that find their code in a run near their time, and the row range of each.

    The run is sorted by code first; the tuples' codes ascend.
    """
    tuples = search.near(run)
    if len(tuples) == 0:
        return tuples, tuples, tuples
    start, end = key_ranges(run.codes, search.codes[tuples])
    hits = np.flatnonzero(end > start)
    return tuples[hits], start[hits], end[hits]


def key_ranges(codes: Int64Array, wanted: Int64Array) -> tuple[Int64Array, Int64Array]:
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


def first_at_least(values: Values, start: Int64Array, end: Int64Array, wanted: Values) -> Int64Array:
    """Return for each range [start, end) of ascending values the first place not below what is wanted."""
    return _search(values, start, end, wanted, np.less)


def first_above(values: Values, start: Int64Array, end: Int64Array, wanted: Values) -> Int64Array:
    """Return for each range [start, end) of ascending values the first place above what is wanted."""
    return _search(values, start, end, wanted, np.less_equal)


def _search(values: Values, start: Int64Array, end: Int64Array, wanted: Values, before: Any) -> Int64Array:
    if len(start) == 0:
        return start
    low, high = start.copy(), end.copy()
    top = len(values) - 1
    for _ in range(int((end - start).max()).bit_length()):
        middle = (low + high) >> 1
        below = before(values[np.minimum(middle, top)], wanted) & (low < high)
        low = np.where(below, middle + 1, low)
        high = np.where(below, high, middle)
    return low
