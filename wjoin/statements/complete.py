"""A run to the end of its streams: one more micro-batch decides what waits for rows that no longer come."""

from collections.abc import Sequence

from wjoin.context import Asked
from wjoin.executor.state.starting import STATE
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.syntax import InsertInto, Statement, StatementSet
from wjoin.measured.ended_streams import end_streams
from wjoin.planner.plan.edges import held_for
from wjoin.planner.plan.physical import Join, PhysicalPlan
from wjoin.queries.running import Running
from wjoin.spark.hadoop_files import Files
from wjoin.statements.statement_sets import execute_set, run_insert


def completed(asked: Asked, statement: Statement, ran: Sequence[Running]) -> list[Running]:
    """Start queries again that have read all there is, with a micro-batch with which all streams end.

    Those are left out in which nothing waits: none of their joins tells what has no partner or counts rows,
    or they have read nothing. Raises WJoinError WJ727 where the state of one is in Spark's store.
    """
    return (
        []
        if not isinstance(statement, InsertInto | StatementSet)
        else [last for each in ran if (last := _completed(asked, statement, each)) is not None]
    )


def _completed(asked: Asked, statement: InsertInto | StatementSet, ran: Running) -> Running | None:
    folder = ran.checkpoint
    streams = [each.physical for each in ran.planned if each.physical.streaming]
    if folder is None or not any(plan.waits for plan in streams):
        return None
    if any(_keeps_later_sides(plan) for plan in streams):
        message = f"{ran.name} has a RIGHT or FULL JOIN after another join"
        help = "write it with LEFT JOIN, or put the joins before it into a subquery"
        raise WJoinError("WJ727", message, span=ran.span, help=help)
    if any(len(plan.stages) > 1 and held_for(plan, len(plan.stages) - 1) for plan in streams):
        message = f"{ran.name} has windows of rows beside several joins that are not all inner ones"
        raise WJoinError(
            "WJ727", message, span=ran.span, help="put the joins before the last into a subquery"
        )
    spark = asked.engine.spark
    # A session of Spark Connect reaches no files.
    files = Files.of(spark) if hasattr(spark, "_jsparkSession") else None
    local = None if files is None else files.local(folder)
    if files is None or local is None or not (local / STATE).is_dir():
        raise WJoinError("WJ727", f"the state of {ran.name} is in Spark's store", span=ran.span)
    if not end_streams(files, folder):
        return None
    with asked.placed(statement.span):
        if isinstance(statement, StatementSet):
            return execute_set(asked, statement, once=True, checkpoint=None, ending=folder)
        return run_insert(asked, statement, once=True, checkpoint=None, ending=folder)


def _keeps_later_sides(plan: PhysicalPlan) -> bool:
    """Return whether a join after others keeps the rows of its second side.

    It would end their streams alone, and rows of these would not be late where they enter.
    """
    later = (stage for stage in plan.stages if isinstance(stage, Join) and stage.asked)
    return any(1 in each.kind.preserved and each.inputs[0].stage is not None for each in later)
