"""Sums and differences of dates, times and intervals, as far as no time zone matters to them.

Spark adds days to a TIMESTAMP, and subtracts one from another, by the clocks of the session's time zone;
less than a day it adds to the instant.
"""

import re
from datetime import datetime, timedelta

from sqlglot import exp

from wjoin.planner.conditions.expressions import INTERVAL, Call, Constant, Expression

DAY = 86_400_000_000
"""Microseconds."""

UNITS = {
    "DAY": DAY,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
"""Microseconds of each unit of an interval that is always as long."""
UNIX = {"unix_micros": 1, "unix_millis": 1_000, "unix_seconds": 1_000_000}
"""Microseconds of the unit in which a function tells a time."""
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?)(Z?)")
_EPOCH = datetime(1970, 1, 1)
_WHOLE = re.compile(r"[+-]?\d{1,12}")
_DAYS = ("tinyint", "smallint", "int")


def interval(node: exp.Interval) -> Constant | None:
    """Return the microseconds of an interval literal, None where it is no whole number of one such unit."""
    unit = node.args.get("unit")
    if not (isinstance(unit, exp.Var) and isinstance(node.this, exp.Literal)):
        return None
    size = UNITS.get(unit.name.upper().removesuffix("S"))
    if size is None or not _WHOLE.fullmatch(node.this.name):
        return None
    value = int(node.this.name) * size
    return Constant(value, INTERVAL) if abs(value) < 2**63 else None


def instant(text: str, kind: str) -> Constant | None:
    """Return the time that a literal means in any time zone, None where that depends on the zone."""
    found = _INSTANT.fullmatch(text)
    if found is None or (kind, found[2]) not in (("timestamp", "Z"), ("timestamp_ntz", "")):
        return None
    try:
        passed = datetime.fromisoformat(found[1]) - _EPOCH
    except ValueError:
        return None
    return Constant(passed // timedelta(microseconds=1), kind)


def moved(operator: str, left: Expression, right: Expression, *, days: bool) -> Expression | None:
    """Return a sum or difference in which a time or an interval is, None where it is not known here.

    ``days``: whether an interval in it is written in days, so that a date remains one.
    """
    if operator == "+" and left.type not in ("date", "timestamp", "timestamp_ntz", INTERVAL):
        left, right = right, left
    match left.type, right.type:
        case "date", kind if kind in _DAYS:
            return Call(operator, (left, right), "date")
        case "date", kind if kind == INTERVAL and days and isinstance(right, Constant):
            return Call(operator, (left, Constant(_number(right) // DAY, "int")), "date")
        case ("date", "date") if operator == "-":
            difference = Call("-", (left, right), "int")
            return Call("*", (difference, Constant(DAY, "bigint")), INTERVAL)
        case "timestamp", kind if kind == INTERVAL and isinstance(right, Constant):
            within = abs(_number(right)) < DAY
            return Call(operator, (left, right), "timestamp") if within else None
        case "timestamp_ntz", kind if kind == INTERVAL:
            return Call(operator, (left, right), "timestamp_ntz")
        case ("timestamp_ntz", "timestamp_ntz") if operator == "-":
            return Call("-", (left, right), INTERVAL)
        case one, other if one == other == INTERVAL:
            if isinstance(left, Constant) and isinstance(right, Constant):
                value = _number(left) + (_number(right) if operator == "+" else -_number(right))
                return Constant(value, INTERVAL) if abs(value) < 2**63 else None
            return Call(operator, (left, right), INTERVAL)
    return None


def midnight(date: Expression) -> Expression:
    """Return the TIMESTAMP_NTZ at which a date begins."""
    return Call("*", (date, Constant(DAY, "bigint")), "timestamp_ntz")


def _number(constant: Constant) -> int:
    return int(constant.value or 0)
