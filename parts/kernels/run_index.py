"""Where the rows of each key stand in a run that is sorted by code: found the better, the more is asked."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.code_ranges import CodeRanges, Int64Array
from wjoin.parts.kernels.halving import first_above, first_at_least

_Found = tuple[Int64Array, Int64Array, Int64Array]

SMALL = 1 << 13
"""Rows below which nothing is prepared."""

FEW = 8
"""How many rows can be prepared in the time in which one code is searched for among all of them."""

ROOM = 4
"""How many ranges of codes there are, about, for each row."""

CROWDED = 4
"""How many rows a range may have, on the average of those that have any."""


class KeyIndex:
    """The row range of each code of an ascending array of codes, int64, not empty.

    A few codes are searched for among all rows. For more the codes are divided into ranges of one size, most
    of which have no row or one; where they lie too unevenly for that, the different ones are searched. In a
    run of fewer than ``small`` rows all rows are.
    """

    def __init__(self, codes: Int64Array, small: int = SMALL) -> None:
        self._codes = codes
        self._small = small
        self._asked = 0

    def find(self, wanted: Int64Array) -> _Found:
        """Return the places of the wanted codes that there are, and the half-open row range of each."""
        self._asked += len(wanted)
        if len(self._codes) < self._small or len(self._codes) > FEW * self._asked:
            return self._among_rows(wanted)
        if self._ranges is not None:
            return self._ranges.find(self._codes, wanted)
        return self._among_codes(wanted)

    def _among_rows(self, wanted: Int64Array) -> _Found:
        start = np.searchsorted(self._codes, wanted)
        last = len(self._codes) - 1
        hits = np.flatnonzero(self._codes[np.minimum(start, last)] == wanted)
        start, wanted = start[hits], wanted[hits]
        end = start + 1
        # Most codes have one row.
        more = np.flatnonzero(self._codes[np.minimum(end, last)] == wanted)
        end[more] = np.searchsorted(self._codes, wanted[more], side="right")
        return hits, start, end

    @cached_property
    def _ranges(self) -> "_Ranges | None":
        return _Ranges.of(self._codes)

    @cached_property
    def _edges(self) -> Int64Array:
        return _edges(self._codes)

    @cached_property
    def _distinct(self) -> Int64Array:
        return self._codes[self._edges[:-1]]

    def _among_codes(self, wanted: Int64Array) -> _Found:
        places = np.searchsorted(self._distinct, wanted)
        places[places == len(self._distinct)] = 0
        hits = np.flatnonzero(self._distinct[places] == wanted)
        places = places[hits]
        return hits, self._edges[places], self._edges[places + 1]


@dataclass(frozen=True)
class _Ranges:
    """What is known of ranges of codes.

    ``numbers`` (int32): for each range, and one behind them, the number of those with rows up to it where
    it has some, else zero; ``edges`` (int64): where the rows of these begin, and the last ones end.
    """

    ranges: CodeRanges
    numbers: npt.NDArray[np.int32]
    edges: Int64Array

    @classmethod
    def of(cls, codes: Int64Array) -> "_Ranges | None":
        """Return the ranges of ascending codes; None where many rows of different codes would share one."""
        ranges = CodeRanges.over(int(codes[0]), int(codes[-1]), ROOM * len(codes))
        places = ranges.inside(codes)
        edges = _edges(places)
        if ranges.shift and len(codes) > CROWDED * (len(edges) - 1):
            return None
        numbers = np.zeros(ranges.count + 1, np.int32)
        numbers[places[edges[:-1]]] = np.arange(1, len(edges), dtype=np.int32)
        return cls(ranges, numbers, edges)

    def find(self, codes: Int64Array, wanted: Int64Array) -> _Found:
        """Return the places of the wanted codes that are among ``codes``, and the row range of each."""
        numbers = self.numbers[self.ranges.of(wanted)]
        hits = np.flatnonzero(numbers)
        numbers = numbers[hits]
        start, end = self.edges[numbers - 1], self.edges[numbers]
        if not self.ranges.shift:
            return hits, start, end
        wanted = wanted[hits]
        start = first_at_least(codes, start, end, wanted)
        end = first_above(codes, start, end, wanted)
        there = np.flatnonzero(end > start)
        return hits[there], start[there], end[there]


def _edges(ascending: Int64Array) -> Int64Array:
    """Return where the places of each different value begin, and the last ones end."""
    changes = np.flatnonzero(ascending[1:] != ascending[:-1])
    edges = np.empty(len(changes) + 2, np.int64)
    edges[0], edges[-1] = 0, len(ascending)
    np.add(changes, 1, out=edges[1:-1])
    return edges
