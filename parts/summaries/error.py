"""What is missing: ε of equation 1, estimated from a sample of keys whose rows visit all nodes.

Of such keys every match is found, and it is known whether the flow had chosen the visit that found it. Rows
of one key stand or fall together, so the sample is one of keys, in `GROUPS` groups by hash that are
independent of each other; nodes count matches by group, which adds up.

Two ways, by what nodes count. With ``chosen`` alone: the share of the sample's matches that was not chosen, a
ratio of groups. With the ``chance`` of every visit (`flow.visit_chance`), all matches tell: one of a row
that came by a lot of 1/4 stands for three that were not found (Horvitz and Thompson). What the flow looks
for anyway has no error then, however heavy its keys are. Only where lots are rarer than `RARE` samples all
hangs on the sample. The variance has two parts: that of lots, which rows draw one by one, and that of the
sample, drawn for keys.

The interval is Wilson's, for as many trials as have that variance, and Student's t for as many groups as
count (as Korn and Graubard do for surveys): it keeps to [0, 1], and says something where nothing was missing.
"""

import math
from dataclasses import dataclass, fields, replace
from statistics import NormalDist
from typing import Self

import numpy as np

from wjoin.parts.kernels.runs import BoolArray, Int64Array
from wjoin.parts.summaries.hashing import FloatArray, cells

GROUPS = 512

_OF_GROUPS = 2003

RARE = 0.5
"""Rows tell by their lots where these are at least so many times as frequent as keys of the sample."""

_MARGIN = 1.3
"""Variances of matches that few rows have in great numbers come out too small."""


@dataclass(frozen=True)
class Sample:
    """Matches by group of keys (float64[GROUPS]).

    Of the sample's keys ``everything``, and what of it was ``found`` by choice. Where chances are known, of
    all keys what was ``seen``, and how many are ``missing`` for it; for how many those of the sample stand,
    ``kept``; and the variance of ``lots``.
    """

    everything: FloatArray
    found: FloatArray
    seen: FloatArray
    missing: FloatArray
    kept: FloatArray
    lots: FloatArray

    @classmethod
    def empty(cls) -> Self:
        """Return that of no rows."""
        return cls(*(np.zeros(GROUPS) for _ in fields(cls)))

    @classmethod
    def of(
        cls,
        codes: Int64Array,
        matches: FloatArray,
        chosen: BoolArray,
        seed: int,
        sampled: BoolArray | None = None,
        chance: FloatArray | None = None,
        share: float = 0.0,
    ) -> Self:
        """Return that of rows where they arrive.

        Their codes (int64[n]), how many matches each has there, and whether the flow had chosen the visit
        (bool[n]; a row's own home counts as chosen). ``seed`` is that of the flow. Without a ``chance`` they
        are those of the sample. With it, all that arrive, of which some are ``sampled``: a ``share`` of the
        keys is; it is that of `flow.visit_chance`, and 1 at home.
        """
        groups = cells(codes, seed + _OF_GROUPS, GROUPS)
        of = np.ones(len(codes), np.bool_) if sampled is None else sampled
        found = of & chosen
        told = [_sums(groups[of], matches[of]), _sums(groups[found], matches[found])]
        if chance is None:
            return replace(cls.empty(), everything=told[0], found=told[1])
        often = chance >= RARE * share
        by_lot = np.where(often, chance, 1.0)
        lot = np.where(often & ~of, matches, 0.0)
        missed = lot * (1 - by_lot) / by_lot
        kept = np.where(of & ~often, matches * (1 - chance), 0.0) * ((1 - share) / share if share else 0.0)
        return cls(
            told[0],
            told[1],
            _sums(groups, matches),
            _sums(groups, missed + kept),
            _sums(groups, kept),
            _sums(groups, lot * missed / by_lot),
        )

    def plus(self, other: "Sample") -> "Sample":
        """Return that of both."""
        return Sample(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def times(self, factor: float) -> "Sample":
        """Return it with less weight: ``old.times(0.8).plus(new)`` is about what is recent."""
        return Sample(*(factor * getattr(self, each.name) for each in fields(self)))


def _sums(groups: Int64Array, matches: FloatArray) -> FloatArray:
    return np.bincount(groups, matches, GROUPS).astype(float)


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


def estimate(sample: Sample, share: float, level: float = 0.95, lots: float = 0.0) -> Estimate:
    """Return ε of all results, where a ``share`` of the keys was the sample (and misses nothing itself).

    ``lots``: the variance by lots of each result that was seen, as it is expected (`flow.lots_variance`).
    Without any match in the sample nothing is known: the interval is [0, 1].
    """
    everything, found = sample.everything, sample.found
    if sample.missing.any():
        return _by_chances(sample, level, lots)
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


def stands_for(chance: FloatArray, sampled: BoolArray, share: float) -> FloatArray:
    """Return for how many rows each stands that has arrived (float64[n]), itself included.

    By the ``chance`` of its lot, whether its key is of the sample, and the ``share`` of the keys that is.
    """
    often = chance >= RARE * share
    by_lot = np.where(sampled, 1.0, 1 / np.where(often, chance, 1.0))
    return np.where(often, by_lot, sampled / share if share else 0.0)


def _by_chances(sample: Sample, level: float, lots: float) -> Estimate:
    """Return ε by what was seen, and by what is missing for it."""
    found, lost = float(sample.seen.sum()), float(sample.missing.sum())
    total = found + lost
    around = sample.kept - sample.kept.mean()
    told = float(sample.lots.sum())
    by_lot, by_key = max(told, lots * found), GROUPS / (GROUPS - 1) * float(around @ around)
    alike = _as_many_alike(sample.kept)
    variance = max(by_lot + by_key, 1e-12)
    # Welch and Satterthwaite: what few keys or lots tell of a variance is uncertain itself.
    uncertain = by_key**2 / max(alike - 1, 1.0)
    uncertain += 0.0 if lots else told**2 / max(_as_many_alike(sample.lots) - 1, 1.0)
    freedom = variance**2 / uncertain if uncertain > 0 else math.inf
    deviation = _MARGIN * found / total**2 * math.sqrt(variance)
    ratio = lost / total
    size = max(ratio * (1 - ratio), 1e-12) / max(deviation, 1e-9) ** 2
    low, high = _wilson(ratio, size, student(freedom, level))
    return Estimate(ratio, low, high, level, alike)


def _as_many_alike(groups: FloatArray) -> float:
    """Return how many groups of one size would vary as much as some do (Kish)."""
    square = float(groups @ groups)
    return float(groups.sum()) ** 2 / square if square > 0 else 1.0


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
