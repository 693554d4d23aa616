"""ASOF joins: which rows of the first input are decided, and the nearest row of the second for each of them.

A row of the first input waits until no nearer row of the second can come: until the second one's watermark
has passed the latest time at which it could be. It then leaves the state and looks, once, for the nearest row
among all that there are. So results follow from the watermarks alone, and new rows of the second input only
wait.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.executor.blocks import concatenate
from wjoin.executor.combinations import Combinations
from wjoin.executor.made import Made
from wjoin.executor.multiway import PARTIAL_LIMIT, MultiwayJoin
from wjoin.executor.new_rows import NewRows
from wjoin.executor.state.kept_rows import settled
from wjoin.executor.waits import Alone, Waits
from wjoin.grammar.join_kinds import Nearest
from wjoin.parts.kernels.candidates import Candidates
from wjoin.parts.kernels.halving import first_above, first_at_least
from wjoin.parts.kernels.runs import GREATEST, LEAST, BoolArray, Int64Array, Order, RunShape, SortedRun
from wjoin.planner.plan.stage_kinds import Join
from wjoin.planner.plan.steps import Step

FARTHEST = np.uint64(2**64 - 1)
"""How far no row is from another."""

ENDED = GREATEST + 1
"""The mark of an input of which no row comes any more."""

Gaps = npt.NDArray[np.uint64]
"""Distances of times, as 64 bits hold them all."""


@dataclass
class Undecided(Waits):
    """Tells which rows of the first input come to be decided, whose order is ``shape``.

    ``before``: by stream, no row that is still to come is earlier, None for any; ``passed``: the same after
    the micro-batch. ``alone`` tells rows by themselves.
    """

    stage: Join
    shape: RunShape
    alone: Alone
    before: Mapping[int, int | None]
    passed: Mapping[int, int | None]
    _without: BoolArray = field(default_factory=lambda: np.zeros(0, bool))

    def begin(self, working: Sequence[Sequence[SortedRun]], new: NewRows, later: int | None) -> None:
        """Let the rows begin results that are decided now."""
        second, marks = self.stage.inputs[1].members[0], self.passed
        if later is not None and (mark := marks[second]) is not None:
            marks = {**marks, second: min(mark, later)}
        new.probing[0] = self._due(working[0], new.probing[0], marks)

    def note(self, found: Combinations) -> bool:
        """Take note of results."""
        self._without[found.rows[0]] = False
        return True

    def end(self, new: NewRows, later: int | None) -> Iterator[Made]:
        """Yield the decided rows that have no result."""
        due = new.probing[0]
        if due is not None and self.stage.kind.alone:
            yield from self.alone(0, due.batch.filter(pa.array(self._without)))

    def _due(
        self, kept: Sequence[SortedRun], new: SortedRun | None, marks: Mapping[int, int | None]
    ) -> SortedRun | None:
        """Return the rows that are decided by marks and were not before: of those ``kept``, and new ones."""
        since, until = self._least(self.before), self._least(marks)
        self.before = marks
        found = [_between(run, since, until) for run in kept]
        found += [] if new is None else [_between(new, None, until)]
        batches = [each for each in found if each.num_rows]
        due = None
        if batches:
            due = self.shape.sort(concatenate(batches)) if batches[1:] else self.shape.read(batches[0])
        self._without = np.ones(0 if due is None else due.rows, bool)
        return due

    def _least(self, marks: Mapping[int, int | None]) -> int | None:
        """Return the least time of the rows that wait; None where all do."""
        rules = self.stage.inputs[0].retention
        own = {each.stream: marks.get(each.stream) for each in rules}
        return GREATEST + 1 if {*own.values()} == {ENDED} else settled(rules, own)


def _between(run: SortedRun, since: int | None, until: int | None) -> pa.RecordBatch:
    """Return the rows at or after one time, None for any, and before another, None for none."""
    if until is None or run.rows == 0 or run.span[0] >= until or (since is not None and run.span[1] < since):
        return run.batch.slice(0, 0)
    chosen = run.times[0] <= min(until - 1, GREATEST)
    if since is not None:
        chosen &= run.times[0] >= max(since, LEAST)
    return run.batch if chosen.all() else run.batch.filter(pa.array(chosen))


@dataclass(frozen=True)
class _EveryRow(MultiwayJoin):
    """Joins each row of the first input to every row of the second that satisfies ON."""

    def grown(self, partial: Combinations, step: Step) -> Iterator[Combinations]:
        """Yield tuples with all their rows."""
        yield from self._grow(partial, [step])

    def _checked(self, partial: Combinations, step: Step) -> Combinations:
        passing = super()._checked(partial, step)
        for wanted in self._wanted(passing):
            passing = passing.pick(wanted)
        return passing if self.inside is None else self.inside(passing)


@dataclass(frozen=True)
class NearestJoin(_EveryRow):
    """Joins each row of the first input to one row of the second: the nearest of those that satisfy ON."""

    @property
    def _join(self) -> Join:
        if not isinstance(self.stage, Join):
            raise AssertionError("an ASOF join is no hop")
        return self.stage

    def _grow(self, partial: Combinations, steps: Sequence[Step]) -> Iterator[Combinations]:
        """Yield each tuple with its nearest row, where it has one."""
        (step,) = steps
        if len(partial) > PARTIAL_LIMIT:
            yield from self._in_halves(partial, steps)
            return
        kernel = self.kernels[step.kernel]
        if not kernel.timely or (self.stage.keyed and kernel.order is not Order.KEY):
            # What it finds is of all keys, or in no order of time.
            yield from self._nearest_of_all(partial, step)
            return
        search, found = self._candidates(partial, step)
        near = self._at_nearest(partial, step, found)
        pairs = sum(each.pairs for each in near)
        if pairs == 0:
            return
        if pairs > PARTIAL_LIMIT and len(partial) > 1:
            yield from self._in_halves(partial, steps)
            return
        self.counted.add("comparisons", pairs)
        chosen = self._least_of(self._checked(self._extended(partial, step, search, near), step))
        yield chosen
        # Where the nearest rows do not satisfy the conditions, farther ones may.
        looking = np.zeros(len(partial), bool)
        for each in near:
            looking[each.tuples] = True
        if len(chosen) < np.count_nonzero(looking):
            looking &= ~np.isin(partial.rows[0], chosen.rows[0])
            yield from self._nearest_of_all(partial.pick(looking), step)

    def _nearest_of_all(self, partial: Combinations, step: Step) -> Iterator[Combinations]:
        """Yield each tuple with the nearest of all its rows, where it has one."""
        own = self.plan, self.number, self.counted, self.kernels, self.predicates, self.statement
        found = [self._least_of(each) for each in _EveryRow(*own, self.inside).grown(partial, step)]
        if found:
            yield self._least_of(_together(found))

    def _in_halves(self, partial: Combinations, steps: Sequence[Step]) -> Iterator[Combinations]:
        for half in partial.halves():
            yield from self._grow(half, steps)

    def _at_nearest(self, partial: Combinations, step: Step, found: Sequence[Candidates]) -> list[Candidates]:
        """Return of the candidates of each tuple those of the one instant that is nearest."""
        own, runs = partial.times[self._join.timed_by], partial.pieces[step.input].runs
        places = [self._places(own, run.times[0], each) for run, each in zip(runs, found, strict=True)]
        if len(runs) == 1:
            (run,), (each,), (at,) = runs, found, places
            return [Candidates(each.tuples, *_around(run.times[0], each.first, each.last, at))]
        least = np.full(len(partial), FARTHEST)
        instants = np.full(len(partial), GREATEST)
        nearest = [run.times[0][each] for run, each in zip(runs, places, strict=True)]
        gaps = [_gaps(own[each.tuples], times) for each, times in zip(found, nearest, strict=True)]
        for each, far in zip(found, gaps, strict=True):
            least[each.tuples] = np.minimum(least[each.tuples], far)
        for each, far, times in zip(found, gaps, nearest, strict=True):
            # Of two instants that are as near, the earlier one.
            near = far == least[each.tuples]
            tuples = each.tuples[near]
            instants[tuples] = np.minimum(instants[tuples], times[near])
        kept = []
        for run, each, at, times in zip(runs, found, places, nearest, strict=True):
            here = times == instants[each.tuples]
            first, last = _around(run.times[0], each.first[here], each.last[here], at[here])
            kept.append(Candidates(each.tuples[here], first, last))
        return kept

    def _places(self, own: Int64Array, times: Int64Array, found: Candidates) -> Int64Array:
        """Return a row of a run that is nearest to each of some tuples with candidates in it."""
        if self._join.nearest in (Nearest.AT_OR_BEFORE, Nearest.BEFORE):
            return found.last - 1
        if self._join.nearest is not Nearest.EITHER:
            return found.first
        mine = own[found.tuples]
        after = first_above(times, found.first, found.last, mine)
        earlier, later = np.maximum(after - 1, found.first), np.minimum(after, found.last - 1)
        places: Int64Array = np.where(
            _gaps(mine, times[earlier]) <= _gaps(mine, times[later]), earlier, later
        )
        return places

    def _least_of(self, found: Combinations) -> Combinations:
        """Return one of the combinations of each row: the nearest, of several of one instant the least."""
        if (np.diff(found.rows[0]) > 0).all():
            return found
        times = found.times[self._join.inputs[1].members[0]]
        gaps = _gaps(found.times[self._join.timed_by], times)
        order = np.lexsort((times, gaps, found.rows[0]))
        first = np.append(True, np.diff(found.rows[0][order]) != 0)
        group = np.cumsum(first) - 1
        best = order[first][group]
        tied = (gaps[order] == gaps[best]) & (times[order] == times[best])
        order, group = order[tied], group[tied]
        several = np.bincount(group)[group] > 1
        if several.any():
            among = order[several]
            least = self._by_columns(found.pick(among), group[several])
            order = np.concatenate([order[~several], among[least]])
        # In the order in which they were found.
        return found.pick(np.sort(order))

    def _by_columns(self, found: Combinations, group: Int64Array) -> Int64Array:
        """Return the place of the least combination of each group, by the columns of the second input."""
        keys = [key for operand in self._join.tied for key in _ranks(self._values(operand, found))]
        order = np.lexsort((*reversed(keys), group))
        least: Int64Array = order[np.append(True, np.diff(group[order]) != 0)]
        return least


def _around(
    times: Int64Array, first: Int64Array, last: Int64Array, places: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return in which part of ranges of ascending times those stand that are at some places: mostly alone."""
    begin, end = places.copy(), places + 1
    tied = np.flatnonzero((places > first) & (times[places - 1] == times[places]))
    begin[tied] = first_at_least(times, first[tied], places[tied], times[places[tied]])
    more = np.flatnonzero(end < last)
    end[more] = first_above(times, end[more], last[more], times[places[more]])
    return begin, end


