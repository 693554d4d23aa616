"""What share of the rows an overloaded join sheds (S2J, sections 3.2 and 3.2.2).

Pure: what is measured comes from outside. Shares are between 0 and 1.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self, TypeVar

OFF, LINEAR, QUADRATIC = MODELS = ("off", "linear", "quadratic")
"""How the shedding ratio grows with the load: not at all, or by which power."""

_POWER = {LINEAR: 1, QUADRATIC: 2}
_HALVINGS = 50

Stream = TypeVar("Stream")
"""By what a stream is known: its number, or its alias."""


@dataclass(frozen=True)
class Thresholds:
    """The utilisations by which a join adapts, and the ``base`` B of what it sheds (section 3.2).

    Below ``idle`` (τ0) workers are superfluous, ``expected`` (τ*) is aimed at, above ``shedding`` (τ1) rows
    are shed, above ``growing`` (τ2) more workers are needed: 0 < τ0 < τ* < τ1 <= τ2 <= 1. Raises ValueError
    for others, for τ1 = 1, and for a base that is no share. The defaults are those of section 4.4.
    """

    idle: float = 0.2
    expected: float = 0.4
    shedding: float = 0.8
    growing: float = 0.82
    base: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.idle < self.expected < self.shedding <= self.growing <= 1 or self.shedding == 1:
            raise ValueError("0 < τ0 < τ* < τ1 <= τ2 <= 1, and τ1 < 1")
        if not 0 <= self.base <= 1:
            raise ValueError("the base is a share between 0 and 1")


def state_utilization(used: int, capacity: int | None) -> float:
    """Return τ = w / W of the state (section 3.2): bytes of all workers, and how many these may have.

    0 where nothing limits them. The average over the workers is the same, as all have the same capacity.
    """
    return 0.0 if capacity is None else used / capacity


def time_utilization(busy: float, fixed: float, came: float, interval: float) -> float:
    """Return τ of the time: the seconds that a micro-batch was busy with rows, by those in which they came.

    ``busy`` of which ``fixed`` are no work on rows: under load there are fewer micro-batches. ``came`` counts
    as ``interval`` at least: a shorter micro-batch is in time, however often there is one.
    """
    return max(0.0, busy - fixed) / max(came, interval)


LIVE_SECONDS = 86_400.0
"""Event times are of the present if they are no further than this from the clock."""

MOST_LOAD = 10.0
"""The greatest utilisation of the time that is believed."""

_LEAST_KEPT = 0.05
"""The share of rows that is taken to be kept at least, when the load with shedding tells that without."""

_MICROSECONDS = 1e6


def came_in(seen: Mapping[Stream, int], before: Mapping[Stream, int], clock: float) -> float | None:
    """Return the seconds in which the rows of a micro-batch came, by their event times.

    ``seen``: the greatest one of each stream after it, ``before``: the same before it, in microseconds. None
    where they are far from the ``clock`` (seconds), or tell nothing.
    """
    steps = [latest - before[stream] for stream, latest in seen.items() if stream in before]
    newest = max(seen.values(), default=0) / _MICROSECONDS
    if not steps or max(steps) <= 0 or abs(clock - newest) > LIVE_SECONDS:
        return None
    return max(steps) / _MICROSECONDS


def unshed(load: float, shed: float) -> float:
    """Return what the utilisation of the time would be if a share ``shed`` of the rows had not been shed."""
    return min(MOST_LOAD, load) / max(_LEAST_KEPT, 1 - shed)


def shedding_ratio(model: str, utilization: float, thresholds: Thresholds) -> float:
    """Return SR, the share of rows to shed (section 3.2.2).

    SR = B + (1 - B) · (τ - τ1) / (1 - τ1) where τ > τ1, else 0. The quadratic model, which the paper draws in
    a figure without an equation, squares the fraction. From τ = 1 on all is shed.
    """
    if model == OFF or utilization <= thresholds.shedding:
        return 0.0
    excess = min(1.0, (utilization - thresholds.shedding) / (1 - thresholds.shedding))
    return float(thresholds.base + (1 - thresholds.base) * excess ** _POWER[model])


def settled_ratio(model: str, demand: float, thresholds: Thresholds) -> float:
    """Return the share to shed where the utilisation follows it at once: SR = f(demand · (1 - SR)).

    ``demand`` is the utilisation without shedding. The state of a worker follows a ratio slowly, as windows
    pass, but the time of a micro-batch at once: taken from the last one, f would shed nearly all and nearly
    nothing by turns. A demand at which the base alone is too much gets what leaves τ1.
    """
    if model == OFF or demand <= thresholds.shedding:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if shedding_ratio(model, demand * (1 - middle), thresholds) > middle:
            low = middle
        else:
            high = middle
    return high


def lost_share(kept: Iterable[tuple[object, float]]) -> float:
    """Return the share of the results that is lost, where each needs all of its parts to be kept.

    Of each stream: on what its rows are judged, and the share of these that is kept. Streams that are judged
    on the same, such as the key on which they meet, are kept together, as far as the least of them.
    """
    least: dict[object, float] = {}
    for judged, share in kept:
        least[judged] = min(share, least.get(judged, 1.0))
    return 1.0 - math.prod(least.values())


_LEAST_FOUND = 1e-6
"""The least share of the results that is found where some are."""


@dataclass(frozen=True)
class ExpectedResults:
    """The results that there would have been: ``expected``, and ``least`` to ``most``, None where all may be
    lost."""

    expected: float
    least: float
    most: float | None

    @classmethod
    def of_lost(cls, found: int, share: float, least: float, most: float) -> Self:
        """Return those of which so many are ``found``, where shares are lost: what ``lost`` tells, back."""
        every, fewest, largest = (found / max(1 - each, _LEAST_FOUND) for each in (share, least, most))
        return cls(every, fewest, None if most >= 1 else largest)

    def lost(self, found: int) -> tuple[float, float, float]:
        """Return the share of the results that is lost if so many are ``found``: ε, its least, its most."""
        return (
            _missing(found, self.expected),
            _missing(found, self.least),
            1.0 if self.most is None else _missing(found, self.most),
        )


CONFIDENCE = 1.96
"""Deviations on either side of what is expected: 95 % of what is normal."""


def estimated(found: int, squares: int, lost: float, lost_most: float) -> ExpectedResults:
    """Return how many results a micro-batch would have had (Horvitz and Thompson, 1952).

    ``lost`` is the share that the micro-batch's ratio loses, ``lost_most`` that of the greatest ratio by
    which rows were shed that could still meet its rows: each result was kept with a probability between
    1 - lost_most and 1 - lost. ``squares`` is the sum, over all keys (or rows) that are kept or shed as one,
    of the square of the results that each has part in: pairs of results with a common part are kept together,
    so the variance is lost · squares / (1 - lost)² at the most.
    """
    if lost <= 0 and lost_most <= 0:
        return ExpectedResults(found, found, found)
    most, least = 1.0 - lost, 1.0 - max(lost, lost_most)
    if least <= 0:
        return ExpectedResults(found / most if most > 0 else found, found, None)
    deviation = CONFIDENCE * math.sqrt(max(lost, lost_most) * squares) / least
    return ExpectedResults(
        found / most, max(float(found), found / most - deviation), found / least + deviation
    )


def _missing(found: int, whole: float) -> float:
    return max(0.0, 1.0 - found / whole) if whole > 0 else 0.0
