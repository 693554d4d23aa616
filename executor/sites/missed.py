"""How many results a choice of rows at sites has missed, told while it runs.

The counts of both streams by bucket say about how many pairs a choice misses: all pairs of their rows, but
for the share whose times do not fit, and such as are of two keys by chance. Of a share of the buckets each
row is told, so that it is known which of their pairs are missed: what the counts say is put right by what
they say wrong there (the difference estimator: Särndal, Swensson and Wretman, Model Assisted Survey Sampling,
1992, section 6.3), and so is what they say of the results that are there. So the estimate has no bias, and a
narrow interval also where few of the buckets have most of what is missed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from wjoin.executor.sites.likely_pairs import Sparse, is_in
from wjoin.parts.kernels.runs import BoolArray, Int64Array
from wjoin.sites.key_counts import KeyCounts, in_sample

Floats = npt.NDArray[np.float64]
Rows = tuple[Int64Array, Int64Array]

_SIGMAS = 1.96
_NOTHING = 1e-9

_TRUSTED = (0.5, 1.5)
"""By how much counts may be wrong at the least and at the most."""

_FEW = 3.0
"""So many buckets with one pair each are missed with 95 % where none of the sample is."""


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
class _Told:
    """Rows of a stream that are told one by one: ``numbers`` are those of the choices before which they came
    to be known, ``came`` says which have come, ``closed`` which come no more.
    """

    hashes: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    times: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    numbers: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    came: BoolArray = field(default_factory=lambda: np.empty(0, np.bool_))
    closed: BoolArray = field(default_factory=lambda: np.empty(0, np.bool_))

    def plus(self, other: "_Told") -> "_Told":
        hashes, times, numbers, came, closed = (
            np.concatenate(each) for each in zip(self._all, other._all, strict=True)
        )
        return _Told(hashes, times, numbers, came, closed)

    def where(self, chosen: BoolArray) -> "_Told":
        hashes, times, numbers, came, closed = (each[chosen] for each in self._all)
        return _Told(hashes, times, numbers, came, closed)

    @property
    def _all(self) -> Sequence[npt.NDArray[Any]]:
        return self.hashes, self.times, self.numbers, self.came, self.closed

    def after(self, hit: BoolArray, low: int, number: int) -> "_Told":
        """Return them after a choice of rows ``hit``, of which older ones than ``low`` do not come."""
        hit = hit & ~self.closed
        came = self.came | (hit & ((self.numbers == number) | (self.times >= low)))
        return replace(self, came=came, closed=self.closed | hit)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs as counts say: a ``guess`` of all, and by bucket of the sample ``guessed``, and ``exact`` ones.

    ``gross``: how many were guessed and taken back, of all, and ``told`` of the sample.
    """

    guess: float = 0.0
    gross: float = 0.0
    told: float = 0.0
    guessed: Sparse = field(default_factory=Sparse)
    exact: Sparse = field(default_factory=Sparse)

    def plus(self, more: Sparse, sample: int) -> "_Pairs":
        own = more.where(in_sample(more.buckets, sample))
        gross, told = (float(np.abs(each.values).sum()) for each in (more, own))
        guessed = Sparse.together([self.guessed, own])
        return _Pairs(
            self.guess + float(more.values.sum()), self.gross + gross, self.told + told, guessed, self.exact
        )

    def with_known(self, *exact: Sparse) -> "_Pairs":
        return replace(self, exact=Sparse.together([self.exact, *exact]))

    @property
    def wrong(self) -> Sparse:
        """By how much the guess is too low, by bucket."""
        return Sparse.together([self.exact, replace(self.guessed, values=-self.guessed.values)])


