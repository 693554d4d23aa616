"""Conditions that the join can test before Spark does, read from SQL, with the types of all in them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import TypeVar

from sqlglot import exp

from wjoin.planner.conditions.conversions import cast, unified
from wjoin.planner.conditions.expressions import (
    INTERVAL,
    NUMERIC_ORDER,
    Call,
    Constant,
    Expression,
    Input,
    arithmetic_type,
    common_type,
    decimal_type,
    is_decimal,
    is_numeric,
)
from wjoin.planner.conditions.meaning import Meaning
from wjoin.planner.conditions.patterns import like
from wjoin.planner.conditions.time_arithmetic import UNIX, instant, interval, midnight, moved
from wjoin.planner.text.literals import number
from wjoin.planner.text.scope import StreamColumn

_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
"""The operators that compare two values, by their kind."""

_COMPARABLE = ("boolean", "date", "timestamp", "timestamp_ntz", "string")
_ORDERED = ("date", "timestamp", "timestamp_ntz", "string", INTERVAL)
_EPOCH = date(1970, 1, 1)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
MAXIMUM_DEPTH = 50
"""Expressions inside each other; Python's own limit, where plans are sent to workers, is higher."""

_BOOLEAN = "boolean"
Found = TypeVar("Found")


@dataclass(frozen=True)
class ReadCondition:
    """A condition that the join can test: input n of the expression is column n."""

    expression: Expression
    columns: tuple[StreamColumn, ...]

    @property
    def streams(self) -> set[int]:
        """The streams whose rows it is about."""
        return {each.stream for each in self.columns}


@dataclass(frozen=True)
class Unread:
    """What of a condition only Spark can evaluate, in words."""

    what: str


class _Stopped(Exception):  # noqa: N818 (it is no error)
    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def read_condition_tree(tree: exp.Expr, meaning: Meaning) -> ReadCondition | Unread:
    """Return a condition as the join can test it, or what in it stands in the way."""
    reader = _Reader(meaning)
    try:
        expression = reader.truth(tree)
    except _Stopped as stopped:
        return Unread(stopped.what)
    return ReadCondition(expression, tuple(reader.columns))


