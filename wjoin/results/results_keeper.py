"""What a running query does for a sink that keeps its results for a time: notes commits, lets old ones go.

Spark's own option ``retention`` takes files out of the log of its file sink, each time that it compacts it;
it removes none. They are removed here once nobody can find them in the log any more, and whoever has found
them before has had the grace time to read them.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from wjoin.grammar.errors import WJoinError, WJoinWarning
from wjoin.measured.beside import UNREACHABLE
from wjoin.measured.followed import Observer
from wjoin.measured.reports import MicroBatchReport
from wjoin.results.commit_log import CommitLog
from wjoin.results.commits import Commit, KeptResults, forgotten_before, path_of
from wjoin.sources.catalog import SinkDeclaration
from wjoin.spark.notices import tell
from wjoin.spark.spark_failures import first_line

_MOST = 64
"""Micro-batches in a file of the index at the most."""

_PARTS = 16
"""Files of the index in the time to keep, at the least: what is removed is a whole one."""

_TICK_SECONDS = 0.2
"""How long old files are removed at once: others wait for the thread that follows queries."""

_END_SECONDS = 5.0
"""The same at the end of a query, which may be one of many short runs."""


_FAILS = 4
"""Tries that fail one after the other until that is told."""


class ResultsKeeper(Observer):
    """Follows a query for one sink; ``most`` are the micro-batches in a file of its index.

    ``now`` tells the time, in milliseconds since 1970.
    """

    def __init__(
        self, name: str, log: CommitLog, kept: KeptResults, most: int, now: Callable[[], int] | None = None
    ) -> None:
        self._name, self._log, self._kept, self._most = name, log, kept, most
        self._now = now or milliseconds
        self._segments: deque[tuple[str, int]] = deque()
        self._compacted: list[int] = []
        self._last: Commit | None = None
        self._due = True
        self._removing: Iterator[None] | None = None
        self._failed = 0
        for segment in log.segments():
            self._note(segment, log.segment(segment)[0])
        self._index()

    def take(self, report: MicroBatchReport) -> None:
        """Take a report."""
        self._due = self._due or not report.progress.idle

    def tend(self) -> None:
        """Note what has been committed, and remove some of what is old."""
        self._work(_TICK_SECONDS)

    def end(self) -> None:
        """Do both the last time."""
        self._due = True
        self._work(_END_SECONDS)

    def _work(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        try:
            if self._due:
                self._due = False
                self._index()
                self._removing = self._removing or self._remove()
            for _ in self._removing or ():
                if time.monotonic() > until:
                    break
            else:
                self._removing = None
            self._failed = 0
        except (*UNREACHABLE, ValueError, WJoinError) as error:
            # Spark removes entries of its log meanwhile: the next try may go well.
            self._due, self._removing = True, None
            self._failed += 1
            if self._failed == _FAILS:
                message = f"old results of {self._name} are kept: {first_line(error)}"
                remedy = "see that the folder can be read and written; the next micro-batch tries it again"
                tell(WJoinWarning("WJ817", message, help=remedy))

    def _index(self) -> None:
        """Write the commits that are not in the index, once they are many or old."""
        waiting = self._log.waiting(-1 if self._last is None else self._last.number)
        old = self._now() - self._kept.times.time // _PARTS
        if waiting and (len(waiting) >= self._most or waiting[0] <= old):
            commits = self._log.tail(self._last)
            for start in range(0, len(commits), self._most):
                part = commits[start : start + self._most]
                gone = None if self._last is None else self._last.at
                self._note(self._log.extend(part, gone), part)

    def _note(self, segment: str, commits: Sequence[Commit]) -> None:
        self._last = commits[-1]
        self._segments.append((segment, self._last.at))
        self._compacted += [each.at for each in commits if each.compacted]

    def _remove(self) -> Iterator[None]:
        """Remove what nobody can need, file by file; what is left of it is removed at the next start.

        The newest file of the index stays: it tells where the next one begins.
        """
        before = forgotten_before(self._compacted, self._kept, self._now())
        named: set[str] | None = None
        while len(self._segments) > 1 and self._segments[0][1] < before:
            segment, _ = self._segments[0]
            lines = [line for commit in self._log.segment(segment)[0] for line in commit.lines]
            named = self._log.named() if named is None else named
            if not named.isdisjoint(lines):
                return
            for line in lines:
                self._log.files.remove(path_of(line))
                yield
            self._log.drop(segment)
            self._segments.popleft()
        self._compacted = [at for at in self._compacted if at >= before]


def keepers(spark: SparkSession, sinks: Sequence[tuple[SinkDeclaration, StructType]]) -> list[ResultsKeeper]:
    """Return who keeps the results of the sinks that RETAIN them, whose rows have a schema each.

    What they keep is written down before a query starts. Raises WJoinError WJ606 under Spark Connect.
    """
    found = []
    for sink, schema in sinks:
        log = CommitLog.of(spark, sink)
        if sink.retain is not None and log is None:
            message = f"the sink {sink.name} has RETAIN, which a session of Spark Connect cannot keep"
            raise WJoinError("WJ606", message, help="run it where Spark's driver runs, or leave RETAIN out")
        if log is not None and sink.retain is None:
            log.keep_no_more()
        elif log is not None and sink.retain is not None:
            kept = KeptResults(sink.retain, schema.json(), milliseconds())
            log.keep(kept)
            # Spark's log keeps so many entries at the least when it has compacted them.
            least = int(spark.conf.get("spark.sql.streaming.minBatchesToRetain") or "100")
            found.append(ResultsKeeper(sink.name, log, log.kept or kept, max(1, min(_MOST, least // 2))))
    return found


def milliseconds() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
