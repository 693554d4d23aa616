"""The line below the prompt: what each running query does."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    from wjoin.measured.progress import Progress
    from wjoin.queries.running import Running


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
            from wjoin.measured.progress import behind

            parts.append(f"lag {behind(self.lag)}")
        if self.complete:
            parts.append(f"τ {self.complete}")
        return "  ".join(parts)


def status_of(running: "Running") -> QueryStatus:
    """Return what a query does, from what Spark has reported of it."""
    running.followed.look()
    newest, state, now = running.totals.newest, running.state, datetime.now(UTC)
    if newest is None:
        return QueryStatus(running.name, state)
    recent = running.totals.history.read().present(now.timestamp(), rests=state == "idle")
    lag = max(newest.lag.values(), default=None)
    return QueryStatus(running.name, state, recent.rate(recent.rows_in), lag, complete_text(newest, now))


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


def status_line(queries: Sequence[QueryStatus], width: int) -> str:
    """Return queries in one line that fits; how many more there are where it does not."""
    texts = [each.text() for each in queries]
    for shown in range(len(texts), 0, -1):
        left = len(texts) - shown
        line = "  │  ".join([*texts[:shown], *([f"{left} more"] if left else [])])
        if cell_len(line) <= width or shown == 1:
            return line
    return ""
