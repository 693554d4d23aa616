"""Binary searches in many ranges of one array at once."""

from typing import Any

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
Values = npt.NDArray[Any]
"""Integers of any size, or floating-point numbers."""


def first_at_least(values: Values, start: Int64Array, end: Int64Array, wanted: Values) -> Int64Array:
    """Return for each range [start, end) of ascending values the first place not below what is wanted."""
    return _search(values, start, end, wanted, np.less)


def first_above(values: Values, start: Int64Array, end: Int64Array, wanted: Values) -> Int64Array:
    """Return for each range [start, end) of ascending values the first place above what is wanted."""
    return _search(values, start, end, wanted, np.less_equal)


_AT_ONCE = 1 << 14
"""How many ranges are searched at once: what is known of them stays in the cache of a processor."""


def _search(values: Values, start: Int64Array, end: Int64Array, wanted: Values, before: Any) -> Int64Array:
    if len(start) == 0:
        return start
    if len(start) <= _AT_ONCE:
        return _searched(values, start, end, wanted, before)
    found = np.empty_like(start)
    for begin in range(0, len(start), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        found[part] = _searched(values, start[part], end[part], wanted[part], before)
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
