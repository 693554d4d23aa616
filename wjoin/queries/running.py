"""Queries that have been started, from their start to their end or failure."""

import datetime
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.shown import redacted
from wjoin.grammar.spans import Span
from wjoin.measured.followed import Followed, settle
from wjoin.measured.load import Load
from wjoin.measured.totals import Totals
from wjoin.planner.explain.describe import describe
from wjoin.queries.open_groups import waiting
from wjoin.queries.running_set import RunningSet
from wjoin.spark.spark_failures import RAISED_BY_SPARK, failure

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

    from wjoin.planner.explain.document import Document
    from wjoin.planner.planning import PlannedSelect


@dataclass
class Running:
    """A query, the statement that started it, and what it has done.

    ``name`` is that of its sink, with a number where an earlier query into it still runs. ``span`` is what
    an error of it is about, ``statement`` its whole statement, both of ``text``. ``sink`` and ``checkpoint``
    are None for a SELECT whose rows are printed. ``planned`` are its W-joins, innermost first, ``compiled``
    the numbers under which they were. ``append``: whether groups come out when they are complete, and once.
    ``of_set`` is the statement set that it is, ``changed`` whether that goes on as another query. ``load`` is
    what executors follow, None where they do not.
    """

    followed: Followed
    text: str = field(repr=False)
    span: Span
    statement: Span
    name: str = "SELECT"
    sink: str | None = None
    checkpoint: str | None = None
    planned: "tuple[PlannedSelect, ...]" = ()
    compiled: tuple[int, ...] = ()
    append: bool = True
    began: float = field(default_factory=time.monotonic)
    started: datetime.datetime = field(default_factory=lambda: datetime.datetime.now(datetime.UTC))
    stopped: bool = False
    of_set: RunningSet | None = None
    changed: bool = False
    load: Load | None = None

    @property
    def query(self) -> "StreamingQuery":
        """The query of Spark."""
        return self.followed.query

    @property
    def totals(self) -> Totals:
        """What it has done since its start."""
        return self.followed.totals

    @property
    def seconds(self) -> float | None:
        """How long it ran, None while it does."""
        return None if self.followed.ended is None else max(0.0, self.followed.ended - self.began)

    def documents(self) -> "tuple[Document, ...]":
        """Return how its W-joins are planned, innermost first."""
        return tuple(map(describe, self.planned))

    @property
    def state(self) -> str:
        """What it was doing at the last look, in a word: starting, running, idle; stopped, failed, ended."""
        if self.followed.ended is not None:
            return "failed" if self.failed is not None else "stopped" if self.stopped else "ended"
        if not self.totals.known:
            return "starting"
        return "running" if self.followed.works else "idle"

    @property
    def failed(self) -> WJoinError | None:
        """The query's failure, at its statement; None where it has not failed."""
        error = None if self.changed else self.followed.error or self.query.exception()
        return None if error is None else self._failure(error)

    def _failure(self, error: Exception) -> WJoinError:
        return failure(
            error, self.span, self.text, subject="the SELECT", sink=self.sink, checkpoint=self.checkpoint
        )

    @property
    def written(self) -> str:
        """Its statement as others may see it, without secrets."""
        return redacted(self.statement.of(self.text))

    def line(self) -> str:
        """Return what the query has done, in one line with its name."""
        return f"{self.name}: {self.done()}"

    def done(self) -> str:
        """Return what the query has done, in one line."""
        seconds = time.monotonic() - self.began if self.seconds is None else self.seconds
        failed = self.failed is not None
        done = self.totals.line()
        if (failed or self.stopped) and not self.totals.known:
            done = "no micro-batch has been reported"
        waiting = () if self.of_set is None else self.of_set.waiting()
        of_sinks = (f"{each.words} wait" for each in waiting)
        behind = self.followed.backlog.words if self.followed.ended is None else ""
        asked = "" if self.load is None else self.load.words
        for more in (self.waits, self.followed.silence.words, behind, asked, *of_sinks):
            done += f"; {more}" if more else ""
        return f"{'failed, ' if failed else ''}{done}, {seconds:.1f} s"

    @property
    def waits(self) -> str:
        """What it has read and not yet given, and for what that waits; empty where nothing does."""
        return waiting(self.totals.newest, self.planned) if self.append else ""

    def wait(self) -> None:
        """Wait until the query has ended. Raises WJoinError where it has failed."""
        try:
            self.query.awaitTermination()
        except RAISED_BY_SPARK as error:
            if not self.changed:
                raise self._failure(error) from error
        finally:
            settle()
        self.followed.look()

    def stop(self) -> None:
        """Stop the query where it still runs, without waiting for its micro-batch."""
        if self.query.isActive:
            self.stopped = True
            self.query.stop()
        # Whoever sees that it has ended has its last reports.
        self.followed.look()
