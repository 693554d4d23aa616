"""ADAPTIVE: HW or MW, as what has arrived at a worker asks (W-join 2002, 3.1.2 and 3.2).

MW compares a tuple with all rows in its time range, HW with those of its key; finding these takes
about as long as comparing one more row. So MW is taken where the windows are so narrow, or the
keys so few, that there is little to save.
"""

from collections.abc import Sequence

import numpy as np

from wjoin.executor.kernels.runs import Int64Array, SortedRun
from wjoin.planner.physical import Kernel, PhysicalPlan, Stage
from wjoin.planner.reach import reach

CHANGE = 2.0
"""How many times fewer comparisons the other kernel must promise: a change sorts the state anew."""

LEAST_ROWS = 64
"""Rows of an input below which a micro-batch tells nothing."""

_SAMPLE = 1024


def preferred(plan: PhysicalPlan, stage: Stage, runs: Sequence[SortedRun | None], current: Kernel) -> Kernel:
    """Return the kernel, HW or MW, for rows like those of ``runs``, one for each input of a stage.

    It is ``current`` where little has arrived, or where the other is not much better.
    """
    period = matching = 0.0
    distance = reach(stage.bounds, plan.upper, plan.staged)
    for first, probing in enumerate(runs):
        for second, target in enumerate(runs):
            if first == second or probing is None or target is None:
                continue
            if min(probing.rows, target.rows) < LEAST_ROWS:
                continue
            own, other = stage.inputs[first].members[0], stage.inputs[second].members[0]
            rows = _rows_in_range(target, distance.back[own][other], distance.ahead[own][other])
            period += probing.rows * rows
            matching += probing.rows * (1 + rows * _same_key(probing, target))
    if current is Kernel.MW:
        return Kernel.HW if period > CHANGE * matching else Kernel.MW
    return Kernel.MW if 0 < CHANGE * period < matching else Kernel.HW


def _rows_in_range(target: SortedRun, back: int | None, ahead: int | None) -> float:
    """Return the rows in the time range of one tuple, at the rate of those that have arrived."""
    earliest, latest = target.span
    length = latest - earliest if back is None or ahead is None else back + ahead
    return target.rows / max(1, latest - earliest) * max(0, length)


def _same_key(first: SortedRun, second: SortedRun) -> float:
    """Return the share of pairs of rows with one key."""
    values, counts = _sampled_codes(first)
    others, other_counts = _sampled_codes(second)
    _, left, right = np.intersect1d(values, others, assume_unique=True, return_indices=True)
    return float((counts[left] * other_counts[right]).sum()) / _SAMPLE**2


def _sampled_codes(run: SortedRun) -> tuple[Int64Array, Int64Array]:
    """Return codes of a run and how often each stands in a sample."""
    places = np.linspace(0, run.rows - 1, _SAMPLE).astype(np.int64)
    return np.unique(run.codes[places], return_counts=True)
