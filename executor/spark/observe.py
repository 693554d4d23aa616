"""Counts of a running join, carried to Spark's progress by ``DataFrame.observe``."""

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from wjoin.executor.report import COUNTERS, PLACES, Counter, Scope
from wjoin.executor.spark.messages import REPORT
from wjoin.planner.layout import quoted
from wjoin.planner.physical import PhysicalPlan

PREFIX = "wjoin"

MEASURED = tuple(each.name for each in COUNTERS if each.scope is Scope.STATISTICS)
"""What the statistics of a stream are measured by."""


def work_counts() -> list[str]:
    """Return the aggregates of a stage's output that tell what is counted of the stage."""
    counters = (each for each in COUNTERS if each.scope is Scope.STAGE)
    return [f"{_folded(each, f'kind = {REPORT}')} AS {each.name}" for each in counters]


def observed(plan: PhysicalPlan, stage: int, joined: DataFrame, query: int, measured: bool) -> DataFrame:
    """Return a stage's output with its counts observed as ``wjoin:query:stage``.

    The observed row has the counters of the stage (``executor.report``), and for each stream of the stage,
    after a colon its alias, those of a stream, and ``delay`` (its declared disorder). What an input of
    several streams keeps is counted at its first stream. Where ``measured``, there is of a stream that
    enters at this stage what its statistics follow from, too.
    """
    counts = work_counts()
    entering = {each.members[0] for each in plan.stages[stage].inputs if each.stage is None}
    for number in plan.stages[stage].members:
        values = dict(_of_stream(number, statistics=measured and number in entering))
        values["delay"] = f"max({plan.streams[number].delay}L)"
        alias = plan.streams[number].alias
        counts += [f"{value} AS {quoted(f'{name}:{alias}')}" for name, value in values.items()]
    # Every method of a Column is a round trip to the JVM; an expression is one in all.
    return joined.observe(f"{PREFIX}:{query}:{stage}", *map(F.expr, counts))


def _of_stream(number: int, *, statistics: bool) -> Iterator[tuple[str, str]]:
    scopes = (Scope.STREAM, Scope.STATISTICS) if statistics else (Scope.STREAM,)
    for each in COUNTERS:
        if each.scope in scopes:
            yield each.name, _folded(each, f"kind = {REPORT} AND number = {number}")


def _folded(counter: Counter, condition: str) -> str:
    return f"{counter.fold.value}(IF({condition}, counts[{PLACES[counter.name]}], NULL))"
