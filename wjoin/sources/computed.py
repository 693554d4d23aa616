"""The computed columns of CREATE STREAM."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import ComputedColumn, CreateStream
from wjoin.grammar.tokens import names_in
from wjoin.planner.plan.block_columns import quoted
from wjoin.spark.refused_place import flinks_word
from wjoin.spark.spark_failures import UNREAD, first_line


def with_computed(frame: DataFrame, statement: CreateStream, hidden: Sequence[str] = ()) -> DataFrame:
    """Return the rows of a stream's source with the declared columns in the declared order.

    Where only computed columns are declared they follow all columns of the source. Columns of the source
    that are ``hidden`` are there for computed ones alone. Raises WJoinError WJ216, without its text, for a
    column that Spark cannot compute.
    """
    if not statement.computed and not hidden:
        return frame
    shown = [name for name in frame.columns if name not in hidden]
    taken = {name.lower() for name in shown}
    columns = [F.col(quoted(name)) for name in shown]
    behind = len(columns) if statement.columns is None else 0
    for column in statement.computed:
        name = column.name.name
        if name.lower() in taken:
            message = f"the stream {statement.name.name} already has a column {name}"
            raise WJoinError("WJ216", message, span=column.name.span, help="rename the computed column")
        taken.add(name.lower())
        columns.insert(behind + column.place, _computed(frame, column, statement))
    return frame.select(*columns)


def _computed(frame: DataFrame, column: ComputedColumn, statement: CreateStream) -> Column:
    name = column.name.name
    try:
        computed = F.expr(column.expression).alias(name)
        # All columns beside it: an aggregate alone would be no error.
        _ = frame.select("*", computed).schema
    except UNREAD as error:
        message = f"the column {name} cannot be computed: {first_line(error)}"
        read = _computed_in(column, statement)
        help = (
            f"it can only read columns of the source: repeat the expression of {read} instead"
            if read
            else None
        )
        flinks = flinks_word(error, Span(0, len(column.expression)), column.expression)
        if flinks is not None:
            help = flinks[1]
        raise WJoinError("WJ216", message, span=column.expression_span, help=help) from error
    return computed


def _computed_in(column: ComputedColumn, statement: CreateStream) -> str | None:
    """Return another computed column that an expression names, None where it names none."""
    words = names_in(column.expression)
    names = (other.name.name for other in statement.computed)
    return next((name for name in names if name.lower() in words), None)
