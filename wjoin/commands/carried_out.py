"""Statements of a script as the command line carries them out: rows are printed, queries started."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wjoin.grammar.syntax import Explain, InsertInto, Query, Statement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from wjoin.context import Asked
    from wjoin.joins.rewrite import Joins
    from wjoin.queries.running import Running
    from wjoin.session import Session


@dataclass(frozen=True)
class How:
    """How statements are carried out.

    ``once``: streams are read as far as they reach now. ``rows``: how many rows of a SELECT are printed, None
    for as many as ``form`` has by itself, which ``wjoin.commands.printed.print_rows``
    knows. ``checkpoint`` and ``trigger`` are those of the command line, None where it has none.
    """

    once: bool
    rows: int | None
    checkpoint: str | None = None
    trigger: str | None = None
    form: str = "table"


def carry_out(
    session: "Session", text: str, statement: Statement, params: dict[str, Any], how: How
) -> "list[Running]":
    """Run a statement and print its rows, if it has any; return the query that it has started, if any."""
    from wjoin.statements.inserts import insert

    if not isinstance(statement, InsertInto):
        return _show(session, text, statement, params, how)
    asked = session.context.asked(text, params)
    with asked.placed(statement.span):
        started = insert(asked, statement, once=how.once, checkpoint=how.checkpoint, trigger=how.trigger)
    return [] if started is None else [started]


def _show(
    session: "Session", text: str, statement: Statement, params: dict[str, Any], how: How
) -> "list[Running]":
    """Run a statement and print its rows; return the query that goes on printing."""
    from wjoin.commands.printed import print_once, print_rows, start_printing
    from wjoin.queries.running import Running

    asked = session.context.asked(text, params)
    with asked.placed(statement.span):
        frame, joins = _executed(asked, statement)
        if not frame.columns:
            return []
        if isinstance(statement, Explain) and frame.columns == ["plan"]:
            print("\n".join(row[0] for row in frame.collect()))
        elif not frame.isStreaming:
            print_rows(frame, how.rows, how.form)
        elif how.once:
            print_once(frame, how.rows, how.form)
        else:
            every = session.context.settings.trigger(how.trigger)
            query = start_printing(frame, how.rows, every, how.form)
            print(
                "The SELECT has no checkpoint: every run begins with everything in its sources",
                file=sys.stderr,
                flush=True,
            )
            followed = session.context.queries.follow(query)
            running = Running(followed, text, statement.span, statement.span)
            if joins is not None:
                running.planned, running.compiled = joins.planned, tuple(joins.plans)
            session.context.queries.add(running)
            return [running]
    return []


def _executed(asked: "Asked", statement: Statement) -> "tuple[DataFrame, Joins | None]":
    """Return the rows of a statement and its W-joins, None where it is no SELECT with some."""
    from wjoin.joins.rewrite import joined_rows
    from wjoin.statements.dispatch import execute

    if isinstance(statement, Query):
        return joined_rows(asked, statement)
    return execute(asked, statement), None