class _Reader:
    def __init__(self, meaning: Meaning) -> None:
        self.columns: list[StreamColumn] = []
        self._depth = 0
        self._meaning = meaning

    def truth(self, node: exp.Expr) -> Expression:
        """Return an expression that is true, false or NULL."""
        found = self.value(node)
        if found.type != _BOOLEAN:
            raise _Stopped(f"a {found.type} used as a condition")
        return found

    def value(self, node: exp.Expr) -> Expression:
        """Return any expression."""
        self._depth += 1
        if self._depth > MAXIMUM_DEPTH:
            raise _Stopped("a very deep expression")
        found = self._value(node)
        self._depth -= 1
        return found

    def _value(self, node: exp.Expr) -> Expression:
        match node:
            case exp.Paren():
                return self.value(node.this)
            case exp.Column():
                return self._input(node)
            case exp.Literal() | exp.Boolean() | exp.Placeholder():
                return self._constant(node)
            case exp.Cast():
                return self._cast(node)
            case exp.Interval():
                return _known(interval(node), "an INTERVAL of another unit, or of several")
            case exp.Neg():
                return self._negative(node)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
                return self._arithmetic(_ARITHMETIC[type(node)], node)
            case exp.And() | exp.Or():
                name = "and" if isinstance(node, exp.And) else "or"
                return Call(name, tuple(map(self.truth, node.flatten())), _BOOLEAN)
            case exp.Not():
                return Call("not", (self.truth(node.this),), _BOOLEAN)
            case exp.Between() if not node.args.get("symmetric"):
                inside = self.value(node.this)
                ends = self.value(node.args["low"]), self.value(node.args["high"])
                for end in ends:
                    _compared("<=", inside, end)
                return Call("between", (inside, *ends), _BOOLEAN)
            case exp.In() if node.expressions:
                return self._one_of(node)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return _is_null(self.value(node.this))
            case exp.Like():
                return self._like(node)
            case exp.Case():
                return self._case(node)
            case exp.DateDiff() | exp.TsOrDsAdd():
                return self._days(node)
            case exp.Anonymous():
                return self._call(node)
        if type(node) in COMPARISONS:
            return _compared(COMPARISONS[type(node)], self.value(node.this), self.value(node.expression))
        raise _Stopped(_words(node))

    def _input(self, node: exp.Column) -> Input:
        shown = f"{node.sql(dialect='spark')}, which is not a whole column of a stream"
        found = _known(self._meaning.column(node), shown)
        kind = found.column.type.lower()
        if not (is_numeric(kind) or kind in _COMPARABLE):
            raise _Stopped(f"a column of type {kind}")
        if found.column.declared is not None:
            raise _Stopped(f"a column of type {found.column.declared}")
        place = next((n for n, each in enumerate(self.columns) if each.same(found)), len(self.columns))
        if place == len(self.columns):
            self.columns.append(found)
        return Input(place, kind)

    def _constant(self, node: exp.Expr) -> Expression:
        match node:
            case exp.Boolean():
                return Constant(bool(node.this), _BOOLEAN)
            case exp.Literal():
                return Constant(node.name, "string") if node.is_string else _number(node.name)
            case exp.Placeholder():
                return _parameter(self._meaning.parameters.get(node.name))
        raise _Stopped(_words(node))

    def _negative(self, node: exp.Neg) -> Expression:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            # The sign is a part of the number.
            return _number(f"-{node.this.name}")
        inside = self.value(node.this)
        if not is_numeric(inside.type):
            raise _Stopped(f"the negative of {inside.type}")
        return Call("negative", (inside,), inside.type)

    def _arithmetic(self, operator: str, node: exp.Expr) -> Expression:
        left, right = self.value(node.this), self.value(node.expression)
        if operator in ("+", "-") and not (is_numeric(left.type) and is_numeric(right.type)):
            found = moved(operator, left, right, days=_in_days(node.this) or _in_days(node.expression))
            if found is not None:
                return found
        kind = arithmetic_type(operator, left.type, right.type)
        if kind is None or (operator == "%" and kind in ("float", "double")):
            raise _Stopped(f"{left.type} {operator} {right.type}")
        return Call(operator, (left, right), kind)

    def _cast(self, node: exp.Cast) -> Expression:
        kind = node.to.sql(dialect="spark").lower()
        if isinstance(node.this, exp.Literal):
            # 5L is read as a cast, too.
            return _cast(node.this, kind, typed=not isinstance(node, exp.TryCast))
        inside = self.value(node.this)
        found = cast(inside, kind)
        if found is None:
            raise _Stopped(f"CAST of {inside.type} to {kind}")
        return found

    def _like(self, node: exp.Like) -> Expression:
        inside, pattern = self.value(node.this), self.value(node.expression)
        found = like(inside, pattern)
        if found is None:
            raise _Stopped("LIKE other than a column and a constant pattern of % only")
        return Call("not", (found,), _BOOLEAN) if node.args.get("negate") else found

    def _case(self, node: exp.Case) -> Expression:
        conditions = []
        for each in node.args["ifs"]:
            if node.this is None:
                conditions.append(self.truth(each.this))
            else:
                conditions.append(_compared("=", self.value(node.this), self.value(each.this)))
        values = [each.args["true"] for each in node.args["ifs"]]
        return self._choice(conditions, [*values, node.args.get("default") or exp.Null()])

    def _choice(self, conditions: Sequence[Expression], nodes: Sequence[exp.Expr]) -> Expression:
        """Return CASE over conditions and values; the last value is what else it is."""
        known = [None if isinstance(each, exp.Null) else self.value(each) for each in nodes]
        return _choice(conditions, known)

    def _days(self, node: exp.DateDiff | exp.TsOrDsAdd) -> Expression:
        """Return a number of days between dates, or a date so many days later."""
        if isinstance(node, exp.DateDiff):
            sides = [each.this for each in (node.this, node.expression) if isinstance(each, exp.TsOrDsToDate)]
            dates = [self.value(each) for each in sides]
            if node.args.get("unit") is None and [each.type for each in dates] == ["date", "date"]:
                return Call("-", tuple(dates), "int")
            raise _Stopped("DATEDIFF of other types than two dates")
        date, number = self.value(node.this), self.value(node.expression)
        return _later("+", date, number)

    def _one_of(self, node: exp.In) -> Expression:
        inside, *choices = values = [self.value(each) for each in (node.this, *node.expressions)]
        # Spark casts all of them to one type.
        kind: str | None = inside.type
        for each in choices:
            kind = None if kind is None else common_type(kind, each.type)
        for each in choices:
            _compared("=", inside, each)
            if kind is None or (kind in ("float", "double") and common_type(inside.type, each.type) != kind):
                raise _Stopped("IN with several types")
        return Call("in", tuple(values), _BOOLEAN)

    def _call(self, node: exp.Anonymous) -> Expression:
        name = self._meaning.function(node)
        if name == "if" and len(node.expressions) == 3:
            condition, *values = node.expressions
            return self._choice([self.truth(condition)], values)
        arguments = tuple(map(self.value, node.expressions))
        kinds = [each.type for each in arguments]
        match name, arguments:
            case "abs", (_,) if is_numeric(kinds[0]):
                return Call(name, arguments, kinds[0])
            case "sqrt", (_,) if is_numeric(kinds[0]):
                return Call(name, arguments, "double")
            case (("greatest" | "least" | "coalesce" | "ifnull" | "nvl"), (_, _, *_)):
                if found := _chosen(name, arguments):
                    return found
            case "nullif", (left, right):
                return _choice([_compared("=", left, right)], [None, left])
            case "date_sub", (date, number):
                return _later("-", date, number)
            case (("unix_micros" | "unix_millis" | "unix_seconds"), (_,)) if kinds == ["timestamp"]:
                return Call("floor", (arguments[0], Constant(UNIX[name], "bigint")), "bigint")
            case (("startswith" | "endswith" | "contains"), (Input(), Constant())) if set(kinds) == {
                "string"
            }:
                return Call(name, arguments, _BOOLEAN)
            case "isnull", (_,):
                return _is_null(arguments[0])
            case "isnotnull", (_,):
                return Call("not", (_is_null(arguments[0]),), _BOOLEAN)
        shown = ", ".join(kinds)
        raise _Stopped(f"{name}({shown})")


