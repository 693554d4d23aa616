"""The reports of Spark on a query: the last ones, and those that are new to whoever asks.

PySpark 4.0 asks Java for each field of a report, half a second of both processes for one; its text is there
in three milliseconds.
"""

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress


def last_report(query: StreamingQuery) -> StreamingQueryProgress | None:
    """Return the newest report; None where there is none yet."""
    java = _java(query)
    if java is None:
        return query.lastProgress
    last = java.lastProgress()
    return None if last is None else _parsed(last)


def recent_reports(query: StreamingQuery) -> Sequence[StreamingQueryProgress]:
    """Return the reports that Spark keeps, a hundred at the most, oldest first."""
    java = _java(query)
    return query.recentProgress if java is None else [_parsed(each) for each in java.recentProgress()]


def new_reports(query: StreamingQuery, newest: int | None) -> Sequence[StreamingQueryProgress]:
    """Return the reports after that of micro-batch ``newest`` (None: all that Spark keeps), oldest first.

    Some that are known may be among them. Each costs milliseconds: mostly the last one is the only new one.
    """
    last = last_report(query)
    if last is None:
        return ()
    if newest is not None and last["batchId"] <= newest + 1:
        return (last,)
    return recent_reports(query)


def _java(query: StreamingQuery) -> Any:
    """Return the query in Java; None under Spark Connect, where reports come as text."""
    return getattr(query, "_jsq", None)


def _parsed(report: Any) -> StreamingQueryProgress:
    return StreamingQueryProgress.fromJson(json.loads(report.json()))
