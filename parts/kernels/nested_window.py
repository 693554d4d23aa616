"""NLW kernel: nested loops, every tuple against every row of the window (W-join 2002, 3.1.1)."""

import numpy as np

from wjoin.parts.kernels.candidates import Candidates, Search
from wjoin.parts.kernels.kernel import Kernel, StepEstimate
from wjoin.parts.kernels.runs import BoolArray, Int64Array, Order, SortedRun


class NestedWindow(Kernel):
    """Runs in any order; that of time costs least to make."""

    name = "nlw"
    words = ("compares all rows of the window",) * 2
    meaning = "compares all rows"
    search_seconds, pair_seconds = 1.9e-8, 1.6e-8
    order = Order.TIME

    def compared(self, step: StepEstimate) -> float:
        """Return all rows that the input holds."""
        return step.window

    def candidates(self, run: SortedRun, search: Search) -> Candidates:
        """Return all rows for every tuple."""
        count = len(search.codes) if run.rows else 0
        return Candidates(
            np.arange(count, dtype=np.int64), np.zeros(count, np.int64), np.full(count, run.rows, np.int64)
        )

    def agree(self, run: SortedRun, search: Search, tuples: Int64Array, rows: Int64Array) -> BoolArray:
        """Return which pairs have one code and times in range."""
        agree = search.in_range(run, tuples, rows)
        if not run.keyless:
            agree &= search.codes[tuples] == run.codes[rows]
        return agree
