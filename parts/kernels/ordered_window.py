"""ORDERED kernel: an ordered index for bands, such as ``abs(A.x - B.x) <= 5`` (S2J, "Optimizations").

The paper keeps a balanced search tree. Here the rows of a key are sorted by the band's column in
runs, as those of HW are by time: the rows in the band are a range of them, and the time is tested.
"""

import numpy as np

from wjoin.parts.kernels.candidates import Candidates, Search
from wjoin.parts.kernels.halving import first_above, first_at_least
from wjoin.parts.kernels.kernel import Kernel, Refusal, StepEstimate
from wjoin.parts.kernels.runs import BoolArray, Int64Array, Order, SortedRun
from wjoin.parts.kernels.search import rows_of_keys


class OrderedWindow(Kernel):
    """Runs in the order (code, value): the rows of a code stand together, in the order of their values.

    A run whose rows have no value to be ordered by (its stage has no band on that input) is in the
    order of HW, and all rows of the code are candidates.
    """

    name = "ordered"
    words = ("looks up by key, value, then time", "looks up by value, then by time")
    meaning = "looks up the key, then the value range"
    search_seconds, pair_seconds = 6.0e-9, 1.4e-8
    order = Order.VALUE
    everywhere = False

    def refusal(self, *, keyed: bool, indexed: bool) -> Refusal | None:
        """Without a band there is nothing to order rows by."""
        if indexed:
            return None
        return Refusal(
            "no condition bounds the difference of two streams' columns",
            "add one such as abs(a.x - b.x) <= 5, or use another kernel",
        )

    def compared(self, step: StepEstimate) -> float:
        """Return the rows of the key in the band."""
        return step.banded

    def made(self, step: StepEstimate) -> float:
        """Return the rows of the key in the band and in the time range."""
        return step.near

    def candidates(self, run: SortedRun, search: Search) -> Candidates:
        """Return the rows with the tuple's code and a value in its band; the tuples' codes ascend."""
        tuples, start, end = rows_of_keys(run, search)
        first, last = start, end
        if run.values is not None and search.least is not None:
            first = first_at_least(run.values, start, end, search.least[tuples])
        if run.values is not None and search.greatest is not None:
            wanted = search.greatest[tuples]
            last = first_above(run.values, first, end, wanted)
            # Nothing is above NaN.
            last = np.where(np.isnan(wanted), end, last) if wanted.dtype.kind == "f" else last
        filled = np.flatnonzero(last > first)
        return Candidates(tuples[filled], first[filled], last[filled])

    def agree(self, run: SortedRun, search: Search, tuples: Int64Array, rows: Int64Array) -> BoolArray:
        """Return which pairs have times in range."""
        return search.in_range(run, tuples, rows)
