"""Rows that a statement answers, and a SELECT over streams whose rows are shown as they come."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from wjoin.commands.printed import start_showing
from wjoin.context import Asked
from wjoin.queries.running import Running
from wjoin.queries.texts import first_texts, numeric
from wjoin.shell.tables import Rows
from wjoin.spark.failures import placed
from wjoin.statements.outcome import Selected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from wjoin.grammar.syntax import Statement

Show = Callable[[Rows, int, bool], None]
"""Shows rows of a micro-batch: as many as are shown, how many it has, and whether these are all so far."""

_MODE = "STREAMING_OUTPUT_MODE"


def fetched(frame: "DataFrame", most: int) -> Rows:
    """Return at most so many rows, and whether there are more."""
    return Rows(tuple(frame.columns), numeric(frame.schema), *first_texts(frame, most))


def start_watching(
    asked: Asked, statement: "Statement", selected: Selected, most: int, show: Show
) -> Running:
    """Start a SELECT over streams.

    Its new rows are shown; of an aggregate that never ends its groups, all of them. Raises WJoinError WJ607.
    """
    from pyspark.errors import AnalysisException

    def start(mode: str) -> Running:
        def take(rows: "DataFrame", number: int, count: int) -> None:
            show(fetched(rows, most), count, mode == "complete")

        query = start_showing(selected.frame, asked.settings.trigger(), take, mode)
        return selected.running(asked, statement, query)

    with placed(asked.text, statement.span, "the SELECT"):
        try:
            return start("append")
        except AnalysisException as error:
            if not (error.getCondition() or "").startswith(_MODE):
                raise
            return start("complete")