def _ranks(values: pa.Array) -> Iterator[npt.NDArray[np.generic]]:
    """Yield by what values are in order as in Spark: NULL first, NaN last. What is nested is so as text."""
    yield np.asarray(values.is_valid())
    if pa.types.is_nested(values.type) or pa.types.is_null(values.type):
        texts = np.array([repr(each) for each in values.to_pylist()])
        yield np.unique(texts, return_inverse=True)[1]
        return
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    yield pc.rank(values, "ascending", tiebreaker="dense").to_numpy()
    if pa.types.is_floating(values.type):
        # Two zeros are equal, and not the same.
        yield ~np.signbit(values.fill_null(0).to_numpy())


def _gaps(first: Int64Array, second: Int64Array) -> Gaps:
    """Return how far times are apart."""
    return np.maximum(first, second).view(np.uint64) - np.minimum(first, second).view(np.uint64)


def _together(found: Sequence[Combinations]) -> Combinations:
    """Return combinations of the same inputs as one."""
    first = found[0]
    return replace(
        first,
        codes=np.concatenate([each.codes for each in found]),
        rows={number: np.concatenate([each.rows[number] for each in found]) for number in first.rows},
        times={stream: np.concatenate([each.times[stream] for each in found]) for stream in first.times},
        _gatherings={},
    )
