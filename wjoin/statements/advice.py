"""How busy a join of streams keeps its workers, and how many it needs: `wjoin advise` and EXPLAIN COST."""

import math
from collections.abc import Iterator, Sequence

from wjoin.context import Context
from wjoin.grammar.plurals import counted
from wjoin.planner.cost.sizing import EXPECTED, Sizing, sized
from wjoin.planner.explain.document import Document
from wjoin.planner.figures import figure, seconds, size
from wjoin.spark.cluster import partitions, weighed_with


def advice(context: Context, documents: Sequence[Document]) -> str:
    """Return advice on the joins of a statement, on as many cores as Spark has."""
    spark = context.engine.spark
    costs = weighed_with(spark, context.settings.costs())
    most = partitions(spark)
    return "\n".join(advice_text(each, costs.workers, most, costs.interval) for each in documents)


def advice_text(document: Document, workers: int, partitions: int, interval: float) -> str:
    """Return advice on a plan for ``workers`` tasks that run at once and so many shuffle partitions.

    ``interval``: seconds of event time that a micro-batch is expected to bring.
    """
    names = ", ".join(f"{each.alias} = {each.relation}" for each in document.streams)
    if not document.streaming or document.native or not document.stages:
        return f"{names}: no join of streams by wjoin's own stages"
    found = sized(document.chosen.terms, workers, interval)
    return "\n".join([names, *(f"  {line}" for line in _lines(document, found, partitions))])


def _lines(document: Document, found: Sizing, partitions: int) -> Iterator[str]:
    rate, per = sum(each.rate.value for each in document.statistics), document.per
    tasks = counted(found.workers, "task")
    yield f"{figure(rate)} rows{per} keep {tasks} busy {found.utilization:.0%} of the time"
    if document.unknown:
        yield f"no statistics for {', '.join(document.unknown)}: run ANALYZE STREAM first"
    if math.isfinite(found.batch):
        yield f"a micro-batch takes {seconds(found.batch)}, if each begins when the one before has ended"
    if math.isfinite(found.limit):
        yield f"falls behind from {figure(rate * found.limit)} rows{per} on"
    chosen = document.chosen
    yield f"state: {counted(figure(chosen.state_rows), 'row')}, {size(chosen.state_bytes)}"
    yield f"{counted(found.needed, 'task')} would be busy {EXPECTED:.0%} of the time or less"
    if found.needed > partitions:
        yield (
            f"spark.sql.shuffle.partitions is {partitions}: set it to {found.needed} or more before the "
            "query starts; wjoin checkpoint repartition rewrites a checkpoint"
        )
