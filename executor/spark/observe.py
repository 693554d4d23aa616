"""Counts of a running join, carried to Spark's progress by ``DataFrame.observe``."""

import json
from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from wjoin.executor.report import COUNTERS, PLACES, CounterScope, Fold
from wjoin.executor.spark.messages import REPORT
from wjoin.planner.plan.physical import PhysicalPlan

PREFIX = "wjoin"

REPORTED = f"IF(kind = {REPORT}, counts, NULL)"
"""The values of a report among messages, NULL of any other."""


def reported_to(worker: int) -> str:
    """Return the same of the reports to one worker."""
    return f"IF(kind = {REPORT} AND worker = {worker}, counts, NULL)"


COUNTS = "counts"
"""The column of an observed row that has all counts of a stage, by name."""

MEASURED = tuple(each.name for each in COUNTERS if each.scope is CounterScope.STATISTICS)
"""What the statistics of a stream are measured by."""


def work_counts(reported: str) -> list[str]:
    """Return the aggregates of a stage's output that tell what is counted of the stage.

    ``reported``: the values of a report in a row of the output, NULL where it is none.
    """
    counters = (each for each in COUNTERS if each.scope is CounterScope.STAGE)
    return [f"{each.fold.value}(({reported})[{PLACES[each.name]}]) AS {each.name}" for each in counters]


BY_NODE = ("homed", "visits", "summary_bytes")
"""The counters of an approximate join that are told by node, too: the name, ``@``, and the node's number."""

_MOST_NODES = 64


def observed(
    plan: PhysicalPlan, stage: int, joined: DataFrame, query: int, reported: str, nodes: int = 0
) -> DataFrame:
    """Return a stage's output with its counts observed as ``wjoin:query:stage``.

    The observed row has a map, ``counts``: the counters of the stage (``executor.report``), and for each
    stream of the stage, after a colon its alias, those of a stream, and of one that enters at this stage
    what its statistics follow from. What an input of several streams keeps is counted at its first
    stream. What nobody reported is NULL. ``joined`` has one report of each worker, in which the values
    of the stage come first, and then those of its streams; ``reported`` as in ``work_counts``. What
    is told by node is so of so many ``nodes``, 0 of an exact join.
    """
    # One aggregate in all: Spark plans each anew in every micro-batch, and each task compiles it.
    reports = f"collect_list({reported})"
    told = json.dumps([*_told(plan, stage), *_by_node(nodes)])
    # As bytes: what stands in quotes has another meaning with other settings of Spark.
    text = f"CAST(X'{told.encode().hex()}' AS STRING)"
    wanted = f"from_json({text}, 'ARRAY<STRUCT<name: STRING, place: INT, fold: STRING, node: INT>>')"
    meant = (
        f"filter(reports, one -> each.node IS NULL OR one[{PLACES['node']}] = each.node)"
        if nodes
        else "reports"
    )
    own = f"transform({meant}, one -> one[each.place])"
    folded = (
        "CASE WHEN size(reports) = 0 THEN NULL "
        f"WHEN each.fold = '{Fold.MAX.value}' THEN array_max({own}) "
        f"WHEN each.fold = '{Fold.MIN.value}' THEN array_min({own}) "
        "ELSE aggregate(reports, 0L, (sum, one) -> sum + one[each.place]) END"
    )
    counts = f"map_from_entries(transform({wanted}, each -> struct(each.name, {folded})))"
    # The array of one element binds a name. Every method of a Column would be a round trip to the JVM.
    bound = f"transform(array({reports}), reports -> {counts})[0] AS {COUNTS}"
    return joined.observe(f"{PREFIX}:{query}:{stage}", F.expr(bound))


def _told(plan: PhysicalPlan, stage: int) -> Iterator[dict[str, object]]:
    """Yield the name, the place in a report and the fold of each value that is told of a stage."""
    yield from _of(0, "", CounterScope.STAGE)
    entering = {each.members[0] for each in plan.stages[stage].inputs if each.stage is None}
    for place, number in enumerate(plan.stages[stage].members, start=1):
        scopes = (CounterScope.STREAM, *([CounterScope.STATISTICS] if number in entering else []))
        yield from _of(place, f":{plan.streams[number].alias}", *scopes)


def _by_node(nodes: int) -> Iterator[dict[str, object]]:
    for node in range(min(nodes, _MOST_NODES)):
        for name in BY_NODE:
            yield {"name": f"{name}@{node}", "place": PLACES[name], "fold": Fold.SUM.value, "node": node}


def _of(report: int, subject: str, *scopes: CounterScope) -> Iterator[dict[str, object]]:
    for each in COUNTERS:
        if each.scope not in scopes:
            continue
        place = report * len(COUNTERS) + PLACES[each.name]
        yield {"name": f"{each.name}{subject}", "place": place, "fold": each.fold.value}
