"""Tells of queries that fall behind: ever more waits in their sources."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from wjoin.grammar.errors import WJoinWarning
from wjoin.grammar.plurals import counted, listed
from wjoin.measured.offsets import offsets_of
from wjoin.measured.progress import Progress, behind
from wjoin.measured.reports import MicroBatchReport
from wjoin.planner.figures import size
from wjoin.spark.notices import AGAIN_SECONDS, tell

RISES = 3
"""After so many rises, each above the one before, a query falls behind."""

GROWTH = 1.5
"""How many times as much must wait as before the rises: what waits always goes up and down a little."""

LEAST_LAG = 1.0
"""Seconds by which the newest row must be further behind the clock than before the rises."""

_PAUSE = 0.1
"""The share of its time for which a query that falls behind may rest."""

_BYTES = "bytes"


class Backlog:
    """What waits in the sources of one run of a query, as far as they tell.

    ``subject`` is the query in words. A backlog that a query begins with and works off is no reason to tell.
    Spark's source of files lists these when it has read all that it knows, so that what waits falls from one
    list to the next: only where it rises it is compared, with the rise before. A source that is read without
    a limit leaves nothing waiting: there the lag tells.
    """

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._waiting: Mapping[str, int] = {}
        self._base = self._peak = self._rises = 0
        self._last: int | None = None
        self._since = ""
        self._told = float("-inf")
        self._lag = _Lag()

    def take(self, report: MicroBatchReport) -> None:
        """Take what a report tells of the sources."""
        self._lag.take(report.progress)
        if report.progress.idle:
            self._waiting = {}
            self._base = self._peak = self._last = self._rises = 0
            return
        self._waiting = waiting(report.body)
        before, self._last = self._last, sum(self._counts.values())
        if before is None:
            self._peak = self._last
        if before is None or self._last <= before:
            return
        if self._last <= self._peak:
            self._rises, self._base = 0, self._last
        else:
            if not self._rises:
                self._since, self._base = str(report.body["timestamp"]), self._peak
            self._rises += 1
        self._peak = self._last

    @property
    def _counts(self) -> dict[str, int]:
        return {what: count for what, count in self._waiting.items() if what != _BYTES}

    @property
    def words(self) -> str:
        """How far the query is behind, and since when; empty where it is not."""
        if self._rises < RISES or self._peak < GROWTH * self._base or not self._waiting:
            return self._lag.words
        found = [counted(count, what.removesuffix("s")) for what, count in self._counts.items()]
        more = f" ({size(self._waiting[_BYTES])})" if _BYTES in self._waiting else ""
        return f"falls behind: {listed(found)}{more} wait, ever more since {self._since}"

    def tend(self) -> None:
        """Tell that the query falls behind, at most once a minute."""
        now = time.monotonic()
        if self.words and now - self._told >= AGAIN_SECONDS:
            self._told = now
            tell(WJoinWarning("WJ816", f"{self._subject} {self.words}"))

    def end(self) -> None:
        """Do nothing: an ended query falls behind no more."""


class _Lag:
    """How far the newest row is behind the clock after each micro-batch, of a query that never rests."""

    def __init__(self) -> None:
        self._before: Progress | None = None
        self._base = self._last = 0.0
        self._rises = 0
        self._since = ""

    def take(self, progress: Progress) -> None:
        """Take the counts of a micro-batch."""
        # A stream that is silent falls behind by itself.
        lag = min(progress.lag.values(), default=None)
        before, self._before = self._before, None if progress.idle or lag is None else progress
        if progress.idle or lag is None:
            self._rises = 0
            return
        if before is None or lag <= self._last or _rested(before, progress):
            self._rises, self._base, self._since = 0, lag, progress.started
        else:
            self._rises += 1
        self._last = lag

    @property
    def words(self) -> str:
        """How far the query is behind, and since when; empty where it is not."""
        if self._rises < RISES or self._last < max(GROWTH * self._base, self._base + LEAST_LAG):
            return ""
        newest = f"the newest row is {behind(self._last)} behind the clock"
        return f"falls behind: {newest}, ever more since {self._since}"


def _rested(before: Progress, progress: Progress) -> bool:
    """Return whether a query rested between two micro-batches."""
    ended, next_ended = before.ended, progress.ended
    if ended is None or next_ended is None:
        return True
    return next_ended - progress.seconds - ended > _PAUSE * progress.seconds


def waiting(body: Mapping[str, Any]) -> dict[str, int]:
    """Return what a report says that waits behind a micro-batch: files and their bytes, records of Kafka."""
    found: Counter[str] = Counter()
    for source in body.get("sources", ()):
        metrics = source.get("metrics") or {}
        for what, name in (("files", "numFilesOutstanding"), (_BYTES, "numBytesOutstanding")):
            found[what] += int(metrics.get(name) or 0)
        found["records"] += sum(_of_topics(source))
    return {what: count for what, count in found.items() if count > 0}


def _of_topics(source: Mapping[str, Any]) -> Iterator[int]:
    """Yield how many records of each partition have not been read, of a source that is Kafka."""
    read, latest = offsets_of(source.get("endOffset")), offsets_of(source.get("latestOffset"))
    for topic, partitions in latest.items():
        known = read.get(topic)
        if not isinstance(partitions, Mapping) or not isinstance(known, Mapping):
            continue
        for partition, offset in partitions.items():
            if isinstance(offset, int):
                yield max(0, offset - int(known.get(partition, offset)))
