"""Where the rows of each key stand in a run that is sorted by code: found the better, the more is asked."""

import numpy as np
import numpy.typing as npt

_Int64Array = npt.NDArray[np.int64]

TABLE_LIMIT = 8
"""How many entries of a table of all codes cost as much as the search for one code without it."""


class KeyIndex:
    """The row range of each code of an ascending array of codes, int64, not empty.

    A code is searched for among the different ones. Once so many were asked for that a table of all
    codes between the least and the greatest would have paid, there is one.
    """

    def __init__(self, codes: _Int64Array) -> None:
        self._codes = codes
        self._least, self._greatest = int(codes[0]), int(codes[-1])
        first = np.concatenate(([True], codes[1:] != codes[:-1]))
        starts = np.flatnonzero(first)
        self._distinct = codes[starts]
        self._edges = np.append(starts, len(codes))
        self._asked = 0
        self._table: _Int64Array | None = None

    def find(self, wanted: _Int64Array) -> tuple[_Int64Array, _Int64Array, _Int64Array]:
        """Return the places of the wanted codes that there are, and the half-open row range of each."""
        self._asked += len(wanted)
        span = self._greatest - self._least + 1
        if self._table is None and span + len(self._codes) <= TABLE_LIMIT * self._asked:
            self._table = np.zeros(span + 1, np.int64)
            np.cumsum(np.bincount(self._codes - self._least, minlength=span), out=self._table[1:])
        if self._table is None:
            places = np.searchsorted(self._distinct, wanted)
            places[places == len(self._distinct)] = 0
            hits = np.flatnonzero(self._distinct[places] == wanted)
            places = places[hits]
            return hits, self._edges[places], self._edges[places + 1]
        known = (wanted >= self._least) & (wanted <= self._greatest)
        places = np.where(known, wanted - self._least, 0)
        start, end = self._table[places], self._table[places + 1]
        hits = np.flatnonzero(known & (end > start))
        return hits, start[hits], end[hits]
