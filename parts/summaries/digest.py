"""DIGEST: how many rows each cell of the keys holds, in levels: exact where the bytes allow, coarser else.

Keys are laid out in cells: by their order, where they lie close together, or by hash. Of the cells, the
view tells which hold anything; of these, which hold 2 rows or more; of these, 3, and so on by growing steps,
each as a set within the last one (sets.py). A heavy key costs a few bits more than a rare one, and a rare one
1.5 to 2 bits more than the logarithm of how many cells there are to one that is held. There are as many cells
as fit into ``Form.size``: where each key has its own, the view is exact, up to the steps of the levels.
"""

import struct
from dataclasses import dataclass
from typing import Self, cast

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.summaries.counts import Counts
from wjoin.parts.summaries.hashing import FloatArray, mixed
from wjoin.parts.summaries.sets import packed, size_of, unpacked
from wjoin.parts.summaries.summary import Form, Summary, View

_HEAD = struct.Struct("<BqQQB")
"""Whether ordered, the least code, how many codes there may be, how many cells, and how many levels."""

_HASHED = 1 << 32
"""How many places there are for a hashed code."""

_CLOSE = 64
"""Codes are laid out in their order where their range has so many for each that occurs, or fewer."""

_THRESHOLDS = np.unique(np.round(np.concatenate([[1, 2, 3], 4 * 1.42 ** np.arange(40)])).astype(np.int64))
"""How many rows a cell of each level has at least."""


@dataclass(frozen=True)
class _Layout:
    """Where codes lie: ``many`` cells of ``range`` places, from the code ``least`` on, or by hash."""

    ordered: bool
    least: int
    range: int
    many: int
    seed: int

    def cells(self, codes: Int64Array) -> Int64Array:
        """Return the cell of each code (int64[n]), -1 beyond the range."""
        if not self.ordered:
            places = mixed(codes, self.seed) >> np.uint64(32)
            return (places * np.uint64(self.many) >> np.uint64(32)).astype(np.int64)
        # Differences of 64-bit numbers that are too great come out as negative or beyond the range.
        places = codes.view(np.uint64) - np.uint64(self.least & (1 << 64) - 1)
        inside = places < np.uint64(self.range)
        scaled = np.where(inside, places, np.uint64(0)) * np.uint64(self.many) // np.uint64(self.range)
        return np.where(inside, scaled.astype(np.int64), -1)

    @property
    def width(self) -> float:
        """How many codes share a cell."""
        return self.range / self.many if self.ordered else 1.0


class DigestView(View):
    """Cells that hold rows, and how many."""

    def read(self, body: bytes) -> None:
        """Read the sets of all levels."""
        ordered, least, width, many, levels = _HEAD.unpack_from(body)
        self.layout = _Layout(bool(ordered), least, width, many, self.form.seed)
        rest = body[_HEAD.size :]
        means = np.frombuffer(rest, np.float32, levels).astype(np.float64)
        rest = rest[4 * levels :]
        self.cells = np.empty(0, np.int64)
        self.counts = np.empty(0)
        inner, limit = np.empty(0, np.int64), many
        for level in range(levels):
            found, rest = unpacked(rest, limit)
            inner = found if level == 0 else inner[found]
            if level == 0:
                self.cells, self.counts = found, np.full(len(found), means[0])
                inner = np.arange(len(found))
            else:
                self.counts[inner] = means[level]
            limit = len(found)

    def expected(self, codes: Int64Array, mine: View | None = None) -> FloatArray:
        """Return the rows of each code's cell, in equal parts for all codes that it may have."""
        if not len(self.cells):
            return np.zeros(len(codes))
        wanted = self.layout.cells(codes)
        places = np.minimum(np.searchsorted(self.cells, wanted), len(self.cells) - 1)
        return np.where(self.cells[places] == wanted, self.counts[places] / self.layout.width, 0.0)

    def similarity(self, other: View) -> float:
        """Return the correlation of the rows in the cells of both, as if each window were all of its view."""
        theirs = cast(DigestView, other)
        if not len(self.cells) or not len(theirs.cells):
            return 0.0
        coarse = self if self.layout.many <= theirs.layout.many else theirs
        return _cell_correlation(coarse, theirs if coarse is self else self)


