"""NLW kernel: nested loops, every tuple against every row of the window (W-join 2002, 3.1.1)."""

import numpy as np

from wjoin.executor.kernels.candidates import Candidates, Probe
from wjoin.executor.kernels.runs import BoolArray, Int64Array, Order, SortedRun


class NestedWindow:
    """Runs in any order; that of time costs least to make."""

    order = Order.TIME

    def candidates(self, run: SortedRun, probe: Probe) -> Candidates:
        """Return all rows for every tuple."""
        count = len(probe.codes) if run.rows else 0
        return Candidates(
            np.arange(count, dtype=np.int64), np.zeros(count, np.int64), np.full(count, run.rows, np.int64)
        )

    def agree(self, run: SortedRun, probe: Probe, tuples: Int64Array, rows: Int64Array) -> BoolArray:
        """Return which pairs have one code and times in range."""
        agree = probe.in_range(run, tuples, rows)
        if not run.keyless:
            agree &= probe.codes[tuples] == run.codes[rows]
        return agree
