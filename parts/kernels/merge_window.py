"""MW kernel: the rows inside the time range, then the key (W-join 2002, 3.2).

The paper's Mode 1 sweeps over all streams for tuples that have partners inside the window on
every other stream; Mode 2 joins those without testing the window again. Here runs are in the
order of time, so both are binary searches: ``candidates`` gives the period of each tuple, and
the multi-way probe drops tuples without a partner on some stream before it joins any.
"""

import numpy as np

from wjoin.parts.kernels.candidates import Candidates, Search
from wjoin.parts.kernels.kernel import Kernel, StepEstimate
from wjoin.parts.kernels.runs import BoolArray, Int64Array, Order, SortedRun


class MergeWindow(Kernel):
    """Runs in the order of time: the rows of a period stand together."""

    name = "mw"
    words = ("looks up by time, then by key", "looks up by time")
    meaning = "looks up the time range, then the key"
    search_seconds, pair_seconds = 8.7e-9, 7.5e-9
    order = Order.TIME
    sweeps = True
    timely = True

    def compared(self, step: StepEstimate) -> float:
        """Return the rows in the time range."""
        return step.period

    def candidates(self, run: SortedRun, search: Search) -> Candidates:
        """Return the rows with a time in range, of any code."""
        times = run.times[0]
        first = np.searchsorted(times, search.lows, side="left")
        last = np.searchsorted(times, search.highs, side="right")
        filled = np.flatnonzero(last > first)
        return Candidates(filled, first[filled], last[filled])

    def agree(self, run: SortedRun, search: Search, tuples: Int64Array, rows: Int64Array) -> BoolArray | None:
        """Return which pairs have one code."""
        if run.keyless:
            return None
        agree: BoolArray = search.codes[tuples] == run.codes[rows]
        return agree
