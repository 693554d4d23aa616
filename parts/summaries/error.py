"""What is missing: ε of equation 1, estimated from a sample of keys whose rows visit all nodes.

Of such keys every match is found, and it is known whether the flow had chosen the visit that found it. Rows
of one key stand or fall together, so the sample is one of keys, in `GROUPS` groups by hash that are
independent of each other; nodes count matches by group, which adds up.

Two ways, by what nodes count. With ``chosen`` alone: the share of the sample's matches that was not chosen, a
ratio of groups. With the ``chance`` of every visit (`flow.visit_chance`), all matches tell: one of a row
that came by a lot of 1/4 stands for three that were not found (Horvitz and Thompson). What the flow looks
for anyway has no error then, however heavy its keys are. Only where lots are rarer than `RARE` samples all
hangs on the sample.

Few lots of visits that find very different numbers tell little by themselves. But what summaries promise of
all visits is known, made or not: where they know keys, that is what is missing, but for what lots found more
or less than promised (the difference estimator of surveys; Särndal, Swensson and Wretman 1992, chapter 6).

What lots tell and what the sample tells are apart, each a sum of few large parts or many small ones. The
interval of each is the score interval of a Poisson number of parts of its mean size, so that it says
something where nothing was missing; both are put together as Zou and Donner (2008) do for sums. The interval
with ``chosen`` alone is Wilson's, for as many trials as have the variance of the groups, and Student's t for
as many groups as count (as Korn and Graubard do for surveys).
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

_NUMBERS = frozenset({"promised", "spread", "drawn", "squares", "products", "blind"})
"""What a sample has in one number, not by group."""

RARE = 0.5
"""Rows tell by their lots where these are at least so many times as frequent as keys of the sample."""

_MARGIN = 1.3
"""Deviations of matches that few rows or keys have in great numbers come out too small."""

_FEWEST = 2.0
"""The degrees of freedom that lots have at the least: with fewer all that can be told is nothing."""


@dataclass(frozen=True)
class Came:
    """How rows have come to where they are: with what ``chance`` (float64[n]; that of `flow.visit_chance`, 1
    at home), and whether their keys are ``sampled`` (bool[n]), as a ``share`` of all keys is.

    ``draws``: rows with equal ones (int64[n]) have come by the same lot. ``rare``: the least chance of which
    lots tell.
    """

    chance: FloatArray
    sampled: BoolArray
    share: float
    draws: Int64Array | None = None
    rare: float | None = None

    @property
    def lots(self) -> tuple[BoolArray, FloatArray]:
        """Of which rows lots tell (bool[n]), and the chance of these, 1 for the others (float64[n])."""
        return _by_lots(self.chance, RARE * self.share if self.rare is None else self.rare)

    @property
    def worth(self) -> FloatArray:
        """For how many rows each stands that has arrived (float64[n]), itself included."""
        often, by_lot = self.lots
        told = np.where(self.sampled, 1.0, 1 / by_lot)
        return np.where(often, told, self.sampled / self.share if self.share else 0.0)


@dataclass(frozen=True)
class Sample:
    """Matches by group of keys (float64[GROUPS]).

    Of the sample's keys ``everything``, and what of it was ``found`` by choice. Where chances are known, of
    all keys what was ``seen``, and how many are ``missing`` for it; for how many those of the sample stand,
    ``kept``; and the variance of ``lots``.

    The others are numbers, of visits where lots tell: ``promised``, the matches to expect by the summaries of
    visits that are not made, and the ``spread`` of what lots tell of these; ``drawn``, what was promised of
    visits made by lot for as many as each stands for, with the sum of the ``squares`` of that and of the
    ``products`` with what was found. ``blind``: visits of which only the sample tells.
    """

    everything: FloatArray
    found: FloatArray
    seen: FloatArray
    missing: FloatArray
    kept: FloatArray
    lots: FloatArray
    promised: FloatArray
    spread: FloatArray
    drawn: FloatArray
    squares: FloatArray
    products: FloatArray
    blind: FloatArray

    @classmethod
    def empty(cls) -> Self:
        """Return that of no rows."""
        return cls(*(np.zeros(() if each.name in _NUMBERS else GROUPS) for each in fields(cls)))

    @classmethod
    def of_promises(cls, promises: FloatArray, chance: FloatArray, share: float) -> Self:
        """Return that of all visits that rows could make: what each promises, and its chance.

        Not of those at home, nor of rows of the sample.
        """
        often, by_lot = _by_lots(chance, RARE * share)
        missed = promises * (1 - by_lot)
        spread = np.divide(missed, by_lot, out=np.zeros_like(missed), where=by_lot > 0)
        return replace(
            cls.empty(),
            promised=np.asarray(missed.sum()),
            spread=np.asarray(spread.sum()),
            blind=np.asarray((~often).sum(), np.float64),
        )

    @classmethod
    def of_lots(cls, promises: FloatArray, chance: FloatArray, share: float) -> Self:
        """Return that of visits that lots have made, whatever they find: what each promised, its chance."""
        _, by_lot = _by_lots(chance, RARE * share)
        missed = promises * (1 - by_lot) / by_lot
        squares = promises * missed / by_lot
        return replace(cls.empty(), drawn=np.asarray(missed.sum()), squares=np.asarray(squares.sum()))

    @classmethod
    def of(
        cls,
        codes: Int64Array,
        matches: FloatArray,
        chosen: BoolArray,
        seed: int,
        came: Came | None = None,
        promises: FloatArray | None = None,
    ) -> Self:
        """Return that of rows where they arrive.

        Their codes (int64[n]), how many matches each has there, and whether the flow had chosen the visit
        (bool[n]; a row's own home counts as chosen). ``seed`` is that of the flow. ``came``: how they have
        come; without it they are those of the sample, with it all that arrive. ``promises``: what is promised
        of each.
        """
        groups = cells(codes, seed + _OF_GROUPS, GROUPS)
        of = np.ones(len(codes), np.bool_) if came is None else came.sampled
        found = of & chosen
        told = [_sums(groups[of], matches[of]), _sums(groups[found], matches[found])]
        if came is None:
            return replace(cls.empty(), everything=told[0], found=told[1])
        share = came.share
        often, by_lot = came.lots
        lot = np.where(often & ~of, matches, 0.0)
        missed = lot * (1 - by_lot) / by_lot
        kept = np.where(of & ~often, matches * (1 - came.chance), 0.0)
        kept *= (1 - share) / share if share else 0.0
        products = 0.0 if promises is None else (promises * missed / by_lot).sum()
        return replace(
            cls.empty(),
            everything=told[0],
            found=told[1],
            seen=_sums(groups, matches),
            missing=_sums(groups, missed + kept),
            kept=_sums(groups, kept),
            lots=_together(groups, lot * missed / by_lot, came.draws),
            products=np.asarray(products),
        )

    def plus(self, other: "Sample") -> "Sample":
        """Return that of both."""
        return Sample(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def times(self, factor: float) -> "Sample":
        """Return it with less weight: ``old.times(0.8).plus(new)`` is about what is recent."""
        return Sample(*(factor * getattr(self, each.name) for each in fields(self)))


def _by_lots(chance: FloatArray, least: float) -> tuple[BoolArray, FloatArray]:
    """Return of which rows lots tell (bool[n]), and the chance of these, 1 for the others (float64[n])."""
    often = chance >= least
    return often, np.where(often, chance, 1.0)


def _sums(groups: Int64Array, matches: FloatArray) -> FloatArray:
    return np.bincount(groups, matches, GROUPS).astype(float)


def _together(groups: Int64Array, variances: FloatArray, draws: Int64Array | None) -> FloatArray:
    """Return variances by group: deviations of the same draw add up, before they are squared."""
    if draws is None:
        return _sums(groups, variances)
    _, first, places = np.unique(draws, return_index=True, return_inverse=True)
    deviations: FloatArray = np.bincount(places, np.sqrt(variances)).astype(float)
    return _sums(groups[first], deviations**2)


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
    if sample.seen.any():
        return _by_chances(sample, share, level, lots)
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


def _by_chances(sample: Sample, share: float, level: float, lots: float) -> Estimate:
    """Return ε by what was seen, and by what is missing for it."""
    seen, kept, told = float(sample.seen.sum()), float(sample.kept.sum()), float(sample.lots.sum())
    by_lot, quantile = float(sample.missing.sum()) - kept, NormalDist().inv_cdf((1 + level) / 2)
    # How far off promises were, as far as lots tell.
    off = told - 2 * float(sample.products) + float(sample.squares)
    if sample.promised > 0 and off < told:
        by_lot = max(by_lot + float(sample.promised - sample.drawn), 0.0)
        seen_of_it, expected = off, float(sample.spread)
    else:
        seen_of_it, expected = _MARGIN**2 * told, _MARGIN**2 * lots * seen
    variance = max(seen_of_it, expected)
    few = student(max(_as_many_alike(sample.lots) - 1, _FEWEST), level)
    stands = (1 - share) / share if share and sample.blind > 0 else 0.0
    of_keys = _MARGIN * float(sample.kept @ sample.kept) / kept if kept else stands
    of_lots = variance / max(by_lot, math.sqrt(variance), 1e-12)
    parts = [
        (by_lot, _around(by_lot, of_lots, few if seen_of_it > expected else quantile)),
        (kept, _around(kept, of_keys, quantile)),
    ]
    lost = by_lot + kept
    low = lost - math.hypot(*(middle - least for middle, (least, _) in parts))
    high = lost + math.hypot(*(most - middle for middle, (_, most) in parts))
    error, least, most = (max(each, 0.0) / (seen + max(each, 0.0)) for each in (lost, low, high))
    return Estimate(error, least, most, level, _as_many_alike(sample.kept))


def _around(total: float, unit: float, quantile: float) -> tuple[float, float]:
    """Return between what a total lies that is seen as a Poisson number of parts of one size."""
    square = quantile * quantile * unit
    half = math.sqrt(square * (total + square / 4))
    return max(total + square / 2 - half, 0.0), total + square / 2 + half


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
