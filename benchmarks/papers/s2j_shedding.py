"""How large the blocks of S2J are: section 3.3.2 as a function."""

import math

from wjoin.planner.cost.shed_share import Thresholds


def block_rows(utilization: float, thresholds: Thresholds, most: int, alpha: float = 0.5) -> int:
    """Return the rows of a block, ς of section 3.3.2: ``most`` (ς*) times ((τ1 − τ) / τ*) to the ``alpha``.

    The paper has 1 below τ*, too, where it says that blocks are large until τ is near τ1: so here it is ς*.
    """
    if utilization > thresholds.shedding:
        return 1
    share = (thresholds.shedding - max(utilization, thresholds.expected)) / thresholds.expected
    return max(1, math.ceil(most * share**alpha))
