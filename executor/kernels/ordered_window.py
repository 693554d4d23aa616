"""ORDERED kernel: an ordered index for bands, such as ``abs(A.x - B.x) <= 5`` (S2J, "Optimizations").

The paper keeps a balanced search tree. Here the rows of a key are sorted by the band's column in
runs, as those of HW are by time: the rows in the band are a range of them, and the time is tested.
"""

import numpy as np

from wjoin.executor.kernels.candidates import Candidates, Probe
from wjoin.executor.kernels.runs import BoolArray, Int64Array, Order, SortedRun
from wjoin.executor.kernels.search import first_above, first_at_least, rows_of_keys


class OrderedWindow:
    """Runs in the order (code, value): the rows of a code stand together, in the order of their values.

    A run whose rows have no value to be ordered by (its stage has no band on that input) is in the
    order of HW, and all rows of the code are candidates.
    """

    order = Order.VALUE

    def candidates(self, run: SortedRun, probe: Probe) -> Candidates:
        """Return the rows with the tuple's code and a value in its band; the tuples' codes ascend."""
        probes, start, end = rows_of_keys(run, probe)
        first, last = start, end
        if run.values is not None and probe.least is not None:
            first = first_at_least(run.values, start, end, probe.least[probes])
        if run.values is not None and probe.greatest is not None:
            wanted = probe.greatest[probes]
            last = first_above(run.values, first, end, wanted)
            # Nothing is above NaN.
            last = np.where(np.isnan(wanted), end, last) if wanted.dtype.kind == "f" else last
        filled = np.flatnonzero(last > first)
        return Candidates(probes[filled], first[filled], last[filled])

    def agree(self, run: SortedRun, probe: Probe, tuples: Int64Array, rows: Int64Array) -> BoolArray:
        """Return which pairs have times in range."""
        return probe.in_range(run, tuples, rows)
