"""How many results a choice of rows at sites has missed: from the pairs of a share of the keys, told exactly.

Keys are in the sample by their hash, whether their rows are brought or not. Of the results of keys that are
brought none is missed, so what is estimated is the small part that is (a sample of whole clusters: Cochran,
Sampling Techniques, 1977, section 9.3): its interval is narrow also where few keys have most of the results.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from wjoin.parts.kernels.runs import BoolArray, Int64Array

_SIGMAS = 1.96
_FEW = 3.0
"""So many keys with one pair each are missed with 95 % where no pair of the sample is."""


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


class Missed:
    """The pairs of sampled keys: with a partner from ``back`` earlier to ``ahead`` later, as of stream 0.

    Rows are held for ``hold`` behind the latest one; one value of ``sample`` is told.
    """

    def __init__(self, ahead: int, back: int, hold: int, sample: int) -> None:
        self._ahead, self._back, self._hold, self._sample = ahead, back, hold, sample
        empty = np.empty(0, np.int64)
        self._kept = [(empty, empty), (empty, empty)]
        self._new = [(empty, empty), (empty, empty)]
        self._waiting: list[tuple[int, Int64Array, Int64Array]] = []
        self._gone: Counter[int] = Counter()
        self.found = 0

    def add(self, stream: int, hashes: Int64Array, times: Int64Array) -> None:
        """Take rows of sampled keys that have come."""
        known = self._new[stream]
        self._new[stream] = (np.concatenate([known[0], hashes]), np.concatenate([known[1], times]))

    def settle(self, brought: BoolArray, seen: int) -> None:
        """Take which buckets are brought now, and the latest event time.

        Pairs in them are found, also earlier ones; others wait until their rows are held no more.
        """
        keys, counts = self._pairs()
        self._waiting.append((seen, keys, counts))
        waiting = []
        for at, some, pairs in self._waiting:
            there = brought[some & (len(brought) - 1)]
            self.found += int(pairs[there].sum())
            some, pairs = some[~there], pairs[~there]
            if at < seen - self._hold:
                for key, count in zip(some.tolist(), pairs.tolist(), strict=True):
                    self._gone[key] += count
            elif len(some):
                waiting.append((at, some, pairs))
        self._waiting = waiting
        for stream, (hashes, times) in enumerate(self._kept):
            new = self._new[stream]
            hashes, times = np.concatenate([hashes, new[0]]), np.concatenate([times, new[1]])
            fresh = times >= seen - self._hold
            self._kept[stream] = (hashes[fresh], times[fresh])
            self._new[stream] = (new[0][:0], new[1][:0])

    @property
    def missing(self) -> Missing:
        """What is missed so far; pairs that wait count as such."""
        by_key: Mapping[int, int] = Counter(self._gone)
        for _, keys, counts in self._waiting:
            for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
                by_key[key] += count  # type: ignore[index]
        missed = np.array([*by_key.values()], np.float64)
        if not len(missed):
            return Missing(0.0, _FEW * self._sample)
        variance = self._sample * (self._sample - 1) * float((missed**2).sum())
        return Missing(self._sample * float(missed.sum()), _SIGMAS * float(np.sqrt(variance)))

    def _pairs(self) -> tuple[Int64Array, Int64Array]:
        """Return the keys of pairs with a new row, each once, and how many they have."""
        (old, new), (others, fresh) = zip(self._kept, self._new, strict=True)
        both = _joined(others, fresh)
        first = _pairs_by_key(new, both, self._back, self._ahead)
        second = _pairs_by_key(old, fresh, self._back, self._ahead)
        keys, places = np.unique(np.concatenate([first[0], second[0]]), return_inverse=True)
        counts = np.zeros(len(keys), np.int64)
        np.add.at(counts, places, np.concatenate([first[1], second[1]]))
        return keys, counts


Rows = tuple[Int64Array, Int64Array]


def _joined(one: Rows, other: Rows) -> Rows:
    return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])


def _pairs_by_key(left: Rows, right: Rows, back: int, ahead: int) -> Rows:
    """Return the keys of left rows with partners, and how many pairs they have."""
    none = np.empty(0, np.int64)
    if not len(left[0]) or not len(right[0]):
        return none, none
    least = min(int(left[1].min()), int(right[1].min()))
    span = max(int(left[1].max()), int(right[1].max())) - least + 1
    # One number tells key and time, so that one search finds both.
    keys, places = np.unique(left[0], return_inverse=True)
    known = np.isin(right[0], keys)
    wide = 2 * span
    order = np.sort(np.searchsorted(keys, right[0][known]) * wide + (right[1][known] - least))
    at = places * wide
    times = left[1] - least
    low, high = np.maximum(times - back, 0), np.minimum(times + ahead, span)
    pairs = np.searchsorted(order, at + high, "right") - np.searchsorted(order, at + low, "left")
    counts = np.zeros(len(keys), np.int64)
    np.add.at(counts, places, np.maximum(pairs, 0))
    return keys[counts > 0], counts[counts > 0]
