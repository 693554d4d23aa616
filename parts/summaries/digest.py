"""DIGEST: how many rows each cell of the keys holds, in levels: exact where the bytes allow, coarser else.

Keys are laid out in cells (layout.py): by their order, where they lie close together, or by hash. Of the
cells, the view tells which hold anything; of these, which hold 2 rows or more; of these, 3, and so on by
growing steps, each as a set within the last one (sets.py). A heavy key costs a few bits more than a rare one,
and a rare one 1.5 to 2 bits more than the logarithm of how many cells there are to one that is held. There
are as many cells as fit into ``Form.size``: where each key has its own, the view is exact, up to the steps.

Where they do not have, keys from some number of rows on get cells of their own in a first layer, the others
share those of a second one. That number is the one by which the two layers tell most: the view deviates least
from the counts, in the mean square, as in equation 11.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self, cast

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.summaries.compact_sets import packed, unpacked
from wjoin.parts.summaries.exact_counts import Counts
from wjoin.parts.summaries.hashing import FloatArray
from wjoin.parts.summaries.layout import HASHED, THRESHOLDS, Held, Layout, finest, size_in
from wjoin.parts.summaries.summary import Form, Summary, View, correlation

_HEAD = struct.Struct("<BqQQBd")
"""Whether ordered, the least code, how many places and cells there are, how many levels, and the codes of a
cell."""

_CLOSE = 64
"""Codes are laid out in their order where their range has so many for each that occurs, or fewer."""

_APART = 256
"""Of so many codes that are asked for, one may be taken for a heavy one."""

_TAIL = 32
"""Bytes that the second layer has at least."""

_CELLS = 4096
"""In so many cells windows are compared."""


@dataclass(frozen=True)
class _Layer:
    """Cells that hold rows, ascending (int64[n]), and how many of them each code of a cell has
    (float64[n])."""

    layout: Layout
    cells: Int64Array
    each: FloatArray
    codes: float

    def expected(self, codes: Int64Array) -> FloatArray:
        """Return the rows of each code (float64[n])."""
        if not len(self.cells):
            return np.zeros(len(codes))
        wanted = self.layout.cells(codes)
        places = np.minimum(np.searchsorted(self.cells, wanted), len(self.cells) - 1)
        return np.where(self.cells[places] == wanted, self.each[places], 0.0)


class DigestView(View):
    """One layer, or two."""

    def read(self, body: bytes) -> None:
        """Read the sets of all levels."""
        self.layers: list[_Layer] = []
        while body:
            layer, body = _read(body, self.form.seed)
            self.layers.append(layer)

    def expected(self, codes: Int64Array, mine: View | None = None) -> FloatArray:
        """Return the rows of the code in the first layer that has it, which there share a cell in equal
        parts."""
        found = np.zeros(len(codes))
        for layer in self.layers:
            found = np.where(found > 0, found, layer.expected(codes))
        return found

    def similarity(self, other: View) -> float:
        """Return the correlation of the rows in some thousands of cells, of the same codes in both
        windows."""
        theirs = cast(DigestView, other)
        ends = [_ends(each) for view in (self, theirs) for each in view.layers if each.layout.ordered]
        if not self.layers or not theirs.layers:
            return 0.0
        if len(ends) < len(self.layers) + len(theirs.layers):
            return correlation(*(_by_hash(each) for each in (self, theirs)))
        least, greatest = min(low for low, _ in ends), max(high for _, high in ends)
        return correlation(*(_by_order(each, least, greatest) for each in (self, theirs)))


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
    def rows(self) -> int:  # type: ignore[override]  # is only read
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
        """Tell the layers by which the view deviates least."""
        counted = self.counted.where(self.counted.counts > 0)
        if not len(counted.codes):
            return b""
        told = max(_splits(self.form, counted), key=lambda each: each.explained, default=None)
        return b"".join(told.content) if told else _in_one_cell(counted)

    def arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        """Keep the counts."""
        return self.counted.codes, self.counted.counts

    @classmethod
    def of_arrays(cls, form: Form, rows: int, arrays: tuple[npt.NDArray[np.generic], ...]) -> Self:
        """Return the summary of counts."""
        return cls(form, Counts(cast(Int64Array, arrays[0]), cast(Int64Array, arrays[1])))


@dataclass(frozen=True)
class _Told:
    """Layers as they are told, and how much of the sum of squares of the counts they explain."""

    content: list[bytes]
    explained: float


def _splits(form: Form, counted: Counts) -> Iterator[_Told]:
    """Yield one layer, and unless each code has its own cell in it, two by several thresholds."""
    for layout, told in _shared(form, counted, form.size):
        yield told
        if layout.many == layout.range or layout.many >= _APART * len(counted.codes):
            return
    most = int(counted.counts.max())
    for limit in THRESHOLDS[(THRESHOLDS > 1) & (most >= THRESHOLDS)][::2]:
        own, size = _own(form, counted.where(counted.counts >= limit))
        if size > form.size - _TAIL:
            continue
        for _, told in _shared(form, counted.where(counted.counts < limit), form.size - size):
            yield _Told([*own.content, *told.content], own.explained + told.explained)


def _layouts(form: Form, counted: Counts) -> Iterator[tuple[Layout, bool]]:
    """Yield the layouts of the most cells: in order, where that is possible, and whether codes lie close
    then; by hash, unless they do."""
    least = int(counted.codes[0])
    width = int(counted.codes[-1]) - least + 1
    close = width <= max(_CLOSE * len(counted.codes), 8 * form.size)
    if width <= HASHED:
        yield Layout(True, least, width, width, form.seed), close
    if not close or width > HASHED:
        yield Layout(False, 0, HASHED, HASHED, form.seed), False


def _shared(form: Form, counted: Counts, size: int) -> Iterator[tuple[Layout, _Told]]:
    """Yield the layers of the most cells that take so many bytes."""
    if not len(counted.codes):
        yield Layout(True, 0, 1, 1, form.seed), _Told([], 0.0)
        return
    for whole, close in _layouts(form, counted):
        held = Held.of(counted, whole)
        layout = finest(held, whole, size)
        if layout is None:
            continue
        cells, rows, codes = held.in_cells(layout)
        # Where they lie far apart it is not known how many others may be asked for: about as many again.
        if not layout.ordered:
            asked = 1 + 2 * len(counted.codes) / layout.many
        else:
            asked = layout.width if close else min(layout.width, 2 * len(counted.codes) / len(cells))
        explained = float((rows.astype(np.float64) ** 2 / np.maximum(codes, asked)).sum())
        yield layout, _Told([_told(layout, cells, rows, asked)], explained)


def _in_one_cell(counted: Counts) -> bytes:
    """Return a layer for a size into which nothing fits: all rows in one cell."""
    layout = Layout(False, 0, HASHED, 1, 0)
    return _told(layout, np.zeros(1, np.int64), np.array([counted.rows]), float(len(counted.codes)))


def _own(form: Form, heavy: Counts) -> tuple[_Told, int]:
    """Return the layer of keys that have cells of their own, and its bytes."""
    many = _APART * len(heavy.codes)
    whole, _ = next(_layouts(form, heavy))
    if not whole.ordered or many < whole.range:
        whole = Layout(False, 0, HASHED, min(many, HASHED), form.seed)
    cells, rows, _ = Held.of(heavy, whole).in_cells(whole)
    told = _Told([_told(whole, cells, rows, 1.0)], float((heavy.counts.astype(np.float64) ** 2).sum()))
    return told, size_in(whole, rows)


def _told(layout: Layout, cells: Int64Array, rows: Int64Array, codes: float) -> bytes:
    """Return a layer as it travels: the mean of each level, and who belongs to it of those of the last
    one."""
    levels = np.searchsorted(THRESHOLDS, rows, "right") - 1
    many = int(levels.max()) + 1
    means = np.bincount(levels, rows, many) / np.maximum(np.bincount(levels, minlength=many), 1)
    head = _HEAD.pack(layout.ordered, layout.least, layout.range, layout.many, many, codes)
    parts = [head, means.astype(np.float32).tobytes(), packed(cells, layout.many)]
    inside = levels
    for level in range(1, many):
        reached = inside >= level
        parts.append(packed(np.flatnonzero(reached), len(inside)))
        inside = inside[reached]
    return b"".join(parts)


def _read(content: bytes, seed: int) -> tuple[_Layer, bytes]:
    """Return a layer that `_told` has told, and the bytes after it."""
    ordered, least, width, many, levels, codes = _HEAD.unpack_from(content)
    rest = content[_HEAD.size :]
    means = np.frombuffer(rest, np.float32, levels).astype(np.float64)
    cells, rest = unpacked(rest[4 * levels :], many)
    rows = np.full(len(cells), means[0])
    inside = np.arange(len(cells))
    for level in range(1, levels):
        reached, rest = unpacked(rest, len(inside))
        inside = inside[reached]
        rows[inside] = means[level]
    layout = Layout(bool(ordered), least, width, many, seed)
    return _Layer(layout, cells, rows / max(codes, 1.0), codes), rest


def _ends(layer: _Layer) -> tuple[int, int]:
    return layer.layout.least, layer.layout.least + layer.layout.range


def _by_order(view: DigestView, least: int, greatest: int) -> FloatArray:
    """Return the rows of a view in cells of equal width between two codes (float64[cells])."""
    found = np.zeros(_CELLS)
    for layer in view.layers:
        middles = (layer.cells + 0.5) * layer.layout.width + (layer.layout.least - least)
        places = np.minimum((middles * (_CELLS / (greatest - least))).astype(np.int64), _CELLS - 1)
        np.add.at(found, places, layer.each * max(layer.codes, 1.0))
    return found


def _by_hash(view: DigestView) -> FloatArray:
    """Return the rows of a view in cells of hashes; codes in order are hashed one by one, as far as few."""
    found = np.zeros(_CELLS)
    for layer in view.layers:
        own, layout = layer.cells, layer.layout
        if layout.ordered:
            codes = (layout.least + ((own + 0.5) * layout.width).astype(np.int64)).astype(np.int64)
            own = Layout(False, 0, HASHED, _CELLS, layout.seed).cells(codes)
        else:
            own = own * _CELLS // layout.many
        np.add.at(found, own, layer.each * max(layer.codes, 1.0))
    return found
