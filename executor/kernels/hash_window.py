"""HW kernel: the rows of one key, then the exact time range inside them (W-join 2002, 3.1.2)."""

import numpy as np

from wjoin.executor.kernels.candidates import Candidates, Probe
from wjoin.executor.kernels.runs import Order, SortedRun
from wjoin.executor.kernels.search import first_above, first_at_least, rows_of_keys


class HashWindow:
    """Runs in the order (code, time): the rows of a code stand together, in the order of time."""

    order = Order.KEY

    def candidates(self, run: SortedRun, probe: Probe) -> Candidates:
        """Return the rows with the tuple's code and a time in range; the tuples' codes ascend."""
        probes, start, end = rows_of_keys(run, probe)
        times = run.times[0]
        first = first_at_least(times, start, end, probe.lows[probes])
        last = first_above(times, first, end, probe.highs[probes])
        filled = np.flatnonzero(last > first)
        return Candidates(probes[filled], first[filled], last[filled])

    def agree(self, run: SortedRun, probe: Probe, tuples: object, rows: object) -> None:
        """Candidates have the code and a time in range: nothing is left to check."""
