"""What a query has done since it was started, and its last hour, in bounded memory: later coarser."""

import threading
import time
from collections import deque
from datetime import UTC, datetime

from wjoin.grammar.plurals import counted
from wjoin.measured.points import Hour, Point, point
from wjoin.measured.progress import Progress
from wjoin.measured.shed_rows import lost_words
from wjoin.measured.visits import visits_words

KEPT_SECONDS = 3600.0
"""How long points are kept."""

MOST_POINTS = 1000
"""Points of a query: where there would be more, each covers twice the time: 4 s in an hour."""


class Totals:
    """What one query has done, ``total`` in all.

    ``newest`` are the counts of the last micro-batch; reports of idle times change none of them. A point of
    the last hour covers one second at first; a longer micro-batch is a point of its own.
    """

    def __init__(self) -> None:
        now = time.time()
        self.total = Point(begins=now, ends=now)
        self.newest: Progress | None = None
        self.idle_since: datetime | None = None
        self._width = 1.0
        self._points: deque[Point] = deque()
        self._changing = threading.Lock()

    def add(self, progress: Progress) -> None:
        """Take the next report."""
        if not progress.idle:
            self.newest, self.idle_since = progress, _time(progress.ended)
        elif self.idle_since is None:
            self.idle_since = _time(progress.ended)
        with self._changing:
            if not self._points and progress.started:
                began = min(self.total.begins, datetime.fromisoformat(progress.started).timestamp())
                self.total = Point(begins=began, ends=began)
            new = point(progress, self.total)
            self.total = self.total.joined(new)
            self._put(new)
            while self._points[0].ends < new.ends - KEPT_SECONDS:
                self._points.popleft()
            while len(self._points) > MOST_POINTS:
                self._width *= 2
                before, self._points = self._points, deque()
                for each in before:
                    self._put(each)

    def _put(self, new: Point) -> None:
        if self._points and self._points[-1].ends // self._width == new.ends // self._width:
            new = self._points.pop().joined(new)
        self._points.append(new)

    def hour(self) -> Hour:
        """Return what is known now."""
        with self._changing:
            return Hour(self._width, tuple(self._points), self.total)

    @property
    def known(self) -> bool:
        """Whether Spark has reported anything of the query."""
        return self.newest is not None or self.idle_since is not None

    def line(self) -> str:
        """Return what has been done, in a few words."""
        total = self.total
        if not total.rows_read:
            found = f", {counted(total.matches, 'result')} of the join" if total.matches else ""
            return f"no new rows{found}"
        rows = f"{counted(total.rows_read, 'row')} in"
        if total.rows_in:
            by_stream = ", ".join(f"{alias} {count:,}" for alias, count in sorted(total.rows_in.items()))
            late, undated, ahead, shed = (sum(each.values()) for each in total.losses.values())
            rows = (
                f"{rows} ({by_stream}), {counted(total.matches, 'result')} of the join, {late:,} late,"
                f" {undated:,} without event time"
            )
            if ahead:
                rows += f", {ahead:,} too far ahead"
            if shed:
                rows += f", {shed:,} shed ({lost_words(total)})"
            if total.approximate:
                rows += f", {visits_words(total)}"
        return f"{rows}, {counted(total.batches, 'micro-batch')}"


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
