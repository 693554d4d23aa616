"""Which rows can still be joined by a row that may yet arrive.

A tuple is kept until the watermark of every stream of the other inputs has passed the latest
time at which that stream is compared with it: min over its members m of t_m + distance.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.parts.kernels.runs import GREATEST, LEAST, BoolArray, Int64Array, RunShape, SortedRun
from wjoin.planner.plan.edges import held_for, reached_by
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.stage_kinds import Retention, StageEdge
from wjoin.planner.plan.to_come import earliest


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


def least_of(times: Iterable[int | None]) -> int | None:
    """Return the least of some times, None where one is not known or there are none."""
    found = list(times)
    return None if None in found else min((each for each in found if each is not None), default=None)


def known_before(plan: PhysicalPlan, stage: int, seen: Mapping[int, int]) -> int | None:
    """Return before which time all is known that windows of rows count, for what is held; None for none."""
    return least_of(watermark(seen.get(each), plan.streams[each].delay) for each in held_for(plan, stage))


def least_times(plan: PhysicalPlan, stage: int, seen: Mapping[int, int]) -> dict[int, int | None]:
    """Return the least times that rows of a stage's streams may still have, None for any."""
    marks = {each: watermark(seen.get(each), plan.streams[each].delay) for each in reached_by(plan, stage)}
    if held_for(plan, stage):
        least = known_before(plan, stage, seen)
        for each, mark in marks.items():
            marks[each] = least_of((mark, least))
    return earliest(plan, stage, marks)


def kept(
    retentions: Sequence[Retention],
    times: Mapping[int, Int64Array],
    marks: Mapping[int, int | None],
    says: Callable[[str], Int64Array] | None = None,
) -> BoolArray:
    """Return which rows must be kept.

    ``times`` holds an int64 array for each member of their input, ``marks`` the watermarks of the streams;
    ``says`` gets the times that rows say themselves, of a column of their block.
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
        said = [] if says is None or mark is None else [says(name) >= mark for name in each.until]
        if not ends and not said:
            keep[:] = True
            break
        if all(end <= GREATEST for _, end in ends):
            keep |= np.logical_and.reduce([*(times[member] >= end for member, end in ends), *said])
    return keep


def live(
    retentions: Sequence[Retention], each: StageEdge, marks: Mapping[int, int | None], run: SortedRun
) -> BoolArray:
    """Return which rows of a run of an input must be kept."""
    times = dict(zip(each.members, run.times, strict=True))
    return kept(retentions, times, marks, partial(_said_times, run.batch))


def _said_times(batch: pa.RecordBatch, name: str) -> Int64Array:
    """Return the times in a column; where a row has none, it meets no other."""
    found = pc.fill_null(batch.column(name).cast(pa.int64()), LEAST)
    times: Int64Array = found.to_numpy(zero_copy_only=False)
    return times


def settled(retentions: Sequence[Retention], marks: Mapping[int, int | None]) -> int | None:
    """Return the time from which on the rows of a one-stream input are live; None if unknown, or none are."""
    cuts = []
    for each in retentions:
        mark, (distance, *others) = marks[each.stream], [far for _, far in each.distances]
        if others or mark is None or distance is None or each.until:
            return None
        cuts.append(mark - distance)
    return min(cuts, default=None)
