"""Conditions that hold two streams' columns near each other: what an ordered index can search for.

``abs(A.x - B.x) <= 5``, ``A.x BETWEEN B.x - 1 AND B.x + 2`` and ``A.x < B.x`` all bound the
difference ``A.x - B.x`` (S2J, "Optimizations": an ordered index for inequality joins). The bounds
are implied by the condition, which is checked as well: they may only ever be too wide.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain
from math import ceil, floor

from sqlglot import exp

from wjoin.planner.catalog import INTEGRAL, WHOLE
from wjoin.planner.conditions.expressions import MAXIMUM_DIGITS, digits_of, is_decimal
from wjoin.planner.conditions.meaning import Meaning
from wjoin.planner.text.literals import in_reach, number
from wjoin.planner.text.scope import StreamColumn

Number = int | float

_DOUBLE_SLACK, _FLOAT_SLACK = 2.0**-48, 2.0**-19
"""Far more than sums of a few DOUBLE or FLOAT values can be rounded by, as a share of their size."""

_MOST = {"float": 1e30, "double": 1e290}
"""Constants beyond which a sum with the greatest number of a type may be infinite."""


@dataclass(frozen=True)
class ColumnBand:
    """``low <= left - right <= high``, None where a side is open; ``left`` is the earlier stream's column.

    ``slack`` is 0 for whole numbers (days, microseconds). Else it is a share of a value by which both
    bounds are wider for it: sums of fractions are rounded.
    """

    left: StreamColumn
    right: StreamColumn
    low: Number | None
    high: Number | None
    slack: float

    @property
    def streams(self) -> frozenset[int]:
        """The streams whose columns they are."""
        return frozenset((self.left.stream, self.right.stream))


@dataclass(frozen=True)
class _Sum:
    """Columns that are added and subtracted, a constant, and the sizes of all constants in it.

    ``terms``: how many values are added, each of which makes a DECIMAL a digit longer.
    """

    plus: tuple[StreamColumn, ...] = ()
    minus: tuple[StreamColumn, ...] = ()
    constant: Decimal = Decimal(0)
    size: Decimal = Decimal(0)
    rounded: bool = False
    terms: int = 1

    def __neg__(self) -> "_Sum":
        return replace(self, plus=self.minus, minus=self.plus, constant=-self.constant)

    def __add__(self, other: "_Sum") -> "_Sum":
        return _Sum(
            self.plus + other.plus,
            self.minus + other.minus,
            self.constant + other.constant,
            self.size + other.size,
            self.rounded or other.rounded,
            self.terms + other.terms,
        )

    @property
    def columns(self) -> int:
        return len(self.plus) + len(self.minus)


@dataclass(frozen=True)
class _Bounds:
    """What a comparison says of the difference of two columns: ``difference`` <= or < ``limit``.

    Whether that is so with NaN, which is above all numbers: ``ordered`` where each column stands by
    itself, so that the order of the columns tells; ``refuses_nan`` where it is never true then.
    """

    difference: _Sum
    limit: Decimal
    strict: bool
    ordered: bool
    refuses_nan: bool


def at_most(tree: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr, bool]]:
    """Yield what a comparison says to be at most something else, and whether it is less."""
    match tree:
        case exp.Paren():
            yield from at_most(tree.this)
        case exp.Between() if not tree.args.get("symmetric"):
            yield tree.args["low"], tree.this, False
            yield tree.this, tree.args["high"], False
        case exp.LT() | exp.LTE():
            yield tree.this, tree.expression, isinstance(tree, exp.LT)
        case exp.GT() | exp.GTE():
            yield tree.expression, tree.this, isinstance(tree, exp.GT)


def column_band(tree: exp.Expr, meaning: Meaning) -> ColumnBand | None:
    """Return the band that a condition on two streams puts on their columns, None where it puts none."""
    bounds = _Reader(meaning).bounds(tree)
    if not bounds:
        return None
    columns = bounds[0].difference.plus + bounds[0].difference.minus
    fractions = any(each.column.type.lower() in ("float", "double") for each in columns)
    tells = all(each.ordered or each.refuses_nan for each in bounds)
    if fractions and not tells and not any(each.refuses_nan for each in bounds):
        return None
    first, *others = [_band(each) for each in bounds]
    if any(not (each.left.same(first.left) and each.right.same(first.right)) for each in others):
        return None
    return merged_band(first, others[0]) if others else first


def merged_band(first: ColumnBand, second: ColumnBand) -> ColumnBand:
    """Return the band that two on the same columns make together."""
    lows = [each.low for each in (first, second) if each.low is not None]
    highs = [each.high for each in (first, second) if each.high is not None]
    return ColumnBand(
        first.left,
        first.right,
        max(lows, default=None),
        min(highs, default=None),
        max(first.slack, second.slack),
    )


class _Reader:
    """Reads comparisons of sums."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning

    def bounds(self, tree: exp.Expr) -> list[_Bounds]:
        """Return the one or two bounds that a condition is, none where it is something else."""
        found = [self._at_most(left, right, strict=strict) for left, right, strict in at_most(tree)]
        return [*chain(*found)] if all(found) else []

    def _at_most(self, left: exp.Expr, right: exp.Expr, *, strict: bool) -> list[_Bounds]:
        inside = self._absolute(left)
        if inside is not None:
            limit = self._sum(right)
            if limit is None or limit.columns:
                return []
            both = (inside + -limit, -inside + -limit)
            return [
                _Bounds(each, -each.constant, strict, False, True) for each in both if _is_difference(each)
            ]
        first, second = self._sum(left), self._sum(right)
        if first is None or second is None:
            return []
        difference = first + -second
        if not _is_difference(difference):
            return []
        apart = len(first.plus) == len(second.plus) == 1
        return [_Bounds(difference, -difference.constant, strict, apart, second.columns == 0)]

    def _absolute(self, node: exp.Expr) -> _Sum | None:
        node = node.unnest()
        if not isinstance(node, exp.Anonymous) or len(node.expressions) != 1:
            return None
        return self._sum(node.expressions[0]) if self._meaning.function(node) == "abs" else None

    def _sum(self, node: exp.Expr) -> _Sum | None:
        match node:
            case exp.Paren():
                return self._sum(node.this)
            case exp.Neg():
                inside = self._sum(node.this)
                return None if inside is None else -inside
            case exp.Add() | exp.Sub():
                return self._added(node)
            case exp.Column():
                found = self._meaning.column(node)
                return None if found is None else _Sum(plus=(found,))
            case exp.Literal() if not node.is_string:
                value = number(node.name)
                return None if value is None else _constant(value, rounded="e" in node.name.lower())
            case exp.Placeholder():
                return _parameter(self._meaning.parameters.get(node.name))
        return None

    def _added(self, node: exp.Expr) -> _Sum | None:
        """Return a sum of terms, of which there may be thousands."""
        terms = []
        while isinstance(node, exp.Add | exp.Sub):
            terms.append((isinstance(node, exp.Add), node.expression))
            node = node.this
        total = self._sum(node)
        for added, term in reversed(terms):
            each = None if total is None else self._sum(term)
            if total is None or each is None:
                return None
            total = total + (each if added else -each)
        return total


