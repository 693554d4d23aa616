"""How many results a choice of rows at sites has missed, told while it runs.

The counts of both streams by bucket say about how many pairs a bucket has: all pairs of its rows, but for
the share whose times do not fit, and such as are of two keys by chance. Of a share of the buckets each row is
told, so that their pairs are known exactly: what the counts say is put right by what they say wrong there
(the difference estimator: Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, section 6.3).
So the estimate has no bias, and a narrow interval also where few of the buckets have most of what is missed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wjoin.executor.sites.likely_choice import same_keys
from wjoin.parts.kernels.runs import BoolArray, Int64Array
from wjoin.sites.key_counts import KeyCounts, in_sample

Floats = npt.NDArray[np.float64]
Rows = tuple[Int64Array, Int64Array]

_SIGMAS = 1.96
_FEW = 3.0
"""So many buckets with one pair each are missed with 95 % where none of the sample is."""

_POINTS = 8
"""Times that stand for a range of rows."""


@dataclass(frozen=True)
class Missing:
    """How many results are missed, and how many more or less with 95 %."""

    results: float
    spread: float

    def error(self, found: float) -> tuple[float, float, float]:
        """Return the share of the results that is missed, the least and the greatest with 95 %.

        Equation 1 of the 2007 paper; ``found``: results that are there.

        >>> Missing(10.0, 4.0).error(90)
        (0.1, 0.0625, 0.1346153846153846)
        """
        low, high = max(0.0, self.results - self.spread), self.results + self.spread
        share = [each / (each + found) if each else 0.0 for each in (self.results, low, high)]
        return share[0], share[1], share[2]


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs by bucket as of an event time: as the counts have them, and by how much more there are."""

    seen: int
    buckets: Int64Array
    pairs: Floats
    more: Floats

    def of(self, flags: BoolArray) -> "_Pairs":
        return _Pairs(self.seen, self.buckets[flags], self.pairs[flags], self.more[flags])


