"""How much the clocks of a time zone differ from time."""

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

ANY_ZONE = 30 * 3_600_000_000
"""More than any two offsets of time zones are apart, in microseconds."""

_MONTH = 6
"""Samples of a time zone, a week apart, of a month and more."""

_FIXED = re.compile(r"(ETC/)?(UTC|GMT|Z|UT)?([+-].*)?")
"""Time zones in which no clock is put forward."""


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
