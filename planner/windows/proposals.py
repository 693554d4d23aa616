"""The windows that the conditions of a join without a window clause say, as a clause to write."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from sqlglot import exp

from wjoin.grammar.durations import spell
from wjoin.grammar.printer import print_name
from wjoin.planner.conditions.column_bands import at_most
from wjoin.planner.conditions.expressions import Constant
from wjoin.planner.conditions.time_arithmetic import UNITS, UNIX, interval

_EXAMPLE = 10_000_000
_EXAMPLE_UNITS = 10


@dataclass(frozen=True)
class _Sum:
    """Event times of streams that are added and subtracted, and a length.

    ``scale``: all of it counts so many microseconds each, None where it does not. ``bare``: the length is
    a number.
    """

    plus: tuple[str, ...] = ()
    minus: tuple[str, ...] = ()
    length: int = 0
    bare: bool = False
    scale: int | None = None

    def less(self, other: "_Sum") -> "_Sum | None":
        """Return the difference of two sums, None where they count in other units."""
        if self.scale != other.scale and self.plus and other.plus:
            return None
        return _Sum(
            self.plus + other.minus,
            self.minus + other.plus,
            self.length - other.length,
            self.bare or other.bare,
            self.scale or other.scale,
        )


@dataclass
class _Bounds:
    """``greatest[a, b]`` is the greatest of the time of a less that of b."""

    greatest: dict[tuple[str, str], int] = field(default_factory=dict)
    bare: bool = False

    def add(self, difference: _Sum | None) -> None:
        """Take that a difference is at most 0."""
        if difference is None or (len(difference.plus), len(difference.minus)) != (1, 1):
            return
        pair = (difference.plus[0], difference.minus[0])
        bound = -difference.length * (difference.scale or 1)
        self.bare = self.bare or (difference.bare and difference.scale is None)
        self.greatest[pair] = min(bound, self.greatest.get(pair, bound))


def proposed_window(select: exp.Select, times: Mapping[str, set[str]]) -> str | None:
    """Return a window clause for a SELECT, None where its conditions say nothing of event times.

    ``times`` has, for the streams of FROM in order, their event times in lower case. A window that is open
    on one side is closed by an example.
    """
    reader, bounds = _Reader(times), _Bounds()
    for condition in _conditions(select):
        for difference in reader.at_most_zero(condition):
            bounds.add(difference)
    terms = [term for pair in combinations(times, 2) if (term := _term(*pair, bounds))]
    return " AND ".join(terms) or None


def _term(first: str, second: str, bounds: _Bounds) -> str | None:
    high, low = bounds.greatest.get((second, first)), bounds.greatest.get((first, second))
    if high is None and low is None:
        return None
    example = _EXAMPLE_UNITS if bounds.bare else _EXAMPLE
    least = -low if low is not None else min(high or 0, 0) - example
    most = high if high is not None else max(least, 0) + example
    shown = str if bounds.bare else spell
    pair = f"({print_name(first)}, {print_name(second)})"
    if least > most:
        return None
    if least == -most:
        return f"WINDOW {pair} = {shown(most)}"
    return f"WINDOW {pair} BETWEEN {shown(least)} AND {shown(most)}"


def _conditions(select: exp.Select) -> Iterator[exp.Expr]:
    found = [select.args.get("where"), *(join.args.get("on") for join in select.args.get("joins") or ())]
    for each in found:
        tree = each.this if isinstance(each, exp.Where) else each
        if tree is not None:
            yield from tree.flatten() if isinstance(tree, exp.And) else (tree,)


@dataclass(frozen=True)
class _Reader:
    """Reads comparisons of event times with lengths between them."""

    times: Mapping[str, set[str]]

    def at_most_zero(self, tree: exp.Expr) -> Iterator[_Sum | None]:
        """Yield the differences that a condition says to be at most 0."""
        tree = tree.unnest()
        if isinstance(tree, exp.EQ):
            yield from self._at_most(tree.this, tree.expression)
            yield from self._at_most(tree.expression, tree.this)
        for left, right, _ in at_most(tree):
            yield from self._at_most(left, right)

    def _at_most(self, left: exp.Expr, right: exp.Expr) -> Iterator[_Sum | None]:
        most = self._sum(right)
        if most is None:
            return
        if isinstance(left, exp.Abs):
            inside = self._sum(left.this)
            if inside is not None and not most.plus:
                yield inside.less(most)
                yield _Sum(inside.minus, inside.plus, -inside.length, inside.bare, inside.scale).less(most)
            return
        least = self._sum(left)
        if least is not None:
            yield least.less(most)

    def _sum(self, tree: exp.Expr) -> _Sum | None:
        match tree:
            case exp.Paren():
                return self._sum(tree.this)
            case exp.Column():
                stream = self._stream(tree)
                return None if stream is None else _Sum((stream,))
            case exp.Interval():
                length = interval(tree)
                return _Sum(length=int(length.value or 0)) if isinstance(length, Constant) else None
            case exp.Literal() if not tree.is_string and tree.name.isdecimal():
                return _Sum(length=int(tree.name), bare=True)
            case exp.Neg() | exp.Sub() | exp.Add():
                return self._combined(tree)
            case exp.TimestampDiff() | exp.DateDiff():
                return self._difference(tree)
            case exp.Func():
                return self._scaled(tree)
        return None

    def _combined(self, tree: exp.Expr) -> _Sum | None:
        first = _Sum() if isinstance(tree, exp.Neg) else self._sum(tree.this)
        second = self._sum(tree.this if isinstance(tree, exp.Neg) else tree.expression)
        if first is None or second is None:
            return None
        return first.less(_Sum().less(second) or second) if isinstance(tree, exp.Add) else first.less(second)

    def _difference(self, tree: exp.Expr) -> _Sum | None:
        """Return ``timestampdiff(unit, from, to)``."""
        unit = tree.args.get("unit")
        scale = None if unit is None else UNITS.get(unit.name.upper())
        to, since = self._sum(tree.this), self._sum(tree.expression)
        if scale is None or to is None or since is None or to.length or since.length:
            return None
        return _Sum(to.plus, since.plus, bare=True, scale=scale)

    def _scaled(self, tree: exp.Func) -> _Sum | None:
        name = tree.name if isinstance(tree, exp.Anonymous) else tree.sql_name()
        scale = UNIX.get(name.lower())
        inside = self._sum(tree.expressions[0] if isinstance(tree, exp.Anonymous) else tree.this)
        if scale is None or inside is None or inside.length:
            return None
        return _Sum(inside.plus, inside.minus, bare=True, scale=scale)

    def _stream(self, column: exp.Column) -> str | None:
        name, table = column.name.lower(), column.table.lower()
        owners = [
            stream for stream, times in self.times.items() if name in times and table in ("", stream.lower())
        ]
        return owners[0] if len(owners) == 1 else None
