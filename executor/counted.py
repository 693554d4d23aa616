"""Windows of rows: results that wait until it is known how many rows are later than theirs.

The times of all rows of a stream whose rows are counted come to the workers of its stage, and of those after
it: those that WHERE removes, too, and without any other column. They are kept as *ticks*, each time once with
the number of its rows; by key where rows are counted by key. A result is inside a window once the stream's
watermark has passed its latest time and too few later rows have come, and outside once enough have. Until
then it waits in the state of the last stage with all its columns, in the order of its latest time. Earlier
stages drop what is outside already: what is joined with it can only make it later.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.executor.blocks import concatenate, stable
from wjoin.executor.combinations import Combinations
from wjoin.executor.spool import Spool
from wjoin.executor.state.kept_rows import Keeper, kept, watermark
from wjoin.executor.state.slices import Slice, SliceStore, maintain, read_slice, write_slices
from wjoin.executor.state.writing import Cutting
from wjoin.executor.stretches import Arrived
from wjoin.executor.windows import Times, within
from wjoin.parts.kernels.runs import (
    LEAST,
    BoolArray,
    Int64Array,
    Order,
    RunShape,
    SortedRun,
    int64_view,
    integers,
)
from wjoin.parts.routes.hash_route import HashRoute
from wjoin.parts.routes.route import Role
from wjoin.planner.plan.block_columns import code_name, counted_name, time_name
from wjoin.planner.plan.counting import (
    ends_by_count,
    ends_in_time,
    goes_by,
    key_columns,
    key_parts,
    windows_at,
)
from wjoin.planner.plan.edges import destinations, held_for
from wjoin.planner.plan.physical import CountedWindow, Join, PhysicalPlan, Retention

Marks = Mapping[int, int | None]
"""The watermarks of streams, None before the first row."""

_TIME, _ROWS = "time", "rows"

_LATEST = "latest"
"""The column of results that wait with their latest time."""

_WAITING = RunShape(None, (_LATEST,), Order.TIME)
_TICKS = RunShape(None, (_TIME,), Order.TIME)


def told_ticks(plan: PhysicalPlan, number: int, read: pa.RecordBatch, times: pa.Array) -> pa.RecordBatch:
    """Return the ticks of rows of a stream for the window with a number.

    ``read`` is what is read of them, ``times`` are int64; a row without one counts nowhere.
    """
    window = plan.counted[number]
    columns, counts = {_TIME: times}, pc.is_valid(times)
    if window.condition:
        counts = pc.and_(counts, pc.fill_null(read.column(counted_name(number)), False))
    for place, (_, value) in enumerate(key_parts(plan, window)):
        column = read.column(counted_name(number, place))
        columns[_part(place)] = integers(column) if value is None else stable(column)
        if value is None:
            counts = pc.and_(counts, pc.is_valid(column))
    ones = pa.array(np.ones(len(times), np.int64))
    return _together(pa.RecordBatch.from_pydict({**columns, _ROWS: ones}).filter(counts))


def shares(
    plan: PhysicalPlan, number: int, ticks: pa.RecordBatch, workers: Sequence[int], code: int | None
) -> Iterator[tuple[Sequence[int], pa.RecordBatch]]:
    """Yield the ticks of the window with a number, with the workers of a stage that need them.

    All need them, but where they go by a ``code`` of the key the one that has the rows of that key
    (``counting.goes_by``).
    """
    if code is None:
        yield workers, ticks
        return
    parts = [place for place, (_, value) in enumerate(key_parts(plan, plan.counted[number])) if value is None]
    codes, times = (int64_view(ticks.column(name)) for name in (_part(parts[code]), _TIME))
    for share in HashRoute().shares(codes, times, len(workers), None):
        yield [workers[share.worker]], ticks if share.rows is None else ticks.take(pa.array(share.rows))


Shares = Iterator[tuple[int, Sequence[int], pa.RecordBatch]]
"""Ticks on their way: the number of a window, workers, and ticks for them."""


def passed_on(
    plan: PhysicalPlan,
    stage: int,
    place: int,
    told: Mapping[int, Sequence[pa.RecordBatch]],
    workers: Sequence[int],
) -> Shares:
    """Yield the ticks that the worker of a stage at a ``place`` among its workers passes on to the next one.

    ``told`` are those that it has been told, ``workers`` those of the next stage.
    """
    (to,) = destinations(plan, stage) if told else (None,)
    if to is not None:
        yield from _sent((plan, stage), place, told, (plan, to[0]), workers)


def moved_ticks(
    before: PhysicalPlan,
    after: PhysicalPlan,
    stage: int,
    place: int,
    groups: Sequence[Sequence[pa.RecordBatch]],
    workers: Sequence[int],
) -> Shares:
    """Yield the ticks that the worker of a stage keeps, for other workers of it; ``groups`` as in ``after``
    of ``Waiting``."""
    told = dict(zip(windows_at(before, stage), groups[waiting_groups(before, stage) :], strict=False))
    return _sent((before, stage), place, told, (after, stage), workers)


def moved_results(
    plan: PhysicalPlan, stage: int, groups: Sequence[Sequence[pa.RecordBatch]], workers: Sequence[int]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the results that wait at a worker, each with the one of other workers that gets it.

    It is the one that knows what is counted for it.
    """
    keys = [
        code_name(window.stream, window.keys[place])
        for window in plan.counted
        if (place := goes_by(plan, stage, window)) is not None
    ]
    for rows in () if held_for(plan, stage) else itertools.chain(*groups[:1]):
        codes = int64_view(rows.column(keys[0] if keys else _LATEST))
        own = rows.drop_columns([_LATEST])
        for share in HashRoute().shares(codes, codes, len(workers), None):
            yield workers[share.worker], own if share.rows is None else own.take(pa.array(share.rows))


