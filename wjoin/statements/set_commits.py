"""COMMIT WHEN: rows of a stream that commit the results of a sink, beside those that a set makes."""

from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from wjoin.context import Asked
from wjoin.executor.spark.operator import PART
from wjoin.grammar.errors import WJoinError
from wjoin.joins.set_joins import SetJoin, SetStatement
from wjoin.planner.plan.block_columns import quoted
from wjoin.sources.catalog import find
from wjoin.spark.spark_failures import RAISED_BY_SPARK, first_line

_FOLDER = "commits"
"""The folder of a sink, where its rows wait, that says with which micro-batches its commits end."""


def committing(parts: Sequence[SetJoin]) -> Iterator[tuple[int, SetStatement]]:
    """Yield the statements whose sinks have COMMIT WHEN, with a number that no join of the set has."""
    found = [each.statement for part in parts for each in part.takers if each.statement.sink.commit_when]
    yield from ((-1 - number, each) for number, each in enumerate(found))


def commit_rows(asked: Asked, statement: SetStatement, number: int) -> DataFrame:
    """Return the rows that commit the results of a statement: they have no column but the number.

    Raises WJoinError WJ602 for an unknown stream, and WJ606 for a condition that Spark refuses.
    """
    sink, span = statement.sink, statement.insert.target[-1].span
    when = sink.commit_when
    if when is None:
        raise AssertionError("a sink that each micro-batch commits has no rows for that")
    stream = find(asked.catalog.streams, "stream", when.stream.name, span)
    rows = asked.engine.spark.table(quoted(stream.name)) if stream.frame is None else stream.frame
    try:
        return rows.filter(F.expr(when.condition)).select(F.lit(number).alias(PART))
    except RAISED_BY_SPARK as error:
        message = f"the condition of COMMIT WHEN of {sink.name} cannot be tested: {first_line(error)}"
        help = f"name columns of {stream.name} without an alias, in a condition that is true or false"
        raise WJoinError("WJ606", message, span=span, help=help) from error


def has_commits(waiting: Sequence[str]) -> bool:
    """Return whether a sink has been committed by rows of a stream; ``waiting``: what is where rows wait."""
    return _FOLDER in waiting


def refuse_other_commits(waiting: Sequence[str], statement: SetStatement) -> None:
    """Refuse a sink that has COMMIT WHEN no more, whose commits have numbers of their own: WJ606."""
    if statement.sink.commit_when is None and has_commits(waiting):
        name = statement.sink.name
        raise WJoinError(
            "WJ606",
            f"the sink {name} was committed by rows of a stream, and now has no COMMIT WHEN",
            span=statement.insert.target[-1].span,
            help="declare it with COMMIT WHEN, or insert into a new sink",
        )
