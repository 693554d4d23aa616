"""The values of an expression for many pairs at once, with what is not known of them."""

from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import BoolArray
from wjoin.planner.conditions.expressions import INTERVAL, NUMERIC_ORDER

Numbers = npt.NDArray[Any]
"""int64 or float64, of any shape that fits the others of a test."""

BITS = {
    **dict(zip(NUMERIC_ORDER, (8, 16, 32, 64), strict=True)),
    **{"date": 32, "timestamp": 64, "timestamp_ntz": 64, INTERVAL: 64},
}
"""The size of the types that are whole numbers."""

NONE = np.zeros(1, bool)
_SECOND = 1_000_000


@dataclass(frozen=True)
class Vector:
    """The values of an expression, all between ``low`` and ``high``.

    ``null``: where it is NULL, ``unknown``: where anything may be, NULL or an error too; None for nowhere.
    ``error``: how far Spark's own value may be from one here.
    """

    values: Numbers
    low: float
    high: float
    null: BoolArray | None = None
    unknown: BoolArray | None = None
    error: float = 0.0

    @property
    def size(self) -> float:
        """The greatest distance of a value from zero."""
        return max(abs(self.low), abs(self.high))

    def at(self, chosen: Any) -> "Vector":
        """Return the values at some places."""
        return replace(
            self,
            values=self.values[chosen],
            null=None if self.null is None else self.null[chosen],
            unknown=None if self.unknown is None else self.unknown[chosen],
        )

    def shaped(self, *shape: int) -> "Vector":
        """Return the values in another shape."""
        return replace(
            self,
            values=self.values.reshape(shape),
            null=None if self.null is None else self.null.reshape(shape),
            unknown=None if self.unknown is None else self.unknown.reshape(shape),
        )


def either(first: BoolArray | None, second: BoolArray | None) -> BoolArray | None:
    """Return where one of two masks is set; None is set nowhere."""
    if first is None or second is None:
        return second if first is None else first
    return first | second


def converted(inside: Vector, source: str, kind: str) -> Vector:
    """Return CAST of values; those that do not fit are not known."""
    if kind == "double":
        if source != "timestamp":
            return replace(
                inside,
                values=inside.values.astype(np.float64),
                low=float(inside.low),
                high=float(inside.high),
            )
        seconds = inside.values.astype(np.float64) / _SECOND
        return replace(inside, values=seconds, low=inside.low / _SECOND, high=inside.high / _SECOND)
    if source == "timestamp":
        return floored(inside, _SECOND)
    least, greatest = -(2 ** (BITS[kind] - 1)), 2 ** (BITS[kind] - 1) - 1
    if inside.values.dtype == np.float64:
        return _truncated(inside, least, greatest)
    if least <= inside.low and inside.high <= greatest:
        return inside
    outside = (inside.values < least) | (inside.values > greatest)
    return replace(
        inside,
        low=max(inside.low, least),
        high=min(inside.high, greatest),
        unknown=either(inside.unknown, outside),
    )


def _truncated(inside: Vector, least: int, greatest: int) -> Vector:
    """Return fractions as whole numbers; what is near the ends of 64 bits is not known either."""
    limit = min(2.0**62, greatest + 1.0)
    with np.errstate(invalid="ignore"):
        fits = np.abs(inside.values) < limit
    values = np.where(fits, inside.values, 0.0).astype(np.int64)
    known = isfinite(inside.low) and isfinite(inside.high)
    low = max(int(inside.low), least) if known else least
    high = min(int(inside.high), greatest) if known else greatest
    unknown = ~fits if not inside.error else np.ones(1, bool)
    return Vector(values, min(low, 0), max(high, 0), inside.null, either(inside.unknown, unknown))


def floored(inside: Vector, divisor: int) -> Vector:
    """Return whole numbers divided by one, rounded down."""
    low, high = int(inside.low) // divisor, int(inside.high) // divisor
    return replace(inside, values=inside.values // divisor, low=low, high=high)


def chosen_by(taken: BoolArray, unsure: BoolArray, first: Vector, second: Vector) -> Vector:
    """Return the first values where they are taken, else the second; not known where that is ``unsure``."""
    error = max(first.error, second.error)
    return Vector(
        np.where(taken, first.values, second.values),
        min(first.low, second.low),
        max(first.high, second.high),
        _mask(taken, first.null, second.null),
        either(_mask(taken, first.unknown, second.unknown), unsure if unsure.any() else None),
        error if error == error else inf,
    )


def _mask(taken: BoolArray, first: BoolArray | None, second: BoolArray | None) -> BoolArray | None:
    if first is None and second is None:
        return None
    return np.where(taken, NONE if first is None else first, NONE if second is None else second)
