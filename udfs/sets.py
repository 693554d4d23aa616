"""Predicates over sets: arrays whose order and repetitions do not matter."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.udfs.predicate import predicate

Int64Array = npt.NDArray[np.int64]


@predicate(returns="double", arrays="arrow", cost_us=2)
def jaccard_similarity(left: pa.Array, right: pa.Array) -> npt.NDArray[np.float64]:
    """How alike two sets are: what they share, of what either has; 1 for two empty ones."""
    shared, either = _shared(left, right)
    return np.where(either == 0, 1.0, shared / np.maximum(either, 1))


@predicate(arrays="arrow", cost_us=2)
def same_set(left: pa.Array, right: pa.Array) -> npt.NDArray[np.bool_]:
    """Whether two arrays have the same elements.

    Semijoin over streams, example 2.
    """
    shared, either = _shared(left, right)
    return np.asarray(shared == either)


def _shared(left: pa.Array, right: pa.Array) -> tuple[Int64Array, Int64Array]:
    """Return for each pair how many elements both have, and how many either has."""
    elements = pa.concat_arrays([left.flatten(), right.flatten()]).dictionary_encode("encode")
    # An element of a pair as one number: a set has it once.
    numbers = np.asarray(elements.indices).astype(np.int64)
    count = max(1, len(elements.dictionary))
    cut = len(left.flatten())
    first, second = (
        np.unique(np.asarray(pc.list_parent_indices(each)).astype(np.int64) * count + part)
        for each, part in ((left, numbers[:cut]), (right, numbers[cut:]))
    )
    both = np.intersect1d(first, second, assume_unique=True)
    shared, *sizes = (np.bincount(each // count, minlength=len(left)) for each in (both, first, second))
    return shared, sizes[0] + sizes[1] - shared
