"""Which hash buckets of a join's key are worth their rows: results are weighed against bytes.

A key with a rows of one stream and b of the other brings a·b results for a + b rows, so that a part of the
results costs a smaller part of the rows where some keys are frequent. What a choice may bring are the pairs
with a row that is new (executor/sites/likely_pairs.py), and what it costs the rows that have not come yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wjoin.executor.sites.likely_pairs import Offer
from wjoin.parts.kernels.runs import Int64Array

MOST_MISSED = 0.95
"""The share of results that a choice misses at the most, however few have been missed so far."""

_LEAST, _MOST = 0.1, 2.0
"""How far a choice aims below and above what is asked, to make up for those before."""

_BATCHES = 2.0
"""In so many micro-batches what was missed too much, or too little, is made up for."""


@dataclass(frozen=True)
class Goal:
    """What is asked: to miss a share of the results of ``error``, or to bring so many rows of each that
    comes (``messages``).
    """

    error: float | None
    messages: float | None = None

    def aimed(self, so_far: tuple[float, float], new: float) -> float:
        """Return which share a choice aims at. ``so_far``: what counts against it, of how much in all;
        ``new``: how much is new.

        >>> [round(Goal(0.1).aimed((spent, 100), 100), 3) for spent in (5, 10, 15)]
        [0.125, 0.1, 0.075]
        """
        asked = self.error if self.error is not None else self.messages or 0.0
        spent, whole = so_far
        found = asked + (asked * whole - spent) / (_BATCHES * max(new, 1.0))
        least, most = _LEAST * asked, _MOST * asked
        return float(np.clip(found, least, min(most, MOST_MISSED) if self.error is not None else most))


def worthwhile(
    offer: Offer, widths: Sequence[float], *, error: float | None, messages: float | None = None
) -> Int64Array:
    """Return the buckets to bring (int64[n], ascending): those worth most first.

    So many that a share of the results of ``error`` is missed, or that of each new row ``messages`` come;
    ``widths``: bytes of a row of each stream. With an error of 0 all that may bring something.
    """
    gain = offer.gain
    rows = offer.rows[0] + offer.rows[1]
    worth = gain.values / np.maximum(offer.rows[0] * widths[0] + offer.rows[1] * widths[1], 1e-9)
    order = np.argsort(-worth, kind="stable")
    if error is not None and error <= 0:
        last = len(order)
    elif error is not None:
        wanted = (1 - error) * offer.pairs.values.sum()
        last = int(np.searchsorted(np.cumsum(gain.values[order]), wanted)) + 1 if wanted > 0 else 0
    else:
        last = int(np.searchsorted(np.cumsum(rows[order]), (messages or 0.0) * offer.came, "right"))
    return np.sort(gain.buckets[order[:last]])
