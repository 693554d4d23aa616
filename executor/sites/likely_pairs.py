"""How many pairs of rows of two streams there are by hash bucket, as counts of ranges of their rows tell.

Pairs are told when the later one of their rows comes to be known: what a choice may bring is what is new. Of
two ranges those pairs count whose times may fit, were the rows of each even in time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import Int64Array
from wjoin.sites.held import Extent
from wjoin.sites.key_counts import KeyCounts

Floats = npt.NDArray[np.float64]

MOST_TALLIES = 24
"""Ranges of a stream whose times are told apart; of more, the oldest count as one."""

_POINTS = 8
"""Times that stand for the rows of a range."""

_UNLIKELY = 1e-6
"""No bucket with rows of both streams is taken to have no pairs."""

_MOST = 1 << 20
"""Rows of a bucket that are told from more of them."""


@dataclass(frozen=True, eq=False)
class Sparse:
    """Numbers by bucket, 0 in others: ``buckets`` ascend (int64[n]), ``values`` are theirs (float64[n])."""

    buckets: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    values: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def together(cls, some: Sequence["Sparse"]) -> "Sparse":
        """Return the sum.

        >>> one, other = Sparse(np.array([1, 4]), np.ones(2)), Sparse(np.array([4]), np.ones(1))
        >>> Sparse.together([one, other]).values.tolist()
        [1.0, 2.0]
        """
        if len(some) == 1:
            return some[0]
        buckets, places = np.unique(
            np.concatenate([np.empty(0, np.int64), *(each.buckets for each in some)]), return_inverse=True
        )
        values = np.concatenate([np.empty(0), *(each.values for each in some)])
        return cls(buckets, np.bincount(places, values, len(buckets)).astype(np.float64))

    def at(self, wanted: Int64Array) -> Floats:
        """Return the numbers of some buckets (float64[n])."""
        if not len(self.buckets):
            return np.zeros(len(wanted))
        places = np.minimum(np.searchsorted(self.buckets, wanted), len(self.buckets) - 1)
        return np.where(self.buckets[places] == wanted, self.values[places], 0.0)

    def product(self, other: "Sparse", factor: float) -> "Sparse":
        """Return the products with another, times a factor above 0."""
        if len(other.buckets) < len(self.buckets):
            return other.product(self, factor)
        found = factor * self.values * other.at(self.buckets)
        return Sparse(self.buckets[found > 0], found[found > 0])

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Sparse":
        """Return those of some of its buckets."""
        return Sparse(self.buckets[chosen], self.values[chosen])

    def renewed(self, buckets: Int64Array, value: float, above: float) -> "Sparse":
        """Return those above a number, with one ``value`` for some buckets (int64[n], ascending)."""
        before = self.where((self.values > above) & ~is_in(self.buckets, buckets))
        return Sparse.together([before, Sparse(buckets, np.full(len(buckets), value))])


def is_in(wanted: Int64Array, buckets: Int64Array) -> npt.NDArray[np.bool_]:
    """Return which of some buckets are among others, which ascend (bool[n])."""
    return Sparse(buckets, np.ones(len(buckets))).at(wanted) > 0


@dataclass(frozen=True, eq=False)
class Tally:
    """Rows of a stream that came to be known before choice ``number``."""

    number: int
    extent: Extent
    rows: Sparse

    def plus(self, later: "Tally") -> "Tally":
        """Return both as one, as old as this one."""
        rows = Sparse.together([self.rows, later.rows])
        return Tally(self.number, self.extent + later.extent, rows)

    @property
    def ends(self) -> tuple[int, int] | None:
        """The earliest and the latest event time of its rows, None where none count."""
        first, last = self.extent.earliest, self.extent.latest
        return None if first is None or last is None else (first, last)

    @property
    def times(self) -> Floats:
        """Event times that stand for its rows, none where it has no rows that count."""
        ends = self.ends
        if ends is None:
            return np.empty(0)
        places = (np.arange(_POINTS) + 0.5) / _POINTS
        found: Floats = ends[0] + places * (ends[1] - ends[0])
        return found


@dataclass(frozen=True, eq=False)
class PairTimes:
    """Rows of both streams that stand for ``pairs`` each: their event times, and the choices before which
    they came to be known (``times`` and ``numbers``, float64[2, n]).
    """

    times: Floats = field(default_factory=lambda: np.empty((2, 0)))
    numbers: Floats = field(default_factory=lambda: np.empty((2, 0)))
    pairs: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, ranges: "tuple[Tally, Tally]", fit: npt.NDArray[np.bool_], pairs: float) -> "PairTimes":
        """Return the times of pairs of two ranges, of whose times some ``fit``."""
        places = np.nonzero(fit if fit.any() else np.ones_like(fit))
        times = np.stack([each.times[place] for each, place in zip(ranges, places, strict=True)])
        many = times.shape[1]
        numbers = np.repeat([[float(each.number)] for each in ranges], many, axis=1)
        return cls(times, numbers, np.full(many, pairs / many))

    @classmethod
    def together(cls, some: Sequence["PairTimes"]) -> "PairTimes":
        """Return the times of all."""
        all_ = [cls(), *some]
        times, numbers = (np.hstack([getattr(each, own) for each in all_]) for own in ("times", "numbers"))
        return cls(times, numbers, np.concatenate([each.pairs for each in all_]))

    def share(self, lows: tuple[int, int], since: Floats) -> Floats:
        """Return which share of the pairs of some buckets a choice finds that brings rows from ``lows`` on.

        ``since``: by bucket 1 more than the number of the choice that has brought it last (float64[n]).
        """
        values, places = np.unique(since, return_inverse=True)
        later = self.times >= np.array([lows]).T
        found = [((later | (self.numbers < each)).all(axis=0) * self.pairs).sum() for each in values]
        shares: Floats = (np.array(found) / max(float(self.pairs.sum()), 1e-9))[places]
        return shares


@dataclass(frozen=True, eq=False)
class Waiting:
    """Pairs that have not been brought; the later rows are up to ``latest``.

    ``since``: which choice had brought other rows of each bucket last, as `PairTimes.share` has it.
    """

    latest: int
    times: PairTimes
    pairs: Sparse
    since: Floats

    def brought(self, lows: tuple[int, int]) -> Sparse:
        """Return the pairs that a choice finds where it brings rows from ``lows`` on."""
        return replace(self.pairs, values=self.pairs.values * self.times.share(lows, self.since))

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Waiting":
        """Return those of some of its buckets."""
        return replace(self, pairs=self.pairs.where(chosen), since=self.since[chosen])


@dataclass(frozen=True, eq=False)
class Offer:
    """What a choice may bring: ``pairs`` with a new row, and by bucket what it brings in all, and its rows.

    ``rows``: of each stream by bucket; ``lows``: of which event time on those of each stream come;
    ``came``: rows that are new; ``times`` of the pairs with a new row.
    """

    pairs: Sparse
    gain: Sparse
    rows: tuple[Floats, Floats]
    lows: tuple[int, int]
    came: float
    times: PairTimes = field(default_factory=PairTimes)


class Windows:
    """Counts of the rows of two streams: stream 1 is from ``back`` before to ``ahead`` after stream 0.

    Rows are held for ``hold`` behind the latest one. There are 2**``bits`` buckets. ``number``: that of the
    next choice; ``since``: by bucket 1 more than the number of the choice that has brought it last.
    """

    def __init__(self, ahead: int, back: int, hold: int, bits: int, number: int, since: Sparse) -> None:
        self._ahead, self._back, self._hold, self._size = ahead, back, hold, 1 << bits
        self.number, self.since = number, since
        self._kept: list[list[Tally]] = [[], []]
        self._new: list[list[Tally]] = [[], []]
        self._waiting: list[Waiting] = []

    def add(self, stream: int, number: int, counts: KeyCounts) -> None:
        """Take rows that came to be known before the choice ``number``."""
        rows = Sparse(counts.buckets, counts.counts.astype(np.float64))
        self._new[stream].append(Tally(number, counts.extent, rows))

    def offer(self, seen: int) -> Offer:
        """Return what a choice may bring; ``seen``: the latest event time."""
        new = [_merged(each) for each in self._new]
        lows = self._lows(new, seen)
        both = [[*kept, *own] for kept, own in zip(self._kept, new, strict=True)]
        found = [*self._pairs(new[0], both[1]), *self._pairs(self._kept[0], new[1])]
        pairs = Sparse.together([own for own, _ in found]) if found else Sparse()
        totals = [Sparse.together([each.rows for each in some]) for some in both]
        alike = same_keys(totals[0], totals[1], pairs.buckets, self._size)
        pairs = replace(pairs, values=pairs.values * alike)
        again = [each.brought(lows) for each in self._waiting]
        gain = Sparse.together([pairs, *again])
        gain = gain.where(gain.values > 0)
        rows = [self._to_come(some, gain.buckets, low) for some, low in zip(both, lows, strict=True)]
        came = float(sum(each.rows.values.sum() for own in new for each in own))
        times = PairTimes.together([each for _, each in found])
        return Offer(pairs, gain, (rows[0], rows[1]), lows, came, times)

    def settle(self, offer: Offer, chosen: Int64Array, seen: int) -> tuple[Sparse, Sparse]:
        """Take which buckets are brought; return the pairs that are found, and those that are missed now.

        What was missed before and is found is missed by so much less.
        """
        there = is_in(offer.pairs.buckets, chosen)
        left = offer.pairs.where(~there)
        found, missed = [offer.pairs.where(there)], [left]
        waiting = []
        for each in self._waiting:
            there = is_in(each.pairs.buckets, chosen)
            again = each.where(there).brought(offer.lows)
            found.append(again)
            missed.append(replace(again, values=-again.values))
            if each.latest >= seen - self._hold:
                waiting.append(each.where(~there))
        if len(left.buckets):
            latest = max(each.extent.latest or 0 for own in self._new for each in own)
            waiting.append(Waiting(latest, offer.times, left, self.since.at(left.buckets)))
        self._waiting = waiting
        for stream, new in enumerate(self._new):
            kept = [*self._kept[stream], *_merged(new)]
            kept = [each for each in kept if (each.extent.latest or 0) >= seen - self._hold]
            while len(kept) > MOST_TALLIES:
                kept[:2] = [kept[0].plus(kept[1])]
            self._kept[stream], self._new[stream] = kept, []
        first = min((each.number for own in self._kept for each in own), default=self.number)
        self.since = self.since.renewed(chosen, self.number + 1.0, first)
        self.number += 1
        return Sparse.together(found), Sparse.together(missed)

    def _lows(self, new: Sequence[Sequence[Tally]], seen: int) -> tuple[int, int]:
        """Return from which event time on rows of each stream may be partners of new ones."""
        firsts = [
            min((each.extent.earliest for each in own if each.extent.earliest is not None), default=seen)
            for own in new
        ]
        least = seen - self._hold
        low, other = min(firsts[0], firsts[1] - self._ahead), min(firsts[1], firsts[0] - self._back)
        return max(least, low), max(least - max(self._back, 0), other)

    def _pairs(self, some: Sequence[Tally], others: Sequence[Tally]) -> list[tuple[Sparse, PairTimes]]:
        """Return the pairs of rows of stream 0 with others of stream 1, and their times."""
        found = []
        for one in some:
            for other in others:
                fit = self._in_time(one, other)
                if fit is not None:
                    share = max(float(fit.mean()), 0.5 / fit.size)
                    pairs = one.rows.product(other.rows, share)
                    found.append((pairs, PairTimes.of((one, other), fit, float(pairs.values.sum()))))
        return found

    def _in_time(self, one: Tally, other: Tally) -> npt.NDArray[np.bool_] | None:
        """Return which times of a row of stream 0 and one of stream 1 fit (bool[n, m]).

        It is None only where no pair fits.
        """
        first, last = one.ends, other.ends
        if first is None or last is None:
            return None
        if last[0] - first[1] > self._ahead or last[1] - first[0] < -self._back:
            return None
        apart = other.times[None, :] - one.times[:, None]
        fit: npt.NDArray[np.bool_] = (apart >= -self._back) & (apart <= self._ahead)
        return fit

    def _to_come(self, some: Sequence[Tally], buckets: Int64Array, low: int) -> Floats:
        """Return how many rows a choice of each bucket brings."""
        found, last = np.zeros(len(buckets)), self.since.at(buckets)
        for each in some:
            if each.extent.latest is not None and each.extent.latest >= low:
                found += np.where(last <= each.number, each.rows.at(buckets), 0.0)
        return found


def _merged(some: Sequence[Tally]) -> list[Tally]:
    """Return the rows of all sites that came to be known before the same choice as one."""
    found: dict[int, list[Tally]] = {}
    for each in some:
        found.setdefault(each.number, []).append(each)
    return [
        Tally(
            number,
            sum((each.extent for each in own[1:]), own[0].extent),
            Sparse.together([each.rows for each in own]),
        )
        for number, own in sorted(found.items())
    ]


def same_keys(one: Sparse, other: Sparse, buckets: Int64Array, size: int) -> Floats:
    """Return how likely the rows of both streams in some of ``size`` buckets are of the same keys.

    As many buckets as have so many rows of both by chance alone have them so.
    """
    a, b = (np.minimum(each.at(buckets), _MOST).astype(np.int64) for each in (one, other))
    kinds, place, there = np.unique(a * (2 * _MOST) + b, return_inverse=True, return_counts=True)
    by_chance = _having(one, kinds // (2 * _MOST)) * _having(other, kinds % (2 * _MOST)) / size
    likely: Floats = np.clip(1 - by_chance / there, _UNLIKELY, 1)[place]
    return likely


def _having(rows: Sparse, counts: Int64Array) -> Floats:
    """Return how many buckets have each of some counts of rows, none of which is 0."""
    values, found = np.unique(np.minimum(rows.values, _MOST).astype(np.int64), return_counts=True)
    return Sparse(values, found.astype(np.float64)).at(counts)
