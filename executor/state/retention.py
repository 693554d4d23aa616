"""Which rows can still be joined by a row that may yet arrive.

A tuple is kept until the watermark of every stream of the other inputs has passed the latest
time at which that stream is compared with it: min over its members m of t_m + ahead[m][j].
"""

import numpy as np

from wjoin.executor.kernels.runs import GREATEST, BoolArray, Int64Array, shifted
from wjoin.planner.physical import PhysicalPlan, Stage
from wjoin.planner.reach import Reach, reach


def watermark(seen: int | None, delay: int) -> int | None:
    """Return a stream's watermark from the greatest event time seen, None before its first row."""
    return None if seen is None else seen - delay


def stage_reach(plan: PhysicalPlan, stage: Stage) -> Reach:
    """Return how far the tuples of a stage reach."""
    return reach(stage.bounds, plan.upper, plan.staged)


def kept(
    plan: PhysicalPlan, stage: Stage, number: int, times: tuple[Int64Array, ...], seen: dict[int, int]
) -> BoolArray:
    """Return which rows of input ``number`` must be kept, given the greatest event times seen.

    ``times`` holds one int64 array for each member of the input; ``seen`` the greatest event
    time of each stream that has sent a row.
    """
    members = stage.inputs[number].members
    ahead = stage_reach(plan, stage).ahead
    keep = np.zeros(len(times[0]), bool)
    for stream in stage.members:
        if stream in members:
            continue
        mark = watermark(seen.get(stream), plan.streams[stream].delay)
        if mark is None:
            keep[:] = True
            break
        joinable = np.full(len(keep), GREATEST, np.int64)
        for member, column in zip(members, times, strict=True):
            joinable = np.minimum(joinable, shifted(column, ahead[member][stream], GREATEST))
        keep |= joinable >= mark
    return keep
