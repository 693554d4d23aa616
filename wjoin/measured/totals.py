"""What a query has done since it was started, added up over its micro-batches."""

import time
from datetime import UTC, datetime

from wjoin.grammar.plurals import counted
from wjoin.measured.points import History, Point
from wjoin.measured.progress import Progress


class Totals:
    """What one query has done: ``total`` in all, ``history`` in the last hour.

    ``newest`` are the counts of the last micro-batch; reports of idle times change none of them.
    """

    def __init__(self) -> None:
        self.history = History(time.time())
        self.newest: Progress | None = None
        self.idle_since: datetime | None = None

    def add(self, progress: Progress) -> None:
        """Take the next report."""
        if not progress.idle:
            self.newest, self.idle_since = progress, _time(progress.ended)
        elif self.idle_since is None:
            self.idle_since = _time(progress.ended)
        self.history.add(progress)

    @property
    def total(self) -> Point:
        """All that it has done."""
        return self.history.total

    @property
    def known(self) -> bool:
        """Whether Spark has reported anything of the query."""
        return self.newest is not None or self.idle_since is not None

    def line(self) -> str:
        """Return what has been done, in a few words."""
        total = self.total
        if not total.rows_in:
            return "no new rows"
        rows = f"{counted(total.rows_in, 'row')} in"
        if total.rows:
            by_stream = ", ".join(f"{alias} {count:,}" for alias, count in sorted(total.rows.items()))
            late, undated, ahead = (sum(each.values()) for each in (total.late, total.undated, total.ahead))
            rows = (
                f"{rows} ({by_stream}), {counted(total.matched, 'result')} of the join, {late:,} late,"
                f" {undated:,} without event time"
            )
            if ahead:
                rows += f", {ahead:,} too far ahead"
        return f"{rows}, {counted(total.batches, 'micro-batch')}"


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
