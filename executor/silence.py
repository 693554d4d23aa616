"""How far streams have come: the watermark of a silent one (IDLE AFTER) goes on with those of the others.

A stream is silent when no row of it has come for so long by the clock of the micro-batches. Spark has that
clock in the log of the checkpoint, and all workers of a stage are told the same rows and the same clock: so
they judge the same, and so does a micro-batch that is repeated.

A stage is told of its own streams, and of those that entered before it; the last one is told of all. Of
those that enter later a stage knows what the later stages had in their files before the micro-batch. So a
stream that has gone on at the last stage has done so for all, and its rows are late where they enter. Where
joins follow each other of which not all are inner ones, a stream goes on where it enters, and with those that
enter later as they were before the micro-batch: a join tells the next one which rows it has decided, and both
go by the same watermarks. Where the state is in Spark's store no stage knows of later ones: there only the
streams that enter a stage go on, with those that it knows.

When all streams end, the stage where rows wait takes those further that they wait for. Where these have
entered before, their stage learns it in the same way, and takes later rows for late.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from wjoin.executor.arrivals import Arrivals
from wjoin.executor.counts import Counts
from wjoin.executor.state.kept_rows import watermark
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.state.marks import preserved_inputs
from wjoin.executor.state.writing import Writing
from wjoin.grammar.join_kinds import JoinKind
from wjoin.planner.plan.ahead import greatest_time
from wjoin.planner.plan.edges import held_for, reached_by
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.stage_kinds import Join, Stage
from wjoin.planner.plan.to_come import needed


def with_later(before: Manifest, later: Iterable[Manifest]) -> Manifest:
    """Return the state of a stage before a micro-batch with what later stages know of the streams."""
    for each in later:
        seen, came = _latest(before.seen, each.seen), _latest(before.came, each.came)
        before = replace(before, seen=seen, came=came)
    return before


def progressed(
    plan: PhysicalPlan, number: int, before: Manifest, arrivals: Arrivals
) -> tuple[dict[int, int], dict[int, int]]:
    """Return how far the streams of a stage have come after a micro-batch, and when their last rows came.

    The first is the greatest event time of each; of a silent one that to which its watermark has gone on, the
    least of those of the streams that are not silent, with its delay added; of one that has ended that by
    which all is decided that waits for it. The second is by the clock; of a stream that has sent nothing,
    when it was first waited for.
    """
    seen = _latest(before.seen, arrivals.seen)
    came = _latest(before.came, arrivals.came) if plan.clocked else {}
    if plan.clocked and arrivals.clock is not None:
        came = {**dict.fromkeys(reached_by(plan, number), arrivals.clock), **came}
        seen = _latest(seen, _gone_on(plan, number, seen, came, arrivals.clock, whole=arrivals.whole))
    if arrivals.ended:
        seen = _latest(seen, _ended(plan, number, before, seen))
    return seen, came


def _gone_on(
    plan: PhysicalPlan,
    number: int,
    seen: Mapping[int, int],
    came: Mapping[int, int],
    clock: int,
    *,
    whole: bool,
) -> dict[int, int]:
    """Return how far the streams have gone on that are silent; ``whole`` as in ``Arrivals``."""
    entering = [each.members[0] for each in plan.stages[number].inputs if each.stage is None]
    reached = reached_by(plan, number)
    known, going = (plan.staged, entering if plan.tree else reached) if whole else (reached, entering)
    judged = [each for each in known if each in came] if whole and plan.tree else going
    quiet = silent(plan, judged, came, clock)
    # One of another stage that is not judged counts as it was known there: it has gone on by itself.
    marks = [watermark(seen.get(each), plan.streams[each].delay) for each in known if each not in quiet]
    least = None if None in marks else min((mark for mark in marks if mark is not None), default=None)
    if least is None:
        return {}
    return {each: least + plan.streams[each].delay for each in quiet.intersection(going)}


def _ended(plan: PhysicalPlan, number: int, before: Manifest, seen: Mapping[int, int]) -> dict[int, int]:
    """Return how far streams have come for which results have waited, when all have ended."""
    found: dict[int, int] = {}
    stage = plan.stages[number]
    held = held_for(plan, number)
    if seen and (held or number == len(plan.stages) - 1):
        # No result is later than the last row of all.
        passed = max(seen.values()) + 1
        counted = held or [each.stream for each in plan.counted]
        found = {stream: passed + plan.streams[stream].delay for stream in counted}
    kind = stage.kind if isinstance(stage, Join) else JoinKind.INNER
    waiting = (0,) if kind.asof else preserved_inputs(stage) if kind.alone else ()
    writing = before.writing or Writing.first(plan, stage)
    for each in (rule for place in waiting for rule in writing.retentions[place]):
        ends = [seen[member] + far for member, far in each.distances if far is not None and member in seen]
        # A row that would wait for ever is decided as well: no row can be in time for it any more.
        if ends or not each.ends:
            last = min(ends, default=greatest_time(plan.time_kind))
            for stream, mark in needed(plan, number, each.stream, last + 1).items():
                found = _latest(found, {stream: mark + plan.streams[stream].delay})
    return found


def silent(
    plan: PhysicalPlan, streams: Collection[int], came: Mapping[int, int], clock: int
) -> frozenset[int]:
    """Return which of some streams are silent by a clock; ``came``: when the last row of each came by it."""
    limits = {stream: plan.streams[stream].idle_after for stream in streams}
    return frozenset(
        stream for stream, limit in limits.items() if limit is not None and clock - came[stream] >= limit
    )


def count_silent(
    plan: PhysicalPlan, stage: Stage, after: Manifest, clock: int | None, counts: Counts
) -> None:
    """Count since when streams are silent."""
    for stream in silent(plan, stage.members, after.came, clock) if clock is not None else ():
        counts.of(stream).add("silent", after.came[stream])


def _latest(first: Mapping[int, int], second: Mapping[int, int]) -> dict[int, int]:
    """Return the greater of the times of each stream."""
    return {**first, **{each: max(time, first.get(each, time)) for each, time in second.items()}}
