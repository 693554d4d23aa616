"""Binary searches in many ranges of one array at once."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
Values = npt.NDArray[Any]
"""Integers of any size, or floating-point numbers."""


def first_at_least(values: Values, start: Int64Array, end: Int64Array, wanted: Values) -> Int64Array:
    """Return for each range [start, end) of ascending values the first place not below what is wanted."""
    return _search(values, start, end, wanted, np.less, "left")


def first_above(values: Values, start: Int64Array, end: Int64Array, wanted: Values) -> Int64Array:
    """Return for each range [start, end) of ascending values the first place above what is wanted."""
    return _search(values, start, end, wanted, np.less_equal, "right")


_AT_ONCE = 1 << 14
"""How many ranges are searched at once: what is known of them stays in the cache of a processor."""


_LOOKED_FOR = 64
"""What is looked for in a range, on the average, where each range is searched by itself."""

_Side = Literal["left", "right"]


def _search(
    values: Values, start: Int64Array, end: Int64Array, wanted: Values, before: Any, side: _Side
) -> Int64Array:
    if len(start) == 0:
        return start
    if values.dtype == wanted.dtype == np.int64:
        edges = np.flatnonzero((start[1:] != start[:-1]) | (end[1:] != end[:-1])) + 1
        if len(start) > _LOOKED_FOR * (len(edges) + 1):
            return _one_by_one(values, start, end, wanted, edges, side)
    if len(start) <= _AT_ONCE:
        return _searched(values, start, end, wanted, before)
    found = np.empty_like(start)
    for begin in range(0, len(start), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        found[part] = _searched(values, start[part], end[part], wanted[part], before)
    return found


def _one_by_one(
    values: Values, start: Int64Array, end: Int64Array, wanted: Values, edges: Int64Array, side: _Side
) -> Int64Array:
    """Search the ranges one after the other; ``edges``: where another one begins than before."""
    found = start.copy()
    for begin, stop in zip([0, *edges.tolist()], [*edges.tolist(), len(start)], strict=True):
        among = values[start[begin] : end[begin]]
        found[begin:stop] += np.searchsorted(among, wanted[begin:stop], side)
    return found


def _searched(values: Values, start: Int64Array, end: Int64Array, wanted: Values, before: Any) -> Int64Array:
    # Most ranges are of a row or two: what their first row does not tell is looked for in few of them.
    found: Int64Array = np.minimum(start + before(values[np.minimum(start, len(values) - 1)], wanted), end)
    left = np.flatnonzero((found > start) & (found < end))
    if len(left):
        found[left] = _halved(values, found[left], end[left], wanted[left], before)
    return found


def _halved(values: Values, low: Int64Array, high: Int64Array, wanted: Values, before: Any) -> Int64Array:
    top = len(values) - 1
    for _ in range(int((high - low).max()).bit_length()):
        middle = (low + high) >> 1
        below = before(values[np.minimum(middle, top)], wanted) & (low < high)
        low = np.where(below, middle + 1, low)
        high = np.where(below, high, middle)
    return low
