"""What waits until it is known what windows of rows count.

That are the results of the last stage. Where not all joins are inner ones (``held_for``), it is what comes to
each input: what has met no other may be told only when it is known what meets it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from wjoin.executor.arrivals import Arrivals
from wjoin.executor.blocks import concatenate
from wjoin.executor.combinations import Combinations
from wjoin.executor.counted import (
    LATEST,
    TICKS,
    TIME,
    WAITING,
    Marks,
    Ticks,
    decided,
    fewer,
    inside,
    latest_times,
    together,
    waiting_groups,
)
from wjoin.executor.made import PAST, Made
from wjoin.executor.report import Report
from wjoin.executor.state.kept_rows import Keeper, kept, known_before, least_of, least_times, watermark
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.state.slices import Slice
from wjoin.executor.stretches import HELD_STRETCHES, Arrived
from wjoin.executor.waits import MicroBatch, Waits
from wjoin.parts.kernels.runs import LEAST, BoolArray, Int64Array, SortedRun, int64_view
from wjoin.parts.routes.route import Role
from wjoin.planner.plan.block_columns import time_name
from wjoin.planner.plan.counting import ends_by_count, ends_in_time, windows_at
from wjoin.planner.plan.edges import held_for
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.stage_kinds import Hop, Join, PassedOn, Retention, Stage


@dataclass(frozen=True)
class CountedTables(Waits):
    """Tells the results of stage ``number`` over tables that are inside windows of rows.

    ``held``: what is outside meets nothing, for what has met no other is a result, too.
    """

    plan: PhysicalPlan
    number: int
    ticks: Mapping[int, Ticks]
    counted: Report
    held: bool

    def inside(self, found: Combinations) -> Combinations:
        """Return the combinations that are inside, where others must not meet."""
        return inside(self.plan, self.number, self.ticks, found) if self.held else found

    def told(self, made: Made) -> Iterator[Made]:
        """Yield what is inside."""
        if self.held:
            yield made
            return
        chosen, _ = decided(self.plan, self.number, self.ticks, made.rows, None)
        rows = made.rows.filter(pa.array(chosen))
        self.counted.add("matches", rows.num_rows)
        yield Made(rows, made.to)


@dataclass
class Uncounted(Waits):
    """What the worker of stage ``number`` knows of windows of rows in a micro-batch.

    ``after`` are the slices after it: those of what waits, then of the ticks of each window.
    """

    plan: PhysicalPlan
    number: int
    batch: MicroBatch
    after: list[tuple[Slice, ...]] = field(default_factory=list)

    def keepers(self, keepers: Sequence[Keeper]) -> list[Keeper]:
        """Return how the rows of each input are kept."""
        return [
            self._keeper(each.members, own) for each, own in zip(self._stage.inputs, keepers, strict=True)
        ]

    def keepers_before(self, keepers: Sequence[Keeper]) -> list[Keeper]:
        """Return how the rows of each input had to be kept before the micro-batch."""
        before = replace(self.batch, arrivals=Arrivals([]), seen=self.batch.before.seen)
        return replace(self, batch=before).keepers(keepers)

    def _keeper(self, members: Sequence[int], keeper: Keeper) -> Keeper:
        """Return how the rows of an input are kept, which have these streams.

        Where no window in time ends that, until so many later ones have come that no result can have them.
        """
        others = [each for each in self._stage.members if each not in members]
        ends = ends_by_count(self.plan, members, others)
        # Another stream's row completes a result with one that is kept.
        until = least_of(self._marks[other] for other in others)
        if not ends or until is None:
            return keeper

        def live(run: SortedRun) -> BoolArray:
            found, times = np.zeros(run.rows, bool), dict(zip(members, run.times, strict=True))
            for windows, own in ends:
                far = (tuple((n, windows.between(n, each)) for n in members) for each in others)
                rules = [Retention(*each) for each in zip(others, far, strict=True)]
                inside = kept(rules, times, self._marks)
                for number in own:
                    since = times[self.plan.counted[number].stream]
                    inside &= fewer(
                        self.plan, number, self._ticks[number], run.batch, since, np.full(run.rows, until)
                    )
                found |= inside
            return found & keeper.live(run)

        return Keeper(keeper.shape, live, None)

    def foreseen(self, found: Combinations) -> Combinations:
        """Return the combinations that are inside by the rows that have come."""
        return inside(self.plan, self.number, self._ticks, found)

    def finish(self) -> Iterator[Made]:
        """Write the ticks that are needed after the micro-batch."""
        waiting = [*self._still_waiting()]
        self.after += [self._kept_ticks(number, waiting) for number in self._ticks]
        yield from ()

    def kept(self, after: Manifest) -> Manifest:
        """Return the manifest with what waits and the ticks."""
        return replace(after, counted=tuple(self.after))

    def _still_waiting(self) -> Iterator[int | None]:
        """Yield the least times of results that wait, None where that is not known."""
        raise NotImplementedError

    @property
    def _stage(self) -> Stage:
        return self.plan.stages[self.number]

    @cached_property
    def _marks(self) -> Marks:
        """The least times that rows of the stage's streams may still have after the micro-batch."""
        return least_times(self.plan, self.number, self.batch.seen)

    @cached_property
    def _new(self) -> dict[int, pa.RecordBatch | None]:
        """The new ticks of each window, by its number."""
        return {number: self._on_time(number) for number in self._kept}

    @cached_property
    def _ticks(self) -> dict[int, Ticks]:
        """All ticks of each window, by its number."""
        load = self.batch.writer.store.load
        return {
            number: Ticks.of([*map(load, slices), *([] if (new := self._new[number]) is None else [new])])
            for number, slices in self._kept.items()
        }

    @property
    def _kept(self) -> dict[int, tuple[Slice, ...]]:
        """The slices of the ticks of each window, by its number."""
        numbers = windows_at(self.plan, self.number)
        ticks = self.batch.before.counted[len(self._waiting) :] or ((),) * len(numbers)
        return dict(zip(numbers, ticks, strict=True))

    @property
    def _waiting(self) -> Sequence[tuple[Slice, ...]]:
        """The slices of what waits."""
        count = waiting_groups(self.plan, self.number)
        return self.batch.before.counted[:count] or ((),) * count

    def _on_time(self, number: int) -> pa.RecordBatch | None:
        """Return the new ticks of a window without those of late rows, None where there are none."""
        if not (told := self.batch.arrivals.ticks.get(number)):
            return None
        ticks, stream = concatenate(list(told)), self.plan.counted[number].stream
        mark = watermark(self.batch.before.seen.get(stream), self.plan.streams[stream].delay)
        if mark is not None:
            ticks = ticks.filter(pa.array(int64_view(ticks.column(TIME)) >= mark))
        return together(ticks)

    def _dated(self, rows: Sequence[pa.RecordBatch], members: Sequence[int]) -> SortedRun | None:
        """Return rows that wait, which have these streams, in the order of their latest times."""
        if not rows:
            return None
        found = concatenate(list(rows))
        return WAITING.sort(found.append_column(LATEST, pa.array(_latest_of(found, members))))

    def _needed(self, stream: int, waiting: Sequence[int | None]) -> int | None:
        """Return the time after which the ticks of a stream are needed, None where all are.

        A row of it is in no result to come that is older than all that may still come, less how far these may
        be from it; in a result that waits it is no older than the latest time, less the same.
        """
        far = {other: self.plan.windows.between(stream, other) or 0 for other in self._stage.members}
        marks = [None if mark is None else mark - far[other] for other, mark in self._marks.items()]
        furthest = max(far.values())
        return least_of([*marks, *(None if each is None else each - furthest for each in waiting)])

    def _kept_ticks(self, number: int, waiting: Sequence[int | None]) -> tuple[Slice, ...]:
        """Return the slices of the ticks of a window after the micro-batch."""
        stream, new = self.plan.counted[number].stream, self._new[number]
        until = least_of([*self._marks.values(), *waiting])
        ends = ends_in_time(self.plan.windows, (stream,), self._stage.members)
        first = self._needed(stream, waiting) if ends else None
        live, settled = partial(self._counts, number, until, first), LEAST if until is None else None
        fresh = None if new is None or new.num_rows == 0 else TICKS.sort(new)
        return self.batch.writer.maintained(self._kept[number], fresh, TICKS, live, settled)

    def _counts(self, number: int, until: int | None, first: int | None, run: SortedRun) -> BoolArray:
        """Return which ticks may count for a row in a result whose latest time is ``until`` or later.

        Those that are left are as many as a window needs to be over. ``first``: as ``_needed`` says.
        """
        times = run.times[0]
        if until is None:
            return np.ones(run.rows, bool)
        count = fewer(self.plan, number, self._ticks[number], run.batch, times, np.maximum(times, until))
        return count if first is None else count & (times > first)


