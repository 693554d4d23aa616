"""Counts of a running join, carried to Spark's progress by ``DataFrame.observe``."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from wjoin.executor.layout import quoted
from wjoin.planner.physical import PhysicalPlan

PREFIX = "wjoin"
SUMMED = ("rows", "undated", "late", "kept", "kept_bytes")


def work_counts() -> list[str]:
    """Return the aggregates of a stage's output that tell its ``matches`` and ``comparisons``."""
    return [f"sum({name}) AS {name}" for name in ("matches", "comparisons")]


def observed(plan: PhysicalPlan, stage: int, joined: DataFrame, query: int) -> DataFrame:
    """Return a stage's output with its counts observed as ``wjoin:query:stage``.

    The observed row has ``matches`` and ``comparisons``, and for each stream of the stage, after a colon its
    alias: ``rows``, ``undated``, ``late``, ``kept``, ``kept_bytes`` (sums over workers),
    ``seen`` (greatest event time) and ``delay`` (its declared disorder). What an input of
    several streams keeps is counted at its first stream.
    """
    counts = work_counts()
    for number in plan.stages[stage].members:
        scan = plan.streams[number]
        values = {name: f"sum(IF(stream = {number}, {name}, NULL))" for name in SUMMED}
        values["seen"] = f"max(IF(stream = {number}, seen, NULL))"
        values["delay"] = f"max({scan.delay}L)"
        counts += [f"{value} AS {quoted(f'{name}:{scan.alias}')}" for name, value in values.items()]
    # Every method of a Column is a round trip to the JVM; an expression is one in all.
    return joined.observe(f"{PREFIX}:{query}:{stage}", *map(F.expr, counts))
