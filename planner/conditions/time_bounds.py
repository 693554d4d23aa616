"""Conditions between event times as bounds on their differences, exact to the microsecond.

``C.ts BETWEEN I.ts AND I.ts + INTERVAL 10 MINUTES`` is ``WINDOW (I, C) BETWEEN 0 SECONDS AND 10 MINUTES``.
What truncates (``timestampdiff``, ``unix_seconds``) implies the tightest bounds that hold for every rest.
Spark takes the difference of two TIMESTAMPs, and adds days to one, by the clocks of the session's time
zone: where these are put forward and back, the bounds are wider by as much.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil, floor
from zoneinfo import ZoneInfo

from sqlglot import exp

from wjoin.grammar.durations import from_clock, microseconds, number_of, unit_of
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.planner.conditions.column_bands import at_most
from wjoin.planner.conditions.meaning import Meaning
from wjoin.planner.conditions.time_arithmetic import DAY, UNITS, UNIX
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.text.literals import in_reach, number
from wjoin.planner.text.scope import StreamColumn

MAXIMUM_ALTERNATIVES = 16
"""Of more alternatives of one condition only what all of them imply is taken."""

MAXIMUM_DEPTH = 50
"""Expressions inside each other that are read."""

ANY_ZONE = 30 * 3_600_000_000
"""More than any two offsets of time zones are apart, in microseconds."""

_MONTH = 6
"""Samples of a time zone, a week apart, of a month and more."""

_NEAR = 14 * DAY
"""Times that are as near are, shifted as much, and by any offset, within a month of each other."""

_FIXED = re.compile(r"(ETC/)?(UTC|GMT|Z|UT)?([+-].*)?")
"""Time zones in which no clock is put forward."""

_UNITS = {**UNITS, "WEEK": 7 * DAY}
_TRUNCATED = {**_UNITS, "MONTH": 31 * DAY, "MON": 31 * DAY, "QUARTER": 92 * DAY, "YEAR": 366 * DAY}
"""The greatest length of a unit to which times are truncated; of other names Spark makes NULL."""

_NOWHERE = Span(0, 0)
_WHOLE_TYPES = ("tinyint", "smallint", "int", "bigint")
_SECONDS = ("unix_timestamp", "to_unix_timestamp")


@dataclass(frozen=True)
class TimeBound:
    """``t_target - t_source <= bound``, in the unit of the event times."""

    source: int
    target: int
    bound: int


@dataclass(frozen=True)
class TimeBounds:
    """What a condition says of event times: that all bounds of one of its alternatives hold.

    ``exact``: it says nothing else.
    """

    alternatives: tuple[tuple[TimeBound, ...], ...]
    exact: bool

    @property
    def hull(self) -> tuple[TimeBound, ...]:
        """The bounds that follow from each of the alternatives."""
        first, *others = [_tightest(each) for each in self.alternatives]
        pairs = [pair for pair in first if all(pair in each for each in others)]
        return tuple(TimeBound(*pair, max(each[pair] for each in (first, *others))) for pair in pairs)


@dataclass(frozen=True)
class EventClock:
    """The event time of each stream, None for one without, and what its arithmetic depends on.

    ``zone`` is the session's time zone; ``wraps``: too large a sum of whole numbers is another number.
    """

    times: Sequence[StreamColumn | None]
    kind: TimeKind
    zone: str
    wraps: bool

    @property
    def slack(self) -> int:
        """How much the difference of near times differs from that of their clocks, at the most."""
        return 0 if self.kind is TimeKind.INTEGRAL else zone_slack(self.zone)


@cache
def zone_slack(zone: str) -> int:
    """Return how much a time zone's offset has changed within a month, at the most, in microseconds.

    >>> zone_slack("UTC"), zone_slack("+02:00"), zone_slack("Europe/Berlin")
    (0, 0, 3600000000)
    """
    if _FIXED.fullmatch(zone.upper()):
        return 0
    try:
        found = ZoneInfo(zone)
    except (KeyError, OSError, ValueError):
        return ANY_ZONE
    # No offset was in force for less than a week.
    moments = (datetime(1850, 1, 1, tzinfo=UTC) + timedelta(days=7 * week) for week in range(52 * 300))
    offsets = [each.astimezone(found).utcoffset() or timedelta() for each in moments]
    months = (offsets[first : first + _MONTH] for first in range(len(offsets)))
    return max(max(each) - min(each) for each in months) // timedelta(microseconds=1)


def time_bounds(tree: exp.Expr, meaning: Meaning, clock: EventClock) -> TimeBounds | None:
    """Return what a condition says of the event times of two or more streams, None where it says nothing."""
    found = _Reader(meaning, clock).said(tree, negated=False)
    if found is None or not all(found.alternatives):
        return None
    if len(found.alternatives) > MAXIMUM_ALTERNATIVES:
        found = TimeBounds((found.hull,), exact=False)
    return found if all(found.alternatives) else None


def _tightest(bounds: Sequence[TimeBound]) -> Mapping[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for each in bounds:
        pair = (each.source, each.target)
        found[pair] = min(each.bound, found.get(pair, each.bound))
    return found


@dataclass(frozen=True)
class _Form:
    """A value ``n + constant`` with ``unit * n = sum of plus - sum of minus + e`` and e from low to high.

    ``kind``: a time, a number or an interval. ``unit`` is in that of event times, None for a constant.
    ``whole``: n is a whole number. ``cut``: n is what remains of that quotient without its fraction.
    ``clocks``: how often the slack of the time zone is in e.
    """

    kind: str
    plus: tuple[int, ...] = ()
    minus: tuple[int, ...] = ()
    unit: Fraction | None = None
    low: int = 0
    high: int = 0
    constant: Fraction = Fraction(0)
    whole: bool = True
    cut: bool = False
    clocks: int = 0

    def __neg__(self) -> "_Form":
        return replace(
            self,
            plus=self.minus,
            minus=self.plus,
            low=-self.high,
            high=-self.low,
            constant=-self.constant,
        )

    def wider(self, low: int, high: int) -> "_Form":
        """Return the same value, of which less is known."""
        return replace(self, low=self.low - low, high=self.high + high)

    def by_clocks(self, slack: int) -> "_Form":
        """Return the same value by the clocks of a time zone."""
        return replace(self.wider(slack, slack), clocks=self.clocks + 1) if slack else self

    @property
    def uncut(self) -> "_Form":
        """The same value, of which only the least and the greatest rest are known."""
        if not self.cut or self.unit is None:
            return self
        rest = ceil(self.unit) - 1
        return replace(self.wider(rest, rest), cut=False)

    def plus_other(self, other: "_Form", kind: str) -> "_Form | None":
        """Return a sum, None of values in other units."""
        if other.unit is None:
            return replace(self, kind=kind, constant=self.constant + other.constant)
        if self.unit is None:
            return other.plus_other(self, kind)
        if self.unit != other.unit:
            return None
        one, two = self.uncut, other.uncut
        return _Form(
            kind,
            one.plus + two.plus,
            one.minus + two.minus,
            one.unit,
            one.low + two.low,
            one.high + two.high,
            one.constant + two.constant,
            one.whole and two.whole,
            clocks=one.clocks + two.clocks,
        )


class _Reader:
    """Reads conditions as alternatives of bounds."""

    def __init__(self, meaning: Meaning, clock: EventClock) -> None:
        self._meaning = meaning
        self._clock = clock
        self._depth = 0

    def said(self, tree: exp.Expr, *, negated: bool) -> TimeBounds | None:
        """Return what is so where a condition is true, or where it is false; None for nothing."""
        self._depth += 1
        try:
            return None if self._depth > MAXIMUM_DEPTH else self._said(tree, negated=negated)
        finally:
            self._depth -= 1

    def _said(self, tree: exp.Expr, *, negated: bool) -> TimeBounds | None:
        match tree:
            case exp.Paren():
                return self.said(tree.this, negated=negated)
            case exp.Not():
                return self.said(tree.this, negated=not negated)
            case exp.And() | exp.Or():
                parts = [self.said(each, negated=negated) for each in tree.flatten()]
                return _any(parts) if isinstance(tree, exp.Or) != negated else _all(parts)
            case exp.Between() if not tree.args.get("symmetric"):
                ends = [self._compared(*each, negated=negated) for each in at_most(tree)]
                return _any(ends) if negated else _all(ends)
            case exp.EQ() if not negated:
                sides = (tree.this, tree.expression)
                return _all([self._compared(*sides, False), self._compared(*sides[::-1], False)])
            case exp.NEQ() if negated:
                return self.said(exp.EQ(this=tree.this, expression=tree.expression), negated=False)
            case exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                (found,) = at_most(tree)
                return self._compared(*found, negated=negated)
        return None

    def _compared(
        self, left: exp.Expr, right: exp.Expr, strict: bool, *, negated: bool = False
    ) -> TimeBounds | None:
        """Return what ``left <= right`` says, or ``left < right`` where it is ``strict``."""
        if negated:
            left, right, strict = right, left, not strict
        inside = self._absolute(left)
        if inside is not None:
            most = self.form(right)
            if most is None or most.unit is not None:
                return None
            return _all([self._least(each, most, strict) for each in (inside, -inside)])
        inside = self._absolute(right)
        if inside is not None:
            least = self.form(left)
            # No length is below 0.
            if least is None or least.unit is not None or least.kind != inside.kind:
                return None
            trivial = least.constant < 0 or (least.constant == 0 and not strict)
            return TimeBounds(((),), exact=True) if trivial else None
        first, second = self.form(left), self.form(right)
        return None if first is None or second is None else self._least(first, second, strict)

    def _least(self, left: _Form, right: _Form, strict: bool) -> TimeBounds | None:
        if left.kind != right.kind:
            return None
        apart = left.plus_other(-right, left.kind)
        if apart is None or apart.unit is None or len(apart.plus) != 1 or len(apart.minus) != 1:
            return None
        (later,), (earlier,) = apart.plus, apart.minus
        if later == earlier:
            return None
        most = _greatest(apart, apart.unit, strict)
        if apart.clocks and max(map(abs, (most, apart.low, apart.high))) > _NEAR:
            most += apart.clocks * ANY_ZONE
        bound = TimeBound(earlier, later, most)
        return TimeBounds(((bound,),), exact=apart.low == apart.high and apart.unit.denominator == 1)

    # Values ------------------------------------------------------------------

    def form(self, node: exp.Expr) -> _Form | None:
        """Return a value over event times, or a constant; None for all else, and for what is very deep."""
        self._depth += 1
        try:
            return None if self._depth > MAXIMUM_DEPTH else self._form(node)
        finally:
            self._depth -= 1

    def _form(self, node: exp.Expr) -> _Form | None:
        match node:
            case exp.Paren():
                return self.form(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Literal() if not node.is_string:
                value = number(node.name)
                return None if value is None else _Form("number", constant=Fraction(value))
            case exp.Placeholder():
                return _parameter(self._meaning.parameters.get(node.name))
            case exp.Interval():
                length = interval_length(node)
                return None if length is None else _Form("interval", constant=Fraction(length))
            case exp.Neg():
                inside = self.form(node.this)
                return -inside if inside is not None and inside.kind != "time" else None
            case exp.Add() | exp.Sub():
                return self._sum(node)
            case exp.Mul() | exp.Div() | exp.IntDiv():
                return self._scaled(node)
            case exp.Cast():
                return self._cast(node)
            case exp.TimestampDiff() | exp.DateDiff():
                return self._difference(node)
            case exp.TimestampAdd():
                return self._added(node)
            case exp.Anonymous() if len(node.expressions) == 1:
                return self._epoch(self._meaning.function(node), self.form(node.expressions[0]))
            case exp.Anonymous() if self._meaning.function(node) == "date_trunc":
                return self._truncated(*node.expressions)
        return None

    def _column(self, node: exp.Column) -> _Form | None:
        found = self._meaning.column(node)
        time = None if found is None else self._clock.times[found.stream]
        if found is None or time is None or not found.same(time):
            return None
        kind = "number" if self._clock.kind is TimeKind.INTEGRAL else "time"
        return _Form(kind, plus=(found.stream,), unit=Fraction(1))

    def _sum(self, node: exp.Add | exp.Sub) -> _Form | None:
        left, right = self.form(node.this), self.form(node.expression)
        if left is None or right is None:
            return None
        return self._added_up(left, right, subtracted=isinstance(node, exp.Sub))

    def _added_up(self, left: _Form, right: _Form, *, subtracted: bool) -> _Form | None:
        match left.kind, right.kind:
            case "number", "number":
                timed = left.unit is not None or right.unit is not None
                if timed and self._clock.kind is TimeKind.INTEGRAL and self._clock.wraps:
                    return None
                kind = "number"
            case "interval", "interval":
                kind = "interval"
            case "time", "interval":
                return self._moved(left, -right if subtracted else right)
            case "interval", "time" if not subtracted:
                return self._moved(right, left)
            case "time", "time" if subtracted:
                found = left.plus_other(-right, "interval")
                return None if found is None else found.by_clocks(self._slack)
            case _:
                return None
        return left.plus_other(-right if subtracted else right, kind)

    @property
    def _slack(self) -> int:
        """How far the difference of two clocks is from that of two times; NTZ has no zone."""
        return self._clock.slack if self._clock.kind is TimeKind.TIMESTAMP else 0

    def _moved(self, time: _Form, length: _Form) -> _Form | None:
        if length.unit is not None:
            return None
        found = time.plus_other(length, "time")
        if found is None or abs(length.constant) < DAY:
            return found
        far = abs(length.constant) > _NEAR
        return found.by_clocks(ANY_ZONE if far and self._slack else self._slack)

    def _scaled(self, node: exp.Mul | exp.Div | exp.IntDiv) -> _Form | None:
        left, right = self.form(node.this), self.form(node.expression)
        if left is None or right is None or right.kind != "number" or right.unit is not None:
            return None
        by = right.constant
        if by <= 0 or by.denominator != 1:
            return None
        if left.unit is None:
            if isinstance(node, exp.Mul):
                return replace(left, constant=left.constant * by)
            return None
        if left.kind != "number" or left.constant or left.cut:
            return None
        unit = left.unit * by
        if isinstance(node, exp.Mul):
            return None if self._clock.wraps else replace(left, unit=left.unit / by)
        if isinstance(node, exp.Div):
            # A quotient is rounded.
            return replace(left.wider(ceil(left.unit), ceil(left.unit)), unit=unit, whole=False)
        if left.low == left.high and left.unit == 1:
            return replace(left, unit=unit, cut=True)
        rest = ceil(unit)
        return replace(left.wider(rest, rest), unit=unit)

    def _cast(self, node: exp.Cast) -> _Form | None:
        kind, inside = node.to.sql(dialect="spark").lower(), self.form(node.this)
        if inside is None:
            return None
        if inside.kind == "number" and inside.unit is None and inside.constant.denominator == 1:
            # 5L is read as a cast.
            return inside if kind in _WHOLE_TYPES else None
        if inside.kind == "time" and kind == self._clock.kind.value.lower():
            return inside
        if inside.kind == "time" and kind == "bigint" and self._clock.kind is TimeKind.TIMESTAMP:
            return self._floored(inside, 1_000_000)
        widened = self._clock.kind is TimeKind.INTEGRAL and inside.kind == "number" and kind == "bigint"
        return inside if widened else None

    def _epoch(self, function: str, inside: _Form | None) -> _Form | None:
        if inside is None or inside.kind != "time":
            return None
        unit = 1_000_000 if function in _SECONDS else UNIX.get(function)
        if unit is None:
            return None
        if self._clock.kind is TimeKind.TIMESTAMP_NTZ:
            inside = inside.by_clocks(self._clock.slack)
        return self._floored(inside, unit)

    def _floored(self, time: _Form, unit: int) -> _Form | None:
        """Return how many whole units have passed until a time."""
        if time.constant.denominator != 1:
            return None
        shift = int(time.constant)
        found = replace(time, kind="number", unit=Fraction(unit), constant=Fraction(0))
        return replace(found, low=time.low + shift - (unit - 1), high=time.high + shift)

    def _difference(self, node: exp.TimestampDiff | exp.DateDiff) -> _Form | None:
        """Return ``timestampdiff(unit, from, to)``, or the days of ``datediff(to, from)``."""
        unit = node.args.get("unit")
        sides = (node.this, node.expression)
        to, since = (self.form(each.this if isinstance(each, exp.TsOrDsToDate) else each) for each in sides)
        if to is None or since is None or to.kind != "time" or since.kind != "time":
            return None
        apart = to.plus_other(-since, "number")
        if apart is None or apart.constant.denominator != 1:
            return None
        shift = int(apart.constant)
        apart = replace(apart.wider(-shift, shift), constant=Fraction(0)).by_clocks(self._clock.slack)
        if unit is None:
            return replace(apart.wider(DAY - 1, DAY - 1), unit=Fraction(DAY))
        size = _UNITS.get(unit.name.upper().removesuffix("S"))
        return None if size is None else replace(apart, unit=Fraction(size), cut=size > 1)

    def _added(self, node: exp.TimestampAdd) -> _Form | None:
        """Return ``timestampadd(unit, number, time)``."""
        time, count, unit = self.form(node.this), self.form(node.expression), node.args.get("unit")
        size = None if unit is None else _UNITS.get(unit.name.upper().removesuffix("S"))
        if time is None or count is None or size is None or time.kind != "time":
            return None
        if count.kind != "number" or count.unit is not None or count.constant.denominator != 1:
            return None
        return self._moved(time, _Form("interval", constant=count.constant * size))

    def _truncated(self, unit: exp.Expr, of: exp.Expr) -> _Form | None:
        """Return ``date_trunc(unit, time)``, which cuts by the clocks of the session's time zone."""
        time, size = self.form(of), _TRUNCATED.get(unit.name.upper()) if unit.is_string else None
        if time is None or size is None or time.kind != "time":
            return None
        return time.wider(size - 1, 0).by_clocks(self._clock.slack)

    def _absolute(self, node: exp.Expr) -> _Form | None:
        node = node.unnest()
        if isinstance(node, exp.Abs):
            inside = self.form(node.this)
        elif isinstance(node, exp.Anonymous) and self._meaning.function(node) == "abs":
            inside = self.form(node.expressions[0]) if len(node.expressions) == 1 else None
        else:
            return None
        return inside if inside is not None and inside.kind != "time" and inside.unit is not None else None


