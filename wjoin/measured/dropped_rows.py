"""Tells of rows that running queries drop, whoever has started them: no row is dropped without a word."""

import time
from collections import Counter
from collections.abc import Mapping

from wjoin.grammar.errors import WJoinWarning
from wjoin.grammar.plurals import counted
from wjoin.measured.progress import losable, observations, time_text
from wjoin.measured.reports import MicroBatchReport
from wjoin.measured.totals import Totals
from wjoin.spark.notices import AGAIN_SECONDS, tell

_PASSED = "passed:"
"""With what the count of the rows begins that can be joined, before the alias of their stream."""


class Losses:
    """The rows that one run of a query has dropped.

    ``subject`` is the query in words, ``totals`` are its counts.
    """

    def __init__(self, subject: str, totals: Totals) -> None:
        self._subject = subject
        self._totals = totals
        self._losable: set[str] = set()
        self._furthest: dict[str, int] = {}
        self._passed: Counter[str] = Counter()
        self._told: Mapping[str, tuple[int, float]] = {}

    def take(self, report: MicroBatchReport) -> None:
        """Count what a micro-batch has dropped that the totals do not tell."""
        progress = report.progress
        if not progress.rows_in and not progress.source_rows:
            return
        self._losable |= losable(report.body)
        for alias, latest in progress.furthest.items():
            self._furthest[alias] = max(latest, self._furthest.get(alias, latest))
        for _, _, values in observations(report.body):
            for name, value in values.items():
                if name.startswith(_PASSED):
                    self._passed[name.removeprefix(_PASSED)] += value or 0

    def tend(self) -> None:
        """Tell of rows that have been dropped since they were last told of, a minute ago or more."""
        self._tell(time.monotonic())

    def end(self) -> None:
        """Tell of all that has not been told."""
        self._tell(None)
        total = self._totals.total
        for alias, passed in self._passed.items():
            dated = total.rows_in.get(alias, 0) - total.null_times.get(alias, 0) - total.ahead.get(alias, 0)
            if dated and not passed:
                message = f"{self._subject} could join none of {counted(dated, 'row')} of {alias}: "
                reasons = "each has a NULL in its key, or the filters remove it"
                self._tell_one(None, "WJ806", message + reasons, dated)

    def _tell(self, now: float | None) -> None:
        """Tell of rows dropped since they were last told of; ``now`` is None at the end of the query."""
        total = self._totals.total
        # Elsewhere Spark fails where records are lost: what is missing there never was one.
        lost = {each: count for each, count in total.missing.items() if self._may_lose(each)}
        gone = ": they were deleted before they were read, removed by compaction, or are transaction markers"
        for code, done, noun, kind, counts, more in (
            ("WJ803", "dropped", "late row", "", total.late, ""),
            ("WJ804", "dropped", "row", " without an event time", total.null_times, ""),
            ("WJ809", "dropped", "unreadable record", "", total.broken, ""),
            (
                "WJ807",
                "dropped",
                "row",
                " too far ahead",
                total.ahead,
                f", the furthest at {_times(self._furthest)}",
            ),
            ("WJ810", "has not found", "record", "", lost, gone),
        ):
            count = sum(counts.values())
            rows = f"{counted(count, noun)}{kind}{_by_stream(counts)}{more}"
            self._tell_one(now, code, f"{self._subject} {done} {rows}", count)
        by_spark = counted(total.dropped_by_spark, "row")
        message = (
            f"{self._subject} dropped {by_spark} in Spark's own operators, older than the watermark there"
        )
        self._tell_one(now, "WJ805", message, total.dropped_by_spark)

    def _may_lose(self, topics: str) -> bool:
        return not self._losable.isdisjoint(topics.split(", "))

    def _tell_one(self, now: float | None, code: str, message: str, count: int) -> None:
        told, when = self._told.get(code, (0, float("-inf")))
        if count > told and (now is None or now - when >= AGAIN_SECONDS):
            self._told = {**self._told, code: (count, now or 0.0)}
            tell(WJoinWarning(code, message))


def _times(found: Mapping[str, int]) -> str:
    """Return the event times of streams, by alias, as people read them."""
    return ", ".join(f"{time_text(latest)} in {alias}" for alias, latest in found.items())


def _by_stream(counts: Mapping[str, int]) -> str:
    found = [f"{count:,} of {alias}" for alias, count in counts.items() if count]
    return f" ({', '.join(found)})" if found else ""