@dataclass
class UncountedRows(Uncounted):
    """Rows and partial results wait before they meet."""

    def arrived(self, number: int, rows: Arrived) -> Arrived:
        """Return what is known enough of to be joined, of what has come to an input now and before."""
        limit = known_before(self.plan, self.number, self.batch.seen)
        since = LEAST if limit is None else limit
        members = self._stage.inputs[number].members
        found: Arrived = []
        later: list[pa.RecordBatch] = []
        for role, block in rows:
            if not (role.stores or role.probes):
                found.append((role, block))
                continue
            wait = _latest_of(block, members) >= since
            found += ((role, each) for each in _some(block, ~wait))
            later += _some(block, wait)
        left: list[pa.RecordBatch] = []

        def live(run: SortedRun) -> BoolArray:
            return np.asarray(run.times[0] >= since)

        def leaving(run: SortedRun) -> None:
            left.append(self.batch.arrivals.spool.put(run.batch.drop_columns([LATEST])))

        fresh = self._dated(later, members)
        own = self._waiting[number], fresh, WAITING, live, since, leaving
        self.after.append(self.batch.writer.maintained(*own))
        return [*found, *((Role.BOTH, each) for each in left)]

    def inside(self, found: Combinations) -> Combinations:
        """Return the combinations that are inside: all is known of them."""
        return inside(self.plan, self.number, self._ticks, found)

    def _still_waiting(self) -> Iterator[int | None]:
        # What is held makes none that is earlier than the marks. But the rows of an ASOF JOIN wait.
        stage = self._stage
        if isinstance(stage, Join) and stage.nearest is not None:
            for rule in stage.inputs[0].retention:
                mark = self._marks[rule.stream]
                yield from (None if mark is None or far is None else mark - far for _, far in rule.distances)


