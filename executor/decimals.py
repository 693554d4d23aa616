"""DECIMAL values as whole numbers: each times the power of ten of its type, so that nothing is rounded.

They are int64 where all fit, else Python's own numbers in an array of objects.
"""

from dataclasses import replace
from decimal import Decimal
from functools import reduce
from operator import add, mul, sub
from typing import Any

import numpy as np
import pyarrow as pa

from wjoin.executor.pair_values import Numbers, Vector
from wjoin.parts.kernels.runs import BoolArray
from wjoin.planner.conditions.expressions import digits_of, is_decimal

_ROOM = 2**62
"""Whole numbers below are kept as int64."""

_WHOLE, _TENS = 2**53, 22
"""Up to these whole numbers, and powers of ten, are DOUBLEs: of two of them a quotient is rounded once."""


def of_column(column: pa.Array, null: BoolArray | None) -> Vector:
    """Return the values of a column of decimals."""
    kind = column.type
    column = column.cast(pa.decimal128(kind.precision, kind.scale))
    if not len(column):
        return Vector(np.zeros(0, np.int64), 0, 0, null)
    halves = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)
    low, high = halves[column.offset : column.offset + len(column)].T
    if null is not None:
        low, high = np.where(null, 0, low), np.where(null, 0, high)
    values: Numbers = np.ascontiguousarray(low)
    if (high != low >> 63).any():
        tops, rests = high.tolist(), values.view(np.uint64).tolist()
        whole = ((top << 64) + rest for top, rest in zip(tops, rests, strict=True))
        values = np.fromiter(whole, object, len(column))
    return _fitting(Vector(values, int(values.min()), int(values.max()), null))


def of_constant(value: Any, kind: str) -> Vector:
    """Return one value of a type."""
    sign, digits, exponent = Decimal(value).as_tuple()
    whole = reduce(lambda number, digit: 10 * number + digit, digits, 0) * (-1 if sign else 1)
    # A type has room for all digits of its constants.
    whole *= 10 ** (int(exponent) + digits_of(kind)[1])
    return _fitting(Vector(np.array([whole], object), whole, whole))


def scaled(inside: Vector, source: str, kind: str) -> Vector:
    """Return whole numbers, or decimals, of one type as decimals of another one that has room for them."""
    factor = 10 ** (digits_of(kind)[1] - digits_of(source)[1])
    if factor == 1:
        return inside
    power = Vector(np.array([factor], object), factor, factor)
    return computed("*", inside, power, inside.null, inside.unknown)


def computed(
    operator: str, left: Vector, right: Vector, null: BoolArray | None, unknown: BoolArray | None
) -> Vector:
    """Return sums, differences or products of whole numbers of any size."""
    function = {"+": add, "-": sub, "*": mul}[operator]
    of_left, of_right = ((int(each.low), int(each.high)) for each in (left, right))
    ends = [function(one, other) for one in of_left for other in of_right]
    fits = max(map(abs, (*ends, *of_left, *of_right))) < _ROOM
    sides = (each.values.astype(np.int64 if fits else object) for each in (left, right))
    return Vector(function(*sides), min(ends), max(ends), null, unknown)


def as_double(inside: Vector, kind: str) -> Vector:
    """Return decimals as DOUBLE, each rounded once; other values as they are."""
    if not is_decimal(kind):
        return inside
    _, scale = digits_of(kind)
    power = 10**scale
    if inside.size <= _WHOLE and scale <= _TENS:
        values = inside.values.astype(np.float64) / float(power)
    else:
        rounded = [whole / power for whole in inside.values.ravel().tolist()]
        values = np.array(rounded, np.float64).reshape(inside.values.shape)
    return replace(inside, values=values, low=int(inside.low) / power, high=int(inside.high) / power)


def _fitting(each: Vector) -> Vector:
    return replace(each, values=each.values.astype(np.int64 if each.size < _ROOM else object))
