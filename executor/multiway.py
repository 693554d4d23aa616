"""The multi-way probe: new rows of one input against the windows of all others.

A partial tuple starts as one new row and grows by one input at a time, as the steps of the plan's probe
say: each looks in the time range that all joined rows allow, and checks what is left to check.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from wjoin.executor.bands import band_values, moved
from wjoin.executor.bands import inside as inside_band
from wjoin.executor.combinations import Combinations
from wjoin.executor.conditions import prepared, true_of
from wjoin.executor.failed_pairs import failure
from wjoin.executor.gathering import GatheredLater, Pieces
from wjoin.executor.lacking import lacked_streams, there_name, values_of
from wjoin.executor.pair_calls import CALL_BYTES, PairFailedError, holds
from wjoin.executor.report import Report
from wjoin.executor.sifting import Sieve, sifted, worth_sifting
from wjoin.executor.windows import inside, wanted_by_any, within
from wjoin.parts.kernels.candidates import Candidates, Search
from wjoin.parts.kernels.kernel import Kernel
from wjoin.parts.kernels.registry import KERNELS
from wjoin.parts.kernels.runs import (
    GREATEST,
    LEAST,
    BoolArray,
    Int64Array,
    SortedRun,
    Values,
    equal_values,
    shifted,
    stable_order,
)
from wjoin.planner.plan.block_columns import stored_column
from wjoin.planner.plan.checks import Band, Comparison, Condition, Operand, PredicateCheck, of_kind
from wjoin.planner.plan.physical import Output, PhysicalPlan, decides_at_once
from wjoin.planner.plan.probes import in_order, linked_first
from wjoin.planner.plan.stage_kinds import Join, Stage
from wjoin.planner.plan.steps import Precedence, Probe, Step
from wjoin.planner.windows.bounds import Windows
from wjoin.udfs.predicate import Predicate

PARTIAL_LIMIT = 1 << 20
"""Candidate pairs that one expansion may produce; more are worked off in parts."""


@dataclass(frozen=True)
class MultiwayJoin:
    """The probes of one stage of a plan, counting what they do.

    ``kernels`` and ``predicates`` are those that the steps name, ``statement`` is what failures are told
    with. ``inside``: what chooses the combinations that are inside windows of rows, None where all are.
    """

    plan: PhysicalPlan
    number: int
    counted: Report = field(default_factory=Report)
    kernels: Mapping[str, Kernel] = field(default_factory=lambda: KERNELS)
    predicates: Mapping[str, Predicate] = field(default_factory=dict)
    statement: str = ""
    inside: Callable[[Combinations], Combinations] | None = None

    @property
    def stage(self) -> Stage:
        """The stage."""
        return self.plan.stages[self.number]

    @cached_property
    def _decides(self) -> bool:
        return decides_at_once(self.plan, self.number)

    @cached_property
    def _lacked(self) -> frozenset[int]:
        return lacked_streams(self.plan, self.stage)

    @property
    def alternatives(self) -> tuple[Windows, ...]:
        """The windows of which what meets here must be inside one; empty for no such."""
        return self.stage.alternatives if isinstance(self.stage, Join) else ()

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs to choose results for, in the last stage; passes apart keep to one alternative each."""
        last = self.number == len(self.plan.stages) - 1
        return self.plan.outputs if last and not self.plan.apart else ()

    def results(self, probe: Probe, pieces: Sequence[Pieces]) -> Iterator[Combinations]:
        """Yield the combinations that a probe makes.

        The pieces of its origin are one run, the new rows; those of the others are what it meets.
        """
        start = pieces[probe.origin].runs[0]
        if start.rows == 0 or any(pieces[step.input].rows == 0 for step in self._required(probe)):
            return
        if not probe.ordered:
            fewest = sorted(probe.order, key=lambda number: pieces[number].rows)
            order = linked_first(self.stage, [probe.origin], fewest)
            probe = in_order(self.plan, self.stage, probe, order)
        members = self.stage.inputs[probe.origin].members
        partial = Combinations(
            pieces,
            start.codes,
            {probe.origin: np.arange(start.rows, dtype=np.int64)},
            dict(zip(members, start.times, strict=True)),
        )
        if self.kernels[probe.steps[0].kernel].sweeps:
            partial = self._sweep(partial, probe)
        for complete in self._grow(partial, probe.steps):
            results = self._refined(complete, probe)
            if self.inside is not None:
                results = self.inside(results)
            if len(results):
                yield results

    def _required(self, probe: Probe) -> Iterator[Step]:
        """Yield the steps to inputs without whose rows there is no result."""
        return (step for step in probe.steps if self.plan.needs(self.stage.inputs[step.input].members))

    def _sweep(self, partial: Combinations, probe: Probe) -> Combinations:
        """Keep the tuples that reach some row of every required input (Mode 1 of MW)."""
        for step in self._required(probe):
            alive = np.zeros(len(partial), bool)
            for found in self._candidates(partial, step)[1]:
                alive[found.tuples] = True
            partial = partial if alive.all() else partial.pick(alive)
        return partial

    def _grow(self, partial: Combinations, steps: Sequence[Step]) -> Iterator[Combinations]:
        if not steps:
            yield partial
            return
        step, *others = steps
        search, found = self._candidates(partial, step)
        pairs = sum(each.pairs for each in found)
        if pairs == 0:
            return
        if pairs > PARTIAL_LIMIT and len(partial) > 1:
            for half in partial.halves():
                yield from self._grow(half, steps)
            return
        self.counted.add("comparisons", pairs)
        for part in _parts(found) if pairs > PARTIAL_LIMIT else [found]:
            kept = self._sifted(partial, step, part)
            grown = self._checked(self._extended(partial, step, search, kept), step)
            if len(grown):
                yield from self._grow(grown, others)

    def _candidates(self, partial: Combinations, step: Step) -> tuple[Search, list[Candidates]]:
        """Return what partial tuples look for on an input, and the candidates in each of its runs.

        They look where the streams allow that they have joined yet.
        """
        low = np.full(len(partial), LEAST, np.int64)
        high = np.full(len(partial), GREATEST, np.int64)
        for each in step.ranges:
            if each.stream not in partial.times:
                continue
            times = partial.times[each.stream]
            low = np.maximum(low, shifted(times, None if each.back is None else -each.back, LEAST))
            high = np.minimum(high, shifted(times, each.ahead, GREATEST))
            # Past the ends of 64 bits there is no row.
            if each.back is not None and each.back < 0:
                high = np.where(times > GREATEST + each.back, LEAST, high)
            if each.ahead is not None and each.ahead < 0:
                low = np.where(times < LEAST - each.ahead, GREATEST, low)
        index = None if step.index is None else self._value_range(step.index, partial)
        search = Search(partial.codes, low, high, *(index or (None, None)))
        kernel = self.kernels[step.kernel]
        pieces = partial.pieces[step.input]
        told = pieces.filter.tuples(partial.codes) if pieces.filter else {}
        return search, [
            kernel.candidates(run, replace(search, tuples=told.get(number)))
            for number, run in enumerate(pieces.runs)
        ]

    def _value_range(self, band: Band, partial: Combinations) -> tuple[Values | None, Values | None]:
        """Return what the values may be by which the rows of an input are ordered."""
        # left - high <= right <= left - low, and right + low <= left <= right + high.
        if band.left[0] in partial.times:
            values = band_values(self._values(band.left, partial))
            low, high = _negated(band.high), _negated(band.low)
        else:
            values = band_values(self._values(band.right, partial))
            low, high = band.low, band.high
        return moved(values, low, -band.slack), moved(values, high, band.slack)

    def _sifted(self, partial: Combinations, step: Step, found: list[Candidates]) -> list[Candidates]:
        """Return the candidates that may pass the conditions of a step, as far as that is told sooner so."""
        conditions = _conditions(step)
        if not conditions:
            return found
        runs = partial.pieces[step.input].runs
        return [
            self._sifted_in(run, partial, step, conditions, each) if worth_sifting(each) else each
            for run, each in zip(runs, found, strict=True)
        ]

    def _sifted_in(
        self,
        run: SortedRun,
        partial: Combinations,
        step: Step,
        conditions: Sequence[Comparison | Condition],
        found: Candidates,
    ) -> Candidates:
        start, end = int(found.first.min()), int(found.last.max())
        rows = run.batch.slice(start, end - start)
        members = [stream for stream in self.stage.inputs[step.input].members if stream not in partial.times]
        sieves = [self._sieve(each, partial, rows, members) for each in conditions]
        return sifted(sieves, found.moved(-start)).moved(start)

    def _sieve(
        self,
        condition: Comparison | Condition,
        partial: Combinations,
        rows: pa.RecordBatch,
        members: Sequence[int],
    ) -> Sieve:
        """Return a condition on tuples and some rows of an input."""
        of_rows = tuple(stream in members for stream, _ in condition.columns)
        columns = [
            values_of(self.plan, operand, self._lacked, rows.column)
            if own
            else self._values(operand, partial)
            for operand, own in zip(condition.columns, of_rows, strict=True)
        ]
        return Sieve(prepared(condition.expression, columns), of_rows)

    def _extended(
        self, partial: Combinations, step: Step, search: Search, found: list[Candidates]
    ) -> Combinations:
        members, pieces = self.stage.inputs[step.input].members, partial.pieces[step.input]
        kernel = self.kernels[step.kernel]
        tuples, rows = [], []
        times: list[list[Int64Array]] = [[] for _ in members]
        for run, offset, candidates in zip(pieces.runs, pieces.offsets, found, strict=True):
            tuple_numbers, places = candidates.expand()
            agree = kernel.agree(run, search, tuple_numbers, places)
            if agree is not None:
                tuple_numbers, places = tuple_numbers[agree], places[agree]
            tuples.append(tuple_numbers)
            rows.append(places + offset)
            for collected, column in zip(times, run.times, strict=True):
                collected.append(column[places])
        tuple_number = _one(tuples)
        # Tuples stay in the order of the runs, so that the next probe searches forward only.
        order = stable_order(tuple_number, len(partial)) if len(pieces.runs) > 1 else slice(None)
        grown = partial.pick(tuple_number[order])
        grown.rows[step.input] = _one(rows)[order]
        for stream, collected in zip(members, times, strict=True):
            grown.times[stream] = _one(collected)[order]
        return grown

    def _checked(self, partial: Combinations, step: Step) -> Combinations:
        """Keep the tuples that pass the checks of a step."""
        keep = inside(step.windows, partial.times)
        if step.order is not None:
            keep &= _in_order(step.order, partial.times)
        for left, right in step.keys:
            keep &= equal_values(self._values(left, partial), self._values(right, partial))
        for band in of_kind(step.checks, Band):
            left_values, right_values = self._values(band.left, partial), self._values(band.right, partial)
            keep &= np.asarray(left_values.is_valid()) & np.asarray(right_values.is_valid())
            keep &= inside_band(band, band_values(left_values), band_values(right_values))
        passing = partial if keep.all() else partial.pick(keep)
        for condition in _conditions(step):
            values = [self._values(operand, passing) for operand in condition.columns]
            told = self.statement if self._decides else None
            passing = passing.pick(true_of(condition.expression, values, told))
        for check in of_kind(step.checks, PredicateCheck):
            if len(passing):
                passing = passing.pick(self._called(check, passing))
        return passing

    def _called(self, check: PredicateCheck, tuples: Combinations) -> BoolArray:
        """Return for which tuples a predicate holds; it is called once for rows that many tuples share."""
        columns = [
            (self._input_of(operand, tuples), stored_column(self.plan, *operand).name)
            for operand in check.columns
        ]
        rows = [tuples.rows[number] for number in sorted({number for number, _ in columns})]
        first, place = np.arange(len(tuples)), None
        if len(rows) < len(tuples.rows):
            _, first, place = np.unique(np.stack(rows), axis=1, return_index=True, return_inverse=True)
        distinct = tuples if place is None else tuples.pick(first)
        held = np.concatenate([self._held(check, part) for part in distinct.parts(columns, CALL_BYTES)])
        return held if place is None else held[place.reshape(-1)]

    def _held(self, check: PredicateCheck, tuples: Combinations) -> BoolArray:
        predicate = self.predicates[check.predicate]
        arguments = [
            self._argument(each, tuples) if isinstance(each, tuple) else each for each in check.arguments
        ]
        try:
            return holds(predicate, arguments, check.asked)
        except PairFailedError as failed:
            raise failure(
                self.plan, self.stage, check, predicate.name, tuples, failed, self.statement
            ) from failed

    def _argument(self, operand: Operand, tuples: Combinations) -> GatheredLater:
        stream, number = operand
        stored = stored_column(self.plan, stream, number)
        kind = self.plan.streams[stream].columns[number].type if stored.restored else None
        return tuples.later(self._input_of(operand, tuples), stored.name, kind)

    def _values(self, operand: Operand, partial: Combinations) -> pa.Array:
        number = self._input_of(operand, partial)
        return values_of(self.plan, operand, self._lacked, lambda name: partial.column(number, name))

    def _input_of(self, operand: Operand, partial: Combinations) -> int:
        return next(number for number in partial.rows if operand[0] in self.stage.inputs[number].members)

    def _refined(self, complete: Combinations, probe: Probe) -> Combinations:
        """Keep what no earlier pass has found, and what some output wants."""
        keep = np.ones(len(complete), bool)
        for earlier in probe.excluded:
            keep &= ~within(earlier, complete.times)
        for wanted in self._wanted(complete):
            keep &= wanted
        return complete if keep.all() else complete.pick(keep)

    def _wanted(self, complete: Combinations) -> Iterator[BoolArray]:
        """Yield which combinations are inside the windows of some alternative."""
        if self.alternatives:
            kept: BoolArray = np.logical_or.reduce(
                [self._keeps(each, complete) for each in self.alternatives]
            )
            yield kept
        wanted = wanted_by_any(self.outputs, complete.times) if self.outputs else None
        if wanted is not None:
            yield wanted

    def _keeps(self, windows: Windows, complete: Combinations) -> BoolArray:
        """Return which combinations keep the bounds of windows, and have a row of each stream of these."""
        keep = within(windows, complete.times)
        for stream in self._lacked & windows.bounded:
            number = self._input_of((stream, 0), complete)
            keep &= np.asarray(complete.column(number, there_name(stream)))
        return keep


def _conditions(step: Step) -> list[Comparison | Condition]:
    return [each for each in step.checks if isinstance(each, Comparison | Condition)]


def _one(parts: Sequence[Int64Array]) -> Int64Array:
    """Return arrays as one, without a copy where there is one."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _parts(found: Sequence[Candidates]) -> Iterator[list[Candidates]]:
    """Yield the candidates of one tuple, whose rows are too many at once, in parts."""
    for number, each in enumerate(found):
        for begin, end in zip(each.first.tolist(), each.last.tolist(), strict=True):
            for first in range(begin, end, PARTIAL_LIMIT):
                rows = (first, min(end, first + PARTIAL_LIMIT))
                piece = Candidates(each.tuples[:1], *(np.array([row], np.int64) for row in rows))
                yield [piece if other == number else each.none() for other, each in enumerate(found)]


def _in_order(order: Precedence, times: Mapping[int, Int64Array]) -> BoolArray:
    """Return where one group of streams begins before another."""
    before, after = (
        np.minimum.reduce([times[stream] for stream in streams]) for streams in (order.before, order.after)
    )
    in_order: BoolArray = before <= after if order.equal else before < after
    return in_order


def _negated(bound: float | None) -> float | None:
    return None if bound is None else -bound
