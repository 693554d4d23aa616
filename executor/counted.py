"""Windows of rows: results that wait until it is known how many rows are later than theirs.

The times of all rows of a stream whose rows are counted come to the workers of its stage, and of those after
it: those that WHERE removes, too, and without any other column. They are kept as *ticks*, each time once with
the number of its rows; by key where rows are counted by key. A result is inside a window once the stream's
watermark has passed its latest time and too few later rows have come, and outside once enough have. Until
then it waits in the state of the last stage with all its columns, in the order of its latest time. Earlier
stages drop what is outside already: what is joined with it can only make it later.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.executor.blocks import concatenate, stable
from wjoin.executor.combinations import Combinations
from wjoin.executor.lacking import lacked_streams, there_name
from wjoin.executor.windows import Times, within
from wjoin.grammar.syntax import Per
from wjoin.parts.kernels.runs import (
    BoolArray,
    Int64Array,
    Order,
    RunShape,
    int64_view,
    integers,
)
from wjoin.parts.routes.hash_route import HashRoute
from wjoin.planner.plan.block_columns import code_name, counted_name, time_name
from wjoin.planner.plan.counting import (
    goes_by,
    key_columns,
    key_parts,
    windows_at,
)
from wjoin.planner.plan.edges import destinations, held_for
from wjoin.planner.plan.physical import CountedWindow, PhysicalPlan
from wjoin.planner.plan.stage_kinds import Join

Marks = Mapping[int, int | None]
"""The watermarks of streams, None before the first row."""

TIME, _ROWS = "time", "rows"

LATEST = "latest"
"""The column of results that wait with their latest time."""

TICKS = RunShape(None, (TIME,), Order.TIME)
WAITING = RunShape(None, (LATEST,), Order.TIME)


def told_ticks(plan: PhysicalPlan, number: int, read: pa.RecordBatch, times: pa.Array) -> pa.RecordBatch:
    """Return the ticks of rows of a stream for the window with a number.

    ``read`` is what is read of them, ``times`` are int64; a row without one counts nowhere.
    """
    window = plan.counted[number]
    columns, counts = {TIME: times}, pc.is_valid(times)
    if window.condition:
        counts = pc.and_(counts, pc.fill_null(read.column(counted_name(number)), False))
    for place, (_, value) in enumerate(key_parts(plan, window)):
        column = read.column(counted_name(number, place))
        columns[_part(place)] = integers(column) if value is None else stable(column)
        if value is None and window.per is Per.KEY:
            counts = pc.and_(counts, pc.is_valid(column))
    ones = pa.array(np.ones(len(times), np.int64))
    return together(pa.RecordBatch.from_pydict({**columns, _ROWS: ones}).filter(counts))


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
    codes, times = (int64_view(ticks.column(name)) for name in (_part(parts[code]), TIME))
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
    # Those of a hop go to several inputs of the next one.
    to = destinations(plan, stage)[0] if told else None
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
    of ``Uncounted``."""
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
        codes = int64_view(rows.column(keys[0] if keys else LATEST))
        own = rows.drop_columns([LATEST])
        for share in HashRoute().shares(codes, codes, len(workers), None):
            yield workers[share.worker], own if share.rows is None else own.take(pa.array(share.rows))


