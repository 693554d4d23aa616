"""Conditions on the values of several streams, tested for many pairs at once.

A test only ever refuses what Spark would refuse: where a value cannot be known here to the last bit, or
Spark would raise an error, the pair is kept, and Spark evaluates the condition.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import inf, isfinite, sqrt
from operator import and_, or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.executor import decimals
from wjoin.executor.condition_texts import Texts, is_text, leaves, with_matches
from wjoin.executor.pair_values import BITS, NONE, Numbers, Vector, chosen_by, converted, either, floored
from wjoin.grammar.errors import WJoinError
from wjoin.parts.kernels.runs import BoolArray, integers
from wjoin.planner.conditions.expressions import (
    NUMERIC_ORDER,
    Call,
    Constant,
    Expression,
    Input,
    common_type,
    is_decimal,
)

_DOUBLE_ERROR, _FLOAT_ERROR, _LEAST_FLOAT = 2.0**-50, 2.0**-22, 1e-40
"""More than a step in DOUBLE or in FLOAT is rounded by, as a share of a value, and for the least FLOATs."""

_GREATEST_FLOAT, _WHOLE_FLOAT = 1e38, 2**24
COMPARE = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
"""What compares arrays, by the operator."""

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", "<=": ">", ">": "<="}


@dataclass(frozen=True)
class Prepared:
    """A condition whose inputs are known; those of type string are ranks among all its strings.

    ``sources``: of which column each input is made.
    """

    expression: Expression
    inputs: tuple[Vector, ...]
    sources: tuple[int, ...]

    def at(self, vectors: Sequence[Vector]) -> BoolArray:
        """Return for which values of the inputs the condition may be true; shaped as they are together."""
        return _may(self.expression, vectors, wanted=True)

    def undecided(self) -> BoolArray:
        """Return for which values of the inputs it may be true and may be not: only Spark knows."""
        # What is NULL is known, or else both.
        return self.at(self.inputs) & _may(self.expression, self.inputs, wanted=False)


def prepared(expression: Expression, columns: Sequence[pa.Array]) -> Prepared:
    """Return a condition over columns, each with its own length."""
    sources = list(range(len(columns)))
    every = list(columns)
    expression = with_matches(expression, every, sources)
    used = {each.place for each in leaves(expression) if isinstance(each, Input)}
    texts = Texts.of(expression, [each for place, each in enumerate(every) if place in used])

    def vector(place: int, column: pa.Array) -> Vector:
        if place not in used:
            return Vector(np.zeros(len(column), np.int64), 0, 0)
        return texts.vector(column) if texts and is_text(column) else _vector(column)

    return Prepared(
        expression if texts is None else texts.ranked(expression),
        tuple(vector(*each) for each in enumerate(every)),
        tuple(sources),
    )


def true_of(expression: Expression, columns: Sequence[pa.Array], statement: str | None) -> BoolArray:
    """Return for which rows of columns a condition may be true.

    Where a ``statement`` is given that must be known: raises WJoinError WJ726 where Spark alone knows it.
    """
    test = prepared(expression, columns)
    if statement is not None and test.undecided().any():
        raise WJoinError(
            "WJ726",
            f"for some rows a condition of ON cannot be decided: {statement}",
            help="look for values that overflow or a division by zero, and keep them out in a subquery",
        )
    return np.broadcast_to(test.at(test.inputs), len(columns[0]))


def _vector(column: pa.Array) -> Vector:
    """Return the values of a column of numbers, times or truth."""
    kind = column.type
    null = np.asarray(column.is_null()) if column.null_count else None
    if pa.types.is_decimal(kind):
        return decimals.of_column(column, null)
    if pa.types.is_floating(kind):
        values = np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), 0.0))
        finite = bool(np.isfinite(values).all())
        low, high = (float(values.min()), float(values.max())) if finite and len(values) else (0.0, 0.0)
        return Vector(values, low, high, null) if finite else Vector(values, -inf, inf, null)
    whole = np.asarray(pc.fill_null(integers(column), 0))
    if not len(whole):
        return Vector(whole, 0, 0, null)
    return Vector(whole, int(whole.min()), int(whole.max()), null)


# Truth -------------------------------------------------------------------------


def _may(expression: Expression, inputs: Sequence[Vector], *, wanted: bool) -> BoolArray:
    """Return where an expression may be true, or where it may be false."""
    match expression:
        case Constant(truth, _):
            return np.array([truth is not None and bool(truth) is wanted])
        case Input(place, _):
            given = inputs[place]
            return _kept((given.values != 0) == wanted, given.null, given.unknown)
        case Call("and" | "or" as name, terms):
            return _all_or_any(
                (_may(each, inputs, wanted=wanted) for each in terms), (name == "and") is wanted
            )
        case Call("not", (inside,)):
            return _may(inside, inputs, wanted=not wanted)
        case Call("is null", (inside,)):
            given = _value(inside, inputs)
            null = NONE if given.null is None else given.null
            return _kept(null if wanted else ~null, None, given.unknown)
        case Call("case", (*pairs, default)):
            return _may_by_case(pairs, default, inputs, wanted=wanted)
        case Call("between", (inside, low, high)):
            ends = ((">=", low), ("<=", high)) if wanted else (("<", low), (">", high))
            return _all_or_any(_each_compared(inside, ends, inputs), wanted)
        case Call("in", (inside, *choices)):
            equal = [("=" if wanted else "<>", each) for each in choices]
            return _all_or_any(_each_compared(inside, equal, inputs), not wanted)
        case Call(operator, (left, right)):
            sides = _value(left, inputs), _value(right, inputs)
            if operator == "<=>":
                return _alike(*sides, left.type, right.type, wanted=wanted)
            kept = operator if wanted else _OPPOSITE[operator]
            return _compared(kept, *sides, left.type, right.type)
    raise AssertionError(f"{expression} is no condition")


def _may_by_case(
    pairs: Sequence[Expression], default: Expression, inputs: Sequence[Vector], *, wanted: bool
) -> BoolArray:
    """Return where CASE over truth values may be so: where it is not sure which one it is, it may be any."""
    reached, found = np.ones(1, bool), np.zeros(1, bool)
    for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
        true, false = (_may(condition, inputs, wanted=each) for each in (True, False))
        found = found | (reached & true & (false | _may(value, inputs, wanted=wanted)))
        reached = reached & (~true | false)
    return found | (reached & _may(default, inputs, wanted=wanted))


def _each_compared(
    inside: Expression, others: Iterable[tuple[str, Expression]], inputs: Sequence[Vector]
) -> Iterator[BoolArray]:
    """Yield where a value may compare so to each of others."""
    value = _value(inside, inputs)
    for operator, each in others:
        yield _compared(operator, value, _value(each, inputs), inside.type, each.type)


def _all_or_any(masks: Iterable[BoolArray], every: bool) -> BoolArray:
    return reduce(and_ if every else or_, masks)


def _kept(mask: BoolArray, null: BoolArray | None, unknown: BoolArray | None) -> BoolArray:
    if null is not None:
        mask = mask & ~null
    return mask if unknown is None else mask | unknown


def _alike(left: Vector, right: Vector, left_kind: str, right_kind: str, *, wanted: bool) -> BoolArray:
    """Return where ``left <=> right`` may be true, or false: NULL is like NULL, and unlike all else."""
    nulls = [NONE if each.null is None else each.null for each in (left, right)]
    compared = _compared("=" if wanted else "<>", left, right, left_kind, right_kind)
    unknown = either(left.unknown, right.unknown)
    return _kept(compared | (nulls[0] & nulls[1] if wanted else nulls[0] ^ nulls[1]), None, unknown)


def _compared(operator: str, left: Vector, right: Vector, left_kind: str, right_kind: str) -> BoolArray:
    kind = common_type(left_kind, right_kind) or ""
    if is_decimal(kind):
        left, right = decimals.scaled(left, left_kind, kind), decimals.scaled(right, right_kind, kind)
    else:
        left, right = decimals.as_double(left, left_kind), decimals.as_double(right, right_kind)
    error = left.error + right.error
    unknown = either(left.unknown, right.unknown)
    if kind == "float" and left_kind != right_kind:
        whole = left if left_kind in NUMERIC_ORDER else right
        # Spark rounds those that are no FLOAT, or not: that depends on the mode.
        error += (left.size + right.size) * _FLOAT_ERROR if whole.size > _WHOLE_FLOAT else 0.0
    null = either(left.null, right.null)
    if not isfinite(error):
        return _kept(np.ones(np.broadcast_shapes(left.values.shape, right.values.shape), bool), None, None)
    if not (isfinite(left.low) and isfinite(left.high) and isfinite(right.low) and isfinite(right.high)):
        if not error:
            return _kept(_with_nan(operator, left.values, right.values), null, unknown)
        unknown = either(unknown, either(np.isnan(left.values), np.isnan(right.values)))
    if error:
        return _kept(_near(operator, left.values, right.values, error), null, unknown)
    return _kept(COMPARE[operator](left.values, right.values), null, unknown)


def _with_nan(operator: str, left: Numbers, right: Numbers) -> BoolArray:
    """Return where a comparison is true as in Spark, to which NaN is above all else, and itself."""
    nan = np.isnan(left), np.isnan(right)
    with np.errstate(invalid="ignore"):
        equal = (left == right) | (nan[0] & nan[1])
        less = (left < right) | (~nan[0] & nan[1])
    found = {
        "=": equal,
        "<>": ~equal,
        "<": less,
        "<=": less | equal,
        ">": ~(less | equal),
        ">=": ~less,
    }
    return np.asarray(found[operator])


def _near(operator: str, left: Numbers, right: Numbers, error: float) -> BoolArray:
    """Return where a comparison may be true of values that are so far away at the most."""
    if operator in ("<", "<="):
        return np.asarray(left <= right + error)
    if operator in (">", ">="):
        return np.asarray(left + error >= right)
    if operator == "=":
        # Of what is infinite the difference is no number.
        with np.errstate(invalid="ignore"):
            return np.asarray((left == right) | (np.abs(left - right) <= error))
    return np.ones(np.broadcast_shapes(left.shape, right.shape), bool)


# Values ------------------------------------------------------------------------


def _value(expression: Expression, inputs: Sequence[Vector]) -> Vector:
    match expression:
        case Input(place, _):
            return inputs[place]
        case Constant(value, kind):
            if value is None:
                return Vector(np.zeros(1, np.int64), 0, 0, np.ones(1, bool))
            if is_decimal(kind):
                return decimals.of_constant(value, kind)
            number: Any = float(value) if kind in ("float", "double") else int(value)
            return Vector(np.array([number]), number, number)
        case Call("negative", (inside,), kind):
            zero = Vector(np.zeros(1, np.int64), 0, 0)
            return _arithmetic("-", zero, _value(inside, inputs), kind, (kind, kind))
        case Call("abs", (inside,), kind):
            return _absolute(_value(inside, inputs), kind)
        case Call("sqrt", (inside,)):
            return _root(decimals.as_double(_value(inside, inputs), inside.type))
        case Call("cast", (inside,), kind) if is_decimal(kind):
            return decimals.scaled(_value(inside, inputs), inside.type, kind)
        case Call("cast", (inside,), kind):
            return converted(decimals.as_double(_value(inside, inputs), inside.type), inside.type, kind)
        case Call("floor", (inside, Constant(divisor, _))):
            return floored(_value(inside, inputs), int(divisor or 1))
        case Call("case", (*pairs, default)):
            return _by_case(pairs, default, inputs)
        case Call("greatest" | "least" | "coalesce" as name, arguments):
            found, *others = (_value(each, inputs) for each in arguments)
            for each in others:
                found = _chosen(name, found, each)
            return found
        case Call(operator, (left, right), kind):
            sides = _value(left, inputs), _value(right, inputs)
            return _arithmetic(operator, *sides, kind, (left.type, right.type))
    raise AssertionError(f"{expression} has no value")


def _by_case(pairs: Sequence[Expression], default: Expression, inputs: Sequence[Vector]) -> Vector:
    found = _value(default, inputs)
    for condition, value in zip(pairs[-2::-2], pairs[::-2], strict=True):
        true, false = (_may(condition, inputs, wanted=wanted) for wanted in (True, False))
        found = chosen_by(true, true & false, _value(value, inputs), found)
    return found


def _arithmetic(operator: str, left: Vector, right: Vector, kind: str, kinds: tuple[str, str]) -> Vector:
    null, unknown = either(left.null, right.null), either(left.unknown, right.unknown)
    if is_decimal(kind):
        if operator != "*":
            left, right = (decimals.scaled(*each, kind) for each in zip((left, right), kinds, strict=True))
        return decimals.computed(operator, left, right, null, unknown)
    left, right = (decimals.as_double(*each) for each in zip((left, right), kinds, strict=True))
    divisor = right.values
    if operator in ("/", "%"):
        # Spark says NULL or fails.
        zero = divisor == 0
        unknown = either(unknown, zero if right.null is None else zero & ~right.null)
        divisor = np.where((divisor == 0) | (divisor == -1) if operator == "%" else divisor == 0, 1, divisor)
    low, high = _span(operator, left, right)
    if kind in BITS:
        return _whole(operator, left, replace(right, values=divisor), kind, (low, high), null, unknown)
    narrow = set(kinds) == {"float"}
    with np.errstate(all="ignore"):
        # Of two FLOATs the result is rounded to one.
        sides = (each.astype(np.float32 if narrow else np.float64) for each in (left.values, divisor))
        values = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[operator](*sides)
        values = values.astype(np.float64)
        if narrow:
            low, high = float(np.float32(low)), float(np.float32(high))
    size = max(abs(low), abs(high))
    error = left.error + right.error
    if error and operator == "*":
        error = left.size * right.error + right.size * left.error + left.error * right.error
    elif error and operator == "/":
        error = inf
    rounded = left.size + right.size + size
    if kind == "float" and not narrow:
        # Whole numbers become FLOAT first, or not: that depends on the mode.
        error = error + rounded * _FLOAT_ERROR + _LEAST_FLOAT if rounded < _GREATEST_FLOAT else inf
    elif error:
        error += rounded * (_FLOAT_ERROR if narrow else _DOUBLE_ERROR)
    # Not a number: the product of no error and an endless size.
    error = error if error == error else inf
    return Vector(values, low, high, null, unknown, error)


def _span(operator: str, left: Vector, right: Vector) -> tuple[float, float]:
    """Return the least and the greatest result of an operator, endless where that is not known."""
    if operator == "+":
        ends = [left.low + right.low, left.high + right.high]
    elif operator == "-":
        ends = [left.low - right.high, left.high - right.low]
    elif operator == "*":
        ends = [one * other for one in (left.low, left.high) for other in (right.low, right.high)]
    elif operator == "%":
        ends = [-left.size, left.size]
    elif right.low == right.high != 0:
        ends = [left.low / right.low, left.high / right.low]
    else:
        return -inf, inf
    known = all(end == end for end in ends)
    return (min(ends), max(ends)) if known else (-inf, inf)


def _whole(
    operator: str,
    left: Vector,
    right: Vector,
    kind: str,
    span: tuple[float, float],
    null: BoolArray | None,
    unknown: BoolArray | None,
) -> Vector:
    """Return whole numbers; where they do not fit their type, Spark fails or begins anew: it shall say so."""
    function = {"+": np.add, "-": np.subtract, "*": np.multiply, "%": np.fmod}[operator]
    with np.errstate(all="ignore"):
        values = function(left.values, right.values)
        least, greatest = -(2 ** (BITS[kind] - 1)), 2 ** (BITS[kind] - 1) - 1
        low, high = span
        if least <= low and high <= greatest:
            return Vector(values, low, high, null, unknown)
        if BITS[kind] == 64:
            # Of 64 bits, and rounded: what is near the ends is not known either.
            about = function(left.values.astype(np.float64), right.values.astype(np.float64))
            outside = np.abs(about) >= 2.0**63 * (1 - 2.0**-40)
        else:
            outside = (values < least) | (values > greatest)
    return Vector(values, max(low, least), min(high, greatest), null, either(unknown, outside))


def _absolute(inside: Vector, kind: str) -> Vector:
    with np.errstate(all="ignore"):
        values = np.abs(inside.values)
    low = 0 if inside.low <= 0 <= inside.high else min(abs(inside.low), abs(inside.high))
    found = replace(inside, values=values, low=low, high=inside.size)
    if kind in NUMERIC_ORDER and inside.low == -(2 ** (BITS[kind] - 1)):
        return replace(found, unknown=either(inside.unknown, inside.values == inside.low))
    return found


def _root(inside: Vector) -> Vector:
    with np.errstate(all="ignore"):
        found = np.sqrt(inside.values.astype(np.float64))
    high = sqrt(inside.high) if 0 <= inside.high < inf else inf
    # Without an end it may be NaN.
    low = 0.0 if isfinite(high) and inside.low >= 0 else -inf
    return Vector(found, low, high, inside.null, inside.unknown, inf if inside.error else 0.0)


def _chosen(name: str, first: Vector, second: Vector) -> Vector:
    """Return the first value that is not NULL, or the greatest or the least of those."""
    nulls = [NONE if each.null is None else each.null for each in (first, second)]
    # NaN is above all.
    function = {"greatest": np.maximum, "least": np.fmin}.get(name)
    values = first.values if function is None else function(first.values, second.values)
    if first.null is not None:
        values = np.where(first.null, second.values, values)
    if second.null is not None and function is not None:
        values = np.where(second.null & ~nulls[0], first.values, values)
    unknown = either(first.unknown, second.unknown)
    both = nulls[0] & nulls[1] if first.null is not None and second.null is not None else None
    error = max(first.error, second.error)
    return Vector(values, min(first.low, second.low), max(first.high, second.high), both, unknown, error)
