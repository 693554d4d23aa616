"""With how many workers S2J runs, and how large its blocks are: sections 3.2 and 3.3.2 as functions."""

import math
from dataclasses import dataclass

from wjoin.planner.cost.shedding import Thresholds


def needed(rows: float, capacity: float, thresholds: Thresholds) -> int:
    """Return the workers with which so many kept rows make τ about τ*: m of section 3.2.1."""
    return max(1, math.ceil(rows / (capacity * thresholds.expected)))


def block_rows(utilization: float, thresholds: Thresholds, most: int, alpha: float = 0.5) -> int:
    """Return the rows of a block, ς of section 3.3.2: ``most`` (ς*) times ((τ1 − τ) / τ*) to the ``alpha``.

    The paper has 1 below τ*, too, where it says that blocks are large until τ is near τ1: so here it is ς*.
    """
    if utilization > thresholds.shedding:
        return 1
    share = (thresholds.shedding - max(utilization, thresholds.expected)) / thresholds.expected
    return max(1, math.ceil(most * share**alpha))


@dataclass(frozen=True)
class Executors:
    """How many workers there are, and since when τ is above τ2 or below τ0: seconds, None where it is not."""

    number: int
    above: float | None = None
    below: float | None = None

    def after(
        self, time: float, rows: float, capacity: float, thresholds: Thresholds, most: int
    ) -> "Executors":
        """Return how many there are from now on: at most ``most``, as section 4.4 has it.

        More after 30 seconds above τ2, fewer after five minutes below τ0, as many as bring τ to about τ*.
        """
        utilization = rows / (capacity * self.number)
        above = None if utilization <= thresholds.growing else time if self.above is None else self.above
        below = None if utilization >= thresholds.idle else time if self.below is None else self.below
        wanted = min(most, needed(rows, capacity, thresholds))
        if above is not None and time - above >= GROWING_AFTER and wanted > self.number:
            return Executors(wanted)
        if below is not None and time - below >= RELEASED_AFTER and wanted < self.number:
            return Executors(wanted)
        return Executors(self.number, above, below)


GROWING_AFTER, RELEASED_AFTER = 30.0, 300.0
"""Seconds of section 4.4."""
