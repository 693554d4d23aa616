"""Queries that a script has started, from their start to their end or failure."""

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wjoin.failures import failure
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.measured.totals import Totals

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery


@dataclass
class Running:
    """A query, the statement that started it, and what it has done.

    ``sink`` and ``checkpoint`` are None for a SELECT whose rows are printed.
    """

    query: "StreamingQuery"
    text: str
    span: Span
    sink: str | None = None
    checkpoint: str | None = None
    began: float = field(default_factory=time.monotonic)
    totals: Totals = field(default_factory=Totals)
    seconds: float | None = None
    stopped: bool = False

    @property
    def name(self) -> str:
        """What the query is called in reports."""
        return self.sink if self.sink is not None else "SELECT"

    @property
    def failed(self) -> WJoinError | None:
        """The query's failure, at its statement; None where it has not failed."""
        error = self.query.exception()
        if error is None:
            return None
        return failure(
            error, self.span, self.text, subject="the SELECT", sink=self.sink, checkpoint=self.checkpoint
        )

    def line(self) -> str:
        """Return what the query has done, in one line."""
        seconds = time.monotonic() - self.began if self.seconds is None else self.seconds
        failed = self.query.exception() is not None
        done = self.totals.line()
        if (failed or self.stopped) and not self.totals.known:
            done = "no micro-batch was completed"
        return f"{self.name}: {'failed, ' if failed else ''}{done}, {seconds:.1f} s"

    def stop(self) -> None:
        """Stop the query where it still runs, without waiting for its micro-batch."""
        if self.query.isActive:
            self.stopped = True
            self.query.stop()
        if self.seconds is None:
            self.seconds = time.monotonic() - self.began
