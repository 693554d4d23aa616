"""HW kernel: the rows of one key, then the exact time range inside them (W-join 2002, 3.1.2)."""

import numpy as np

from wjoin.parts.kernels.candidates import Candidates, Search
from wjoin.parts.kernels.halving import first_above, first_at_least
from wjoin.parts.kernels.kernel import Kernel, Refusal, StepEstimate
from wjoin.parts.kernels.runs import Order, SortedRun
from wjoin.parts.kernels.search import rows_of_keys


class HashWindow(Kernel):
    """Runs in the order (code, time): the rows of a code stand together, in the order of time."""

    name = "hw"
    words = ("looks up by key, then by time", "looks up by time")
    meaning = "looks up the key, then the time range"
    search_seconds, pair_seconds = 4.6e-9, 7.8e-9
    order = Order.KEY
    selective = True
    timely = True

    def refusal(self, *, keyed: bool, indexed: bool) -> Refusal | None:
        """Without a key there is nothing to hash."""
        if keyed:
            return None
        return Refusal("it needs an equality between the streams", "use ALGORITHM(MW)")

    def compared(self, step: StepEstimate) -> float:
        """Return the rows of the key in the time range."""
        return step.matching

    def candidates(self, run: SortedRun, search: Search) -> Candidates:
        """Return the rows with the tuple's code and a time in range; the tuples' codes ascend."""
        tuples, start, end = rows_of_keys(run, search)
        times = run.times[0]
        first = first_at_least(times, start, end, search.lows[tuples])
        last = first_above(times, first, end, search.highs[tuples])
        found = Candidates(tuples, first, last)
        filled = last > first
        return found if filled.all() else found.pick(np.flatnonzero(filled))

    def agree(self, run: SortedRun, search: Search, tuples: object, rows: object) -> None:
        """Candidates have the code and a time in range: nothing is left to check."""
