"""What a statement answers at a terminal: rows, a plan, or a query that has been started."""

from collections.abc import Callable

from wjoin.commands.printed import rows_once
from wjoin.context import Asked
from wjoin.grammar.shown import redacted
from wjoin.grammar.syntax import Statement
from wjoin.queries.running import Running
from wjoin.shell.shell import Choices
from wjoin.shell.tables import Rows
from wjoin.shell.watched import Show, fetched, start_watching
from wjoin.statements.explanation import Explanation
from wjoin.statements.outcome import Selected, outcome

Answer = Rows | Running | Explanation | str
"""A text is what there is to say of a statement that answers nothing else."""


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
        return start_watching(asked, statement, found, choices.rows, show)
    with asked.placed(statement.span):
        rows = rows_once(found.frame, choices.rows) if found.frame.isStreaming else found.frame
        return fetched(rows, choices.rows)
