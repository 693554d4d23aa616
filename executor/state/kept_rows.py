"""Which rows can still be joined by a row that may yet arrive.

A tuple is kept until the watermark of every stream of the other inputs has passed the latest
time at which that stream is compared with it: min over its members m of t_m + distance.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wjoin.parts.kernels.runs import GREATEST, LEAST, BoolArray, Int64Array, RunShape, SortedRun
from wjoin.planner.plan.physical import Join, PhysicalPlan, Retention, StageEdge


@dataclass(frozen=True)
class Keeper:
    """How rows of an input are kept: in what order, which, and from which time on where that is known."""

    shape: RunShape
    live: Callable[[SortedRun], BoolArray]
    settled: int | None

    def may_end(self, run: SortedRun, before: "Keeper") -> bool:
        """Return whether rows of a run may be no longer kept now that had to be ``before``."""
        first, last = run.span
        ended = before.settled is not None and last < before.settled
        return not ended and (self.settled is None or first < self.settled)


def watermark(seen: int | None, delay: int) -> int | None:
    """Return a stream's watermark from the greatest event time seen, None before its first row."""
    return None if seen is None else seen - delay


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
    found = {stream: time}
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
    return found


def kept(
    retentions: Sequence[Retention], times: Mapping[int, Int64Array], marks: Mapping[int, int | None]
) -> BoolArray:
    """Return which rows must be kept.

    ``times`` holds an int64 array for each member of their input, ``marks`` the watermarks of the streams.
    """
    keep: BoolArray = np.zeros(len(next(iter(times.values()))), bool)
    for each in retentions:
        mark = marks[each.stream]
        # t + distance >= mark, as t >= mark - distance: one comparison for each member, and no sum of rows.
        ends = [
            (member, mark - distance)
            for member, distance in each.distances
            if mark is not None and distance is not None and mark - distance > LEAST
        ]
        if not ends:
            keep[:] = True
            break
        if all(end <= GREATEST for _, end in ends):
            keep |= np.logical_and.reduce([times[member] >= end for member, end in ends])
    return keep


def live(
    retentions: Sequence[Retention], each: StageEdge, marks: Mapping[int, int | None], run: SortedRun
) -> BoolArray:
    """Return which rows of a run of an input must be kept."""
    return kept(retentions, dict(zip(each.members, run.times, strict=True)), marks)


def settled(retentions: Sequence[Retention], marks: Mapping[int, int | None]) -> int | None:
    """Return the time from which on the rows of a one-stream input are live; None if unknown, or none are."""
    cuts = []
    for each in retentions:
        mark, (distance, *others) = marks[each.stream], [far for _, far in each.distances]
        if others or mark is None or distance is None:
            return None
        cuts.append(mark - distance)
    return min(cuts, default=None)
