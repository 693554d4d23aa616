"""Does a curve stay level, once it has settled?"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Curve:
    """Something measured again and again, at moments in seconds.

    ``tolerance`` is the share of its median by which it may have risen, and ``slack`` what it may
    have risen in its own unit whatever that share is, from the middle third of the time to the last one.
    What is not ``judged`` is shown only.
    """

    title: str
    unit: str
    tolerance: float
    slack: float
    moments: tuple[float, ...]
    values: tuple[float, ...]
    judged: bool = True


@dataclass(frozen=True)
class Level:
    """The medians of a curve's thirds, and whether it grows."""

    curve: Curve
    thirds: tuple[float, float, float]

    @property
    def allowed(self) -> float:
        """By how much the median of the last third may be above that of the middle one."""
        return max(self.curve.slack, self.curve.tolerance * self.thirds[1])

    @property
    def grows(self) -> bool:
        """Whether a curve that is judged has risen by more than is allowed."""
        return self.curve.judged and self.thirds[2] - self.thirds[1] > self.allowed

    @property
    def slope(self) -> float:
        """The rise from the middle third to the last one, in the curve's unit an hour."""
        moments = self.curve.moments
        return (self.thirds[2] - self.thirds[1]) / (moments[-1] - moments[0]) * 3 * 3600


def level(curve: Curve) -> Level:
    """Judge a curve: the first third is for it to settle. Raises ValueError where a third has no values."""
    thirds: tuple[list[float], list[float], list[float]] = ([], [], [])
    if len(curve.values) < len(thirds):
        raise ValueError(f"{curve.title}: too few values")
    start, end = curve.moments[0], curve.moments[-1]
    for moment, value in zip(curve.moments, curve.values, strict=True):
        thirds[min(2, int(3 * (moment - start) / (end - start)))].append(value)
    if not all(thirds):
        raise ValueError(f"{curve.title}: too few values")
    first, middle, last = (statistics.median(third) for third in thirds)
    return Level(curve, (first, middle, last))


def verdicts(levels: Sequence[Level]) -> list[list[str]]:
    """Return the levels as the lines of a table."""
    lines = [["", "first third", "middle", "last", "slope an hour", "allowed rise", ""]]
    for each in levels:
        first, middle, last = (f"{value:,.1f}" for value in each.thirds)
        name = f"{each.curve.title}, {each.curve.unit}"
        verdict = "GROWS" if each.grows else "level" if each.curve.judged else "not judged"
        lines.append([name, first, middle, last, f"{each.slope:+,.1f}", f"{each.allowed:,.1f}", verdict])
    return lines