@dataclass(frozen=True)
class DigestSummary(Summary):
    """Exact counts; the view is as exact as its size allows."""

    form: Form
    counted: Counts

    name = "digest"
    meaning = "how many rows each key or cell of keys has in each window, as exactly as the bytes allow"
    sure = True
    greedy = True
    view_type = DigestView

    @property
    def rows(self) -> int:  # type: ignore[override]
        """How many rows these are."""
        return self.counted.rows

    @classmethod
    def empty(cls, form: Form) -> Self:
        """Return the summary of no rows."""
        return cls(form, Counts.of(np.empty(0, np.int64)))

    def add(self, codes: Int64Array) -> Self:
        """Count rows."""
        return type(self)(self.form, self.counted.plus(Counts.of(codes)))

    def remove(self, codes: Int64Array) -> Self:
        """Count them off."""
        return type(self)(self.form, self.counted.plus(Counts.of(codes, -1)))

    def plus(self, other: Self) -> Self:
        """Count both."""
        return type(self)(self.form, self.counted.plus(other.counted))

    def body(self, since: bytes | None) -> bytes:
        """Tell the cells of the finest layout that fits."""
        held = self.counted.counts > 0
        codes, counts = self.counted.codes[held], self.counted.counts[held]
        layout = _finest(self.form, codes, counts)
        return _told(layout, *_in_cells(layout, codes, counts))

    def arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        """Keep the counts."""
        return self.counted.codes, self.counted.counts

    @classmethod
    def of_arrays(cls, form: Form, rows: int, arrays: tuple[npt.NDArray[np.generic], ...]) -> Self:
        """Return the summary of counts."""
        return cls(form, Counts(cast(Int64Array, arrays[0]), cast(Int64Array, arrays[1])))


def _finest(form: Form, codes: Int64Array, counts: Int64Array) -> _Layout:
    """Return the layout of the most cells that fits, of those that differ by a quarter of a power of two."""
    if not len(codes):
        return _Layout(True, 0, 1, 1, form.seed)
    width = int(codes[-1]) - int(codes[0]) + 1
    ordered = width <= max(_CLOSE * len(codes), 8 * form.size)
    width = width if ordered else _HASHED
    steps = [
        round(2 ** (quarter / 4))
        for quarter in range(4, 4 * width.bit_length())
        if 2 ** (quarter / 4) < width
    ]
    choices = [1, *sorted({each for each in steps if each < width}), width]
    low, high = 0, len(choices) - 1
    while low < high:
        middle = (low + high + 1) // 2
        layout = _Layout(ordered, int(codes[0]), width, choices[middle], form.seed)
        _, held = _in_cells(layout, codes, counts)
        low, high = (middle, high) if _size(layout, held) <= form.size else (low, middle - 1)
    return _Layout(ordered, int(codes[0]), width, choices[low], form.seed)


def _in_cells(layout: _Layout, codes: Int64Array, counts: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the cells that hold rows, ascending (int64[n]), and how many (int64[n])."""
    found = layout.cells(codes)
    cells, places = np.unique(found, return_inverse=True)
    return cells, np.bincount(places, counts, len(cells)).astype(np.int64)


def _members(held: Int64Array) -> list[int]:
    """Return how many cells reach each level."""
    ascending = np.sort(held)
    many = len(held) - np.searchsorted(ascending, _THRESHOLDS)
    return [int(each) for each in many if each]


def _size(layout: _Layout, held: Int64Array) -> int:
    sizes = _members(held)
    return 4 * len(sizes) + sum(map(size_of, sizes, [layout.many, *sizes]))


def _told(layout: _Layout, cells: Int64Array, held: Int64Array) -> bytes:
    levels = np.searchsorted(_THRESHOLDS, held, "right") - 1
    many = int(levels.max()) + 1 if len(held) else 0
    sums = np.bincount(levels, held, many)
    means = (sums / np.maximum(np.bincount(levels, minlength=many), 1)).astype(np.float32)
    parts = [_HEAD.pack(layout.ordered, layout.least, layout.range, layout.many, many), means.tobytes()]
    members, limit = cells, layout.many
    inside = levels
    for level in range(many):
        reached = inside >= level
        chosen = np.flatnonzero(reached) if level else members
        parts.append(packed(chosen, limit))
        inside = inside[reached]
        limit = len(inside)
    return b"".join(parts)


def _cell_correlation(coarse: DigestView, fine: DigestView) -> float:
    """Return the correlation of two windows over the cells of the coarser view."""
    if coarse.layout.ordered != fine.layout.ordered:
        return 0.0
    many, layout = coarse.layout.many, fine.layout
    if layout.ordered:
        # A cell of the finer one lies where its middle does.
        middles = ((fine.cells + 0.5) * layout.width).astype(np.int64) + layout.least
        places = coarse.layout.cells(middles)
    else:
        places = fine.cells * many // layout.many
    inside = places >= 0
    theirs = np.bincount(places[inside], fine.counts[inside], minlength=many)
    outside = float(fine.counts[~inside].sum())
    product = float(coarse.counts @ theirs[coarse.cells])
    squares = float(coarse.counts @ coarse.counts), float(theirs @ theirs) + outside**2 / many
    means = float(coarse.counts.sum()), float(theirs.sum()) + outside
    covariance = product - means[0] * means[1] / many
    scale = np.sqrt(max(squares[0] - means[0] ** 2 / many, 0.0) * max(squares[1] - means[1] ** 2 / many, 0.0))
    return float(min(max(covariance / scale, -1.0), 1.0)) if scale > 0 else 0.0
