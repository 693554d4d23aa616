"""What a kernel finds: for each probing tuple, the rows of a run that it must be compared with."""

from dataclasses import dataclass

import numpy as np

from wjoin.parts.kernels.runs import BoolArray, Int64Array, SortedRun, Values


@dataclass(frozen=True)
class Candidates:
    """Row ranges that are not empty: ``first`` up to ``last`` for tuple ``tuples``, int64 of one length."""

    tuples: Int64Array
    first: Int64Array
    last: Int64Array

    @property
    def pairs(self) -> int:
        """How many pairs of a tuple and a row that is."""
        return int((self.last - self.first).sum())

    def pick(self, chosen: Int64Array) -> "Candidates":
        """Return those at some places."""
        return Candidates(self.tuples[chosen], self.first[chosen], self.last[chosen])

    def none(self) -> "Candidates":
        """Return no candidates."""
        return Candidates(self.tuples[:0], self.first[:0], self.last[:0])

    def moved(self, rows: int) -> "Candidates":
        """Return the ranges so many rows further on."""
        return Candidates(self.tuples, self.first + rows, self.last + rows)

    def expand(self) -> tuple[Int64Array, Int64Array]:
        """Return the pairs: (tuple, row), int64 of one length."""
        counts = self.last - self.first
        if (counts == 1).all():
            return self.tuples, self.first
        skipped = np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.arange(int(counts.sum()), dtype=np.int64) - skipped + np.repeat(self.first, counts)
        return np.repeat(self.tuples, counts), rows


@dataclass(frozen=True)
class Search:
    """Tuples that look for rows with their code and a first time in [low, high]; int64 of one length.

    ``least`` and ``greatest``: what the value by which the run is ordered may be, None where that
    is open. ``tuples``: the numbers of those whose code the run may hold, ascending; None for all.
    """

    codes: Int64Array
    lows: Int64Array
    highs: Int64Array
    least: Values | None = None
    greatest: Values | None = None
    tuples: Int64Array | None = None

    def near(self, run: SortedRun) -> Int64Array:
        """Return the numbers of the tuples to look for whose time range meets that of a run."""
        if run.rows == 0 or len(self.codes) == 0:
            return np.zeros(0, np.int64)
        earliest, latest = run.span
        if self.tuples is not None:
            lows, highs = self.lows[self.tuples], self.highs[self.tuples]
            near: Int64Array = self.tuples[(highs >= earliest) & (lows <= latest)]
            return near
        return np.flatnonzero((self.highs >= earliest) & (self.lows <= latest))

    def in_range(self, run: SortedRun, tuples: Int64Array, rows: Int64Array) -> BoolArray:
        """Return which pairs of a tuple and a row have times in range."""
        times = run.times[0][rows]
        inside: BoolArray = (times >= self.lows[tuples]) & (times <= self.highs[tuples])
        return inside