def _known(found: Found | None, what: str) -> Found:
    """Return what was read; ``what`` tells what could not be."""
    if found is None:
        raise _Stopped(what)
    return found


def _in_days(node: exp.Expr) -> bool:
    return isinstance(node, exp.Interval) and node.args["unit"].name.upper() in ("DAY", "DAYS")


def _later(operator: str, date: Expression, number: Expression) -> Expression:
    if date.type != "date" or number.type not in ("tinyint", "smallint", "int"):
        raise _Stopped(f"{date.type} {operator} {number.type} days")
    return Call(operator, (date, number), "date")


def _choice(conditions: Sequence[Expression], values: Sequence[Expression | None]) -> Expression:
    """Return CASE; a value of None is NULL."""
    known = unified([each for each in values if each is not None])
    if not known:
        raise _Stopped("CASE with several types")
    found = iter(known)
    kind = known[0].type
    chosen = [Constant(None, kind) if each is None else next(found) for each in values]
    pairs = [each for pair in zip(conditions, chosen, strict=False) for each in pair]
    return Call("case", (*pairs, chosen[-1]), kind)


def _chosen(name: str, arguments: Sequence[Expression]) -> Expression | None:
    """Return GREATEST, LEAST or the first that is not NULL; None for types of which it is not known."""
    known = unified(arguments)
    if not known or not (is_numeric(known[0].type) or known[0].type in _ORDERED):
        return None
    name = name if name in ("greatest", "least") else "coalesce"
    return Call(name, tuple(known), known[0].type)


