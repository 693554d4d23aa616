"""The reports of Spark on a query that are new to whoever asks.

PySpark 4.0 asks Java for each field of a report, half a second of both processes for one; its text is there
in three milliseconds.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress

from wjoin.measured.progress import Progress, read


@dataclass(frozen=True)
class Report:
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


def recent_reports(query: StreamingQuery, newest: int | None = None) -> Sequence[StreamingQueryProgress]:
    """Return the reports that Spark keeps, a hundred at the most, oldest first.

    Those before that of micro-batch ``newest`` may be left out: to read one costs milliseconds.
    """
    java = _java(query)
    if java is None:
        return query.recentProgress
    kept, found = java.recentProgress(), list[StreamingQueryProgress]()
    for place in reversed(range(len(kept))):
        found.append(_parsed(kept[place]))
        if newest is not None and found[-1]["batchId"] <= newest:
            break
    return found[::-1]


def new_reports(query: StreamingQuery, newest: Progress | None) -> Iterator[Report]:
    """Yield the reports after that of a micro-batch (None: all that Spark keeps), oldest first.

    Some that are known may be among them. Mostly the last one is the only new one.
    """
    last = last_report(query)
    if last is None:
        return
    if newest is not None and last["batchId"] <= newest.batch + 1:
        bodies: Sequence[StreamingQueryProgress] = (last,)
    else:
        bodies = recent_reports(query, None if newest is None else newest.batch)
    for body in bodies:
        progress = read(body).after(newest)
        yield Report(body, progress)
        newest = newest if progress.idle else progress


def _java(query: StreamingQuery) -> Any:
    """Return the query in Java; None under Spark Connect, where reports come as text."""
    return getattr(query, "_jsq", None)


def _parsed(report: Any) -> StreamingQueryProgress:
    return StreamingQueryProgress.fromJson(json.loads(report.json()))
