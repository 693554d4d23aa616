"""Durations of the window clause as numbers, and numbers as people read them."""

from collections.abc import Mapping
from datetime import timedelta

from wjoin.grammar.durations import UNITS_IN_WORDS, from_pairs
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import BareNumber, Duration, Parameter
from wjoin.planner.plan.physical import TimeKind

_UNITS = (
    (604_800_000_000, "w"),
    (86_400_000_000, "d"),
    (3_600_000_000, "h"),
    (60_000_000, "min"),
    (1_000_000, "s"),
    (1_000, "ms"),
    (1, "us"),
)


def duration_value(duration: Duration, kind: TimeKind, parameters: Mapping[str, object]) -> int:
    """Return a duration in microseconds, or in the event time's own unit where that is integral.

    A parameter's value may be a whole number, a timedelta, or a string as Spark writes
    intervals (``5 seconds``). Raises WJ212 for a parameter without a value, WJ304 for a bare
    number on a timestamp, WJ305 for a unit on an integral event time, WJ102/WJ103 for a
    parameter whose value is no duration.
    """
    if isinstance(duration, Parameter):
        return _parameter_value(duration, kind, parameters)
    if isinstance(duration, BareNumber):
        _check_unit(kind, False, duration.span, str(duration.value))
        return duration.value
    _check_unit(kind, True, duration.span, human(duration.microseconds, TimeKind.TIMESTAMP))
    return duration.microseconds


def _parameter_value(parameter: Parameter, kind: TimeKind, parameters: Mapping[str, object]) -> int:
    sign = -1 if parameter.negative else 1
    name, span = parameter.name, parameter.span
    if name not in parameters:
        raise WJoinError("WJ212", f"the parameter :{name} has no value", span=span)
    value = parameters[name]
    if isinstance(value, str):
        if value.strip().lstrip("+-").isdecimal():
            value = int(value)
        else:
            _check_unit(kind, True, span, f"'{value}'")
            return sign * from_pairs(value, span)
    if isinstance(value, timedelta):
        _check_unit(kind, True, span, f":{name}")
        return sign * (value // timedelta(microseconds=1))
    if isinstance(value, int) and not isinstance(value, bool):
        _check_unit(kind, False, span, f":{name} = {value}")
        return sign * value
    message = f"the value of :{name} is a {type(value).__name__}, not a duration"
    help = "pass a string such as '5 seconds', a timedelta, or a whole number for integral event time"
    raise WJoinError("WJ103", message, span=span, help=help)


def _check_unit(kind: TimeKind, has_unit: bool, span: Span, shown: str) -> None:
    if has_unit and kind is TimeKind.INTEGRAL:
        message = f"{shown} has a unit, but the streams' event time is integral"
        raise WJoinError("WJ305", message, span=span)
    if not has_unit and kind is not TimeKind.INTEGRAL:
        message = f"{shown} has no unit, but the streams' event time is a timestamp"
        raise WJoinError("WJ304", message, span=span, help=f"write a unit: {UNITS_IN_WORDS}")


def human(value: int, kind: TimeKind) -> str:
    """Return a duration as EXPLAIN and messages print it; a plain number for integral time.

    >>> human(5_400_000_000, TimeKind.TIMESTAMP), human(-250_000, TimeKind.TIMESTAMP)
    ('1 h 30 min', '-250 ms')
    >>> human(7, TimeKind.INTEGRAL)
    '7'
    """
    return str(value) if kind is TimeKind.INTEGRAL else timespan(value)


def timespan(microseconds: int) -> str:
    """Return a duration of a timestamp as ``human`` does."""
    if microseconds == 0:
        return "0 s"
    parts = []
    left = abs(microseconds)
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    sign = "-" if microseconds < 0 else ""
    text = " ".join(parts)
    return f"{sign}({text})" if sign and len(parts) > 1 else f"{sign}{text}"
