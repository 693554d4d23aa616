"""Values over event times: a difference of times in some unit, with what is known of its rest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil

from sqlglot import exp

from wjoin.grammar.durations import from_clock, microseconds, number_of, unit_of
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.planner.conditions.meaning import Meaning
from wjoin.planner.conditions.time_arithmetic import DAY, UNITS, UNIX
from wjoin.planner.conditions.time_zones import ANY_ZONE, zone_slack
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.text.literals import in_reach, number
from wjoin.planner.text.scope import StreamColumn

MAXIMUM_DEPTH = 50
"""Expressions inside each other that are read."""

NEAR = 14 * DAY
"""Times that are as near are, shifted as much, and by any offset, within a month of each other."""

_UNITS = {**UNITS, "WEEK": 7 * DAY}
_TRUNCATED = {**_UNITS, "MONTH": 31 * DAY, "MON": 31 * DAY, "QUARTER": 92 * DAY, "YEAR": 366 * DAY}
"""The greatest length of a unit to which times are truncated; of other names Spark makes NULL."""

_NOWHERE = Span(0, 0)

_WHOLE_TYPES = ("tinyint", "smallint", "int", "bigint")

_SECONDS = ("unix_timestamp", "to_unix_timestamp")


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


@dataclass(frozen=True)
class TimeValue:
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

    def __neg__(self) -> "TimeValue":
        return replace(
            self,
            plus=self.minus,
            minus=self.plus,
            low=-self.high,
            high=-self.low,
            constant=-self.constant,
        )

    def wider(self, low: int, high: int) -> "TimeValue":
        """Return the same value, of which less is known."""
        return replace(self, low=self.low - low, high=self.high + high)

    def by_clocks(self, slack: int) -> "TimeValue":
        """Return the same value by the clocks of a time zone."""
        return replace(self.wider(slack, slack), clocks=self.clocks + 1) if slack else self

    @property
    def uncut(self) -> "TimeValue":
        """The same value, of which only the least and the greatest rest are known."""
        if not self.cut or self.unit is None:
            return self
        rest = ceil(self.unit) - 1
        return replace(self.wider(rest, rest), cut=False)

    def plus_other(self, other: "TimeValue", kind: str) -> "TimeValue | None":
        """Return a sum, None of values in other units."""
        if other.unit is None:
            return replace(self, kind=kind, constant=self.constant + other.constant)
        if self.unit is None:
            return other.plus_other(self, kind)
        if self.unit != other.unit:
            return None
        one, two = self.uncut, other.uncut
        return TimeValue(
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


def _parameter(value: object) -> TimeValue | None:
    if isinstance(value, timedelta):
        return TimeValue("interval", constant=Fraction(value // timedelta(microseconds=1)))
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not in_reach(value):
        return None
    return TimeValue("number", constant=Fraction(value))


def interval_length(node: exp.Interval) -> int | None:
    """Return the microseconds of an interval literal of units of a fixed length, None for another."""
    unit, value = node.args.get("unit"), node.this
    if not isinstance(value, exp.Literal):
        return None
    try:
        match unit:
            case exp.IntervalSpan():
                first, last = (unit_of(each.name, _NOWHERE) for each in (unit.this, unit.expression))
                return from_clock(value.name, first, last, _NOWHERE)
            case exp.Var():
                return microseconds(number_of(value.name, _NOWHERE), unit_of(unit.name, _NOWHERE), _NOWHERE)
    except WJoinError:
        pass
    return None


class ValueReader:
    """Reads expressions as values over event times."""

    def __init__(self, meaning: Meaning, clock: EventClock) -> None:
        self._meaning = meaning
        self._clock = clock
        self._depth = 0

    def form(self, node: exp.Expr) -> TimeValue | None:
        """Return a value over event times, or a constant; None for all else, and for what is very deep."""
        self._depth += 1
        try:
            return None if self._depth > MAXIMUM_DEPTH else self._form(node)
        finally:
            self._depth -= 1

    def _form(self, node: exp.Expr) -> TimeValue | None:
        match node:
            case exp.Paren():
                return self.form(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Literal() if not node.is_string:
                value = number(node.name)
                return None if value is None else TimeValue("number", constant=Fraction(value))
            case exp.Placeholder():
                return _parameter(self._meaning.parameters.get(node.name))
            case exp.Interval():
                length = interval_length(node)
                return None if length is None else TimeValue("interval", constant=Fraction(length))
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

    def _column(self, node: exp.Column) -> TimeValue | None:
        found = self._meaning.column(node)
        time = None if found is None else self._clock.times[found.stream]
        if found is None or time is None or not found.same(time):
            return None
        kind = "number" if self._clock.kind is TimeKind.INTEGRAL else "time"
        return TimeValue(kind, plus=(found.stream,), unit=Fraction(1))

    def _sum(self, node: exp.Add | exp.Sub) -> TimeValue | None:
        left, right = self.form(node.this), self.form(node.expression)
        if left is None or right is None:
            return None
        return self._added_up(left, right, subtracted=isinstance(node, exp.Sub))

    def _added_up(self, left: TimeValue, right: TimeValue, *, subtracted: bool) -> TimeValue | None:
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

    def _moved(self, time: TimeValue, length: TimeValue) -> TimeValue | None:
        if length.unit is not None:
            return None
        found = time.plus_other(length, "time")
        if found is None or abs(length.constant) < DAY:
            return found
        far = abs(length.constant) > NEAR
        return found.by_clocks(ANY_ZONE if far and self._slack else self._slack)

    def _scaled(self, node: exp.Mul | exp.Div | exp.IntDiv) -> TimeValue | None:
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

    def _cast(self, node: exp.Cast) -> TimeValue | None:
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

    def _epoch(self, function: str, inside: TimeValue | None) -> TimeValue | None:
        if inside is None or inside.kind != "time":
            return None
        unit = 1_000_000 if function in _SECONDS else UNIX.get(function)
        if unit is None:
            return None
        if self._clock.kind is TimeKind.TIMESTAMP_NTZ:
            inside = inside.by_clocks(self._clock.slack)
        return self._floored(inside, unit)

    def _floored(self, time: TimeValue, unit: int) -> TimeValue | None:
        """Return how many whole units have passed until a time."""
        if time.constant.denominator != 1:
            return None
        shift = int(time.constant)
        found = replace(time, kind="number", unit=Fraction(unit), constant=Fraction(0))
        return replace(found, low=time.low + shift - (unit - 1), high=time.high + shift)

    def _difference(self, node: exp.TimestampDiff | exp.DateDiff) -> TimeValue | None:
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

    def _added(self, node: exp.TimestampAdd) -> TimeValue | None:
        """Return ``timestampadd(unit, number, time)``."""
        time, count, unit = self.form(node.this), self.form(node.expression), node.args.get("unit")
        size = None if unit is None else _UNITS.get(unit.name.upper().removesuffix("S"))
        if time is None or count is None or size is None or time.kind != "time":
            return None
        if count.kind != "number" or count.unit is not None or count.constant.denominator != 1:
            return None
        return self._moved(time, TimeValue("interval", constant=count.constant * size))

    def _truncated(self, unit: exp.Expr, of: exp.Expr) -> TimeValue | None:
        """Return ``date_trunc(unit, time)``, which cuts by the clocks of the session's time zone."""
        time, size = self.form(of), _TRUNCATED.get(unit.name.upper()) if unit.is_string else None
        if time is None or size is None or time.kind != "time":
            return None
        return time.wider(size - 1, 0).by_clocks(self._clock.slack)
