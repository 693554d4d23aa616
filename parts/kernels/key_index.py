"""Where the rows of each key stand in a run that is sorted by code: found the better, the more is asked."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.halving import first_above, first_at_least

_Int64Array = npt.NDArray[np.int64]
_Found = tuple[_Int64Array, _Int64Array, _Int64Array]

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

    def __init__(self, codes: _Int64Array, small: int = SMALL) -> None:
        self._codes = codes
        self._small = small
        self._asked = 0

    def find(self, wanted: _Int64Array) -> _Found:
        """Return the places of the wanted codes that there are, and the half-open row range of each."""
        self._asked += len(wanted)
        if len(self._codes) < self._small or len(self._codes) > FEW * self._asked:
            return self._among_rows(wanted)
        if self._ranges is not None:
            return self._ranges.find(self._codes, wanted)
        return self._among_codes(wanted)

    def _among_rows(self, wanted: _Int64Array) -> _Found:
        start = np.searchsorted(self._codes, wanted)
        hits = np.flatnonzero(self._codes[np.minimum(start, len(self._codes) - 1)] == wanted)
        return hits, start[hits], np.searchsorted(self._codes, wanted[hits], side="right")

    @cached_property
    def _ranges(self) -> "_Ranges | None":
        return _Ranges.of(self._codes)

    @cached_property
    def _edges(self) -> _Int64Array:
        return _edges(self._codes)

    @cached_property
    def _distinct(self) -> _Int64Array:
        return self._codes[self._edges[:-1]]

    def _among_codes(self, wanted: _Int64Array) -> _Found:
        places = np.searchsorted(self._distinct, wanted)
        places[places == len(self._distinct)] = 0
        hits = np.flatnonzero(self._distinct[places] == wanted)
        places = places[hits]
        return hits, self._edges[places], self._edges[places + 1]


@dataclass(frozen=True)
class _Ranges:
    """Ranges of 2 ** ``shift`` codes each, from ``least`` on.

    ``numbers`` (int32): for each range, and one behind them, the number of those with rows up to it where
    it has some, else zero; ``edges`` (int64): where the rows of these begin, and the last ones end.
    """

    least: np.uint64
    shift: int
    numbers: npt.NDArray[np.int32]
    edges: _Int64Array

    @classmethod
    def of(cls, codes: _Int64Array) -> "_Ranges | None":
        """Return the ranges of ascending codes; None where many rows of different codes would share one."""
        span = int(codes[-1]) - int(codes[0])
        shift = max(0, span.bit_length() - (ROOM * len(codes) - 1).bit_length())
        least = codes[:1].view(np.uint64)[0]
        ranges = ((codes.view(np.uint64) - least) >> np.uint64(shift)).view(np.int64)
        edges = _edges(ranges)
        if shift and len(codes) > CROWDED * (len(edges) - 1):
            return None
        numbers = np.zeros((span >> shift) + 2, np.int32)
        numbers[ranges[edges[:-1]]] = np.arange(1, len(edges), dtype=np.int32)
        return cls(least, shift, numbers, edges)

    def find(self, codes: _Int64Array, wanted: _Int64Array) -> _Found:
        """Return the places of the wanted codes that are among ``codes``, and the row range of each."""
        # What is below the least code wraps around.
        ranges = (wanted.view(np.uint64) - self.least) >> np.uint64(self.shift)
        np.minimum(ranges, np.uint64(len(self.numbers) - 1), out=ranges)
        numbers = self.numbers[ranges.view(np.int64)]
        hits = np.flatnonzero(numbers)
        numbers = numbers[hits]
        start, end = self.edges[numbers - 1], self.edges[numbers]
        if not self.shift:
            return hits, start, end
        wanted = wanted[hits]
        start = first_at_least(codes, start, end, wanted)
        end = first_above(codes, start, end, wanted)
        there = np.flatnonzero(end > start)
        return hits[there], start[there], end[there]


def _edges(ascending: _Int64Array) -> _Int64Array:
    """Return where the places of each different value begin, and the last ones end."""
    changes = np.flatnonzero(ascending[1:] != ascending[:-1])
    edges = np.empty(len(changes) + 2, np.int64)
    edges[0], edges[-1] = 0, len(ascending)
    np.add(changes, 1, out=edges[1:-1])
    return edges
