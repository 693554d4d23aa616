"""The last hour of a query, in bounded memory: what its micro-batches did, by the second, later coarser."""

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from wjoin.measured.progress import Progress, lags

KEPT_SECONDS = 3600.0
"""How long points are kept."""

MOST_POINTS = 1000
"""Points of a query: where there would be more, each covers twice the time: 4 s in an hour."""

PRESENT_SECONDS = 10.0
"""Present rates are those of so many seconds, or of the last micro-batch where that is longer."""

Counts = Mapping[str, int]


@dataclass(frozen=True)
class Point:
    """What the micro-batches did that ended between two times, and how things stood after them.

    ``begins`` and ``ends`` are seconds since 1970; it begins where the point before ends. By stream alias:
    ``rows`` read, and rows dropped that were ``late``, ``undated`` (without an event time) or too far
    ``ahead``; ``dropped`` are those that Spark's own operators dropped. ``broken`` and ``missing`` records
    are those of ``Progress``. ``comparisons`` and ``matches`` are by stage (``join.stage``), ``matched`` are
    the results of the W-joins. ``parts``: milliseconds of the parts of the micro-batches, in Spark's words,
    ``layers``: microseconds of tasks in each layer (``measured.layers``), ``seconds`` the length of the
    micro-batches in all.

    After the last one: ``kept`` rows by stream and ``kept_bytes`` in wjoin's state, ``spark_rows`` and
    ``spark_bytes`` in that of Spark's own operators, the greatest event time ``seen`` of each stream, its
    ``watermarks``, and the ``lag``, seconds by which the clock is ahead of what was seen.
    """

    begins: float
    ends: float
    batches: int = 0
    seconds: float = 0.0
    source_rows: int = 0
    matched: int = 0
    dropped: int = 0
    rows: Counts = field(default_factory=dict)
    late: Counts = field(default_factory=dict)
    undated: Counts = field(default_factory=dict)
    ahead: Counts = field(default_factory=dict)
    broken: Counts = field(default_factory=dict)
    missing: Counts = field(default_factory=dict)
    comparisons: Counts = field(default_factory=dict)
    matches: Counts = field(default_factory=dict)
    parts: Counts = field(default_factory=dict)
    layers: Counts = field(default_factory=dict)
    kept: Counts = field(default_factory=dict)
    kept_bytes: int = 0
    spark_rows: int = 0
    spark_bytes: int = 0
    seen: Counts = field(default_factory=dict)
    watermarks: Counts = field(default_factory=dict)
    lag: Mapping[str, float] = field(default_factory=dict)

    @property
    def rows_in(self) -> int:
        """The rows read: of the streams of the W-joins, or of all sources where there is no W-join."""
        return sum(self.rows.values()) if self.rows else self.source_rows

    def rate(self, count: float) -> float:
        """Return how often a second something happened that it has counted."""
        return count / max(self.ends - self.begins, 1e-3)

    @property
    def rows_of_state(self) -> int:
        """The rows kept after it, by the W-joins and by Spark's own operators."""
        return sum(self.kept.values()) + self.spark_rows

    @property
    def bytes_of_state(self) -> int:
        """Their size."""
        return self.kept_bytes + self.spark_bytes

    @property
    def lost(self) -> int:
        """The rows dropped, for whatever reason."""
        return self.dropped + sum(sum(each.values()) for each in (self.late, self.undated, self.ahead))

    def joined(self, later: "Point") -> "Point":
        """Return the point that covers this one and a later one."""
        sums = {name: _sum(getattr(self, name), getattr(later, name)) for name in _SUMMED}
        return replace(later, begins=self.begins, **sums)


