"""The rows of a stream that Spark's own operators read: those with an event time that can be true.

Pack does the same for wjoin's stages, and counts there.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from wjoin.executor.report import NOTHING_SEEN
from wjoin.executor.spark.observe import PREFIX
from wjoin.executor.spark.pack import AHEAD
from wjoin.planner.plan.ahead import too_far_ahead
from wjoin.planner.plan.block_columns import MICROSECONDS, event_time_expression, quoted
from wjoin.planner.plan.physical import PhysicalPlan, TimeKind


def dated_rows(plan: PhysicalPlan, stream: int, source: DataFrame, query: int) -> DataFrame:
    """Return the rows of a relation with an event time, under its alias.

    Of a stream those too far ahead are left out as well, and Spark's progress has the counts of both as
    ``wjoin:query:stream``.
    """
    scan = plan.streams[stream]
    time = event_time_expression(scan)
    rows = source.alias(scan.alias)
    if not scan.streaming:
        return rows.filter(F.expr(f"{time} IS NOT NULL"))
    return true_rows(rows, time, plan.time_kind, scan.ahead, f"{PREFIX}:{query}:{stream}", scan.alias)


def true_rows(
    rows: DataFrame,
    time: str,
    kind: TimeKind,
    ahead: int | None,
    name: str,
    subject: str,
    *,
    read: bool = False,
) -> DataFrame:
    """Return the rows of a stream whose event time can be true.

    Spark's progress has the counts of the others as ``name``, each after a colon with the ``subject``;
    ``read``: and their sum as that of rows read.
    """
    # Spark observes nothing that asks for the time of the micro-batch itself.
    rows = rows.select("*", F.expr(too_far_ahead(time, kind, ahead)).alias(AHEAD))
    number = MICROSECONDS[kind].format(time)
    counts = {
        "undated": f"count_if({time} IS NULL)",
        "ahead": f"count_if({AHEAD})",
        "furthest": f"coalesce(max(IF({AHEAD}, {number}, NULL)), {NOTHING_SEEN}L)",
    }
    if read:
        counts["rows"] = f"count_if({time} IS NULL OR {AHEAD})"
    observed = rows.observe(
        name, *(F.expr(f"{value} AS {quoted(f'{each}:{subject}')}") for each, value in counts.items())
    )
    return observed.filter(F.expr(f"{time} IS NOT NULL AND NOT {AHEAD}")).drop(AHEAD)
