"""Running queries, followed to the end of the last: a live table on a terminal, or lines of JSON."""

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table

from wjoin.commands.waiting_note import waiting
from wjoin.executor.spark.beginning import tasks
from wjoin.grammar.shown import shown
from wjoin.measured.followed import Observer, settle
from wjoin.measured.progress import Progress, time_text
from wjoin.measured.reports import MicroBatchReport
from wjoin.measured.totals import Totals
from wjoin.queries.running import Running

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

_POLL_SECONDS = 0.3
_BROKEN = "BrokenPipeError: [Errno 32]"
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


def follow(running: Sequence[Running], out: TextIO, as_json: bool) -> None:
    """Show queries until all have ended, then a line on ``out`` for each; a failure ends the others.

    Raises the error of the first that failed, KeyboardInterrupt where it is stopped, and BrokenPipeError
    where nobody reads the rows of a SELECT any more.
    """
    if not running:
        return
    with _shown(running, as_json) as show:
        try:
            while any(each.query.isActive for each in running):
                show()
                if any(each.failed is not None for each in running):
                    break
                time.sleep(_POLL_SECONDS)
        finally:
            for each in running:
                each.stop()
            show()
            settle()
    if any(each.sink is None and _BROKEN in str(each.query.exception()) for each in running):
        raise BrokenPipeError
    report(running, out)
    for each in running:
        if (error := each.failed) is not None:
            raise error


def report(running: Sequence[Running], out: TextIO) -> None:
    """Print what queries have done, a line for each."""
    for each in running:
        print(shown(each.line()), file=out, flush=True)


@contextlib.contextmanager
def _shown(running: Sequence[Running], as_json: bool) -> Iterator[Callable[[], None]]:
    """Show inside what queries have done, whenever the function is called that this gives.

    Every report of Spark once as JSON, or what each query has done in a table on a terminal. Reports of a
    SELECT are on standard error, as its rows are on standard output. Elsewhere it says which first
    micro-batch is being waited for.
    """
    for each in running if as_json else ():
        each.followed.observe(_Printed(sys.stderr if each.sink is None else sys.stdout))
    console, waits = Console(markup=False), False
    drawn = all(each.sink is not None for each in running) and console.is_terminal and not as_json
    with contextlib.ExitStack() as first, contextlib.ExitStack() as stack:
        live = stack.enter_context(Live(console=console, refresh_per_second=4)) if drawn else None

        def show() -> None:
            nonlocal waits
            for each in running:
                each.followed.look()
            if live is not None:
                live.update(_table(running))
                return
            begun = [each for each in running if not each.totals.known and each.query.isActive]
            if begun and not waits:
                names = ", ".join(each.name for each in begun)
                work = functools.partial(_work, begun[0].query)
                first.enter_context(waiting(f"First micro-batch of {names}", work))
            elif not begun:
                first.close()
            waits = bool(begun)

        yield show


def _table(running: Sequence[Running]) -> Table:
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

    def take(self, report: MicroBatchReport) -> None:
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