def moved_rows(
    plan: PhysicalPlan, stage: int, groups: Sequence[Sequence[pa.RecordBatch]]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield what is held at a worker, as what comes to an input, with the number of that."""
    count = waiting_groups(plan, stage) if held_for(plan, stage) else 0
    for number, pieces in enumerate(groups[:count]):
        yield from ((number, rows.drop_columns([LATEST])) for rows in pieces)


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


def together(ticks: pa.RecordBatch) -> pa.RecordBatch:
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
        times, counts = (int64_view(self.rows.column(name)) for name in (TIME, _ROWS))
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
    of all, as far as the streams go of which they have rows: partial ones have none of some.

    ``ticks`` are those of windows of rows that have come, by the numbers of the windows, ``marks`` how far
    the streams have come; None where they are complete.
    """
    names = {each: time_name(each) for each in plan.stages[stage].members}
    known_names = rows.schema.names
    times: Times = {
        each: int64_view(rows.column(name)) for each, name in names.items() if name in known_names
    }
    latest = latest_times(times)
    ticks = {number: own for number, own in ticks.items() if plan.counted[number].stream in times}
    few: dict[int, BoolArray] = {}
    known: dict[int, BoolArray] = {}
    for number, own in ticks.items():
        stream = plan.counted[number].stream
        mark = None if marks is None else marks[stream]
        known[number] = latest < mark if mark is not None else np.full(len(latest), marks is None)
        few[number] = fewer(plan, number, own, rows, times[stream], latest)
    inside, outside = np.zeros(len(latest), bool), np.ones(len(latest), bool)
    for windows, asked in zip(plan.branches or (None,), plan.asked, strict=True):
        near = np.ones(len(latest), bool) if windows is None else within(windows, times)
        own_asked = [number for number in asked if number in ticks]
        inside |= np.logical_and.reduce([near, *(few[number] & known[number] for number in own_asked)])
        outside &= np.logical_or.reduce([~near, *(~few[number] for number in own_asked)])
    return inside, outside


def inside(plan: PhysicalPlan, stage: int, ticks: Mapping[int, Ticks], found: Combinations) -> Combinations:
    """Return the combinations of a stage that are inside one of the alternatives; all is known of them."""
    columns = {time_name(stream): pa.array(times) for stream, times in found.times.items()}
    for window in (plan.counted[number] for number in ticks):
        if window.stream not in found.times:
            continue
        place = _input_of(plan, stage, window.stream, found)
        columns |= {name: found.column(place, name) for name in key_columns(plan, window)}
    rows = pa.RecordBatch.from_pydict(columns)
    chosen, _ = decided(plan, stage, ticks, rows, None)
    own = plan.stages[stage]
    if isinstance(own, Join) and own.counted:
        chosen &= _in_one(plan, stage, ticks, rows, found)
    return found if chosen.all() else found.pick(chosen)


def _in_one(
    plan: PhysicalPlan, stage: int, ticks: Mapping[int, Ticks], rows: pa.RecordBatch, found: Combinations
) -> BoolArray:
    """Return which combinations keep one of the alternatives of a join of a tree, and have its rows.

    ``rows`` are their times, and the keys by which is counted.
    """
    own, latest = plan.stages[stage], latest_times(found.times)
    if not isinstance(own, Join):
        raise AssertionError("a join of a tree has alternatives of its own")
    there = {
        stream: np.asarray(found.column(_input_of(plan, stage, stream, found), there_name(stream)))
        for stream in lacked_streams(plan, own)
    }
    few = {
        number: fewer(plan, number, ticks[number], rows, found.times[plan.counted[number].stream], latest)
        for number in {number for asked in own.counted for number in asked}
    }
    kept = []
    for windows, asked in zip(own.alternatives, own.counted, strict=True):
        streams = {*windows.bounded, *(plan.counted[number].stream for number in asked)}
        masks = [few[number] for number in asked] + [there[each] for each in streams if each in there]
        kept.append(np.logical_and.reduce([within(windows, found.times), *masks]))
    chosen: BoolArray = np.logical_or.reduce(kept)
    return chosen


def _input_of(plan: PhysicalPlan, stage: int, stream: int, found: Combinations) -> int:
    inputs = plan.stages[stage].inputs
    return next(place for place in found.rows if stream in inputs[place].members)


def latest_times(times: Times) -> Int64Array:
    """Return the latest time of each tuple."""
    found: Int64Array = np.maximum.reduce(list(times.values()))
    return found


def fewer(
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
    at, counts = int64_view(ticks.rows.column(TIME)), int64_view(ticks.rows.column(_ROWS))
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
    if TIME not in rows.schema.names:
        return [rows.column(name) for name in key_columns(plan, window)]
    parts = enumerate(key_parts(plan, window))
    return [rows.column(_part(place)) for place, (code, value) in parts if code.exact or value is not None]


def _identities(
    left: Sequence[pa.Array], right: Sequence[pa.Array], sizes: tuple[int, int]
) -> tuple[Int64Array, Int64Array]:
    """Return numbers that are the same where rows on both sides have the same key."""
    plain = all(pa.types.is_int64(each.type) and not each.null_count for each in (*left, *right))
    if plain and len(left) == 1:
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
