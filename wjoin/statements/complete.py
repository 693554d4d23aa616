"""A run to the end of its streams: one more micro-batch decides what waits for rows that no longer come."""

from collections.abc import Iterator, Sequence

from wjoin.context import Asked
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import InsertInto, Statement, StatementSet
from wjoin.measured.ended_streams import end_streams
from wjoin.queries.running import Running
from wjoin.sources.single_micro_batches import may_leave_rows
from wjoin.spark.hadoop_files import Files
from wjoin.statements.statement_sets import execute_set, run_insert


def completed(asked: Asked, statement: Statement, ran: Sequence[Running]) -> list[Running]:
    """Start queries again that have read all there is, with a micro-batch with which all streams end.

    Those are left out in which nothing waits: none of their joins tells what has no partner or counts rows,
    or they have read nothing. Raises WJoinError WJ727 for one that cannot be completed.
    """
    return (
        []
        if not isinstance(statement, InsertInto | StatementSet)
        else [last for each in ran if (last := _completed(asked, statement, each)) is not None]
    )


def rest(asked: Asked, statement: Statement, ran: Running) -> Iterator[Running]:
    """Start a query again while it may have left rows that were there; each is to end before the next."""
    if not isinstance(statement, InsertInto | StatementSet):
        return
    while ran.checkpoint is not None and may_leave_rows(asked.catalog, ran.totals.total.rows_read):
        again = run_again(asked, statement, ran.checkpoint)
        if again is None:
            return
        yield again
        ran = again


def no_checkpoint(span: Span) -> WJoinError:
    """Return the error for a SELECT over streams that shall be completed."""
    message = "a SELECT over streams has no checkpoint, so it cannot be completed"
    return WJoinError("WJ727", message, span=span, help="CREATE SINK, and INSERT INTO it")


def _completed(asked: Asked, statement: InsertInto | StatementSet, ran: Running) -> Running | None:
    folder = ran.checkpoint
    streams = [each.physical for each in ran.planned if each.physical.streaming]
    if folder is None or not any(plan.waits for plan in streams):
        return None
    spark = asked.engine.spark
    if not hasattr(spark, "_jsparkSession"):
        message = "a session of Spark Connect does not reach the log of the checkpoint"
        raise WJoinError("WJ727", message, span=ran.span)
    files = Files.of(spark)
    if not end_streams(files, folder):
        return None
    return run_again(asked, statement, folder)


def run_again(asked: Asked, statement: InsertInto | StatementSet, folder: str) -> Running | None:
    """Start a query on its checkpoint once more, to the end of its streams."""
    with asked.placed(statement.span):
        if isinstance(statement, StatementSet):
            return execute_set(asked, statement, once=True, checkpoint=None, ending=folder)
        return run_insert(asked, statement, once=True, checkpoint=None, ending=folder)
