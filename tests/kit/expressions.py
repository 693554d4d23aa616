"""Small scalar expressions with three meanings: SQL text, and Spark's value in plain Python.

The SQL text is read alike by Spark and by DuckDB, so that one description of a predicate
serves the statement under test, the DuckDB oracle and the brute-force oracle.
"""

import datetime
import decimal
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_EXACT = decimal.Context(prec=120)
"""More digits than a sum or product of two DECIMALs has."""

Row = Mapping[str, Mapping[str, Any]]
"""The values of one combination of input rows, by alias and column."""


@dataclass(frozen=True)
class Field:
    """A column of a stream."""

    stream: str
    name: str


@dataclass(frozen=True)
class Literal:
    """A number, a string, or a date."""

    value: int | decimal.Decimal | str | datetime.date


@dataclass(frozen=True)
class Call:
    """A function of SQL: ``upper``, ``abs``, or an operator such as ``+``."""

    function: str
    arguments: tuple["Expression", ...]


@dataclass(frozen=True)
class Compare:
    """A comparison with SQL's rules: NULL on a side gives NULL; NaN equals NaN and is the greatest."""

    left: "Expression"
    operator: str
    right: "Expression"


@dataclass(frozen=True)
class IsNull:
    """``argument IS [NOT] NULL``."""

    argument: "Expression"
    negated: bool = False


@dataclass(frozen=True)
class AnyOf:
    """A disjunction in three-valued logic."""

    terms: tuple["Expression", ...]


Expression = Field | Literal | Call | Compare | IsNull | AnyOf


def equal(left: Expression, right: Expression) -> Compare:
    """Return ``left = right``."""
    return Compare(left, "=", right)


def sql(expression: Expression, quote: bool = False) -> str:
    """Return the text of an expression; ``quote`` puts Spark's quotes around names."""
    match expression:
        case Field(stream, name):
            return f"`{stream}`.`{name}`" if quote else f"{stream}.{name}"
        case Literal(datetime.date() as value):
            return f"DATE '{value}'"
        case Literal(str() as value):
            return "'" + value.replace("'", "''") + "'"
        case Literal(value):
            return str(value)
        case Call("+" | "-" | "*" as operator, (left, right)):
            return f"({sql(left, quote)} {operator} {sql(right, quote)})"
        case Call(function, arguments):
            return f"{function}({', '.join(sql(each, quote) for each in arguments)})"
        case Compare(left, operator, right):
            return f"{sql(left, quote)} {operator} {sql(right, quote)}"
        case IsNull(argument, negated):
            return f"{sql(argument, quote)} IS {'NOT ' if negated else ''}NULL"
        case AnyOf(terms):
            return "(" + " OR ".join(sql(each, quote) for each in terms) + ")"


def streams_of(expression: Expression) -> frozenset[str]:
    """Return the aliases that an expression reads."""
    match expression:
        case Field(stream, _):
            return frozenset({stream})
        case Literal():
            return frozenset()
        case Compare(left, _, right):
            return streams_of(left) | streams_of(right)
        case IsNull(argument):
            return streams_of(argument)
        case Call(_, parts) | AnyOf(parts):
            return frozenset().union(*(streams_of(each) for each in parts))


def evaluate(expression: Expression, row: Row) -> Any:
    """Return the value that Spark gives the expression, None for NULL."""
    match expression:
        case Field(stream, name):
            return row[stream][name]
        case Literal(value):
            return value
        case Call(function, arguments):
            values = [evaluate(each, row) for each in arguments]
            return None if None in values else _call(function, values)
        case Compare(left, operator, right):
            return _compare(evaluate(left, row), operator, evaluate(right, row))
        case IsNull(argument, negated):
            return (evaluate(argument, row) is None) != negated
        case AnyOf(terms):
            truths = [evaluate(each, row) for each in terms]
            return True if True in truths else (None if None in truths else False)


def _call(function: str, values: list[Any]) -> Any:
    first, *others = _unified(values)
    match function:
        case "upper":
            return first.upper()
        case "abs":
            return first.copy_abs() if isinstance(first, decimal.Decimal) else abs(first)
        case "+":
            return _EXACT.add(first, *others) if isinstance(first, decimal.Decimal) else first + others[0]
        case "-" if not others:
            return first.copy_negate() if isinstance(first, decimal.Decimal) else -first
        case "-":
            return (
                _EXACT.subtract(first, *others) if isinstance(first, decimal.Decimal) else first - others[0]
            )
        case "*":
            return (
                _EXACT.multiply(first, *others) if isinstance(first, decimal.Decimal) else first * others[0]
            )
    raise ValueError(f"no Python meaning for {function}")


def _unified(values: Sequence[Any]) -> list[Any]:
    """Return numbers of one type, as Spark makes them: DOUBLE where one is, else DECIMAL where one is."""
    for kind in (float, decimal.Decimal):
        if any(isinstance(each, kind) for each in values):
            return [kind(each) for each in values]
    return list(values)


def _compare(left: Any, operator: str, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    order = _order(*_unified([left, right]))
    match operator:
        case "=":
            return order == 0
        case "<>":
            return order != 0
        case "<":
            return order < 0
        case "<=":
            return order <= 0
        case ">":
            return order > 0
        case ">=":
            return order >= 0
    raise ValueError(f"no Python meaning for {operator}")


def _order(left: Any, right: Any) -> int:
    left_nan = isinstance(left, float) and math.isnan(left)
    right_nan = isinstance(right, float) and math.isnan(right)
    if left_nan or right_nan:
        return int(left_nan) - int(right_nan)
    return int(left > right) - int(left < right)
