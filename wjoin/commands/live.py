"""Progress of running queries: a live table on a terminal, lines of JSON, or what is being waited for."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table

from wjoin.commands.waiting import Waiting
from wjoin.executor.spark.beginning import tasks
from wjoin.grammar.shown import shown
from wjoin.measured.followed import Observer
from wjoin.measured.progress import Progress, time_text
from wjoin.measured.reports import Report
from wjoin.measured.totals import Totals
from wjoin.queries.running import Running

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

_COLUMNS = (
    "query",
    "batch",
    "rows in",
    "matches",
    "rows/s",
    "state rows",
    "state",
    "watermark",
    "late",
    "no time",
    "now",
)
_LEFT = ("query", "watermark", "now")


class LiveProgress:
    """Shows every report of Spark once as JSON, or what each query has done in a table on a terminal.

    Reports of a SELECT are on standard error, as its rows are on standard output.
    Elsewhere it says which first micro-batch is being waited for.
    """

    def __init__(self, as_json: bool, *, table: bool = True) -> None:
        self._json = as_json
        self._told: list[Running] = []
        console = Console(markup=False)
        drawn = table and console.is_terminal and not as_json
        self._live = Live(console=console, refresh_per_second=4) if drawn else None
        self._waiting: Waiting | None = None

    def __enter__(self) -> "LiveProgress":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wait_for([])
        if self._live is not None:
            self._live.stop()

    def show(self, running: Sequence[Running]) -> None:
        """Show what the queries have done since the last call."""
        for each in running:
            if self._json and not any(known is each for known in self._told):
                self._told.append(each)
                each.followed.observe(_Printed(sys.stdout if each.sink is not None else sys.stderr))
            each.followed.look()
        if self._live is not None:
            self._live.update(self._table(running))
        else:
            self._wait_for([each for each in running if not each.totals.known and each.query.isActive])

    def _wait_for(self, begun: Sequence[Running]) -> None:
        if begun and self._waiting is None:
            names = ", ".join(each.name for each in begun)
            first = begun[0].query
            self._waiting = Waiting(f"First micro-batch of {names}", lambda: _work(first)).__enter__()
        elif begun and self._waiting is not None:
            self._waiting.tick()
        elif self._waiting is not None:
            self._waiting.__exit__(None, None, None)
            self._waiting = None

    def _table(self, running: Sequence[Running]) -> Table:
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for name in _COLUMNS:
            table.add_column(name, justify="left" if name in _LEFT else "right")
        for each in running:
            table.add_row(shown(each.name), *_cells(each.totals), _now(each))
        return table


@dataclass(frozen=True)
class _Printed(Observer):
    """Prints each report as a line of JSON."""

    out: TextIO

    def take(self, report: Report) -> None:
        print(report.progress.as_json(), file=self.out, flush=True)


def _cells(totals: Totals) -> list[str]:
    """Return the counts of a query; of state and watermark the last that are known."""
    newest, total = totals.newest, totals.total
    if newest is None:
        return [""] * (len(_COLUMNS) - 2)
    return [
        str(newest.batch),
        f"{total.rows_read:,}",
        f"{total.matches:,}",
        f"{newest.rows_per_second:,.0f}",
        f"{total.rows_of_state:,}",
        f"{total.bytes_of_state / 1e6:,.1f} MB",
        _watermark(newest),
        f"{sum(total.late.values()):,}",
        f"{sum(total.null_times.values()):,}",
    ]


def _work(query: "StreamingQuery") -> str:
    """Return how much of its first micro-batch a query has done, empty where nobody tells."""
    done, most = tasks(query) or (0, 0)
    return f"{done} of {most} tasks" if most else ""


def _now(running: Running) -> str:
    """Return what a query is doing: its first micro-batch, rows, or nothing since when."""
    totals = running.totals
    if running.followed.ended is not None:
        return "ended"
    if not totals.known:
        doing = ", ".join(("first micro-batch", *filter(None, [_work(running.query)])))
        return f"{doing}, {time.monotonic() - running.began:.0f} s"
    if running.followed.works:
        return "running"
    if totals.idle_since is None:
        return "idle"
    local = totals.idle_since.astimezone()
    return f"{'idle' if totals.newest is not None else 'no new rows'} since {local:%H:%M:%S}"


def _watermark(progress: Progress) -> str:
    """Return the least watermark of a query's streams, as a time where it can be one."""
    if not progress.watermarks:
        return ""
    return time_text(min(progress.watermarks.values()))