def _parameter(value: object) -> _Sum | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not in_reach(value):
        return None
    return _constant(Decimal(value), rounded=isinstance(value, float))


def _constant(value: Decimal, *, rounded: bool) -> _Sum:
    return _Sum(constant=value, size=abs(value), rounded=rounded)


def _is_difference(each: _Sum) -> bool:
    """Return whether a sum is the difference of columns of two streams, of types that can be searched."""
    if len(each.plus) != 1 or len(each.minus) != 1 or each.plus[0].stream == each.minus[0].stream:
        return False
    types = [column.column.type.lower() for column in (each.plus[0], each.minus[0])]
    if any(kind in WHOLE and kind not in INTEGRAL for kind in types):
        # Sums of dates and times have rules of their own.
        return types[0] == types[1] and not each.size
    decimals = list(filter(is_decimal, types))
    if not all(kind in decimals or kind in INTEGRAL or kind in ("float", "double") for kind in types):
        return False
    if any(each.size > _MOST[kind] for kind in types if kind in _MOST):
        return False
    digits = [digits_of(kind) for kind in types if kind in decimals or kind in INTEGRAL]
    constant = each.size.as_tuple()
    exponent = constant.exponent if isinstance(constant.exponent, int) else 0
    digits.append((max(0, len(constant.digits) + exponent), max(0, -exponent)))
    # A DECIMAL that is too long is rounded, by more than any slack.
    longest = max(whole for whole, _ in digits) + max(part for _, part in digits)
    return longest + each.terms <= MAXIMUM_DIGITS or not decimals


def _band(bounds: _Bounds) -> ColumnBand:
    each = bounds.difference
    (upper,), (lower,) = each.plus, each.minus
    types = {column.column.type.lower() for column in (upper, lower)}
    if types <= WHOLE and not each.rounded:
        slack: float = 0.0
        limit: Number = ceil(bounds.limit) - 1 if bounds.strict else floor(bounds.limit)
    else:
        slack = _FLOAT_SLACK if "float" in types else _DOUBLE_SLACK
        limit = float(bounds.limit) + slack * float(each.size)
    if upper.stream < lower.stream:
        return ColumnBand(upper, lower, None, limit, slack)
    return ColumnBand(lower, upper, -limit, None, slack)
