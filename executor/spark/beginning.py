"""Streaming queries from their start to the first job of their first micro-batch.

Until then Spark plans, and waits ten seconds for a Python of its own: whatever begins beside it delays it.
"""

import time
import warnings
from collections.abc import Callable
from typing import Any

from pyspark import SparkContext, StatusTracker
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from wjoin.grammar.errors import WJoinWarning

TRIES = 5
"""How often a query is started that was not there in time."""

_LATE = ("Python worker failed to connect back", "STREAMING_PYTHON_RUNNER_INITIALIZATION_TIMEOUT_FAILURE")
_LOOK_SECONDS = 0.05
_MOST_SECONDS, _BLIND_SECONDS = 300.0, 15.0
"""How long the first job of a query is waited for, as listing a large source takes its time; and how long
where nobody tells of jobs, under Spark Connect."""

_WAITING = "Waiting"
"""With what Spark's word of a query begins that waits for rows, or for its next trigger."""


def begin(spark: SparkSession, start: Callable[[], StreamingQuery], what: str) -> StreamingQuery:
    """Start a query, and return it once it has begun: it has a job, or waits for rows, or has ended.

    It is started again where Spark's Python was not there in time, five times at most, with a warning that
    names it as ``what``. If it is interrupted meanwhile, it is stopped.
    """
    for number in range(2, TRIES + 1):
        query = _begun(spark, start())
        if not late(query.exception()):
            return query
        message = f"starting {what} again, {number} of {TRIES}: no Python worker started within ten seconds"
        # It is about no line of a program.
        warnings.warn_explicit(WJoinWarning("WJ814", message), WJoinWarning, "wjoin", 0)
    return _begun(spark, start())


def late(error: BaseException | None) -> bool:
    """Return whether a query has failed because a Python was not there in time."""
    return error is not None and any(words in str(error) for words in _LATE)


def _begun(spark: SparkSession, query: StreamingQuery) -> StreamingQuery:
    """Wait until a query has begun."""
    deadline = time.monotonic() + (_BLIND_SECONDS if tracker(spark) is None else _MOST_SECONDS)
    try:
        while query.isActive and time.monotonic() < deadline:
            if query.status["message"].startswith(_WAITING) or _has_jobs(spark, query):
                break
            time.sleep(_LOOK_SECONDS)
    except BaseException:
        query.stop()
        raise
    return query


def tracker(spark: SparkSession) -> StatusTracker | None:
    """Return what tells of Spark's jobs, None under Spark Connect."""
    context: Any = getattr(spark, "_sc", None)
    return None if context is None else context.statusTracker()


def tasks(query: StreamingQuery) -> tuple[int, int] | None:
    """Return how many tasks of a query have been done, and how many it has; None where nobody tells."""
    context: Any = SparkContext._active_spark_context
    if context is None:
        return None
    jobs = context.statusTracker()
    found = [jobs.getJobInfo(each) for each in jobs.getJobIdsForGroup(str(query.runId))]
    stages = [jobs.getStageInfo(each) for job in found if job is not None for each in job.stageIds]
    known = [each for each in stages if each is not None]
    return sum(each.numCompletedTasks for each in known), sum(each.numTasks for each in known)


def _has_jobs(spark: SparkSession, query: StreamingQuery) -> bool:
    jobs = tracker(spark)
    return jobs is not None and bool(jobs.getJobIdsForGroup(str(query.runId)))