_STANDING = ("kept", "kept_bytes", "spark_rows", "spark_bytes", "seen", "watermarks", "lag")
_SUMMED = tuple(each.name for each in fields(Point) if each.name not in ("begins", "ends", *_STANDING))
_OTHER_NAMES = {
    "rows": "rows_in",
    "undated": "null_times",
    "matched": "matches",
    "dropped": "dropped_by_spark",
    "kept": "state_rows",
    "kept_bytes": "state_bytes",
    "spark_rows": "spark_state_rows",
    "spark_bytes": "spark_state_bytes",
}
"""What is called otherwise in the ``Progress`` of a micro-batch."""


def _sum(first: Any, second: Any) -> Any:
    """Return the sum of two numbers, or of counts by name, in the order in which the names came.

    >>> _sum({"A": 1}, {"A": 2, "B": 3})
    {'A': 3, 'B': 3}
    """
    if isinstance(first, Mapping):
        return {name: first.get(name, 0) + second.get(name, 0) for name in (*first, *second)}
    return first + second


def point(progress: Progress, before: Point) -> Point:
    """Return what a report of Spark tells, after the point ``before``."""
    ends = before.ends if progress.ended is None else max(before.ends, progress.ended)
    if progress.idle:
        standing = {name: getattr(before, name) for name in _STANDING}
        return replace(Point(before.ends, ends, **standing), lag=lags(before.seen, ends))
    taken: dict[str, Any] = {"batches": 1}
    for name in ("comparisons", "matches"):
        taken[name] = {stage: counts[name] for stage, counts in progress.stages.items()}
    for name in (*_SUMMED, *_STANDING):
        if name not in taken:
            taken[name] = getattr(progress, _OTHER_NAMES.get(name, name))
    return Point(before.ends, ends, **taken)


@dataclass(frozen=True)
class Hour:
    """What is known of a query at one moment: the points of the last hour, and all since its start in one."""

    width: float
    points: tuple[Point, ...]
    total: Point

    def present(self, clock: float, *, rests: bool) -> Point:
        """Return what is done at present: in the last ten seconds, or the last micro-batch if that is longer.

        Nothing, where the query ``rests`` and has done so for as long. ``clock``: seconds since 1970.
        """
        last = next((each.ends - each.begins for each in reversed(self.points) if each.batches), 0.0)
        length = max(PRESENT_SECONDS, 1.5 * last)
        if rests and clock - self.total.ends > length:
            return Point(clock - length, clock)
        recent = (each for each in self.points if each.ends > self.total.ends - PRESENT_SECONDS)
        return merged(recent) or self.total


class History:
    """Keeps the last hour of one query.

    ``width``: seconds that a point covers, one at first; a longer micro-batch is a point of its own.
    """

    def __init__(self, began: float) -> None:
        self._width = 1.0
        self._points: deque[Point] = deque()
        self._total = Point(began, began)
        self._changing = threading.Lock()

    def add(self, progress: Progress) -> None:
        """Take a report of Spark."""
        with self._changing:
            if not self._points and progress.started:
                began = min(self._total.begins, datetime.fromisoformat(progress.started).timestamp())
                self._total = Point(began, began)
            new = point(progress, self._total)
            self._total = self._total.joined(new)
            self._put(new)
            while self._points[0].ends < new.ends - KEPT_SECONDS:
                self._points.popleft()
            while len(self._points) > MOST_POINTS:
                self._width *= 2
                before, self._points = self._points, deque()
                for each in before:
                    self._put(each)

    @property
    def total(self) -> Point:
        """All that the query has done."""
        return self._total

    def read(self) -> Hour:
        """Return what is known now."""
        with self._changing:
            return Hour(self._width, tuple(self._points), self._total)

    def _put(self, new: Point) -> None:
        if self._points and self._place(self._points[-1]) == self._place(new):
            new = self._points.pop().joined(new)
        self._points.append(new)

    def _place(self, each: Point) -> float:
        return each.ends // self._width


def merged(points: Iterable[Point]) -> Point | None:
    """Return the point that covers some that follow each other, None of none."""
    whole: Point | None = None
    for each in points:
        whole = each if whole is None else whole.joined(each)
    return whole
