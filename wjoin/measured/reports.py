"""The reports of Spark on a query that are new to whoever asks."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql.streaming import StreamingQuery


def new_reports(query: StreamingQuery, newest: int | None) -> Sequence[Any]:
    """Return the reports after that of micro-batch ``newest`` (None: all that Spark keeps), oldest first.

    Some that are known may be among them. Spark keeps a hundred, and each costs a millisecond: mostly the
    last one is the only new one.
    """
    last = query.lastProgress
    if last is None:
        return ()
    if newest is not None and last["batchId"] <= newest + 1:
        return (last,)
    return query.recentProgress
