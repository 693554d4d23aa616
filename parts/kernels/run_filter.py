"""Which runs of an input may hold a code: one look for all of them, so that few are searched for in each."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.code_ranges import CodeRanges, Int64Array
from wjoin.parts.kernels.runs import SortedRun

RUNS = 3
"""Runs below which each is searched at once."""

FEW = 32
"""How many rows can be entered in the time in which one code is searched for in all runs."""

ROOM = 2
"""How many ranges of codes there are, about, for each row."""

MOST_RANGES = 1 << 23
"""The most ranges of codes, about; each takes two bytes."""

CROWDED = 4
"""How many rows a range may have, on the average of those that have any."""


class RunFilter:
    """A Bloom filter of each of some runs that are sorted by code, all in one table, made when it pays.

    The one hash function is the code's range, so that codes that ascend meet the table from its beginning
    to its end. Runs beyond the sixteenth share the bits of the first ones.
    """

    def __init__(self, runs: Sequence[SortedRun]) -> None:
        self._runs = [run for run in runs if run.rows]
        self._numbers = [number for number, run in enumerate(runs) if run.rows]
        self._rows = sum(run.rows for run in runs)
        self._asked = 0

    def tuples(self, codes: Int64Array) -> dict[int, Int64Array]:
        """Return, by the number of a run, the places of the codes that may be there; others may have all."""
        self._asked += len(codes)
        if len(self._runs) < RUNS or self._rows > FEW * self._asked or self._table is None:
            return {}
        runs = self._table.find(codes)
        return {
            number: np.flatnonzero((runs & _bit(place)) != 0) for place, number in enumerate(self._numbers)
        }

    @cached_property
    def _table(self) -> "_Table | None":
        return _Table.of([run.codes for run in self._runs])


@dataclass(frozen=True)
class _Table:
    """For each range of codes, and one behind them, the runs with rows there: uint16, a bit for each."""

    ranges: CodeRanges
    runs: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, codes: Sequence[Int64Array]) -> "_Table | None":
        """Return the table of ascending codes; None where rows of the longest run share few ranges."""
        least, greatest = min(int(each[0]) for each in codes), max(int(each[-1]) for each in codes)
        ranges = CodeRanges.over(least, greatest, min(MOST_RANGES, ROOM * sum(map(len, codes))))
        longest = ranges.inside(max(codes, key=len))
        if len(longest) > CROWDED * (1 + np.count_nonzero(longest[1:] != longest[:-1])):
            return None
        runs = np.zeros(ranges.count + 1, np.uint16)
        for place, each in enumerate(codes):
            runs[ranges.inside(each)] |= _bit(place)
        return cls(ranges, runs)

    def find(self, codes: Int64Array) -> npt.NDArray[np.uint16]:
        """Return for each code the runs that may have it."""
        return self.runs[self.ranges.of(codes)]


def _bit(place: int) -> np.uint16:
    return np.uint16(1 << place % 16)
