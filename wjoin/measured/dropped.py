"""Tells of rows that running queries drop, whoever has started them: no row is dropped without a word.

Progress is asked for now and then. A listener would be told of every micro-batch, but what PySpark does for
one costs as much as a small micro-batch itself.
"""

import atexit
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from wjoin.executor.spark.once import SELECT
from wjoin.grammar.errors import WJoinWarning
from wjoin.measured.beside import UNREACHABLE
from wjoin.measured.progress import losable, observations, read
from wjoin.measured.reports import last_report, recent_reports
from wjoin.planner.plan.ahead import GREATEST_NUMBER
from wjoin.spark.notices import tell

_SECONDS = 0.5
"""How often queries are looked at: hardly one that can have late rows is shorter."""

_SWEEP_SECONDS = 10.0
"""How often the micro-batches between two looks are read, too: Spark keeps the last hundred."""

_REMEMBERED = 1000
"""Numbers of micro-batches that are remembered as read."""

_PASSED = "passed:"
"""With what the count of the rows begins that can be joined, before the alias of their stream."""

_AGAIN_SECONDS = 60.0
"""When a query that goes on dropping rows is told of again."""

_watches: "WeakKeyDictionary[SparkSession, Watch]" = WeakKeyDictionary()


def watch(spark: SparkSession, query: StreamingQuery | None = None) -> None:
    """Tell from now on of rows that the queries of a session drop; ``query`` is one that has just started."""
    known = _watches.get(spark)
    if known is None or not known.is_alive():
        known = _watches[spark] = Watch(spark)
        known.start()
    if query is not None:
        known.add(query)


def unwatch(spark: SparkSession) -> None:
    """Look at the queries of a session no more."""
    known = _watches.pop(spark, None)
    if known is not None:
        known.finish()
        known.ended.set()


@atexit.register
def settle() -> None:
    """Tell what the queries of all sessions have dropped until now."""
    for each in list(_watches.values()):
        each.finish()


