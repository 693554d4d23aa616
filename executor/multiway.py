"""The multi-way probe: new rows of one input against the windows of all others.

A partial tuple starts as one new row and grows by one input at a time. Its time range on the
next input is the intersection of the ranges that its members reach (``planner.reach``); where
they reach further than the windows allow, complete tuples are refined.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from wjoin.executor.bands import band_values, inside, moved
from wjoin.executor.kernels.candidates import Candidates, Probe, WindowKernel
from wjoin.executor.kernels.kernels import KERNELS
from wjoin.executor.kernels.runs import (
    GREATEST,
    LEAST,
    BoolArray,
    Int64Array,
    SortedRun,
    Values,
    equal_values,
    integers,
    shifted,
    take,
)
from wjoin.executor.layout import input_columns, stored_column
from wjoin.planner.physical import (
    Bounds,
    Comparison,
    Kernel,
    Passes,
    PhysicalPlan,
    Stage,
    UpperBounds,
    completed,
)
from wjoin.planner.reach import Reach, reach

PARTIAL_LIMIT = 1 << 20
"""Candidate pairs that one expansion may produce; more are worked off in parts."""

_OPERATORS = {
    "=": np.equal,
    "<>": np.not_equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _negated(bound: float | None) -> float | None:
    return None if bound is None else -bound


@dataclass(frozen=True)
class Pieces:
    """The rows of one input that a probe may use: runs, addressed by one running row number."""

    runs: tuple[SortedRun, ...]

    @property
    def offsets(self) -> Int64Array:
        """The first row number of each run, int64."""
        return np.cumsum([0, *(run.rows for run in self.runs)])[:-1].astype(np.int64)

    @property
    def rows(self) -> int:
        """The number of rows of all runs."""
        return sum(run.rows for run in self.runs)

    def column(self, name: str, rows: Int64Array) -> pa.Array:
        """Return the values of a block column at the given row numbers."""
        return take([run.batch.column(name) for run in self.runs], self.offsets, rows)


@dataclass(frozen=True)
class Partial:
    """Partial tuples: their codes (ascending), and for each joined input its row numbers and times."""

    codes: Int64Array
    rows: dict[int, Int64Array]
    times: dict[int, Int64Array]

    def pick(self, chosen: Int64Array | BoolArray) -> "Partial":
        """Return the tuples at the given places."""
        return Partial(
            self.codes[chosen],
            {number: rows[chosen] for number, rows in self.rows.items()},
            {stream: times[chosen] for stream, times in self.times.items()},
        )


@dataclass(frozen=True)
class _Pass:
    """One pass over the windows: its closed graph, how far tuples reach, and the passes before it."""

    upper: UpperBounds
    reach: Reach
    earlier: tuple[UpperBounds, ...]


@dataclass
class Work:
    """What a join did: ``comparisons`` of a tuple with a row."""

    comparisons: int = 0


@dataclass(frozen=True)
class MultiwayJoin:
    """The logic of one stage: everything about it that does not change from batch to batch."""

    plan: PhysicalPlan
    stage: Stage
    last: bool
    work: Work = field(default_factory=Work)

    @property
    def kernel(self) -> WindowKernel:
        """How candidates are found."""
        return KERNELS[self.stage.kernel]

    def results(self, first: int, pieces: list[Pieces]) -> Iterator[pa.RecordBatch]:
        """Yield the combinations of the rows of input ``first`` with rows of all other inputs.

        ``pieces[first]`` is one run, the new rows; the others are what it probes. The batches
        have the columns of every input of the stage, as in a block.
        """
        start = pieces[first].runs[0]
        others = self._order(first, pieces)
        if start.rows == 0 or any(pieces[number].rows == 0 for number in others):
            return
        members = self.stage.inputs[first].members
        partial = Partial(
            start.codes,
            {first: np.arange(start.rows, dtype=np.int64)},
            dict(zip(members, start.times, strict=True)),
        )
        for each in self._passes():
            begun = self._sweep(partial, others, pieces, each) if self.stage.kernel is Kernel.MW else partial
            for complete in self._grow(begun, others, pieces, each):
                refined = self._refine(complete, each)
                if len(refined.codes):
                    yield self._assemble(refined, pieces)

    def _order(self, first: int, pieces: list[Pieces]) -> list[int]:
        """Return the other inputs in the order in which they are met."""
        if self.stage.orders:
            return list(self.stage.orders[first])
        return sorted((n for n in range(len(pieces)) if n != first), key=lambda n: pieces[n].rows)

    def _passes(self) -> Iterator[_Pass]:
        plan, bounds = self.plan, self.stage.bounds
        uppers: Sequence[UpperBounds] = (plan.upper,)
        if plan.branches and plan.passes is Passes.UNION:
            uppers = plan.branches
        for number, upper in enumerate(uppers):
            yield _Pass(upper, reach(bounds, upper, plan.staged), tuple(uppers[:number]))

    def _sweep(self, partial: Partial, others: list[int], pieces: list[Pieces], current: _Pass) -> Partial:
        """Keep the tuples that reach some row of every other input (Mode 1 of MW)."""
        for target in others:
            alive = np.zeros(len(partial.codes), bool)
            for found in self._candidates(partial, target, pieces, current)[1]:
                alive[found.probes] = True
            partial = partial if alive.all() else partial.pick(alive)
        return partial

    def _grow(
        self, partial: Partial, others: list[int], pieces: list[Pieces], current: _Pass
    ) -> Iterator[Partial]:
        if not others:
            yield partial
            return
        target = others[0]
        probe, found = self._candidates(partial, target, pieces, current)
        pairs = sum(each.pairs for each in found)
        if pairs == 0:
            return
        count = len(partial.codes)
        if pairs > PARTIAL_LIMIT and count > 1:
            for part in (np.arange(count // 2), np.arange(count // 2, count)):
                yield from self._grow(partial.pick(part), others, pieces, current)
            return
        self.work.comparisons += pairs
        grown = self._extend(partial, target, pieces[target], probe, found)
        grown = self._check(grown, target, pieces, current)
        if len(grown.codes):
            yield from self._grow(grown, others[1:], pieces, current)

    def _candidates(
        self, partial: Partial, target: int, all_pieces: list[Pieces], current: _Pass
    ) -> tuple[Probe, list[Candidates]]:
        """Return what partial tuples look for on an input, and the candidates in each of its runs."""
        anchor = self.stage.inputs[target].members[0]
        low = np.full(len(partial.codes), LEAST, np.int64)
        high = np.full(len(partial.codes), GREATEST, np.int64)
        for stream, times in partial.times.items():
            back, ahead = current.reach.back[stream][anchor], current.reach.ahead[stream][anchor]
            low = np.maximum(low, shifted(times, None if back is None else -back, LEAST))
            high = np.minimum(high, shifted(times, ahead, GREATEST))
        probe = Probe(partial.codes, low, high, *self._value_range(partial, target, all_pieces))
        return probe, [self.kernel.candidates(run, probe) for run in all_pieces[target].runs]

    def _value_range(
        self, partial: Partial, target: int, pieces: list[Pieces]
    ) -> tuple[Values | None, Values | None]:
        """Return what the values may be by which the rows of an input are ordered."""
        band = self.stage.index(target) if self.stage.kernel is Kernel.ORDERED else None
        if band is None or partial.times.keys().isdisjoint((band.left[0], band.right[0])):
            return None, None
        # left - high <= right <= left - low, and right + low <= left <= right + high.
        if band.left[0] in partial.times:
            values = band_values(self._values(band.left, partial, pieces))
            low, high = _negated(band.high), _negated(band.low)
        else:
            values = band_values(self._values(band.right, partial, pieces))
            low, high = band.low, band.high
        return moved(values, low, -band.slack), moved(values, high, band.slack)

    def _extend(
        self, partial: Partial, target: int, pieces: Pieces, probe: Probe, found: list[Candidates]
    ) -> Partial:
        members = self.stage.inputs[target].members
        tuples, rows = [], []
        times: list[list[Int64Array]] = [[] for _ in members]
        for run, offset, candidates in zip(pieces.runs, pieces.offsets, found, strict=True):
            tuple_numbers, places = candidates.expand()
            agree = self.kernel.agree(run, probe, tuple_numbers, places)
            if agree is not None:
                tuple_numbers, places = tuple_numbers[agree], places[agree]
            tuples.append(tuple_numbers)
            rows.append(places + offset)
            for collected, column in zip(times, run.times, strict=True):
                collected.append(column[places])
        tuple_number = np.concatenate(tuples)
        # Tuples stay in the order of the runs, so that the next probe searches forward only.
        order = np.argsort(tuple_number, kind="stable") if len(pieces.runs) > 1 else slice(None)
        grown = partial.pick(tuple_number[order])
        grown.rows[target] = np.concatenate(rows)[order]
        for stream, collected in zip(members, times, strict=True):
            grown.times[stream] = np.concatenate(collected)[order]
        return grown

    def _check(self, partial: Partial, target: int, pieces: list[Pieces], current: _Pass) -> Partial:
        """Keep the tuples on which the new input's other members, real keys and comparisons agree."""
        keep = np.ones(len(partial.codes), bool)
        members = self.stage.inputs[target].members
        if len(members) > 1 and self.stage.bounds is Bounds.EXACT:
            keep &= within(current.upper, partial.times)
        for left, right in self._key_pairs(target, partial):
            keep &= equal_values(self._values(left, partial, pieces), self._values(right, partial, pieces))
        for comparison in self.stage.comparisons:
            if completed(comparison, partial.times, members):
                keep &= self._compare(comparison, partial, pieces)
        for band in self.stage.bands:
            if not band.checked and completed(band, partial.times, members):
                left, right = (self._values(side, partial, pieces) for side in (band.left, band.right))
                keep &= np.asarray(left.is_valid()) & np.asarray(right.is_valid())
                keep &= inside(band, band_values(left), band_values(right))
        return partial if keep.all() else partial.pick(keep)

    def _key_pairs(self, target: int, partial: Partial) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """Return pairs of scan columns that hold the real keys of the new input and of a joined one."""
        known = next(number for number in partial.rows if number != target)
        pairs = []
        new_key, old_key = self.stage.inputs[target].key, self.stage.inputs[known].key
        if new_key is not None and old_key is not None:
            new_code = self.plan.streams[new_key[0]].codes[new_key[1]]
            old_code = self.plan.streams[old_key[0]].codes[old_key[1]]
            for new, old in zip(new_code.verify, old_code.verify, strict=True):
                pairs.append(((new_key[0], new), (old_key[0], old)))
        return pairs

    def _compare(self, comparison: Comparison, partial: Partial, pieces: list[Pieces]) -> BoolArray:
        left = self._values(comparison.left, partial, pieces)
        right = self._values(comparison.right, partial, pieces)
        known: BoolArray = np.asarray(left.is_valid()) & np.asarray(right.is_valid())
        values = [np.asarray(integers(side).fill_null(0)) for side in (left, right)]
        agree: BoolArray = _OPERATORS[comparison.operator](*values)
        known &= agree
        return known

    def _values(self, operand: tuple[int, int], partial: Partial, pieces: list[Pieces]) -> pa.Array:
        stream = operand[0]
        number = next(n for n, each in enumerate(self.stage.inputs) if stream in each.members)
        stored = stored_column(self.plan, *operand)
        return pieces[number].column(stored.name, partial.rows[number])

    def _refine(self, partial: Partial, current: _Pass) -> Partial:
        """Keep the tuples inside the windows, once all times of the stage are known."""
        keep = np.ones(len(partial.codes), bool)
        if self.stage.bounds is not Bounds.EXACT or self.plan.passes is Passes.UNION:
            keep &= within(current.upper, partial.times)
        for earlier in current.earlier:
            keep &= ~within(earlier, partial.times)
        if self.last and self.plan.branches and self.plan.passes is Passes.HULL:
            keep &= np.logical_or.reduce([within(branch, partial.times) for branch in self.plan.branches])
        return partial if keep.all() else partial.pick(keep)

    def _assemble(self, partial: Partial, pieces: list[Pieces]) -> pa.RecordBatch:
        columns: dict[str, pa.Array] = {}
        for number, each in enumerate(self.stage.inputs):
            for name in input_columns(self.plan, each):
                columns[name] = pieces[number].column(name, partial.rows[number])
        return pa.RecordBatch.from_pydict(columns)


def within(upper: UpperBounds, times: dict[int, Int64Array]) -> BoolArray:
    """Return which tuples keep every bound of ``upper`` between the streams in ``times``."""
    streams = list(times)
    keep = np.ones(len(times[streams[0]]), bool)
    for first in streams:
        for second in streams:
            bound = upper[first][second]
            if first != second and bound is not None:
                keep &= times[second] <= shifted(times[first], bound, GREATEST)
    return keep