class Missed:
    """The pairs that are not brought: stream 1 from ``back`` before to ``ahead`` after stream 0.

    Rows are held for ``hold`` behind the latest one. There are 2**``bits`` buckets, of which one of
    ``sample`` is told row by row. As of the last choice, ``found`` are the results that are there, about, and
    ``missing`` what is missed; pairs that may be found still count as such.
    """

    def __init__(self, ahead: int, back: int, hold: int, bits: int, sample: int) -> None:
        self._ahead, self._back, self._hold, self._sample = ahead, back, hold, sample
        self._size = 1 << bits
        self._told = [_Told(), _Told()]
        self._pairs = _Pairs(), _Pairs()
        self.found = 0.0
        self.missing = Missing(0.0, 0.0)

    def add(self, stream: int, number: int, counts: KeyCounts, since: Sparse) -> None:
        """Take rows that came to be known before a choice; ``since``: as ``Windows.offer`` has it."""
        hashes = counts.sample_hashes
        come = since.at(self._buckets(hashes)) > number
        new = _Told(hashes, counts.sample_times, np.full(len(hashes), number), come, come)
        self._told[stream] = self._told[stream].plus(new)

    def settle(
        self, number: int, chosen: Int64Array, lows: Sequence[int], seen: int, told: tuple[Sparse, Sparse]
    ) -> None:
        """Take what a choice brings; ``told``: the pairs that it finds and misses as ``Windows.settle`` does.

        Rows come from ``lows`` on, of each stream; ``seen`` is the latest event time.
        """
        found, missed = (each.plus(more, self._sample) for each, more in zip(self._pairs, told, strict=True))
        self._told = [
            each.after(is_in(self._buckets(each.hashes), chosen), low, number)
            for each, low in zip(self._told, lows, strict=True)
        ]
        one, other = self._told
        final = one.times < seen - self._hold
        if final.any():
            found, missed = self._known(found, missed, one.where(final), other)
            kept = other.times >= seen - self._hold - max(self._ahead, self._back, 0)
            self._told = [one.where(~final), other.where(kept)]
        self._pairs = found, missed
        self._estimate(*self._known(found, missed, *self._told))

    @property
    def counted_share(self) -> float:
        """What the counts alone have said of each result that is missed."""
        low, high = _TRUSTED
        guess, results = self._pairs[1].guess, self.missing.results
        return float(np.clip(guess / results, low, high)) if results else 1.0

    def _estimate(self, found: _Pairs, missed: _Pairs) -> None:
        """Put right what the counts say of both by what they say wrong of the sample, in ``self``."""
        sample = self._sample
        there, lost = found.wrong, missed.wrong
        self.found = max(0.0, found.guess + sample * float(there.values.sum()))
        results = max(0.0, missed.guess + sample * float(lost.values.sum()))
        total = max(results + self.found, 1.0)
        share = results / total
        # Of a ratio the errors count that are not alike in both of its parts (the same, section 5.6).
        shared = (replace(each, values=-share * each.values) for each in (lost, there))
        wrong = Sparse.together([lost, *shared]).values
        if (np.abs(wrong) > _NOTHING).any():
            # Buckets with most of the pairs may all be outside of the sample, and more is wrong of these.
            heavy = max(1.0, (found.gross + missed.gross) / (sample * max(found.told + missed.told, 1.0)))
            deviation = float(np.sqrt(sample * (sample - 1) * heavy * (wrong**2).sum()))
            # The share may be as much greater as less; then what is missed is more than as much greater.
            spread = _SIGMAS * deviation / max(1 - share - _SIGMAS * deviation / total, _NOTHING)
        else:
            spread = _FEW * sample * (sample > 1)
        self.missing = Missing(results, spread)

    def _buckets(self, hashes: Int64Array) -> Int64Array:
        return hashes & (self._size - 1)

    def _known(self, found: _Pairs, missed: _Pairs, one: _Told, other: _Told) -> tuple[_Pairs, _Pairs]:
        """Return both with the pairs of rows of the sample."""
        there = self._by_bucket(one.where(one.came), other.where(other.came))
        less = replace(there, values=-there.values)
        return found.with_known(there), missed.with_known(self._by_bucket(one, other), less)

    def _by_bucket(self, one: _Told, other: _Told) -> Sparse:
        keys, pairs = pairs_by_key(
            (one.hashes, one.times), (other.hashes, other.times), self._back, self._ahead
        )
        buckets, places = np.unique(self._buckets(keys), return_inverse=True)
        return Sparse(buckets, np.bincount(places, pairs, len(buckets)).astype(np.float64))


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
    counts = np.bincount(places, np.maximum(pairs, 0), len(keys)).astype(np.int64)
    return keys[counts > 0], counts[counts > 0]
