"""WITH HISTORY: what a statement that is added to a set takes of the rows that the state has before it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from wjoin.grammar.join_kinds import JoinKind
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.plan.physical import Output, Passes, PhysicalPlan
from wjoin.planner.plan.probes import arranged_stage
from wjoin.planner.plan.stage_kinds import Join, Retention
from wjoin.planner.windows.bounds import Windows, hull


def no_history(plan: PhysicalPlan, *, shared: bool) -> str:
    """Return why no worker can have the rows of a result together, empty where one can.

    ``shared``: whether workers can read the state of each other.
    """
    last = plan.stages[-1]
    if plan.kind is not JoinKind.INNER:
        return f"the state no longer has rows that {plan.kind.words} has given already"
    if not isinstance(last, Join):
        return "a join without a key in several stages has the rows of a result on several workers"
    if ROUTES[last.placement.route].visits and not shared:
        route = last.placement.route
        return (
            f"by the route {route} the rows of a result lie on several workers, each with a state of its own"
        )
    return ""


def among_stored(plan: PhysicalPlan, output: Output) -> PhysicalPlan:
    """Return a plan whose last stage makes the results of one output as of tables: its inputs are complete.

    So new rows of the last input alone begin results.
    """
    tables = tuple(replace(each, streaming=False) for each in plan.streams)
    windows = hull(output.windows) if output.windows else plan.windows
    number = len(plan.stages) - 1
    stage = replace(plan.stages[number], kernels=plan.stages[number].kernels[:1])
    complete = replace(
        plan, streams=tables, windows=windows, outputs=(output,), branches=(), passes=Passes.HULL
    )
    return complete.with_stage(number, arranged_stage(complete, stage, None))


def complete_from(
    plan: PhysicalPlan,
    output: Output,
    retentions: Sequence[Sequence[Retention]],
    seen: Mapping[int, int],
) -> int | None:
    """Return from which MATCH_TIME on an output has all results of a state, None where it has all there are.

    ``retentions`` are those of the inputs of the last stage, ``seen`` the greatest event times by stream, as
    the state was written. A row of a result is as much older than its MATCH_TIME as the windows allow.
    """
    windows = hull(output.windows) if output.windows else plan.windows
    marks = {stream: time - plan.streams[stream].delay for stream, time in seen.items()}
    found: list[int] = []
    for rules in retentions:
        times = [_kept_from(each, windows, marks) for each in rules]
        known = [each for each in times if each is not None]
        # A row is kept as long as one of the other streams may need it.
        found += [min(known)] if known and len(known) == len(times) else []
    return max(found, default=None)


def _kept_from(rule: Retention, windows: Windows, marks: Mapping[int, int]) -> int | None:
    """Return from which MATCH_TIME on rows are kept for a stream, None where all are."""
    mark = marks.get(rule.stream)
    if mark is None:
        return None
    streams = range(windows.size)
    older = {member: windows.widest((member, other) for other in streams) for member, _ in rule.distances}
    return max(
        (mark - far + (older[each] or 0) for each, far in rule.distances if far is not None), default=None
    )
