"""How many executors the queries of a Spark need as their load changes (S2J, sections 3.2.3 and 4.4).

Pure: what is measured comes from outside.
"""

import math
from dataclasses import dataclass

from wjoin.planner.cost.shed_share import Thresholds


@dataclass(frozen=True)
class Scaling:
    """How executors follow the load: there are ``least`` to ``most``.

    More come after τ was above τ2 for ``growing`` seconds, some go after it was below τ0 for ``releasing``:
    the defaults are those of section 4.4. Raises ValueError for a range without a number in it.
    """

    least: int
    most: int
    growing: float = 30.0
    releasing: float = 300.0

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise ValueError("1 <= least <= most")


@dataclass(frozen=True)
class Scale:
    """How many executors there are, and since when τ is above τ2, or below τ0: seconds, None where it is not.

    No executor has a state of its own that would have to move: there are more workers of a stage than
    executors, and these take them as they come.
    """

    number: int
    above: float | None = None
    below: float | None = None

    def after(self, time: float, utilization: float, scaling: Scaling, thresholds: Thresholds) -> "Scale":
        """Return how many there shall be from now on: as many as bring τ to about τ*, where it lasts."""
        above = None if utilization <= thresholds.growing else time if self.above is None else self.above
        below = None if utilization >= thresholds.idle else time if self.below is None else self.below
        wanted = min(scaling.most, max(scaling.least, self.wanted(utilization, thresholds)))
        lasts = (above is not None and time - above >= scaling.growing and wanted > self.number) or (
            below is not None and time - below >= scaling.releasing and wanted < self.number
        )
        return Scale(wanted) if lasts else Scale(self.number, above, below)

    def wanted(self, utilization: float, thresholds: Thresholds) -> int:
        """Return the executors with which τ would be about τ*: m of section 3.2.1."""
        return math.ceil(self.number * utilization / thresholds.expected)
