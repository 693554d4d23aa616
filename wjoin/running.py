"""Queries that a script has started, from their start to their end or failure."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from wjoin.failures import failure
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.totals import Totals

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

    from wjoin.session import Session

_POLL_SECONDS = 0.3


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


def follow(session: "Session", running: Sequence[Running], out: TextIO, as_json: bool) -> None:
    """Show queries until all have ended, then a line on ``out`` for each; a failure ends the others.

    Raises the error of the first that failed, and KeyboardInterrupt where it is stopped.
    """
    from wjoin.live import LiveProgress

    if not running:
        return
    with LiveProgress(as_json, table=all(each.sink is not None for each in running)) as live:
        try:
            while any(each.query.isActive for each in running):
                live.show(running)
                if any(each.query.exception() is not None for each in running):
                    break
                for each in running:
                    if each.seconds is None and not each.query.isActive:
                        each.seconds = time.monotonic() - each.began
                time.sleep(_POLL_SECONDS)
        finally:
            for each in running:
                each.stop()
            live.show(running)
            session.settle()
    report(running, out)
    for each in running:
        if (error := each.failed) is not None:
            raise error


def report(running: Sequence[Running], out: TextIO) -> None:
    """Print what queries have done, a line for each."""
    for each in running:
        print(each.line(), file=out, flush=True)