class Watch(threading.Thread):
    """Looks at the queries of one session until that has ended."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(name="wjoin-watch", daemon=True)
        self._spark = spark
        self._queries: dict[str, Losses] = {}
        self._looking = threading.Lock()
        self.ended = threading.Event()

    def run(self) -> None:
        """Look at the queries, again and again."""
        # Once the session has ended its queries have, too.
        with contextlib.suppress(*UNREACHABLE):
            while not self.ended.is_set():
                with self._looking:
                    self.look()
                self.ended.wait(_SECONDS)

    def add(self, query: StreamingQuery) -> None:
        """Look at a query from now on."""
        with self._looking:
            self._queries.setdefault(str(query.runId), Losses(query))

    def look(self) -> None:
        """Look at the queries once."""
        for query in self._spark.streams.active:
            self._queries.setdefault(str(query.runId), Losses(query))
        for losses in self._queries.values():
            losses.look()
        for run, losses in list(self._queries.items()):
            if not losses.query.isActive:
                losses.end()
                del self._queries[run]

    def finish(self) -> None:
        """Tell what the queries have dropped until now."""
        with contextlib.suppress(*UNREACHABLE), self._looking:
            for losses in self._queries.values():
                losses.end()


class Losses:
    """The rows that one run of a query has dropped."""

    def __init__(self, query: StreamingQuery) -> None:
        self.query = query
        self._seen: set[int] = set()
        self._late: Counter[str] = Counter()
        self._undated: Counter[str] = Counter()
        self._ahead: Counter[str] = Counter()
        self._broken: Counter[str] = Counter()
        self._missing: Counter[str] = Counter()
        self._losable: set[str] = set()
        self._furthest: dict[str, int] = {}
        self._by_spark = 0
        self._rows: Counter[str] = Counter()
        self._passed: Counter[str] = Counter()
        self._told: Mapping[str, tuple[int, float]] = {}
        self._swept = time.monotonic()

    def look(self) -> None:
        """Take what the newest micro-batch tells, now and then what those before it told, and tell of it."""
        now = time.monotonic()
        self._take(last_report(self.query))
        if now - self._swept >= _SWEEP_SECONDS:
            self._sweep()
            self._swept = now
        self._tell(now)

    def end(self) -> None:
        """Take what all the last micro-batches tell, and tell of what has not been told."""
        self._sweep()
        self._tell(None)
        for alias, passed in self._passed.items():
            dated = self._rows[alias] - self._undated[alias] - self._ahead[alias]
            if dated and not passed:
                message = f"none of {dated:,} rows of {alias} in {self._subject()} could be joined: "
                remaining = "each has a NULL in its key, or is removed by the filters"
                self._tell_one(None, "WJ806", message + remaining, dated)

    def _sweep(self) -> None:
        for report in recent_reports(self.query):
            self._take(report)
        newest = max(self._seen, default=0)
        self._seen = {batch for batch in self._seen if batch > newest - _REMEMBERED}

    def _take(self, report: Any) -> None:
        if report is None or report["batchId"] in self._seen:
            return
        progress = read(report)
        if not progress.rows_in and not progress.source_rows:
            # A report of an idle query has the number of the micro-batch to come.
            return
        self._seen.add(progress.batch)
        self._late.update(progress.late)
        self._undated.update(progress.null_times)
        self._ahead.update(progress.ahead)
        self._broken.update(progress.broken)
        self._missing.update(progress.missing)
        self._losable |= losable(report)
        for alias, latest in progress.furthest.items():
            self._furthest[alias] = max(latest, self._furthest.get(alias, latest))
        self._rows.update(progress.rows_in)
        for _, _, values in observations(report):
            for name, value in values.items():
                if name.startswith(_PASSED):
                    self._passed[name.removeprefix(_PASSED)] += value or 0
        self._by_spark += progress.dropped_by_spark

    def _tell(self, now: float | None) -> None:
        """Tell of rows dropped since they were last told of; ``now`` is None at the end of the query."""
        dropped = f"{self._subject()} has dropped"
        late, undated = self._late, self._undated
        self._tell_one(now, "WJ803", f"{dropped} {{}} late rows{_by_stream(late)}", late.total())
        self._tell_one(
            now, "WJ804", f"{dropped} {{}} rows without an event time{_by_stream(undated)}", undated.total()
        )
        broken = self._broken
        self._tell_one(
            now, "WJ809", f"{dropped} {{}} records that cannot be read{_by_stream(broken)}", broken.total()
        )
        # Elsewhere Spark fails where records are lost: what is missing there never was one.
        lost = Counter({each: count for each, count in self._missing.items() if self._may_lose(each)})
        self._tell_one(
            now,
            "WJ810",
            f"{self._subject()} has not found {{}} records{_by_stream(lost)}: they were gone before they "
            "were read, or removed by compaction, or are marks of transactions",
            lost.total(),
        )
        far = f"rows too far ahead{_by_stream(self._ahead)}, the furthest at {_times(self._furthest)}"
        self._tell_one(now, "WJ807", f"{dropped} {{}} {far}", self._ahead.total())
        self._tell_one(
            now,
            "WJ805",
            f"{dropped} {{}} rows in operators of Spark's own, older than the watermark there",
            self._by_spark,
        )

    def _may_lose(self, topics: str) -> bool:
        return not self._losable.isdisjoint(topics.split(", "))

    def _subject(self) -> str:
        name = self.query.name or str(self.query.id)
        return "the SELECT" if name.startswith(SELECT) else f"the query {name}"

    def _tell_one(self, now: float | None, code: str, message: str, count: int) -> None:
        told, when = self._told.get(code, (0, float("-inf")))
        if count > told and (now is None or now - when >= _AGAIN_SECONDS):
            self._told = {**self._told, code: (count, now or 0.0)}
            tell(WJoinWarning(code, message.format(f"{count:,}")))


def _times(found: Mapping[str, int]) -> str:
    """Return the event times of streams, by alias, as people read them."""
    return ", ".join(f"{_instant(latest)} in {alias}" for alias, latest in found.items())


def _instant(latest: int) -> str:
    """Return an event time too far ahead; a number where it may be an integral one.

    >>> _instant(1_714_557_600_250 * 1_000_000)  # milliseconds that were read as seconds
    '56302-03-03 16:04:10'
    """
    if latest > GREATEST_NUMBER:
        return str(latest)
    # Years of five digits are none of datetime's.
    whole, rest = divmod(latest, 1_000_000)
    fraction = f".{rest:06}" if rest else ""
    return str(np.datetime64(whole, "s")).replace("T", " ") + fraction


def _by_stream(counts: Counter[str]) -> str:
    found = [f"{count:,} of {alias}" for alias, count in counts.items() if count]
    return f" ({', '.join(found)})" if found else ""
