"""What a query has done over the last hour, as points to draw."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from wjoin.measured.progress import Progress

KEPT_SECONDS = 3600.0
"""How far back the points reach."""

_MOST = 120
"""Points of a line; micro-batches that are closer to each other are put together."""


@dataclass(frozen=True)
class Point:
    """What a query did between two times, in seconds since 1970, and how it stood at the end.

    ``rows_in`` and ``matched`` are counts of that time, ``kept`` the rows of state, ``lag`` the seconds by
    which the newest row of the slowest stream was behind the clock, None where that is not known.
    """

    begins: float
    ends: float
    rows_in: int
    matched: int
    kept: int
    lag: float | None


def points(history: Sequence[Progress], now: float) -> list[Point]:
    """Return what the reports of a query tell of the hour before ``now``, in seconds since 1970."""
    found: list[Point] = []
    for progress in history:
        ends = _ended(progress)
        if ends is None or ends < now - KEPT_SECONDS:
            continue
        begins = found[-1].ends if found else ends - progress.seconds
        kept = found[-1].kept if progress.idle and found else sum(progress.state_rows.values())
        rows = 0 if progress.idle else sum(progress.rows_in.values()) or progress.source_rows
        lag = None if progress.idle else max(progress.lag.values(), default=None)
        found.append(
            Point(begins, max(begins, ends), rows, 0 if progress.idle else progress.matches, kept, lag)
        )
    if not found:
        return []
    step = (now - found[0].begins) / _MOST
    steps = [found[0]]
    for point in found[1:]:
        if point.ends - steps[-1].begins <= step:
            steps[-1] = _together(steps[-1], point)
        else:
            steps.append(point)
    return steps


def _together(first: Point, then: Point) -> Point:
    lags = [each.lag for each in (first, then) if each.lag is not None]
    rows, matched = first.rows_in + then.rows_in, first.matched + then.matched
    return Point(first.begins, then.ends, rows, matched, then.kept, max(lags, default=None))


def _ended(progress: Progress) -> float | None:
    """Return when what a report tells of ended."""
    if not progress.started:
        return None
    return datetime.fromisoformat(progress.started).timestamp() + progress.seconds
