"""What is missing: ε of equation 1, estimated from a sample of keys whose rows visit all nodes.

Of such keys every match is found, and it is known whether the flow had chosen the visit that found it.
Rows of one key stand or fall together, so the sample is one of keys, in `GROUPS` groups by hash that are
independent of each other; nodes count matches by group, which adds up. The interval is that of a ratio of
groups, by its linearised variance, with as many degrees of freedom as there are groups of like size, and in
Wilson's form, which keeps to [0, 1] and says something where nothing was missing (as Korn and Graubard do for
surveys).
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

import numpy as np

from wjoin.parts.kernels.runs import BoolArray, Int64Array
from wjoin.parts.summaries.hashing import FloatArray, cells

GROUPS = 512


@dataclass(frozen=True)
class Sample:
    """Matches of the sample's keys by group (float64[GROUPS]): ``everything``, and ``found`` by choice."""

    everything: FloatArray
    found: FloatArray

    @classmethod
    def empty(cls) -> Self:
        """Return that of no rows."""
        return cls(np.zeros(GROUPS), np.zeros(GROUPS))

    @classmethod
    def of(cls, codes: Int64Array, matches: FloatArray, chosen: BoolArray, seed: int) -> Self:
        """Return that of rows of the sample where they arrive.

        Their codes (int64[n]), how many matches each has there, and whether the flow had chosen the visit
        (bool[n]; a row's own home counts as chosen). ``seed`` is that of the flow.
        """
        groups = cells(codes, seed - 2, GROUPS)
        everything = np.bincount(groups, matches, GROUPS).astype(float)
        return cls(everything, np.bincount(groups[chosen], matches[chosen], GROUPS).astype(float))

    def plus(self, other: "Sample") -> "Sample":
        """Return that of both."""
        return Sample(self.everything + other.everything, self.found + other.found)

    def times(self, factor: float) -> "Sample":
        """Return it with less weight: ``old.times(0.8).plus(new)`` is about what is recent."""
        return Sample(factor * self.everything, factor * self.found)


@dataclass(frozen=True)
class Estimate:
    """``error``: ε as estimated, between ``low`` and ``high`` with the ``level`` that was asked for."""

    error: float
    low: float
    high: float
    level: float
    groups: float

    def __str__(self) -> str:
        return f"{100 * self.error:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f} %)"


def estimate(sample: Sample, share: float, level: float = 0.95) -> Estimate:
    """Return ε of all results, where a ``share`` of the keys was the sample (and misses nothing itself).

    Without any match in the sample nothing is known: the interval is [0, 1].
    """
    everything, found = sample.everything, sample.found
    total = float(everything.sum())
    if total <= 0:
        return Estimate(0.0, 0.0, 1.0, level, 0.0)
    missing = everything - found
    ratio = float(missing.sum()) / total
    alike = total**2 / float(everything @ everything)
    residual = missing - ratio * everything
    many = max(int(np.count_nonzero(everything)), 2)
    variance = many / (many - 1) * float(residual @ residual) / total**2
    size = min(ratio * (1 - ratio) / variance, alike) if variance > 0 else alike
    low, high = _wilson(ratio, size, student(max(alike - 1, 1.0), level))
    rest = 1 - share
    return Estimate(rest * ratio, rest * low, rest * high, level, alike)


def _wilson(ratio: float, size: float, quantile: float) -> tuple[float, float]:
    square = quantile * quantile
    middle = (ratio + square / (2 * size)) / (1 + square / size)
    half = quantile / (1 + square / size) * math.sqrt(ratio * (1 - ratio) / size + square / (4 * size * size))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def student(freedom: float, level: float) -> float:
    """Return between what and minus that Student's t lies with a probability.

    >>> round(student(10, 0.95), 2), round(student(1, 0.95), 1)
    (2.23, 12.7)
    """
    tail = (1 + level) / 2
    if freedom < 1.5:
        return math.tan(math.pi * (tail - 0.5))
    if freedom < 2.5:
        return (2 * tail - 1) * math.sqrt(2 / (4 * tail * (1 - tail)))
    # Cornish and Fisher's expansion (Abramowitz and Stegun, 26.7.5).
    z = NormalDist().inv_cdf(tail)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom ** (power + 1) for power, term in enumerate(terms))
