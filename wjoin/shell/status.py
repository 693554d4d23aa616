"""The line below the prompt: what each running query does."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    from wjoin.measured.progress import Progress
    from wjoin.queries.running import Running

_SPAN = timedelta(seconds=10)
"""Over how long rows a second are counted."""


@dataclass(frozen=True)
class QueryStatus:
    """What a query does now; ``complete`` is τ, the time by which its results are complete, as text."""

    name: str
    state: str
    rows_per_second: float | None = None
    lag: float | None = None
    complete: str = ""

    def text(self) -> str:
        """Return it in a few words."""
        parts = [f"{self.name} {self.state}"]
        if self.rows_per_second is not None:
            parts.append(f"{self.rows_per_second:,.0f} rows/s")
        if self.lag is not None:
            parts.append(f"lag {_duration(self.lag)}")
        if self.complete:
            parts.append(f"τ {self.complete}")
        return "  ".join(parts)


def status_of(running: "Running") -> QueryStatus:
    """Return what a query does, from what Spark has reported of it."""
    running.followed.look()
    newest = running.totals.newest
    if newest is None:
        return QueryStatus(running.name, running.state)
    return QueryStatus(
        running.name,
        running.state,
        rate(running.followed.history, datetime.now(UTC)),
        max(newest.lag.values(), default=None),
        complete_text(newest, datetime.now(UTC)),
    )


def rate(history: "Iterable[Progress]", now: datetime) -> float:
    """Return the rows that have been read a second, over the micro-batches of the last ten seconds."""
    rows, begin, end = 0, now, now - _SPAN
    for each in reversed(list(history)):
        if each.idle or not each.started:
            continue
        began = datetime.fromisoformat(each.started).astimezone(UTC)
        ended = began + timedelta(seconds=each.seconds)
        if ended < now - _SPAN:
            break
        rows += sum(each.rows_in.values()) or each.source_rows
        begin, end = min(begin, began), max(end, ended)
    # A query that waits for rows reads none meanwhile; one that works has not yet told of its rows.
    seconds = (end - begin).total_seconds()
    return rows / seconds if rows and seconds > 0 else 0.0


def complete_text(newest: "Progress", now: datetime) -> str:
    """Return the time by which results are complete; without its date where that is today's."""
    # Imports Spark's client, which the first prompt does without.
    from wjoin.measured.progress import LEAST_TIMESTAMP, time_text

    time = newest.complete_until
    if time is None:
        return ""
    if time < LEAST_TIMESTAMP:
        return str(time)
    day, _, clock = time_text(time).partition(" ")
    clock = clock.partition(".")[0]
    return f"{clock} UTC" if day == f"{now:%Y-%m-%d}" else f"{day} {clock} UTC"


def _duration(seconds: float) -> str:
    """Return how far a stream is behind the clock, in the unit that tells it best."""
    for unit, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:,.1f} {name}"
    return f"{max(0.0, seconds):.1f} s"


def status_line(queries: Sequence[QueryStatus], width: int) -> str:
    """Return queries in one line that fits; how many more there are where it does not."""
    texts = [each.text() for each in queries]
    for shown in range(len(texts), 0, -1):
        left = len(texts) - shown
        line = "  │  ".join([*texts[:shown], *([f"{left} more"] if left else [])])
        if cell_len(line) <= width or shown == 1:
            return line
    return ""
