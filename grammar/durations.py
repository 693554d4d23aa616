"""Durations: a number and a unit to whole microseconds, exactly."""

import re
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span

_NANOSECONDS = {
    "NANOSECOND": 1,
    "MICROSECOND": 1_000,
    "MILLISECOND": 1_000_000,
    "SECOND": 1_000_000_000,
    "MINUTE": 60_000_000_000,
    "HOUR": 3_600_000_000_000,
    "DAY": 86_400_000_000_000,
    "WEEK": 604_800_000_000_000,
}
_SHORT = {
    "NS": "NANOSECOND",
    "US": "MICROSECOND",
    "\u039cS": "MICROSECOND",  # both signs for micro have this capital
    "MS": "MILLISECOND",
    "MSEC": "MILLISECOND",
    "MSECS": "MILLISECOND",
    "S": "SECOND",
    "SEC": "SECOND",
    "SECS": "SECOND",
    "MIN": "MINUTE",
    "MINS": "MINUTE",
    "H": "HOUR",
    "HR": "HOUR",
    "HRS": "HOUR",
    "D": "DAY",
    "W": "WEEK",
}
UNITS = {unit: unit for unit in _NANOSECONDS} | {f"{unit}S": unit for unit in _NANOSECONDS} | _SHORT
"""Every spelling of a unit, upper case, and the unit it means."""

NOT_FIXED = frozenset({"MONTH", "MONTHS", "YEAR", "YEARS", "QUARTER", "QUARTERS", "DECADE", "DECADES"})
"""Units that are no fixed time."""

UNITS_IN_WORDS = "microseconds, milliseconds, seconds, minutes, hours, days or weeks"
_LIMIT = 2**63 - 1
COUNT_LIMIT = 2**31 - 1
"""As far as Spark counts."""
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_PAIR = re.compile(r"\s*([+-]?)\s*(\d+\.?\d*|\.\d+)\s*([^\W\d]+)\s*")
_FIELDS = ("DAY", "HOUR", "MINUTE", "SECOND")
_CLOCK = {
    ("DAY", "HOUR"): r"(\d+) (\d{1,2})",
    ("DAY", "MINUTE"): r"(\d+) (\d{1,2}):(\d{1,2})",
    ("DAY", "SECOND"): r"(\d+) (\d{1,2}):(\d{1,2}):(\d{1,2}(?:\.\d{1,9})?)",
    ("HOUR", "MINUTE"): r"(\d+):(\d{1,2})",
    ("HOUR", "SECOND"): r"(\d+):(\d{1,2}):(\d{1,2}(?:\.\d{1,9})?)",
    ("MINUTE", "SECOND"): r"(\d+):(\d{1,2}(?:\.\d{1,9})?)",
}


def unit_of(word: str, span: Span) -> str:
    """Return the unit that a word names, singular and upper case.

    Raises WJ103 for a word that is no unit (with the nearest one) or no fixed time.
    """
    upper = word.upper()
    if upper in UNITS:
        return UNITS[upper]
    if upper in NOT_FIXED:
        raise WJoinError(
            "WJ103",
            f"{word} is not a fixed length of time",
            span=span,
            help="write days or weeks, for example 30 DAYS",
        )
    if upper == "M":
        raise WJoinError("WJ103", "the unit m may mean minutes or months", span=span, help="write MINUTES")
    near = _nearest(upper, 0.6)
    units = f"the units are {UNITS_IN_WORDS}"
    remedy = f"did you mean {near[0]}? {units[0].upper()}{units[1:]}" if near else units
    raise WJoinError("WJ103", f"{word} is not a unit of time", span=span, help=remedy)


def _nearest(word: str, cutoff: float) -> list[str]:
    return get_close_matches(word, [unit for unit in UNITS if unit not in _SHORT], n=1, cutoff=cutoff)


def is_like_unit(word: str) -> bool:
    """Return whether an upper-case word is probably a misspelt unit.

    >>> is_like_unit("SECODNS"), is_like_unit("READS")
    (True, False)
    """
    return bool(_nearest(word, 0.75))


def count_of(text: str) -> int | None:
    """Return a whole number from 1 to COUNT_LIMIT, None for any other text.

    >>> count_of("12"), count_of("0"), count_of("9" * 400), count_of("1.5")
    (12, None, None, None)
    """
    digits = text.strip().lstrip("0")
    count = int(digits) if digits.isdecimal() and len(digits) <= len(str(COUNT_LIMIT)) else 0
    return count if 0 < count <= COUNT_LIMIT else None


