"""How busy a join of streams keeps its workers, and how many it needs: `wjoin advise` and EXPLAIN COST."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from wjoin.context import Context
from wjoin.grammar.plurals import counted
from wjoin.planner.cost.shed_share import Thresholds, state_utilization
from wjoin.planner.cost.sizing import Sizing, sized
from wjoin.planner.explain.document import Document
from wjoin.planner.figures import figure, seconds, size
from wjoin.spark.cluster import partitions, weighed_with
from wjoin.spark.executors import executors


@dataclass(frozen=True)
class Machine:
    """What a join runs on, and what it shall come to.

    ``workers``: tasks that run at once, ``partitions`` of a shuffle, ``cores``: tasks of an executor, None
    where there are no executors. ``interval``: seconds of event time that a micro-batch is expected to bring;
    ``memory``: bytes that the state of a join may have, None for no limit.
    """

    workers: int
    partitions: int
    cores: int | None = None
    interval: float = 1.0
    memory: int | None = None
    thresholds: Thresholds = field(default_factory=Thresholds)


def advice(context: Context, documents: Sequence[Document], busy: str = "") -> str:
    """Return advice on the joins of a statement, on as many cores as Spark has.

    ``busy``: how busy its query was, in words, empty where that is not known.
    """
    spark, rules = context.engine.spark, context.settings.shedding()
    costs, found = weighed_with(spark, context.settings.costs()), executors(spark)
    cores = None if found is None else found.cores
    machine = Machine(costs.workers, partitions(spark), cores, costs.interval, rules.memory, rules.thresholds)
    return "\n".join([*(advice_text(each, machine) for each in documents), *([f"  {busy}"] if busy else [])])


def advice_text(document: Document, machine: Machine) -> str:
    """Return advice on a plan."""
    names = ", ".join(f"{each.alias} = {each.relation}" for each in document.streams)
    if not document.streaming or document.native or not document.stages:
        return f"{names}: no join of streams by wjoin's own stages"
    terms, expected = document.chosen.terms, machine.thresholds.expected
    found = sized(terms, machine.workers, machine.interval, expected)
    return "\n".join([names, *(f"  {line}" for line in _lines(document, found, machine))])


def _lines(document: Document, found: Sizing, machine: Machine) -> Iterator[str]:
    rate, per = sum(each.rate.value for each in document.statistics), document.per
    tasks, limits = counted(found.workers, "task"), machine.thresholds
    yield f"{figure(rate)} rows{per} keep {tasks} busy {found.utilization:.0%} of the time"
    if document.unknown:
        yield f"no statistics for {', '.join(document.unknown)}: run ANALYZE STREAM first"
    if math.isfinite(found.batch):
        yield f"a micro-batch takes {seconds(found.batch)}, if each begins when the one before has ended"
    if math.isfinite(found.limit):
        yield f"falls behind from {figure(rate * found.limit)} rows{per} on"
    yield _state(document, machine)
    needed = counted(found.needed, "task")
    if machine.cores is not None:
        needed += f", {counted(math.ceil(found.needed / machine.cores), 'executor')},"
    yield f"{needed} would be busy {limits.expected:.0%} of the time or less"
    if found.needed > machine.partitions:
        yield (
            f"spark.sql.shuffle.partitions is {machine.partitions}: set it to {found.needed} or more before "
            "the query starts; a query that has started needs a checkpoint from wjoin checkpoint repartition "
            f"OLD NEW --partitions {found.needed}"
        )


def _state(document: Document, machine: Machine) -> str:
    chosen, limits = document.chosen, machine.thresholds
    text = f"state: {counted(figure(chosen.state_rows), 'row')}, {size(chosen.state_bytes)}"
    if machine.memory is None:
        return text
    used = state_utilization(round(chosen.state_bytes), machine.memory)
    text += f", {used:.0%} of wjoin.memory"
    if used > limits.expected:
        text += f"; {size(chosen.state_bytes / limits.expected)} would make that {limits.expected:.0%}"
    return text