def moved_rows(
    plan: PhysicalPlan, stage: int, groups: Sequence[Sequence[pa.RecordBatch]]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield what is held at a worker, as what comes to an input, with the number of that."""
    count = waiting_groups(plan, stage) if held_for(plan, stage) else 0
    for number, pieces in enumerate(groups[:count]):
        yield from ((number, rows.drop_columns([_LATEST])) for rows in pieces)


def _sent(
    known: tuple[PhysicalPlan, int],
    place: int,
    told: Mapping[int, Sequence[pa.RecordBatch]],
    to: tuple[PhysicalPlan, int],
    workers: Sequence[int],
) -> Shares:
    for number, pieces in told.items() if workers else ():
        window = known[0].counted[number]
        # What all workers of a stage know the first one passes on.
        if place == 0 or goes_by(*known, window) is not None:
            code = goes_by(*to, window)
            for each in pieces:
                yield from ((number, *share) for share in shares(to[0], number, each, workers, code))


def _part(place: int) -> str:
    return f"key{place}"


def _together(ticks: pa.RecordBatch) -> pa.RecordBatch:
    """Return ticks, those of one key and time as one."""
    names = [name for name in ticks.schema.names if name != _ROWS]
    found = pa.Table.from_batches([ticks]).group_by(names, use_threads=False).aggregate([(_ROWS, "sum")])
    columns = {name: found.column(name).combine_chunks() for name in names}
    return pa.RecordBatch.from_pydict({**columns, _ROWS: found.column(f"{_ROWS}_sum").combine_chunks()})


@dataclass(frozen=True)
class Ticks:
    """The ticks of a window that have come, by keys where it counts by key; in any order."""

    rows: pa.RecordBatch | None

    @classmethod
    def of(cls, pieces: Sequence[pa.RecordBatch]) -> "Ticks":
        """Return those of some pieces."""
        return cls(concatenate(list(pieces)) if pieces else None)

    @cached_property
    def by_time(self) -> tuple[Int64Array, Int64Array]:
        """Their times ascending, and how many rows there are before each; one number more."""
        if self.rows is None:
            return np.zeros(0, np.int64), np.zeros(1, np.int64)
        times, counts = (int64_view(self.rows.column(name)) for name in (_TIME, _ROWS))
        order = np.argsort(times)
        return times[order], np.concatenate([[0], np.cumsum(counts[order])])


def all_ticks(
    plan: PhysicalPlan, stage: int, told: Mapping[int, Sequence[pa.RecordBatch]]
) -> dict[int, Ticks]:
    """Return the ticks of the windows that a stage knows, of those that have come, by their numbers."""
    return {number: Ticks.of(told.get(number, ())) for number in windows_at(plan, stage)}


def decided(
    plan: PhysicalPlan, stage: int, ticks: Mapping[int, Ticks], rows: pa.RecordBatch, marks: Marks | None
) -> tuple[BoolArray, BoolArray]:
    """Return which results of a stage are known to be inside one of the alternatives, and which to be outside
    of all, as far as its streams go.

    ``ticks`` are those of windows of rows that have come, by the numbers of the windows, ``marks`` how far
    the streams have come; None where they are complete.
    """
    members = plan.stages[stage].members
    times: Times = {each: int64_view(rows.column(time_name(each))) for each in members}
    latest = _latest(times)
    fewer: dict[int, BoolArray] = {}
    known: dict[int, BoolArray] = {}
    for number, own in ticks.items():
        stream = plan.counted[number].stream
        mark = None if marks is None else marks[stream]
        known[number] = latest < mark if mark is not None else np.full(len(latest), marks is None)
        fewer[number] = _fewer(plan, number, own, rows, times[stream], latest)
    inside, outside = np.zeros(len(latest), bool), np.ones(len(latest), bool)
    for windows, asked in zip(plan.branches or (None,), plan.asked, strict=True):
        near = np.ones(len(latest), bool) if windows is None else within(windows, times)
        own_asked = [number for number in asked if number in ticks]
        inside |= np.logical_and.reduce([near, *(fewer[number] & known[number] for number in own_asked)])
        outside &= np.logical_or.reduce([~near, *(~fewer[number] for number in own_asked)])
    return inside, outside


def inside(plan: PhysicalPlan, stage: int, ticks: Mapping[int, Ticks], found: Combinations) -> Combinations:
    """Return the combinations of a stage that are inside one of the alternatives; all is known of them."""
    columns = {time_name(stream): pa.array(times) for stream, times in found.times.items()}
    for window in (plan.counted[number] for number in ticks):
        inputs = plan.stages[stage].inputs
        place = next(place for place, each in enumerate(inputs) if window.stream in each.members)
        columns |= {name: found.column(place, name) for name in key_columns(plan, window)}
    chosen, _ = decided(plan, stage, ticks, pa.RecordBatch.from_pydict(columns), None)
    return found if chosen.all() else found.pick(chosen)


def _latest(times: Times) -> Int64Array:
    found: Int64Array = np.maximum.reduce(list(times.values()))
    return found


def _fewer(
    plan: PhysicalPlan,
    number: int,
    ticks: Ticks,
    rows: pa.RecordBatch,
    since: Int64Array,
    until: Int64Array,
) -> BoolArray:
    """Return whether few enough rows are later than each time ``since``, and not later than ``until``.

    ``rows`` have the keys by which they are counted: results or other rows of a block, or ticks.
    """
    window = plan.counted[number]
    if not window.keys:
        at, before = ticks.by_time
        last, first = (before[np.searchsorted(at, each, side="right")] for each in (until, since))
        return np.asarray(last - first < window.rows)
    if ticks.rows is None or ticks.rows.num_rows == 0:
        return np.ones(len(since), bool)
    at, counts = int64_view(ticks.rows.column(_TIME)), int64_view(ticks.rows.column(_ROWS))
    sizes = len(at), len(since)
    own, asked = _identities(_keys(plan, window, ticks.rows), _keys(plan, window, rows), sizes)
    if len(at) > len(since):
        meant = np.isin(own, asked)
        at, counts, own = at[meant], counts[meant], own[meant]
    size = len(at)
    times, keys = np.concatenate([at, since, until]), np.concatenate([own, asked, asked])
    # Of one time the ticks come first.
    questions = np.arange(len(times)) >= size
    order = np.lexsort((questions, times, keys))
    before = np.empty(len(times), np.int64)
    before[order] = np.cumsum(np.concatenate([counts, np.zeros(2 * len(since), np.int64)])[order])
    found: BoolArray = before[size + len(since) :] - before[size : size + len(since)] < window.rows
    return found


def _keys(plan: PhysicalPlan, window: CountedWindow, rows: pa.RecordBatch) -> list[pa.Array]:
    """Return the columns with the keys by which a window counts: of ticks, or of rows of a block."""
    if _TIME not in rows.schema.names:
        return [rows.column(name) for name in key_columns(plan, window)]
    parts = enumerate(key_parts(plan, window))
    return [rows.column(_part(place)) for place, (code, value) in parts if code.exact or value is not None]


def _identities(
    left: Sequence[pa.Array], right: Sequence[pa.Array], sizes: tuple[int, int]
) -> tuple[Int64Array, Int64Array]:
    """Return numbers that are the same where rows on both sides have the same key."""
    if len(left) == 1 and pa.types.is_int64(left[0].type) and pa.types.is_int64(right[0].type):
        return int64_view(left[0]), int64_view(right[0])
    found = np.zeros(sum(sizes), np.int64)
    for one, other in zip(left, right, strict=True):
        values, count = _numbered(one, other)
        _, found = np.unique(found * count + values, return_inverse=True)
    return found[: sizes[0]], found[sizes[0] :]


def _numbered(left: pa.Array, right: pa.Array) -> tuple[npt.NDArray[np.int64], int]:
    """Return numbers of the values of two columns, one after the other, and how many there are."""
    if left.type != right.type:
        # One may stand in the block as the int64 of its key code or event time.
        left, right = integers(left), integers(right)
    both = pa.concat_arrays([left, right])
    if pa.types.is_floating(both.type):
        # Of the two zeros there is one.
        both = pc.add(both, pa.scalar(0, both.type))
    found = both.dictionary_encode(null_encoding="encode")
    return np.asarray(found.indices.cast(pa.int64())), len(found.dictionary)


def waiting_groups(plan: PhysicalPlan, stage: int) -> int:
    """Return how many groups of slices a stage has of what waits: one of results, or one of each input."""
    return len(plan.stages[stage].inputs) if held_for(plan, stage) else 1


def limit(plan: PhysicalPlan, stage: int, seen: Mapping[int, int]) -> int | None:
    """Return before which time all is known that windows of rows count, for what is held; None for none."""
    found = [watermark(seen.get(each), plan.streams[each].delay) for each in held_for(plan, stage)]
    known = [mark for mark in found if mark is not None]
    return min(known, default=None) if len(known) == len(found) else None


@dataclass
class Waiting:
    """What the worker of a stage knows of windows of rows, and what waits there until it is enough.

    That are the results of the last stage. Where not all joins are inner ones (``held_for``), it is what
    comes to each input: what has met no other may be told only when it is known what meets it.

    ``before`` are the slices of the state: those of what waits, then of the ticks of each window.
    ``seen`` are the event times before the micro-batch. ``after`` are the slices after it.
    """

    plan: PhysicalPlan
    stage: int
    before: Sequence[tuple[Slice, ...]]
    seen: Mapping[int, int]
    store: SliceStore
    cutting: Cutting
    spool: Spool
    after: tuple[tuple[Slice, ...], ...] = ()
    _marks: Marks = field(default_factory=dict)
    _new: dict[int, pa.RecordBatch | None] = field(default_factory=dict)
    _ticks: dict[int, Ticks] = field(default_factory=dict)
    _found: list[pa.RecordBatch] = field(default_factory=list)
    _bytes: int = 0
    _groups: list[tuple[Slice, ...]] = field(default_factory=list)
    _limit: int | None = None

    def begin(
        self, told: Mapping[int, Sequence[pa.RecordBatch]], seen: Mapping[int, int], marks: Marks
    ) -> None:
        """Take the ticks that have come, by the numbers of the windows.

        ``seen`` are the event times after the micro-batch, ``marks`` the least times that rows of the stage's
        streams may still have then.
        """
        self._marks, self._limit = marks, limit(self.plan, self.stage, seen)
        for number, slices in self._kept.items():
            new = self._new[number] = self._on_time(number, told.get(number, ()))
            self._ticks[number] = Ticks.of([*map(self.store.load, slices), *([] if new is None else [new])])

    def keepers(self, keepers: Sequence[Keeper]) -> list[Keeper]:
        """Return how the rows of each input are kept."""
        inputs = self.plan.stages[self.stage].inputs
        return [self._keeper(each.members, own) for each, own in zip(inputs, keepers, strict=True)]

    def _keeper(self, members: Sequence[int], keeper: Keeper) -> Keeper:
        """Return how the rows of an input are kept, which have these streams.

        Where no window in time ends that, until so many later ones have come that no result can have them.
        """
        others = [each for each in self._members if each not in members]
        ends = ends_by_count(self.plan, members, others)
        # Another stream's row completes a result with one that is kept.
        until = self._least(self._marks[other] for other in others)
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
                    inside &= _fewer(
                        self.plan, number, self._ticks[number], run.batch, since, np.full(run.rows, until)
                    )
                found |= inside
            return found & keeper.live(run)

        return Keeper(keeper.shape, live, None)

    def possible(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the results, of a stage before the last, that are not known to be outside."""
        _, outside = decided(self.plan, self.stage, self._ticks, rows, self._marks)
        return rows.filter(pa.array(~outside)) if outside.any() else rows

    def inside(self, found: Combinations) -> Combinations:
        """Return the combinations that are inside, of those of which all is known."""
        return inside(self.plan, self.stage, self._ticks, found)

    def due(self, number: int, arrived: Arrived, names: Iterator[int]) -> Arrived:
        """Return what is known enough of to be joined, of what has come to an input now and before.

        ``names`` are those for new slices.
        """
        since = LEAST if self._limit is None else self._limit
        found: Arrived = []
        later: list[pa.RecordBatch] = []
        for role, rows in arrived:
            if not (role.stores or role.probes):
                found.append((role, rows))
                continue
            wait = self._latest_of(rows, self._members_of(number)) >= since
            found += ((role, each) for each in _some(rows, ~wait))
            later += _some(rows, wait)
        left: list[pa.RecordBatch] = []

        def live(run: SortedRun) -> BoolArray:
            return np.asarray(run.times[0] >= since)

        def leaving(run: SortedRun) -> None:
            left.append(self.spool.put(run.batch.drop_columns([_LATEST])))

        members = self._members_of(number)
        fresh = _WAITING.sort(self._dated(concatenate(later), members)) if later else None
        load, before = partial(self._load, _WAITING), self._waiting[number]
        change = maintain(before, fresh, _WAITING, load, live, since, self.cutting, leaving)
        self._groups.append(self._written(change.stay, change.write, change.remove, _WAITING, names))
        return [*found, *((Role.BOTH, each) for each in left)]

    def take(self, rows: pa.RecordBatch) -> None:
        """Take new results; beyond what is joined at once they are set down on disk."""
        self._bytes += rows.nbytes
        self._found.append(self.spool.put(rows) if self._bytes > self.cutting.stretch else rows)

    def decide(self, names: Iterator[int]) -> Iterator[pa.RecordBatch]:
        """Yield the results that are known to be inside; ``names`` are those for new slices."""
        judged = partial(decided, self.plan, self.stage, self._ticks)
        marks = self._marks
        (waiting,) = self._waiting
        rest: list[pa.RecordBatch] = []
        for rows in self._found:
            inside, outside = judged(rows, marks)
            yield from _some(rows, inside)
            rest += _some(rows, ~inside & ~outside)
        left: list[pa.RecordBatch] = []
        fresh = _WAITING.sort(self._dated(concatenate(rest), self._members)) if rest else None

        def live(run: SortedRun) -> BoolArray:
            inside, outside = judged(run.batch, marks)
            return ~inside & ~outside

        def leaving(run: SortedRun) -> None:
            inside, _ = judged(run.batch, marks)
            # All that has waited may leave at once.
            left.extend(map(self.spool.put, _some(run.batch.drop_columns([_LATEST]), inside)))

        load = partial(self._load, _WAITING)
        change = maintain(waiting, fresh, _WAITING, load, live, self._settled(marks), self.cutting, leaving)
        yield from left
        self._groups.append(self._written(change.stay, change.write, change.remove, _WAITING, names))

    def finish(self, names: Iterator[int]) -> None:
        """Write the ticks that are needed after the micro-batch; ``names`` are those for new slices."""
        waiting = [*self._still_waiting()]
        ticks = [self._kept_ticks(number, waiting, names) for number in self._ticks]
        self.after = (*self._groups, *ticks)

    @property
    def _members(self) -> Sequence[int]:
        return self.plan.stages[self.stage].members

    @property
    def _kept(self) -> dict[int, tuple[Slice, ...]]:
        """The slices of the ticks of each window, by its number."""
        numbers = windows_at(self.plan, self.stage)
        ticks = self.before[len(self._waiting) :] or ((),) * len(numbers)
        return dict(zip(numbers, ticks, strict=True))

    @cached_property
    def _held(self) -> bool:
        return bool(held_for(self.plan, self.stage))

    @property
    def _waiting(self) -> Sequence[tuple[Slice, ...]]:
        """The slices of what waits."""
        count = waiting_groups(self.plan, self.stage)
        return self.before[:count] or ((),) * count

    def _members_of(self, number: int) -> Sequence[int]:
        return self.plan.stages[self.stage].inputs[number].members

    def _marks_of(self, seen: Mapping[int, int]) -> Marks:
        return {each: watermark(seen.get(each), self.plan.streams[each].delay) for each in self._members}

    def _on_time(self, number: int, told: Sequence[pa.RecordBatch]) -> pa.RecordBatch | None:
        """Return the new ticks of a window without those of late rows, None where there are none."""
        if not told:
            return None
        ticks = concatenate(list(told))
        mark = self._marks_of(self.seen)[self.plan.counted[number].stream]
        if mark is not None:
            ticks = ticks.filter(pa.array(int64_view(ticks.column(_TIME)) >= mark))
        return _together(ticks)

    def _load(self, shape: RunShape, each: Slice) -> SortedRun:
        return read_slice(each, shape, self.store)

    def _dated(self, rows: pa.RecordBatch, members: Sequence[int]) -> pa.RecordBatch:
        return rows.append_column(_LATEST, pa.array(self._latest_of(rows, members)))

    def _latest_of(self, rows: pa.RecordBatch, members: Sequence[int]) -> Int64Array:
        return _latest({each: int64_view(rows.column(time_name(each))) for each in members})

    def _settled(self, marks: Marks) -> int | None:
        """Return from which latest time on no result is known to be inside; None where that is not known."""
        if len(self.plan.asked) > 1:
            return None
        own = [marks.get(self.plan.counted[number].stream) for number in self.plan.asked[0]]
        known = [mark for mark in own if mark is not None]
        return min(known) if len(known) == len(own) else LEAST

    def _still_waiting(self) -> Iterator[int | None]:
        """Yield what the latest times of results are that wait, at the least; None where that is not known.

        What is held makes none that is earlier than the marks. But the rows of an ASOF JOIN wait.
        """
        stage = self.plan.stages[self.stage]
        if not self._held:
            yield from (each.earliest for each in self._groups[0])
        elif isinstance(stage, Join) and stage.nearest is not None:
            for rule in stage.inputs[0].retention:
                mark = self._marks[rule.stream]
                yield from (None if mark is None or far is None else mark - far for _, far in rule.distances)

    def _needed(self, stream: int, waiting: Sequence[int | None]) -> int | None:
        """Return the time after which the ticks of a stream are needed, None where all are.

        A row of it is in no result to come that is older than all that may still come, less how far these may
        be from it; in a result that waits it is no older than the latest time, less the same.
        """
        far = {other: self.plan.windows.between(stream, other) or 0 for other in self._members}
        marks = [None if mark is None else mark - far[other] for other, mark in self._marks.items()]
        furthest = max(far.values())
        return self._least([*marks, *(None if each is None else each - furthest for each in waiting)])

    def _least(self, times: Iterable[int | None]) -> int | None:
        """Return the least of some times, None where one is not known."""
        found = list(times)
        known = [each for each in found if each is not None]
        return min(known) if len(known) == len(found) else None

    def _kept_ticks(
        self, number: int, waiting: Sequence[int | None], names: Iterator[int]
    ) -> tuple[Slice, ...]:
        """Return the slices of the ticks of a window after the micro-batch."""
        stream, new = self.plan.counted[number].stream, self._new[number]
        until = self._least([*self._marks.values(), *waiting])
        ends = ends_in_time(self.plan.windows, (stream,), self._members)
        first = self._needed(stream, waiting) if ends else None
        live, settled = partial(self._counts, number, until, first), LEAST if until is None else None
        fresh = None if new is None or new.num_rows == 0 else _TICKS.sort(new)
        change = maintain(
            self._kept[number], fresh, _TICKS, partial(self._load, _TICKS), live, settled, self.cutting
        )
        return self._written(change.stay, change.write, change.remove, _TICKS, names)

    def _counts(self, number: int, until: int | None, first: int | None, run: SortedRun) -> BoolArray:
        """Return which ticks may count for a row in a result whose latest time is ``until`` or later.

        Those that are left are as many as a window needs to be over. ``first``: as ``_needed`` says.
        """
        times = run.times[0]
        if until is None:
            return np.ones(run.rows, bool)
        count = _fewer(self.plan, number, self._ticks[number], run.batch, times, np.maximum(times, until))
        return count if first is None else count & (times > first)

    def _written(
        self,
        stay: Sequence[Slice],
        write: Sequence[SortedRun],
        remove: Sequence[Slice],
        shape: RunShape,
        names: Iterator[int],
    ) -> tuple[Slice, ...]:
        for each in remove:
            self.store.remove(each)
        wrote = (write_slices(self.store, names, shape, run, self.cutting) for run in write)
        return (*stay, *itertools.chain(*wrote))


def _some(rows: pa.RecordBatch, chosen: BoolArray) -> Iterator[pa.RecordBatch]:
    """Yield the rows that are chosen, nothing where none is."""
    if chosen.any():
        yield rows if chosen.all() else rows.filter(pa.array(chosen))
