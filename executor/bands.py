"""Bands on the values of tuples: where their partners may be, and which pairs are inside.

Both may be too wide, never too narrow: the conditions that imply a band are checked as well.
"""

import numpy as np
import pyarrow as pa

from wjoin.parts.kernels.runs import BoolArray, Values, integers, shifted
from wjoin.planner.plan.checks import Band


def band_values(array: pa.Array) -> Values:
    """Return a column as int64, or as float64 where it is one of fractions; NULL as 0 or NaN."""
    if pa.types.is_floating(array.type):
        return np.asarray(array.cast(pa.float64()).fill_null(np.nan))
    return np.asarray(integers(array).fill_null(0))


def moved(values: Values, distance: float | None, slack: float) -> Values | None:
    """Return ``values + distance``, held inside their type; None for no distance.

    ``slack``: by which share of its value each is moved further.
    """
    if distance is None:
        return None
    if slack or values.dtype.kind == "f":
        fractions = values.astype(np.float64)
        # Beyond the greatest number is infinity. What is infinite stays so: its share would make NaN of it.
        with np.errstate(over="ignore", invalid="ignore"):
            found = fractions + distance + slack * np.abs(fractions)
        return np.where(np.isinf(fractions), fractions, found)
    return shifted(values, int(distance), 0)


def inside(band: Band, left: Values, right: Values) -> BoolArray:
    """Return which pairs of values a band allows; those with NaN all."""
    low, high = moved(right, band.low, -band.slack), moved(right, band.high, band.slack)
    fractions = left.dtype.kind == "f" or right.dtype.kind == "f"
    keep = np.ones(len(left), bool)
    if low is not None:
        keep &= left >= low
    if high is not None:
        keep &= left <= high
    return keep | np.isnan(left) | np.isnan(right) if fractions else keep
