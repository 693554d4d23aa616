"""A SELECT over streams, shown while it runs."""

import contextlib
import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wjoin.commands.printed import start_showing
from wjoin.context import Asked
from wjoin.queries.running import Running
from wjoin.queries.texts import first_texts, numeric
from wjoin.shell.attended import Interrupts
from wjoin.shell.status import status_of
from wjoin.shell.tables import Rows
from wjoin.spark.failures import placed
from wjoin.statements.outcome import Selected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from wjoin.grammar.syntax import Statement

_POLL_SECONDS = 0.1
_STATUS_SECONDS = 1.0
_MODE = "STREAMING_OUTPUT_MODE"


@dataclass(frozen=True)
class Batch:
    """The rows of a micro-batch, as far as they are shown; ``count`` it has. ``whole``: all so far."""

    number: int
    shown: Rows
    count: int
    whole: bool


@dataclass(frozen=True)
class Watched:
    """A SELECT that runs, and the micro-batches that have come and not been shown yet."""

    running: Running
    batches: "queue.SimpleQueue[Batch]"


def fetched(frame: "DataFrame", most: int) -> Rows:
    """Return at most so many rows, and whether there are more."""
    return Rows(tuple(frame.columns), numeric(frame.schema), *first_texts(frame, most))


def start_watching(asked: Asked, statement: "Statement", selected: Selected, most: int) -> Watched:
    """Start a SELECT over streams.

    Its new rows are shown; of an aggregate that never ends its groups, all of them. Raises WJoinError WJ607.
    """
    from pyspark.errors import AnalysisException

    batches: queue.SimpleQueue[Batch] = queue.SimpleQueue()

    def start(mode: str) -> Watched:
        def show(rows: "DataFrame", number: int, count: int) -> None:
            batches.put(Batch(number, fetched(rows, most), count, mode == "complete"))

        query = start_showing(selected.frame, asked.settings.trigger(), show, mode)
        return Watched(selected.running(asked, statement, query), batches)

    with placed(asked.text, statement.span, "the SELECT"):
        try:
            return start("append")
        except AnalysisException as error:
            if not (error.getCondition() or "").startswith(_MODE):
                raise
            return start("complete")


def watch(
    watched: Watched, interrupts: Interrupts, show: Callable[[Batch], None], tell: Callable[[str], None]
) -> None:
    """Show micro-batches as they come, until the query ends or is interrupted; then stop it."""
    interrupts.count = 0
    rows, told = 0, 0.0
    while not interrupts.count and not interrupts.ended:
        with contextlib.suppress(queue.Empty):
            batch = watched.batches.get(timeout=_POLL_SECONDS)
            rows += batch.count
            show(batch)
        if time.monotonic() - told >= _STATUS_SECONDS:
            told = time.monotonic()
            if not watched.running.query.isActive:
                break
            found = f"{rows:,} row{'s' * (rows != 1)} found"
            tell(f"{status_of(watched.running).text()}  {found}  (Ctrl-C stops it)")


def rest(watched: Watched) -> Sequence[Batch]:
    """Return the micro-batches that have come and not been shown."""
    found = []
    while not watched.batches.empty():
        found.append(watched.batches.get())
    return found
