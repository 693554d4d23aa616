"""How many workers a join of streams needs, and from which rate on it falls behind (S2J, section 3.2)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from wjoin.planner.cost.model import OF_PAIRS
from wjoin.planner.cost.shed_share import Thresholds

_FIXED = "micro-batches"


@dataclass(frozen=True)
class Sizing:
    """What a number of ``workers`` makes of a join.

    ``utilization`` (τ): the share of its time that a worker is busy with rows. ``batch``: the seconds that a
    micro-batch takes where each begins when the one before has ended, infinite where workers do not keep up.
    ``needed`` (m): the workers with which τ is τ* or less. ``limit``: how many times as many rows
    may come until τ is 1.
    """

    workers: int
    utilization: float
    batch: float
    needed: int
    limit: float


def sized(
    terms: Mapping[str, float], workers: int, interval: float = 1.0, expected: float = Thresholds.expected
) -> Sizing:
    """Return what so many workers make of a join, whose cost has these terms (``cost.model.Cost``).

    ``expected`` (τ*): the share of its time that a worker should be busy, half of τ1 as in section 4.4.

    m = ⌈E(ϖ)·φ / (W·τ*)⌉ (section 3.2.1), where a worker's capacity W is what it works off in its time. With
    the window as it is, pairs grow with the square of the rate. The fixed cost of a micro-batch, told for
    those of ``interval`` seconds, bounds no rate: under load there are fewer of them.
    """
    pairs = sum(value for name, value in terms.items() if name in OF_PAIRS)
    rows = sum(value for name, value in terms.items() if name not in {*OF_PAIRS, _FIXED, "idle"})
    utilization = (rows + pairs) / workers
    fixed = terms.get(_FIXED, 0.0) * interval
    return Sizing(
        workers,
        utilization,
        fixed / (1 - utilization) if utilization < 1 else math.inf,
        max(1, math.ceil((rows + pairs) / expected)),
        _root(pairs, rows, workers),
    )


def _root(square: float, line: float, until: float) -> float:
    """Return the x > 0 where ``square`` x² + ``line`` x is ``until``."""
    if square == 0:
        return until / line if line else math.inf
    return (math.sqrt(line * line + 4 * square * until) - line) / (2 * square)