class Missed:
    """The pairs whose rows are not brought: stream 1 from ``back`` before to ``ahead`` after stream 0.

    Rows are held for ``hold`` behind the latest one. There are 2**``bits`` buckets, of which one of
    ``sample`` is told row by row. ``found``: results that are there, as the counts have them.
    """

    def __init__(self, ahead: int, back: int, hold: int, bits: int, sample: int) -> None:
        self._ahead, self._back, self._hold, self._sample = ahead, back, hold, sample
        self._size = 1 << bits
        self._kept: list[list[KeyCounts]] = [[], []]
        self._new: list[list[KeyCounts]] = [[], []]
        self._waiting: list[_Pairs] = []
        self.found = 0.0
        self._pairs, self._more = np.zeros(self._size), np.zeros(self._size)

    def add(self, stream: int, rows: KeyCounts) -> None:
        """Take rows that have come."""
        self._new[stream].append(rows)

    def settle(self, chosen: BoolArray, seen: int) -> None:
        """Take which buckets are brought from now on, and the latest event time.

        Pairs in them are found, also earlier ones; others wait until their rows are held no more.
        """
        self._waiting.append(self._came(seen))
        waiting = []
        for each in self._waiting:
            there = chosen[each.buckets]
            self.found += float(each.pairs[there].sum())
            left = each.of(~there)
            if each.seen < seen - self._hold:
                np.add.at(self._pairs, left.buckets, left.pairs)
                np.add.at(self._more, left.buckets, left.more)
            elif len(left.buckets):
                waiting.append(left)
        self._waiting = waiting
        for stream, new in enumerate(self._new):
            rows = [*self._kept[stream], *new]
            self._kept[stream] = [each for each in rows if (each.extent.latest or 0) >= seen - self._hold]
            self._new[stream] = []

    @property
    def missing(self) -> Missing:
        """What is missed so far; pairs that wait count as such."""
        pairs, more = self._pairs.copy(), self._more.copy()
        for each in self._waiting:
            np.add.at(pairs, each.buckets, each.pairs)
            np.add.at(more, each.buckets, each.more)
        results = float(pairs.sum()) + self._sample * float(more.sum())
        variance = self._sample * (self._sample - 1) * float((more**2).sum())
        spread = _SIGMAS * float(np.sqrt(variance)) if more.any() else _FEW * self._sample
        return Missing(max(0.0, results), spread)

    def _came(self, seen: int) -> _Pairs:
        """Return the pairs with a new row."""
        old, new = ([self._total(each) for each in rows] for rows in (self._kept, self._new))
        rows = [one + other for one, other in zip(old, new, strict=True)]
        pairs = (new[0] * rows[1] + old[0] * new[1]).astype(np.float64)
        buckets = np.flatnonzero(pairs)
        pairs = pairs[buckets] * self._in_time() * same_keys(rows, buckets)
        exact = np.zeros(self._size)
        first = self._sampled(self._new[0], [*self._kept[1], *self._new[1]])
        second = self._sampled(self._kept[0], self._new[1])
        for keys, counts in (first, second):
            np.add.at(exact, keys & (self._size - 1), counts)
        told = in_sample(buckets, self._sample)
        return _Pairs(seen, buckets, pairs, np.where(told, exact[buckets] - pairs, 0.0))

    def _total(self, some: Sequence[KeyCounts]) -> Int64Array:
        found = np.zeros(self._size, np.int64)
        for each in some:
            found[each.buckets] += each.counts
        return found

    def _in_time(self) -> float:
        """Return the share of the pairs with a new row whose times fit, were they even in each range."""
        (old, others), (new, fresh) = ([_times(each) for each in rows] for rows in (self._kept, self._new))
        both = np.concatenate([others[0], fresh[0]]), np.concatenate([others[1], fresh[1]])
        fit = there = 0.0
        for left, right in ((new, both), (old, fresh)):
            apart = right[0][None, :] - left[0][:, None]
            weights = left[1][:, None] * right[1][None, :]
            fit += float(weights[(apart >= -self._back) & (apart <= self._ahead)].sum())
            there += float(weights.sum())
        return fit / there if there else 0.0

    def _sampled(self, left: Sequence[KeyCounts], right: Sequence[KeyCounts]) -> Rows:
        sides = [
            (
                np.concatenate([np.empty(0, np.int64), *(each.sample_hashes for each in some)]),
                np.concatenate([np.empty(0, np.int64), *(each.sample_times for each in some)]),
            )
            for some in (left, right)
        ]
        return pairs_by_key(sides[0], sides[1], self._back, self._ahead)


def _times(some: Sequence[KeyCounts]) -> tuple[Floats, Floats]:
    """Return times that stand for the rows of some ranges, and for how many rows each does."""
    places = (np.arange(_POINTS) + 0.5) / _POINTS
    found = [np.empty(0)]
    weights = [np.empty(0)]
    for each in some:
        if each.extent.earliest is not None and each.extent.latest is not None:
            found.append(each.extent.earliest + places * (each.extent.latest - each.extent.earliest))
            weights.append(np.full(_POINTS, each.counts.sum() / _POINTS))
    return np.concatenate(found), np.concatenate(weights)


def pairs_by_key(left: Rows, right: Rows, back: int, ahead: int) -> Rows:
    """Return the keys of left rows with partners, and how many pairs they have.

    Rows are keys and times (int64); a partner is from ``back`` earlier to ``ahead`` later.
    """
    none = np.empty(0, np.int64)
    if not len(left[0]) or not len(right[0]):
        return none, none
    least = min(int(left[1].min()), int(right[1].min()))
    span = max(int(left[1].max()), int(right[1].max())) - least + 1
    # One number tells key and time, so that one search finds both.
    keys, places = np.unique(left[0], return_inverse=True)
    known = np.isin(right[0], keys)
    order = np.sort(np.searchsorted(keys, right[0][known]) * span + (right[1][known] - least))
    times = left[1] - least
    low, high = np.maximum(times - back, 0), np.minimum(times + ahead, span - 1)
    at = places * span
    pairs = np.searchsorted(order, at + high, "right") - np.searchsorted(order, at + low, "left")
    counts = np.zeros(len(keys), np.int64)
    np.add.at(counts, places, np.maximum(pairs, 0))
    return keys[counts > 0], counts[counts > 0]
