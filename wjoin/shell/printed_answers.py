"""What a statement answers at a terminal: rows (of streams as they come), a plan, or a query."""

from collections.abc import Callable

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from wjoin.commands.printed import rows_once, start_select
from wjoin.context import Asked
from wjoin.grammar.shown import redacted
from wjoin.grammar.statement_kinds import Statement
from wjoin.queries.run_once import run_once
from wjoin.queries.running import Running
from wjoin.queries.spark_texts import first_texts, numeric
from wjoin.shell.shell import Choices
from wjoin.shell.tables import TextRows
from wjoin.spark.spark_failures import placed
from wjoin.statements.explanation import Explanation
from wjoin.statements.outcome import Selected, outcome

Answer = TextRows | Running | Explanation | str
"""A text is what there is to say of a statement that answers nothing else."""

Show = Callable[[TextRows, int, bool], None]
"""Shows rows of a micro-batch: as many as are shown, how many it has, and whether these are all so far."""

_MODE = "STREAMING_OUTPUT_MODE"


def answer(
    asked: Asked,
    statement: Statement,
    choices: Choices,
    group: str,
    started: Callable[[Running], None],
    show: Show,
) -> Answer:
    """Carry out a statement; its jobs are Spark's group of that name.

    ``started`` is told of a query that is waited for here, ``show`` shows the rows of a SELECT over streams.
    Raises WJoinError.
    """
    written = redacted(statement.span.of(asked.text))[:200]
    asked.engine.spark.sparkContext.setJobGroup(group, written, interruptOnCancel=True)
    found = outcome(asked, statement, once=choices.once, checkpoint=choices.checkpoint)
    if isinstance(found, Running) and choices.once:
        started(found)
        found.wait()
        return found.line()
    if not isinstance(found, Selected):
        return found or "done"
    if found.frame.isStreaming and not choices.once:
        return _watched(asked, statement, found, choices.rows, show)
    with asked.placed(statement.span):
        rows = rows_once(found.frame, choices.rows) if found.frame.isStreaming else found.frame
        return _fetched(rows, choices.rows)


def _fetched(frame: DataFrame, most: int) -> TextRows:
    """Return at most so many rows, and whether there are more."""
    return TextRows(tuple(frame.columns), numeric(frame.schema), *first_texts(frame, most))


def _watched(asked: Asked, statement: Statement, selected: Selected, most: int, show: Show) -> Running:
    """Start a SELECT over streams.

    Its new rows are shown; of an aggregate that never ends its groups, all of them. Raises WJoinError WJ607.
    """

    def start(mode: str) -> Running:
        def take(rows: DataFrame, batch: int) -> None:
            with run_once(rows) as (kept, count):
                if count:
                    show(_fetched(kept, most), count, mode == "complete")

        query = start_select(selected.frame, take, asked.settings.trigger(), mode=mode)
        return selected.running(asked, statement, query)

    with placed(asked.text, statement.span, "the SELECT"):
        try:
            return start("append")
        except AnalysisException as error:
            if not (error.getCondition() or "").startswith(_MODE):
                raise
            return start("complete")
