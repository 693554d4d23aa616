"""Which hash buckets of a join's key are worth their rows: results are weighed against bytes.

A key with a rows of one stream and b of the other brings a·b results for a + b rows, so that a part of the
results costs a smaller part of the rows where some keys are frequent. The counts of both streams by bucket
(wjoin.sites.key_counts) say which these are. Where both have few rows in a bucket, they may be of different
keys: how many such buckets there would be by chance alone follows from how many each stream has.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import BoolArray, Int64Array

Floats = npt.NDArray[np.float64]

STAYS = 0.5
"""A bucket that has been chosen stays so until it is worth so much less than the last one that is chosen."""

_MOST = 1 << 20
"""Rows of a bucket that are told from more of them."""


def worthwhile(
    rows: Sequence[Int64Array], widths: Sequence[float], error: float, chosen: BoolArray
) -> BoolArray:
    """Return which buckets to bring so that a share of the results of ``error`` is missed, about.

    ``rows``: of each of the two streams by bucket (int64); ``widths``: bytes of a row of each; ``chosen``:
    the buckets that are chosen now. Those that are worth most are taken first. Raises ValueError.

    >>> import numpy as np
    >>> one, other = np.array([1000, 1, 1, 0, 0, 0, 0, 0]), np.array([900, 1, 0, 1, 0, 0, 0, 0])
    >>> [worthwhile((one, other), (9, 9), each, one < 0).tolist()[:4] for each in (0.0, 0.1)]
    [[True, True, False, False], [True, False, False, False]]
    """
    one, other = rows
    if not len(one) == len(other) == len(chosen):
        raise ValueError("the streams have different buckets")
    found = np.zeros(len(one), np.bool_)
    both = np.flatnonzero((one > 0) & (other > 0))
    if error <= 0 or not len(both):
        found[both] = True
        return found
    a, b = one[both], other[both]
    results = a.astype(np.float64) * b * same_keys(rows, both)
    worth = results / (a * widths[0] + b * widths[1])
    order = np.argsort(-worth, kind="stable")
    reached = np.cumsum(results[order])
    if reached[-1] <= 0:
        found[both] = True
        return found
    last = int(np.searchsorted(reached, (1 - error) * reached[-1]))
    found[both[order[: last + 1]]] = True
    least = worth[order[min(last, len(order) - 1)]]
    found[both[chosen[both] & (worth >= STAYS * least)]] = True
    return found


def same_keys(rows: Sequence[Int64Array], buckets: Int64Array) -> Floats:
    """Return how likely the rows of both streams in some buckets are of the same keys.

    As many buckets as have so many rows of both by chance alone have them so.
    """
    one, other = rows
    a, b = (np.minimum(each[buckets], _MOST) for each in rows)
    kinds, place, there = np.unique(a * (2 * _MOST) + b, return_inverse=True, return_counts=True)
    by_chance = _having(one, kinds // (2 * _MOST)) * _having(other, kinds % (2 * _MOST)) / len(one)
    likely: Floats = np.clip(1 - by_chance / there, 0, 1)[place]
    return likely


def _having(rows: Int64Array, counts: Int64Array) -> Floats:
    """Return how many buckets have each of some counts of rows."""
    values, found = np.unique(np.minimum(rows, _MOST), return_counts=True)
    return found[np.searchsorted(values, counts)].astype(np.float64)