@dataclass
class UncountedResults(Uncounted):
    """The results of the last stage wait; earlier stages drop what is known to be outside."""

    _found: list[pa.RecordBatch] = field(default_factory=list)
    _bytes: int = 0

    def __post_init__(self) -> None:
        for rows in self.batch.arrivals.waiting:
            self._take(rows)

    def told(self, made: Made) -> Iterator[Made]:
        """Take new results; yield those of stages before the last that are not known to be outside."""
        if made.to == PAST or self._passed_on(made.to):
            yield made
        elif made.to is None:
            self._take(made.rows)
        else:
            _, outside = decided(self.plan, self.number, self._ticks, made.rows, self._marks)
            rows = made.rows.filter(pa.array(~outside)) if outside.any() else made.rows
            self.batch.counts.stage.add("matches", rows.num_rows)
            yield Made(rows, made.to)

    def _passed_on(self, to: int | None) -> bool:
        """Return whether rows of a stream go on to a later hop, where they may meet others."""
        if to is None or not isinstance(self._stage, Hop):
            return False
        return isinstance(self.plan.stages[self.number + 1].inputs[to].source, PassedOn)

    def _take(self, rows: pa.RecordBatch) -> None:
        """Take new results; beyond what is held of new rows they are set down on disk."""
        self._bytes += rows.nbytes
        limit = HELD_STRETCHES * self.batch.writer.cutting.stretch
        self._found.append(self.batch.arrivals.spool.put(rows) if self._bytes > limit else rows)

    def finish(self) -> Iterator[Made]:
        """Yield the results that are known to be inside; keep the others, and the ticks."""
        for rows in self._known_now():
            self.batch.counts.stage.add("matches", rows.num_rows)
            yield Made(rows, None)
        yield from super().finish()

    def _known_now(self) -> Iterator[pa.RecordBatch]:
        judged = partial(decided, self.plan, self.number, self._ticks)
        marks = self._marks
        rest: list[pa.RecordBatch] = []
        for rows in self._found:
            inside, outside = judged(rows, marks)
            yield from _some(rows, inside)
            rest += _some(rows, ~inside & ~outside)
        left: list[pa.RecordBatch] = []

        def live(run: SortedRun) -> BoolArray:
            inside, outside = judged(run.batch, marks)
            return ~inside & ~outside

        def leaving(run: SortedRun) -> None:
            inside, _ = judged(run.batch, marks)
            # All that has waited may leave at once.
            left.extend(map(self.batch.arrivals.spool.put, _some(run.batch.drop_columns([LATEST]), inside)))

        (waiting,) = self._waiting
        fresh = self._dated(rest, self._stage.members)
        own = waiting, fresh, WAITING, live, self._settled, leaving
        self.after.append(self.batch.writer.maintained(*own))
        yield from left

    @property
    def _settled(self) -> int | None:
        """From which latest time on no result is known to be inside; None where that is not known."""
        if len(self.plan.asked) > 1:
            return None
        found = [self._marks.get(self.plan.counted[number].stream) for number in self.plan.asked[0]]
        return LEAST if None in found else least_of(found)

    def _still_waiting(self) -> Iterator[int | None]:
        return (each.earliest for each in self.after[0])


def uncounted(plan: PhysicalPlan, number: int, batch: MicroBatch) -> Uncounted | None:
    """Return what waits at a stage for windows of rows, None where it has none."""
    if not windows_at(plan, number):
        return None
    return (UncountedRows if held_for(plan, number) else UncountedResults)(plan, number, batch)


def _latest_of(rows: pa.RecordBatch, members: Sequence[int]) -> Int64Array:
    return latest_times({each: int64_view(rows.column(time_name(each))) for each in members})


def _some(rows: pa.RecordBatch, chosen: BoolArray) -> Iterator[pa.RecordBatch]:
    """Yield the rows that are chosen, nothing where none is."""
    if chosen.any():
        yield rows if chosen.all() else rows.filter(pa.array(chosen))
