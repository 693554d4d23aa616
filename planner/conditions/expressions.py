"""Expressions over the columns of several streams, read and typed: what a join can test by itself.

Only what is here has a meaning that is known to be Spark's. The types are Spark's own names for them.
"""

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Operators, and the same with their sides exchanged."""

NUMERIC_ORDER = ("tinyint", "smallint", "int", "bigint")
MAXIMUM_DIGITS = 38

INTERVAL = "interval day to second"
"""The type of differences of times here, in microseconds, whatever fields Spark says that they have."""

Scalar = bool | int | float | str | Decimal


@dataclass(frozen=True)
class Input:
    """The value of column number ``place`` of a condition."""

    place: int
    type: str


@dataclass(frozen=True)
class Constant:
    """A value: days of a date and microseconds of a time are whole numbers; None is NULL."""

    value: Scalar | None
    type: str


@dataclass(frozen=True)
class Call:
    """An operator or a function, by its name here, over expressions.

    ``case`` has conditions and values in turn, and at last what else it is.
    """

    function: str
    arguments: tuple["Expression", ...]
    type: str


Expression = Input | Constant | Call


def is_numeric(kind: str) -> bool:
    """Return whether a type is one of numbers."""
    return kind in (*NUMERIC_ORDER, "float", "double") or is_decimal(kind)


def is_decimal(kind: str) -> bool:
    """Return whether a type is DECIMAL, of any size."""
    return kind.startswith("decimal(")


def decimal_type(whole: int, fraction: int) -> str | None:
    """Return the DECIMAL with so many digits before and after the point; None where Spark has none."""
    digits = whole + fraction
    return f"decimal({max(1, digits)},{fraction})" if digits <= MAXIMUM_DIGITS else None


def digits_of(kind: str) -> tuple[int, int]:
    """Return the digits that a number of an integral type or a DECIMAL has before and after the point.

    >>> digits_of("decimal(10,2)"), digits_of("int")
    ((8, 2), (10, 0))
    """
    if is_decimal(kind):
        precision, scale = (int(each) for each in kind[len("decimal(") : -1].split(","))
        return precision - scale, scale
    return {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}[kind], 0


def common_type(first: str, second: str) -> str | None:
    """Return the type in which Spark compares two values, None where it is not known here."""
    if not (is_numeric(first) and is_numeric(second)):
        return first if first == second else None
    if "double" in (first, second):
        return "double"
    if "float" in (first, second):
        return "double" if is_decimal(first) or is_decimal(second) else "float"
    if is_decimal(first) or is_decimal(second):
        sides = digits_of(first), digits_of(second)
        return decimal_type(max(whole for whole, _ in sides), max(part for _, part in sides))
    return max(first, second, key=NUMERIC_ORDER.index)


def arithmetic_type(operator: str, first: str, second: str) -> str | None:
    """Return the type of a sum, difference, product, quotient or remainder; None where it is not known here.

    A DECIMAL is known as long as Spark need not round it.
    """
    if not (is_numeric(first) and is_numeric(second)):
        return None
    common = common_type(first, second)
    if common is None or not is_decimal(common):
        whole = common in NUMERIC_ORDER
        return "double" if operator == "/" and whole else common
    (left, left_part), (right, right_part) = digits_of(first), digits_of(second)
    if operator in ("+", "-"):
        return decimal_type(max(left, right) + 1, max(left_part, right_part))
    if operator == "*":
        return decimal_type(left + right + 1, left_part + right_part)
    return None


_APART = frozenset({"and", "or", "not", "case", "cast", "floor", "is null"})
"""What does not bring the values of its arguments to one type."""

_ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})

_WHOLE_FLOAT = 2**24
"""Up to this all whole numbers are FLOATs."""


def is_exact(expression: Expression) -> bool:
    """Return whether a condition can be told to be true or not, but for overflows and divisions by zero.

    A FLOAT and a whole number meet as FLOAT or as DOUBLE, as a setting says: that must make no difference.
    """
    if not isinstance(expression, Call):
        return True
    if expression.function not in _APART and any(each.type == "float" for each in expression.arguments):
        whole = [each for each in expression.arguments if each.type in NUMERIC_ORDER]
        if whole and not (expression.function not in _ARITHMETIC and all(map(_is_float, whole))):
            return False
    return all(map(is_exact, expression.arguments))


def _is_float(whole: Expression) -> bool:
    """Return whether a whole number is a FLOAT, too."""
    if isinstance(whole, Constant):
        return abs(int(whole.value or 0)) <= _WHOLE_FLOAT
    return whole.type in ("tinyint", "smallint")


_STRICT = frozenset({*TURNED, "+", "-", "*", "/", "%", "negative", "abs", "sqrt", "cast", "floor"})
"""What is NULL where one of its arguments is."""

_OF_FIRST = frozenset({"between", "in", "like", "startswith", "endswith", "contains"})
"""What is NULL where its first argument is, and not true where another one is."""


def never_true(expression: Expression, missing: Collection[int]) -> bool:
    """Return whether a condition is surely not true where the inputs at some places are NULL.

    >>> compared = Call(">", (Input(0, "int"), Constant(1, "int")), "boolean")
    >>> never_true(compared, {0}), never_true(compared, {1})
    (True, False)
    """
    if _is_null(expression, missing):
        return True
    match expression:
        case Call("and", terms):
            return any(never_true(each, missing) for each in terms)
        case Call("or", terms):
            return all(never_true(each, missing) for each in terms)
        case Call("between", arguments):
            return any(_is_null(each, missing) for each in arguments)
    return False


def _is_null(expression: Expression, missing: Collection[int]) -> bool:
    """Return whether an expression is surely NULL where the inputs at some places are."""
    match expression:
        case Input(place, _):
            return place in missing
        case Constant(value, _):
            return value is None
        case Call(name, arguments) if name in _STRICT:
            return any(_is_null(each, missing) for each in arguments)
        case Call(name, (first, *_)) if name in _OF_FIRST or name == "not":
            return _is_null(first, missing)
        case Call("and" | "or" | "coalesce" | "greatest" | "least", arguments):
            return all(_is_null(each, missing) for each in arguments)
    return False
