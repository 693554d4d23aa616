"""What becomes of a statement, for all who show it: a plan, rows, or a query that has been started."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from wjoin.context import Asked
from wjoin.grammar.statement_kinds import (
    AlterSet,
    Explain,
    ExplainDelay,
    ExplainSet,
    InsertInto,
    Query,
    Statement,
    StatementSet,
    StateSelect,
)
from wjoin.grammar.tokens import first_word
from wjoin.joins.planned_joins import Joins
from wjoin.joins.rewrite import joined_rows
from wjoin.measured.followed import follower_of
from wjoin.queries.running import Running
from wjoin.statements.alter_set import alter_set
from wjoin.statements.dispatch import execute
from wjoin.statements.explain import explain
from wjoin.statements.explanation import Explanation
from wjoin.statements.state import select_state
from wjoin.statements.statement_sets import execute_set, run_insert


@dataclass(frozen=True)
class Selected:
    """The rows that a statement answers, and its W-joins, None where it is no SELECT with some."""

    frame: DataFrame
    joins: Joins | None = None

    def running(self, asked: Asked, statement: Statement, query: StreamingQuery) -> Running:
        """Return the query that has just been started to show the rows as they come."""
        followed = follower_of(asked.engine.spark).follow(query)
        running = Running(followed, asked.text, statement.span, statement.span)
        if self.joins is not None:
            running.planned, running.compiled = self.joins.planned, tuple(self.joins.plans)
        return running


Outcome = Selected | Explanation | Running | None
"""None: the statement has been carried out, and answers nothing."""


def outcome(
    asked: Asked, statement: Statement, *, once: bool, checkpoint: str | None, trigger: str | None = None
) -> Outcome:
    """Carry out a statement, but for what shows the rows of a SELECT.

    ``once``, ``checkpoint`` and ``trigger`` are those of ``insert``. Raises WJoinError at its place.
    """
    with asked.placed(statement.span):
        match statement:
            case InsertInto():
                return run_insert(asked, statement, once=once, checkpoint=checkpoint, trigger=trigger)
            case StatementSet():
                return execute_set(asked, statement, once=once, checkpoint=checkpoint, trigger=trigger)
            case AlterSet():
                return alter_set(asked, statement)
            case Explain() | ExplainDelay() | ExplainSet():
                return explain(asked, statement)
            case Query():
                return Selected(*joined_rows(asked, statement))
            case StateSelect():
                return Selected(select_state(asked, statement, checkpoint))
        frame = execute(asked, statement)
        if frame.columns == ["plan"] and first_word(statement.written(asked.text)) == "EXPLAIN":
            return Explanation("\n".join(row[0] for row in frame.collect()))
        return Selected(frame) if frame.columns else None
