"""How the key codes of new rows are spread: counted where they are sorted, else over a sample."""

import numpy as np

from wjoin.parts.kernels.runs import Order, SortedRun
from wjoin.planner.cost.measurement import KeyCount

SAMPLE = 1 << 14
"""Rows that are looked at where they are not sorted by code."""


def count_keys(run: SortedRun, order: Order) -> KeyCount | None:
    """Return the counts of the key codes of a run that is sorted in ``order``; None where there are none."""
    if run.keyless or not run.rows:
        return None
    codes = run.codes
    if order is Order.TIME:
        # Every n-th row, so that the sample spans the micro-batch as its rows do.
        codes = np.sort(codes[:: max(1, -(-run.rows // SAMPLE))])
    starts = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
    longest = int(np.diff(starts, append=len(codes)).max())
    return KeyCount(len(codes), len(starts), longest)
