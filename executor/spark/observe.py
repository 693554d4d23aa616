"""Counts of a running join, carried to Spark's progress by ``DataFrame.observe``."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wjoin.planner.physical import PhysicalPlan

PREFIX = "wjoin"
SUMMED = ("rows", "undated", "late", "kept", "kept_bytes")


def observed(plan: PhysicalPlan, stage: int, joined: DataFrame, query: int) -> DataFrame:
    """Return a stage's output with its counts observed as ``wjoin:query:stage``.

    The observed row has ``matches`` and ``comparisons``, and for each stream of the stage, after a colon its
    alias: ``rows``, ``undated``, ``late``, ``kept``, ``kept_bytes`` (sums over workers),
    ``seen`` (greatest event time) and ``delay`` (its declared disorder). What an input of
    several streams keeps is counted at its first stream.
    """
    columns: list[Column] = [F.sum(name).alias(name) for name in ("matches", "comparisons")]
    for number in plan.stages[stage].members:
        scan = plan.streams[number]
        mine = F.col("stream") == number
        columns += [F.sum(F.when(mine, F.col(name))).alias(f"{name}:{scan.alias}") for name in SUMMED]
        columns.append(F.max(F.when(mine, F.col("seen"))).alias(f"seen:{scan.alias}"))
        columns.append(F.max(F.lit(scan.delay)).alias(f"delay:{scan.alias}"))
    return joined.observe(f"{PREFIX}:{query}:{stage}", *columns)
