"""The reports of Spark on a query that are new to whoever asks.

PySpark 4.0 asks Java for each field of a report, half a second of both processes for one; its text is there
in three milliseconds.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress

from wjoin.measured.progress import Progress, read


@dataclass(frozen=True)
class MicroBatchReport:
    """What Spark tells of a micro-batch, or of a time without one: as it came, and the counts in it."""

    body: StreamingQueryProgress
    progress: Progress


def last_report(query: StreamingQuery) -> StreamingQueryProgress | None:
    """Return the newest report; None where there is none yet."""
    java = _java(query)
    if java is None:
        return query.lastProgress
    last = java.lastProgress()
    return None if last is None else _parsed(last)


def recent_reports(query: StreamingQuery, after: Any = None) -> list[StreamingQueryProgress]:
    """Return the reports that Spark keeps (a hundred at most), oldest first; those ``after`` a known one."""
    java, found = _java(query), list[StreamingQueryProgress]()
    kept = query.recentProgress if java is None else java.recentProgress()
    # From the last one on: to read one of Java's costs milliseconds.
    for place in reversed(range(len(kept))):
        body = kept[place] if java is None else _parsed(kept[place])
        if after is not None and _key(body) == _key(after):
            break
        found.append(body)
    return found[::-1]


def new_reports(
    query: StreamingQuery, last: MicroBatchReport | None, newest: Progress | None
) -> Iterator[MicroBatchReport]:
    """Yield the reports after the ``last`` one that is known (None: all that Spark keeps), oldest first.

    ``newest`` are the counts of the last micro-batch. Mostly the last report is the only new one.
    """
    body = last_report(query)
    if body is None or (last is not None and _key(body) == _key(last.body)):
        return
    # A report of an idle time has the number of the micro-batch to come.
    follows = last is not None and body["batchId"] <= last.progress.batch + (not last.progress.idle)
    for each in [body] if follows else recent_reports(query, None if last is None else last.body):
        progress = read(each).after(newest)
        yield MicroBatchReport(each, progress)
        newest = newest if progress.idle else progress


def _key(body: Any) -> tuple[int, str]:
    """Return what a report is known by among those of its query."""
    return body["batchId"], body.get("timestamp", "")


def _java(query: StreamingQuery) -> Any:
    """Return the query in Java; None under Spark Connect, where reports come as text."""
    return getattr(query, "_jsq", None)


def _parsed(report: Any) -> StreamingQueryProgress:
    return StreamingQueryProgress.fromJson(json.loads(report.json()))