def _compared(operator: str, left: Expression, right: Expression) -> Expression:
    if {left.type, right.type} == {"date", "timestamp_ntz"}:
        left, right = (midnight(each) if each.type == "date" else each for each in (left, right))
    kind = common_type(left.type, right.type)
    if kind is None or not (is_numeric(kind) or kind in _COMPARABLE or kind == INTERVAL):
        raise _Stopped(f"{left.type} {operator} {right.type}")
    if kind == _BOOLEAN and any(isinstance(each, Call) for each in (left, right)):
        raise _Stopped(f"{operator} of conditions")
    if isinstance(left, Constant) and isinstance(right, Constant):
        raise _Stopped("a comparison of constants")
    for one, other in ((left, right), (right, left)):
        beyond = isinstance(one, Constant) and is_decimal(one.type) and abs(int(one.value or 0)) >= 2**63
        if beyond and other.type in NUMERIC_ORDER:
            # Spark takes it for true, or for false, also where the other side is NULL.
            raise _Stopped("a number outside BIGINT")
    return Call(operator, (left, right), _BOOLEAN)


def _is_null(inside: Expression) -> Call | Constant:
    if isinstance(inside, Call) and inside.type == _BOOLEAN:
        raise _Stopped("IS NULL of a condition")
    if isinstance(inside, Constant):
        return Constant(False, _BOOLEAN)
    return Call("is null", (inside,), _BOOLEAN)


def _number(text: str) -> Constant:
    """Return the number that Spark reads in a literal without a suffix."""
    if "e" in text.lower():
        # DOUBLE or DECIMAL, as a setting says.
        raise _Stopped("a number with an exponent")
    value = _known(number(text), "a number outside DOUBLE")
    if "." not in text and -(2**63) <= value < 2**63:
        return Constant(int(value), "int" if -(2**31) <= value < 2**31 else "bigint")
    return _decimal(value)


def _decimal(value: Decimal) -> Constant:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise _Stopped("an invalid number")
    kind = decimal_type(max(0, len(digits) + exponent), max(0, -exponent))
    return Constant(value, _known(kind, "a number with too many digits"))


def _cast(literal: exp.Literal, kind: str, *, typed: bool) -> Constant:
    """Return the value of a literal; ``typed`` where its type stands before it, as in DATE '2024-01-01'."""
    value = None if literal.is_string else number(literal.name)
    if kind == "double" and value is not None:
        return Constant(float(value), kind)
    bits = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}.get(kind)
    if bits is not None and value is not None and literal.name.isdigit() and value < 2**bits:
        return Constant(int(value), kind)
    if kind == "date" and literal.is_string and _DAY.fullmatch(literal.name):
        try:
            return Constant((date.fromisoformat(literal.name) - _EPOCH).days, kind)
        except ValueError:
            raise _Stopped("an invalid DATE") from None
    if typed and literal.is_string and (time := instant(literal.name, kind)) is not None:
        return time
    raise _Stopped(f"CAST to {kind}")


def _parameter(value: object) -> Constant:
    match value:
        case bool():
            return Constant(value, _BOOLEAN)
        case int() if -(2**63) < value < 2**63:
            return Constant(value, "int" if -(2**31) <= value < 2**31 else "bigint")
        case float() if isfinite(value):
            return Constant(value, "double")
        case Decimal() if value.is_finite():
            return _decimal(value)
        case str():
            return Constant(value, "string")
        case date() if not isinstance(value, datetime):
            return Constant((value - _EPOCH).days, "date")
    raise _Stopped("a parameter of another type")


def _words(node: exp.Expr) -> str:
    return node.key.upper()
