"""What a statement answers at a terminal: rows, a plan, or a query that has been started."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wjoin.commands.printed import rows_once
from wjoin.context import Asked
from wjoin.grammar.shown import redacted
from wjoin.grammar.syntax import Explain, InsertInto, Statement
from wjoin.queries.running import Running
from wjoin.shell.fetched import fetched
from wjoin.shell.shell import Choices
from wjoin.shell.tables import Rows
from wjoin.shell.watched import Watched, start_watching
from wjoin.statements.dispatch import execute
from wjoin.statements.explain import explain
from wjoin.statements.explanation import Explanation
from wjoin.statements.inserts import insert

if TYPE_CHECKING:
    from wjoin.session import Session


@dataclass(frozen=True)
class Done:
    """A statement has been carried out, and answers no rows: what to say of it."""

    what: str


@dataclass(frozen=True)
class Started:
    """An INSERT INTO runs behind the prompt."""

    running: Running


Answer = Rows | Explanation | Done | Started | Watched


def answer(
    session: "Session",
    text: str,
    statement: Statement,
    choices: Choices,
    group: str,
    started: Callable[[Running], None],
) -> Answer:
    """Carry out a statement; its jobs are Spark's group of that name.

    ``started`` is told of a query that is waited for here. Raises WJoinError.
    """
    session.sparkContext.setJobGroup(group, redacted(statement.span.of(text))[:200], interruptOnCancel=True)
    asked = session.context.asked(text, dict(choices.params))
    if isinstance(statement, InsertInto):
        return _insert(session, asked, statement, choices, started)
    if isinstance(statement, Explain):
        return explain(asked, statement)
    with asked.placed(statement.span):
        frame = execute(asked, statement)
        if not frame.columns:
            return Done("")
        if frame.columns == ["plan"] and statement.span.of(text)[:7].upper() == "EXPLAIN":
            return Explanation("\n".join(row[0] for row in frame.collect()))
        if not frame.isStreaming:
            return fetched(frame, choices.rows)
        if choices.once:
            return fetched(rows_once(frame, choices.rows), choices.rows)
    return start_watching(frame, text, statement, choices.rows, session.context.settings.trigger())


def _insert(
    session: "Session",
    asked: Asked,
    statement: InsertInto,
    choices: Choices,
    started: Callable[[Running], None],
) -> Answer:
    """Start the query of an INSERT INTO; with ``once`` wait for its end."""
    with asked.placed(statement.span):
        running = insert(asked, statement, once=choices.once, checkpoint=choices.checkpoint)
    if running is None:
        return Done("")
    if not choices.once:
        return Started(running)
    started(running)
    while running.query.isActive:
        running.query.awaitTermination(1)
    running.followed.look()
    session.settle()
    if (error := running.failed) is not None:
        raise error
    return Done(running.line())