def _greatest(apart: _Form, unit: Fraction, strict: bool) -> int:
    """Return the greatest difference of the times of a value that is at most 0, or below."""
    most = -apart.constant
    if apart.whole:
        least = Fraction(ceil(most) - 1 if strict else floor(most))
        if apart.cut and least >= 0:
            return floor((least + 1) * unit) - 1 - apart.low
        return floor(least * unit) - apart.low
    limit = most * unit - apart.low
    return ceil(limit) - 1 if strict else floor(limit)


def _all(parts: Sequence[TimeBounds | None]) -> TimeBounds | None:
    """Return what conditions say together."""
    known = [each for each in parts if each is not None]
    if not known:
        return None
    exact = len(known) == len(parts) and all(each.exact for each in known)
    count = 1
    for each in known:
        count *= len(each.alternatives)
    if count > MAXIMUM_ALTERNATIVES:
        return TimeBounds((tuple(bound for each in known for bound in each.hull),), exact=False)
    chosen = product(*(each.alternatives for each in known))
    return TimeBounds(tuple(tuple(bound for own in each for bound in own) for each in chosen), exact)


def _any(parts: Sequence[TimeBounds | None]) -> TimeBounds | None:
    """Return what is so where one of some conditions is true."""
    known = [each for each in parts if each is not None]
    if len(known) < len(parts):
        return None
    return TimeBounds(
        tuple(each for part in known for each in part.alternatives), all(each.exact for each in known)
    )


def _parameter(value: object) -> _Form | None:
    if isinstance(value, timedelta):
        return _Form("interval", constant=Fraction(value // timedelta(microseconds=1)))
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not in_reach(value):
        return None
    return _Form("number", constant=Fraction(value))


def interval_length(node: exp.Interval) -> int | None:
    """Return the microseconds of an interval literal of units of a fixed length, None for another."""
    unit, value = node.args.get("unit"), node.this
    if not isinstance(value, exp.Literal):
        return None
    read: Callable[[], int]
    match unit:
        case exp.IntervalSpan():
            read = lambda: from_clock(value.name, *_names(unit), _NOWHERE)  # noqa: E731
        case exp.Var():
            read = lambda: microseconds(  # noqa: E731
                number_of(value.name, _NOWHERE), unit_of(unit.name, _NOWHERE), _NOWHERE
            )
        case _:
            return None
    try:
        return read()
    except WJoinError:
        return None


def _names(unit: exp.IntervalSpan) -> tuple[str, str]:
    return unit_of(unit.this.name, _NOWHERE), unit_of(unit.expression.name, _NOWHERE)
