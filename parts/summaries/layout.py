"""Where the codes of a digest lie: in cells, by their order or by hash; and how many fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.summaries.compact_sets import size_of
from wjoin.parts.summaries.exact_counts import Counts
from wjoin.parts.summaries.hashing import UInt64Array, mixed

HASHED = 1 << 32
"""How many places there are for a hashed code."""

THRESHOLDS = np.unique(np.round(np.concatenate([[1, 2, 3], 4 * 1.42 ** np.arange(40)])).astype(np.int64))
"""How many rows a cell of each level has at least."""

_MOST = 1 << 12
"""Levels are counted by table below it."""


@dataclass(frozen=True)
class Layout:
    """Cells of equal width: ``many`` for ``range`` places.

    A code's place is how far it lies above ``least``, or where it is not ``ordered``, a hash of it.
    """

    ordered: bool
    least: int
    range: int
    many: int
    seed: int

    def places(self, codes: Int64Array) -> UInt64Array:
        """Return the place of each code (uint64[n]); beyond the range, where codes are ordered, is
        outside."""
        if not self.ordered:
            return mixed(codes, self.seed) >> np.uint64(32)
        # What lies below the least one wraps around, and comes out above the range.
        return codes.view(np.uint64) - np.uint64(self.least & (1 << 64) - 1)

    def cells_at(self, places: UInt64Array) -> Int64Array:
        """Return the cell of each place within the range (int64[n])."""
        scaled = places * np.uint64(self.many)
        return (scaled // np.uint64(self.range)).astype(np.int64)

    def cells(self, codes: Int64Array) -> Int64Array:
        """Return the cell of each code (int64[n]), -1 outside."""
        places = self.places(codes)
        inside = places < np.uint64(self.range)
        return np.where(inside, self.cells_at(np.where(inside, places, np.uint64(0))), -1)

    @property
    def width(self) -> float:
        """How many places share a cell."""
        return self.range / self.many


@dataclass(frozen=True)
class Held:
    """Codes by their places, ascending (uint64[n]), and how many rows have each (int64[n])."""

    places: UInt64Array
    counts: Int64Array

    @classmethod
    def of(cls, counted: Counts, layout: Layout) -> Self:
        """Return them as a layout has them, of however many cells."""
        places = layout.places(counted.codes)
        if layout.ordered:
            return cls(places, counted.counts)
        order = np.argsort(places)
        return cls(places[order], counted.counts[order])

    def in_cells(self, layout: Layout) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return the cells that hold rows, ascending, and how many rows and codes each has (int64[m])."""
        cells = layout.cells_at(self.places)
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        codes = np.diff(np.append(starts, len(cells)))
        rows = np.add.reduceat(self.counts, starts) if len(starts) else self.counts[:0]
        return cells[starts], rows, codes


def size_in(layout: Layout, rows: Int64Array) -> int:
    """Return the bytes of all levels of a layout whose cells hold so many rows."""
    members = _members(rows)
    return 4 * len(members) + sum(map(size_of, members, [layout.many, *members]))


def _members(rows: Int64Array) -> Sequence[int]:
    """Return how many cells reach each level."""
    few = np.bincount(np.minimum(rows, _MOST), minlength=_MOST + 1)
    reached = few[::-1].cumsum()[::-1]
    low = THRESHOLDS <= _MOST
    many = [int(each) for each in reached[THRESHOLDS[low]]]
    high = [int((rows >= each).sum()) for each in THRESHOLDS[~low]] if many[-1] else []
    return [each for each in many + high if each]


def finest(held: Held, whole: Layout, size: int) -> Layout | None:
    """Return the layout of the most cells that takes so many bytes, of those that differ by a quarter of a
    power of two; None where not even one cell does."""
    steps = {round(2 ** (quarter / 4)) for quarter in range(4 * whole.range.bit_length())}
    choices = [*sorted(each for each in steps if each < whole.range), whole.range]
    low, high, found = 0, len(choices) - 1, None
    while low <= high:
        middle = (low + high) // 2
        layout = Layout(whole.ordered, whole.least, whole.range, choices[middle], whole.seed)
        if size_in(layout, held.in_cells(layout)[1]) <= size:
            low, found = middle + 1, layout
        else:
            high = middle - 1
    return found
