"""From which event time on windows of rows have rows of a stream: older ones are in no result to come."""

from collections.abc import Mapping, Sequence

from wjoin.executor.state.slices import Slice
from wjoin.grammar.join_kinds import JoinKind
from wjoin.parts.kernels.runs import GREATEST, LEAST
from wjoin.planner.plan.counting import ends_in_time, windows_at
from wjoin.planner.plan.physical import PhysicalPlan


def kept_from(
    plan: PhysicalPlan, stage: int, counted: Sequence[tuple[Slice, ...]], marks: Mapping[int, int | None]
) -> dict[int, int | None]:
    """Return from which event time on a worker's windows of rows have rows of streams, None for all.

    Of the streams of its stage with such a window, where none in time ends the time of their rows. A worker
    that has counted none of a stream tells nothing of it. ``counted`` are its slices as in ``after`` of
    ``Uncounted``, ``marks`` the least times that rows of its streams may still have.
    """
    numbers = windows_at(plan, stage)
    ticks = dict(zip(numbers, counted[len(counted) - len(numbers) :], strict=False))
    members = plan.stages[stage].members
    until = min((LEAST if mark is None else mark for mark in marks.values()), default=LEAST)
    found: dict[int, int | None] = {}
    for stream in {plan.counted[number].stream for number in ticks}:
        ends = plan.kind is not JoinKind.INNER or ends_in_time(plan.windows, (stream,), members)
        floors: list[int | None] = [None] if ends else []
        for asked in plan.asked:
            own = [number for number in asked if number in ticks and plan.counted[number].stream == stream]
            first = [min((each.earliest for each in ticks[number]), default=GREATEST) for number in own]
            # Before its first landmark a stream has rows that are in the window.
            known = (
                time
                for number, time in zip(own, first, strict=True)
                if not plan.counted[number].condition or time <= until
            )
            floors.append(max(known, default=None))
        least = None if None in floors else min(each for each in floors if each is not None)
        if least != GREATEST:
            found[stream] = least
    return found
