"""What a query has done since it was started, added up over its micro-batches."""

from datetime import UTC, datetime, timedelta

from wjoin.grammar.plurals import counted
from wjoin.measured.progress import Progress


class Totals:
    """The counts of one query's micro-batches; reports of idle times change none of them."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.source_rows = 0
        self.matches = 0
        self.late = 0
        self.null_times = 0
        self.ahead = 0
        self.batches = 0
        self.newest: Progress | None = None
        self.idle_since: datetime | None = None
        self._idle: str | None = None

    def add(self, progress: Progress) -> bool:
        """Take a report; return whether it is a new one."""
        if progress.idle:
            new = progress.started != self._idle
            self._idle = progress.started
            if self.idle_since is None:
                self.idle_since = _time(progress.started)
            return new
        if self.newest is not None and progress.batch <= self.newest.batch:
            return False
        self.newest = progress
        self.batches += 1
        ended = _time(progress.started)
        self.idle_since = None if ended is None else ended + timedelta(seconds=progress.seconds)
        for alias, count in progress.rows_in.items():
            self.rows[alias] = self.rows.get(alias, 0) + count
        self.source_rows += progress.source_rows
        self.matches += progress.matches
        self.late += sum(progress.late.values())
        self.null_times += sum(progress.null_times.values())
        self.ahead += sum(progress.ahead.values())
        return True

    @property
    def known(self) -> bool:
        """Whether Spark has reported anything of the query."""
        return self.newest is not None or self.idle_since is not None

    @property
    def rows_in(self) -> int:
        """The rows read: of the streams of its W-joins, or of all sources where it has no W-join."""
        return sum(self.rows.values()) if self.rows else self.source_rows

    def line(self) -> str:
        """Return what has been done, in a few words."""
        if not self.rows_in:
            return "no new rows"
        rows = f"{counted(self.rows_in, 'row')} in"
        if self.rows:
            by_stream = ", ".join(f"{alias} {count:,}" for alias, count in sorted(self.rows.items()))
            rows = (
                f"{rows} ({by_stream}), {counted(self.matches, 'result')} of the join, {self.late:,} late,"
                f" {self.null_times:,} without event time"
            )
            if self.ahead:
                rows += f", {self.ahead:,} too far ahead"
        return f"{rows}, {counted(self.batches, 'micro-batch')}"


def _time(text: str) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None
