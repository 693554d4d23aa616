"""MW kernel: the rows inside the time range, then the key (W-join 2002, 3.2).

The paper's Mode 1 sweeps over all streams for tuples that have partners inside the window on
every other stream; Mode 2 joins those without testing the window again. Here runs are in the
order of time, so both are binary searches: ``candidates`` gives the period of each tuple, and
the multi-way probe drops tuples without a partner on some stream before it joins any.
"""

import numpy as np

from wjoin.executor.kernels.candidates import Candidates, Probe
from wjoin.executor.kernels.runs import BoolArray, Int64Array, Order, SortedRun


class MergeWindow:
    """Runs in the order of time: the rows of a period stand together."""

    order = Order.TIME

    def candidates(self, run: SortedRun, probe: Probe) -> Candidates:
        """Return the rows with a time in range, of any code."""
        times = run.times[0]
        first = np.searchsorted(times, probe.lows, side="left")
        last = np.searchsorted(times, probe.highs, side="right")
        filled = np.flatnonzero(last > first)
        return Candidates(filled, first[filled], last[filled])

    def agree(self, run: SortedRun, probe: Probe, tuples: Int64Array, rows: Int64Array) -> BoolArray | None:
        """Return which pairs have one code."""
        if run.keyless:
            return None
        agree: BoolArray = probe.codes[tuples] == run.codes[rows]
        return agree
