"""Counts of a running join, carried to Spark's progress by ``DataFrame.observe``."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from wjoin.executor.layout import quoted
from wjoin.planner.physical import PhysicalPlan

PREFIX = "wjoin"
MEASURED = {
    "passed": "sum",
    "size": "sum",
    "counted": "sum",
    "distinct": "sum",
    "before": "max",
    "heaviest": "max",
    "earliest": "min",
}
"""What the statistics of a stream are measured by, and how the workers' values are put together."""

SUMMED = ("rows", "undated", "late", "kept", "kept_bytes")


def work_counts() -> list[str]:
    """Return the aggregates of a stage's output that tell its ``matches`` and ``comparisons``."""
    return [f"sum({name}) AS {name}" for name in ("matches", "comparisons")]


def observed(plan: PhysicalPlan, stage: int, joined: DataFrame, query: int, measured: bool) -> DataFrame:
    """Return a stage's output with its counts observed as ``wjoin:query:stage``.

    The observed row has ``matches`` and ``comparisons``, and for each stream of the stage, after a colon its
    alias: ``rows``, ``undated``, ``late``, ``kept``, ``kept_bytes`` (sums over workers),
    ``seen`` (greatest event time) and ``delay`` (its declared disorder). What an input of
    several streams keeps is counted at its first stream. Where ``measured``, there is of a stream
    that enters at this stage what is measured of it, too (see ``transport``): ``passed``, ``size``,
    ``counted`` and ``distinct`` (sums), ``before`` and ``heaviest`` (the greatest of the
    workers') and ``earliest`` (the least).
    """
    counts = work_counts()
    entering = {each.members[0] for each in plan.stages[stage].inputs if each.stage is None}
    for number in plan.stages[stage].members:
        scan = plan.streams[number]
        values = {name: f"sum(IF(stream = {number}, {name}, NULL))" for name in SUMMED}
        values["seen"] = f"max(IF(stream = {number}, seen, NULL))"
        values["delay"] = f"max({scan.delay}L)"
        for name, aggregate in MEASURED.items() if measured and number in entering else ():
            values[name] = f"{aggregate}(IF(stream = {number}, {name}, NULL))"
        counts += [f"{value} AS {quoted(f'{name}:{scan.alias}')}" for name, value in values.items()]
    # Every method of a Column is a round trip to the JVM; an expression is one in all.
    return joined.observe(f"{PREFIX}:{query}:{stage}", *map(F.expr, counts))
