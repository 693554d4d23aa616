"""Progress of running queries: a live table on a terminal, lines of JSON elsewhere."""

import datetime
from types import TracebackType
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table

from wjoin.progress import Progress, read

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery


class LiveProgress:
    """Shows every micro-batch once as JSON, or the newest of each query in a table."""

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self._shown: dict[str, int] = {}
        self._totals: dict[str, tuple[int, int, int]] = {}
        self._newest: dict[str, Progress] = {}
        console = Console()
        self._live = (
            Live(console=console, refresh_per_second=4) if console.is_terminal and not as_json else None
        )

    def __enter__(self) -> "LiveProgress":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, queries: "list[StreamingQuery]") -> None:
        """Show what the queries have done since the last call."""
        for query in queries:
            for progress in query.recentProgress:
                self._add(str(query.id), read(progress))
        if self._live is not None and self._newest:
            self._live.update(self._table())

    def _add(self, query: str, progress: Progress) -> None:
        if progress.batch <= self._shown.get(query, -1):
            return
        self._shown[query] = progress.batch
        self._newest[query] = progress
        rows, matches, late = self._totals.get(query, (0, 0, 0))
        self._totals[query] = (
            rows + sum(progress.rows_in.values()),
            matches + progress.matches,
            late + sum(progress.late.values()),
        )
        if self._json:
            print(progress.as_json(), flush=True)

    def _table(self) -> Table:
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for name in (
            "query",
            "batch",
            "rows in",
            "matches",
            "rows/s",
            "state rows",
            "state",
            "watermark",
            "late",
        ):
            table.add_column(name, justify="left" if name in ("query", "watermark") else "right")
        for query, progress in self._newest.items():
            rows, matches, late = self._totals[query]
            table.add_row(
                progress.query,
                str(progress.batch),
                f"{rows:,}",
                f"{matches:,}",
                f"{progress.rows_per_second:,.0f}",
                f"{sum(progress.state_rows.values()):,}",
                f"{progress.state_bytes / 1e6:,.1f} MB",
                _watermark(progress),
                f"{late:,}",
            )
        return table


def _watermark(progress: Progress) -> str:
    """Return the least watermark of a query's streams, as a time where it can be one."""
    if not progress.watermarks:
        return ""
    least = min(progress.watermarks.values())
    if least < 10**14:
        return str(least)
    return str(datetime.datetime.fromtimestamp(least / 1e6, datetime.UTC).replace(tzinfo=None))
