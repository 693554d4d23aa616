"""The least times that rows and results to come may have, as the watermarks of the streams tell."""

from collections.abc import Mapping

from wjoin.grammar.join_kinds import JoinKind
from wjoin.planner.plan.edges import held_for, may_lack
from wjoin.planner.plan.physical import Method, Output, PhysicalPlan, TimeKind
from wjoin.planner.plan.stage_kinds import Join


def is_dated(plan: PhysicalPlan, output: Output) -> bool:
    """Return whether MATCH_TIME of an output is an event time of Spark's, so that groups by it close."""
    # Spark takes a TIMESTAMP only as event time of a watermark.
    if not plan.streaming or plan.time_kind is not TimeKind.TIMESTAMP or output.undated:
        return False
    return "time" in output.match and (output.match_delay is not None or bool(output.optional))


def lags(plan: PhysicalPlan) -> dict[int, int]:
    """Return, by stream, how far MATCH_TIME of a result to come may lie behind its greatest event time.

    A row that is not late completes the result: it is at most the delay behind the stream's greatest time.
    Where a window puts some other row later than that, MATCH_TIME is no earlier than it; so the lag may be
    negative. A result that waits is no older than what it waits for allows. Static relations get no new rows.
    """
    if not plan.optional:
        return {stream: plan.streams[stream].delay - _later(plan, stream) for stream in plan.staged}
    shown = {stream for output in plan.outputs for stream in plan.staged if stream not in plan.hidden}
    shown |= {*held_for(plan, len(plan.stages) - 1)}
    found = {stream: plan.streams[stream].delay for stream in sorted(shown)}
    for number, stage in enumerate(plan.stages):
        if not isinstance(stage, Join):
            continue
        for lag in stage.lags:
            # Of what may be missing a row that waits need not have one.
            second = stage.inputs[1]
            sure = {*stage.asked, *second.members} - ({*may_lack(plan, second)} - stage.asked)
            sure = sure if stage.asked else set(stage.members)
            known = (far for member, far in lag.distances if far is not None and member in sure)
            far = min(known, default=0)
            for stream, later in needed(plan, number, lag.stream, 0).items():
                behind = plan.streams[stream].delay + later + far
                found[stream] = max(behind, found.get(stream, behind))
    return found


def waits_for_ever(plan: PhysicalPlan) -> bool:
    """Return whether some row without a partner is never decided: a window is open on one side."""
    rules = (lag for stage in plan.stages if isinstance(stage, Join) for lag in stage.lags)
    return any(all(distance is None for _, distance in lag.distances) for lag in rules)


def _later(plan: PhysicalPlan, stream: int) -> int:
    """Return by how much the latest row of a result is later than that of a stream, at the least."""
    if plan.watermarked or plan.method is Method.NATIVE:
        # Spark's own watermarks of the inputs know of no windows.
        return 0
    if any(each.stream == stream for each in plan.counted):
        # A result waits until the watermark has passed its MATCH_TIME, and not for its own row alone.
        return 0
    missing = {each.stream for each in plan.lookups if each.kind is not JoinKind.INNER}
    others = (other for other in range(plan.windows.size) if other != stream and other not in missing)
    most = (plan.windows.between(other, stream) for other in others)
    return max([0, *(-bound for bound in most if bound is not None)])


def least_to_come(plan: PhysicalPlan, seen: Mapping[int, int]) -> int | None:
    """Return the least MATCH_TIME that may still come; None where it has no bound.

    ``seen`` is the greatest event time that each stream has sent, before the rows to come. A stream that has
    sent nothing may send any time.
    """
    if waits_for_ever(plan):
        return None
    known = lags(plan)
    ends = [seen[stream] - lag for stream, lag in known.items() if stream in seen]
    return min(ends) if len(ends) == len(known) else None


def holding(plan: PhysicalPlan, seen: Mapping[int, int]) -> tuple[int, ...]:
    """Return the streams that hold the least MATCH_TIME back: those without a row, else the last ones."""
    known = lags(plan)
    silent = tuple(stream for stream in known if stream not in seen)
    if silent:
        return silent
    ends = {stream: seen[stream] - lag for stream, lag in known.items()}
    return tuple(stream for stream, end in ends.items() if end == min(ends.values()))


def earliest(plan: PhysicalPlan, number: int, marks: Mapping[int, int | None]) -> dict[int, int | None]:
    """Return the least times that rows of a stage's streams may still have; None for any.

    ``marks`` are the watermarks. A result of a join before that waits may be older than they are.
    """
    stage = plan.stages[number]
    if not isinstance(stage, Join) or not stage.asked:
        return {stream: marks[stream] for stream in stage.members}
    found: dict[int, int | None] = {}
    for each in stage.inputs:
        if each.stage is None:
            found |= {stream: marks[stream] for stream in each.members}
            continue
        before = plan.stages[each.stage]
        times = earliest(plan, each.stage, marks)
        for member in each.members:
            bounds = [times[member]]
            for lag in before.lags if isinstance(before, Join) else ():
                waiting = [far for stream, far in lag.distances if stream == member]
                mark = times[lag.stream]
                bounds += [None if mark is None or far is None else mark - far for far in waiting]
            known = [bound for bound in bounds if bound is not None]
            found[member] = min(known) if len(known) == len(bounds) else None
    return found


def needed(plan: PhysicalPlan, number: int, stream: int, time: int) -> dict[int, int]:
    """Return the watermarks by which no row of a stream may come to a stage before a time, by stream."""
    found = dict.fromkeys((stream, *held_for(plan, number)), time)
    for each in plan.stages[number].inputs:
        before = None if each.stage is None else plan.stages[each.stage]
        if each.stage is None or stream not in each.members or not isinstance(before, Join):
            continue
        asked = [needed(plan, each.stage, stream, time)]
        for lag in before.lags:
            far = dict(lag.distances).get(stream)
            if far is not None:
                asked.append(needed(plan, each.stage, lag.stream, time + far))
        for own in asked:
            found |= {other: max(mark, found.get(other, mark)) for other, mark in own.items()}
    # What is held goes by none that is later than the watermarks of the streams that are counted.
    return {**found, **dict.fromkeys(held_for(plan, number), max(found.values()))}
