"""The line below the prompt: what each running query does."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    from wjoin.measured.progress import Progress
    from wjoin.queries.running import Running


def status_text(running: "Running") -> str:
    """Return in a few words what a query does, from what its follower knows of it.

    τ is the time by which its results are complete.
    """
    # Imports Spark's client, which the first prompt does without.
    from wjoin.measured.progress import behind

    newest, state, now = running.totals.newest, running.state, datetime.now(UTC)
    parts = [f"{running.name} {state}"]
    if newest is not None:
        recent = running.totals.hour().present(now.timestamp(), rests=state == "idle")
        parts.append(f"{recent.rate(recent.rows_read):,.0f} rows/s")
        if newest.lag:
            parts.append(f"lag {behind(max(newest.lag.values()))}")
        if complete := complete_text(newest, now):
            parts.append(f"τ {complete}")
    return "  ".join(parts)


def complete_text(newest: "Progress", now: datetime) -> str:
    """Return the time by which results are complete; without its date where that is today's."""
    from wjoin.measured.progress import LEAST_TIMESTAMP, time_text

    time = newest.complete_until
    if time is None:
        return ""
    if time < LEAST_TIMESTAMP:
        return str(time)
    day, _, clock = time_text(time).partition(" ")
    clock = clock.partition(".")[0]
    return f"{clock} UTC" if day == f"{now:%Y-%m-%d}" else f"{day} {clock} UTC"


def status_line(texts: Sequence[str], width: int) -> str:
    """Return what queries do in one line that fits; how many more there are where it does not."""
    for shown in range(len(texts), 0, -1):
        left = len(texts) - shown
        line = "  │  ".join([*texts[:shown], *([f"{left} more"] if left else [])])
        if cell_len(line) <= width or shown == 1:
            return line
    return ""