def number_of(text: str, span: Span) -> Decimal:
    """Return the value of a number, Spark's type suffix (``5L``, ``1.5BD``) left out.

    Raises WJ103 for anything else.
    """
    found = _NUMBER.match(text.strip())
    if found is None or text.strip()[found.end() :].upper() not in ("", "L", "S", "Y", "F", "D", "BD"):
        raise WJoinError("WJ103", f"{text.strip() or 'an empty string'} is not a number", span=span)
    return Decimal(found.group())


def microseconds(number: Decimal, unit: str, span: Span) -> int:
    """Return ``number`` of a unit (as unit_of gives it) in microseconds.

    Raises WJ103 when that is not a whole number of microseconds, or too large for Spark.

    >>> microseconds(Decimal("1.5"), "HOUR", Span(0, 0))
    5400000000
    """
    value = Fraction(number) * _NANOSECONDS[unit] / 1000
    return _checked(int(value), value.denominator == 1, span)


def from_pairs(text: str, span: Span) -> int:
    """Return the microseconds of Spark's interval text: ``1 hour 30 minutes``, ``interval -5 seconds``.

    Raises WJ102 when a unit is missing, WJ103 when the text is no interval.
    """
    body = re.sub(r"^\s*([+-]?)\s*interval\b", r"\1", text, flags=re.IGNORECASE).strip()
    place = 0
    total = 0
    sign = 1
    if (outer := re.match(r"[+-](?=\s*[+-])", body)) is not None:
        sign, place = (-1 if outer.group() == "-" else 1), 1
    while place < len(body):
        pair = _PAIR.match(body, place)
        if pair is None:
            break
        value = number_of(pair[1] + pair[2], span)
        total += microseconds(value, unit_of(pair[3], span), span)
        place = pair.end()
    if place < len(body) or not body:
        if _NUMBER.fullmatch(body[place:].strip() or "x"):
            raise WJoinError("WJ102", f"the duration '{text}' has no unit", span=span)
        raise WJoinError("WJ103", f"the duration '{text}' cannot be read", span=span)
    return _checked(sign * total, True, span)


def from_clock(text: str, first: str, last: str, span: Span) -> int:
    """Return the microseconds of ``INTERVAL '1 02:03:04' DAY TO SECOND`` and its kin.

    ``first`` and ``last`` are units as unit_of gives them. Raises WJ103 for text that does
    not fit them.
    """
    pattern = _CLOCK.get((first, last))
    if pattern is None:
        remedy = "from DAY, HOUR or MINUTE to a smaller one, SECOND the smallest"
        raise WJoinError("WJ103", f"there is no interval {first} TO {last}", span=span, help=remedy)
    found = re.fullmatch(rf"\s*([+-]?)\s*{pattern}\s*", text)
    if found is None:
        raise WJoinError("WJ103", f"'{text}' is not an interval {first} TO {last}", span=span)
    start = _FIELDS.index(first)
    parts = [Decimal(part) for part in found.groups()[1:]]
    limits = {"HOUR": 24, "MINUTE": 60, "SECOND": 60}
    for unit, part in list(zip(_FIELDS[start:], parts, strict=False))[1:]:
        if part >= limits[unit]:
            raise WJoinError("WJ103", f"'{text}' has {part} {unit.lower()}s", span=span)
    total = sum(microseconds(part, unit, span) for unit, part in zip(_FIELDS[start:], parts, strict=False))
    return _checked(-total if found[1] == "-" else total, True, span)


def _checked(value: int, exact: bool, span: Span) -> int:
    if not exact:
        remedy = "a microsecond is the finest step of Spark's timestamps"
        raise WJoinError("WJ103", "a duration is not a whole number of microseconds", span=span, help=remedy)
    if abs(value) > _LIMIT:
        raise WJoinError("WJ103", "a duration is longer than 292,000 years", span=span)
    return value


def spell(value: int) -> str:
    """Return the shortest exact spelling of microseconds, for example ``90 SECONDS``.

    >>> spell(-1_500_000), spell(7_200_000_000)
    ('-1500 MILLISECONDS', '2 HOURS')
    """
    for unit in ("WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND"):
        step = _NANOSECONDS[unit] // 1000
        if value and value % step == 0:
            return f"{value // step} {unit}{'' if abs(value // step) == 1 else 'S'}"
    return f"{value} MICROSECONDS" if value else "0 SECONDS"
