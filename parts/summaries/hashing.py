"""Numbers that follow from codes and a seed, alike on every node."""

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import BoolArray, Int64Array

FloatArray = npt.NDArray[np.float64]
UInt64Array = npt.NDArray[np.uint64]

_STEP = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def mixed(codes: Int64Array, seed: int) -> UInt64Array:
    """Return 64 bits (uint64[n]) of each code (int64[n]); every bit of a code changes half of them.

    Whole numbers of other seeds have nothing to do with each other. The last steps of SplitMix64.
    """
    found = codes.view(np.uint64) + np.uint64((seed + 1) * _STEP & _MASK)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return found ^ (found >> np.uint64(31))


def shares(codes: Int64Array, seed: int) -> FloatArray:
    """Return a number in [0, 1) for each code (float64[n])."""
    found: FloatArray = (mixed(codes, seed) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return found


def cells(codes: Int64Array, seed: int, many: int) -> Int64Array:
    """Return one of ``many`` (at most 2^32) cells for each code (int64[n])."""
    return ((mixed(codes, seed) >> np.uint64(32)) * np.uint64(many) >> np.uint64(32)).astype(np.int64)


def signs(codes: Int64Array, seed: int) -> FloatArray:
    """Return 1 or -1 for each code (float64[n])."""
    found: FloatArray = 1.0 - 2.0 * (mixed(codes, seed) >> np.uint64(63)).astype(np.float64)
    return found


def within(codes: Int64Array, seed: int, share: float) -> BoolArray:
    """Return which codes belong to a share of all (bool[n]); a lesser share is a part of a greater one."""
    found: BoolArray = shares(codes, seed) < share
    return found
