"""Predicates over vectors: arrays of numbers."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.udfs.predicate import predicate

Floats = npt.NDArray[np.float64]


@predicate(returns="double", arrays="arrow", cost_us=1)
def cosine_similarity(left: pa.Array, right: pa.Array) -> pa.Array:
    """The cosine of the angle between two vectors.

    NULL where one has no length, or they differ in length or have a NULL.
    """
    pairs = _Pairs(left, right)
    ones, others = pairs.left, pairs.right
    sizes = np.sqrt(pairs.products(ones, ones)) * np.sqrt(pairs.products(others, others))
    with np.errstate(divide="ignore", invalid="ignore"):
        return pairs.result(pairs.products(ones, others) / sizes, sizes > 0)


@predicate(returns="double", arrays="arrow", cost_us=1)
def euclidean_distance(left: pa.Array, right: pa.Array) -> pa.Array:
    """The distance between two points; NULL where they differ in length or have a NULL."""
    pairs = _Pairs(left, right)
    apart = pairs.left - pairs.right
    return pairs.result(np.sqrt(pairs.products(apart, apart)))


class _Pairs:
    """The vectors of pairs end to end, those alone whose pair can be computed."""

    def __init__(self, left: pa.Array, right: pa.Array) -> None:
        lengths = _lengths(left)
        self._usable = (lengths == _lengths(right)) & ~_with_null(left) & ~_with_null(right)
        if not self._usable.all():
            chosen = pa.array(np.flatnonzero(self._usable))
            left, right, lengths = left.take(chosen), right.take(chosen), lengths[self._usable]
        self._lengths = lengths
        self.left, self.right = _numbers(left), _numbers(right)

    def products(self, left: Floats, right: Floats) -> Floats:
        """Return the sum of the products of the values of each vector with those of another."""
        lengths = self._lengths
        if len(lengths) and (lengths == lengths[0]).all():
            lines = (len(lengths), int(lengths[0]))
            return np.asarray(np.einsum("ij,ij->i", left.reshape(lines), right.reshape(lines)))
        pair = np.repeat(np.arange(len(lengths)), lengths)
        return np.bincount(pair, left * right, len(lengths)).astype(float)

    def result(self, values: Floats, known: npt.NDArray[np.bool_] | None = None) -> pa.Array:
        """Return a value for each pair, NULL where it cannot be computed or is not ``known``."""
        every = np.zeros(len(self._usable))
        every[self._usable] = values
        null = ~self._usable
        if known is not None:
            null[self._usable] |= ~known
        return pa.array(every, mask=null)


def _lengths(vectors: pa.Array) -> npt.NDArray[np.int64]:
    return np.asarray(pc.list_value_length(vectors)).astype(np.int64)


def _numbers(vectors: pa.Array) -> Floats:
    return np.asarray(vectors.flatten().cast(pa.float64(), safe=False))


def _with_null(vectors: pa.Array) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(vectors), bool)
    if vectors.flatten().null_count:
        nulls = np.asarray(vectors.flatten().is_null())
        found[np.asarray(pc.list_parent_indices(vectors))[nulls]] = True
    return found
