"""The multi-way probe: new rows of one input against the windows of all others.

A partial tuple starts as one new row and grows by one input at a time. Its time range on the
next input is the intersection of the ranges that each of its members allows (EXACT bounds).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from wjoin.executor.kernels.hash_window import expand, probe
from wjoin.executor.kernels.runs import BoolArray, Int64Array, SortedRun, equal_values, integers, take
from wjoin.executor.layout import input_columns, stored_column
from wjoin.planner.physical import Comparison, PhysicalPlan, Stage, UpperBounds

PARTIAL_LIMIT = 1 << 20
"""Candidate pairs that one expansion may produce; more are worked off in parts."""

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max - 1

_OPERATORS = {
    "=": np.equal,
    "<>": np.not_equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def shifted(times: Int64Array, distance: int | None, unbounded: int) -> Int64Array:
    """Return ``times + distance``, held inside int64; ``unbounded`` everywhere for no distance."""
    if distance is None or len(times) == 0:
        return np.full(len(times), unbounded, np.int64)
    low, high = int(times.min()) + distance, int(times.max()) + distance
    if low >= _LEAST and high <= _GREATEST:
        return times + np.int64(distance)
    exact = (max(_LEAST, min(_GREATEST, int(time) + distance)) for time in times)
    return np.fromiter(exact, np.int64, len(times))


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
class MultiwayJoin:
    """The logic of one stage: everything about it that does not change from batch to batch."""

    plan: PhysicalPlan
    stage: Stage
    last: bool

    def results(self, first: int, pieces: list[Pieces]) -> Iterator[pa.RecordBatch]:
        """Yield the combinations of the rows of input ``first`` with rows of all other inputs.

        ``pieces[first]`` is one run, the new rows; the others are what it probes. The batches
        have the columns of every input of the stage, as in a block.
        """
        start = pieces[first].runs[0]
        others = sorted((n for n in range(len(pieces)) if n != first), key=lambda n: pieces[n].rows)
        if start.rows == 0 or any(pieces[number].rows == 0 for number in others):
            return
        members = self.stage.inputs[first].members
        partial = Partial(
            start.codes,
            {first: np.arange(start.rows, dtype=np.int64)},
            dict(zip(members, start.times, strict=True)),
        )
        for complete in self._grow(partial, others, pieces):
            refined = self._refine(complete)
            if len(refined.codes):
                yield self._assemble(refined, pieces)

    def _grow(self, partial: Partial, others: list[int], pieces: list[Pieces]) -> Iterator[Partial]:
        if not others:
            yield partial
            return
        target = others[0]
        ranges = self._ranges(partial, target, pieces[target])
        total = sum(int((last - first).sum()) for _, first, last in ranges)
        if total == 0:
            return
        count = len(partial.codes)
        if total > PARTIAL_LIMIT and count > 1:
            for part in (np.arange(count // 2), np.arange(count // 2, count)):
                yield from self._grow(partial.pick(part), others, pieces)
            return
        grown = self._extend(partial, target, pieces[target], ranges)
        grown = self._check(grown, target, pieces)
        if len(grown.codes):
            yield from self._grow(grown, others[1:], pieces)

    def _ranges(
        self, partial: Partial, target: int, pieces: Pieces
    ) -> list[tuple[Int64Array, Int64Array, Int64Array]]:
        upper = self.plan.upper
        anchor = self.stage.inputs[target].members[0]
        low = np.full(len(partial.codes), _LEAST, np.int64)
        high = np.full(len(partial.codes), _GREATEST, np.int64)
        for stream, times in partial.times.items():
            back = upper[anchor][stream]
            low = np.maximum(low, shifted(times, None if back is None else -back, _LEAST))
            high = np.minimum(high, shifted(times, upper[stream][anchor], _GREATEST))
        return [probe(run, partial.codes, low, high) for run in pieces.runs]

    def _extend(
        self,
        partial: Partial,
        target: int,
        pieces: Pieces,
        ranges: list[tuple[Int64Array, Int64Array, Int64Array]],
    ) -> Partial:
        members = self.stage.inputs[target].members
        probes, rows = [], []
        times: list[list[Int64Array]] = [[] for _ in members]
        for run, offset, found in zip(pieces.runs, pieces.offsets, ranges, strict=True):
            tuple_numbers, places = expand(*found)
            probes.append(tuple_numbers)
            rows.append(places + offset)
            for collected, column in zip(times, run.times, strict=True):
                collected.append(column[places])
        tuple_number = np.concatenate(probes)
        # Tuples stay in key order, so that the next probe searches forward only.
        order = np.argsort(tuple_number, kind="stable") if len(pieces.runs) > 1 else slice(None)
        grown = partial.pick(tuple_number[order])
        grown.rows[target] = np.concatenate(rows)[order]
        for stream, collected in zip(members, times, strict=True):
            grown.times[stream] = np.concatenate(collected)[order]
        return grown

    def _check(self, partial: Partial, target: int, pieces: list[Pieces]) -> Partial:
        """Keep the tuples on which the new input's other members, real keys and comparisons agree."""
        keep = np.ones(len(partial.codes), bool)
        members = self.stage.inputs[target].members
        if len(members) > 1:
            keep &= within(self.plan.upper, partial.times)
        for left, right in self._key_pairs(target, partial):
            keep &= equal_values(self._values(left, partial, pieces), self._values(right, partial, pieces))
        for comparison in self.stage.comparisons:
            sides = {comparison.left[0], comparison.right[0]}
            if sides <= partial.times.keys() and not sides.isdisjoint(members):
                keep &= self._compare(comparison, partial, pieces)
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

    def _refine(self, partial: Partial) -> Partial:
        """Keep the tuples that satisfy one branch of the disjunction, once all times are known."""
        if not self.last or not self.plan.branches:
            return partial
        keep = np.zeros(len(partial.codes), bool)
        for branch in self.plan.branches:
            keep |= within(branch, partial.times)
        return partial.pick(keep)

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
                keep &= times[second] <= shifted(times[first], bound, _GREATEST)
    return keep
