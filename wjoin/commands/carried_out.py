"""Statements of a script as the command line carries them out: rows are printed, queries started."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wjoin.grammar.statement_kinds import Statement

if TYPE_CHECKING:
    from wjoin.context import Asked
    from wjoin.queries.running import Running


@dataclass(frozen=True)
class How:
    """How statements are carried out.

    ``once``: streams are read as far as they reach now. ``rows``: how many rows of a SELECT are printed, None
    for as many as ``form`` has by itself, which ``wjoin.commands.printed.print_rows``
    knows. ``checkpoint`` and ``trigger`` are those of the command line, None where it has none.
    ``complete``: whether streams have ended where they are read once.
    """

    once: bool
    rows: int | None
    checkpoint: str | None = None
    trigger: str | None = None
    form: str = "table"
    complete: bool = False


def carry_out(asked: "Asked", statement: Statement, how: How) -> "list[Running]":
    """Run a statement and print what it answers; return the query that it has started, if any."""
    from wjoin.commands.printed import print_once, print_rows, start_printing
    from wjoin.queries.running import Running
    from wjoin.statements.complete import no_checkpoint
    from wjoin.statements.explanation import Explanation
    from wjoin.statements.outcome import Selected, outcome

    found = outcome(asked, statement, once=how.once, checkpoint=how.checkpoint, trigger=how.trigger)
    if isinstance(found, Running):
        return [found]
    if isinstance(found, Explanation):
        print(found)
    if not isinstance(found, Selected):
        return []
    with asked.placed(statement.span):
        if found.frame.isStreaming and how.complete:
            raise no_checkpoint(statement.span)
        if not found.frame.isStreaming or how.once:
            (print_once if found.frame.isStreaming else print_rows)(found.frame, how.rows, how.form)
            return []
        query = start_printing(found.frame, how.rows, asked.settings.trigger(how.trigger), how.form)
    told = "The SELECT has no checkpoint: every run begins with everything in its sources"
    print(told, file=sys.stderr, flush=True)
    running = found.running(asked, statement, query)
    asked.queries.add(running)
    return [running]
