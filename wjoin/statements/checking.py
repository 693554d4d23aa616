"""``wjoin check``: what a script would meet when it runs, without running any of it."""

from typing import Any

from wjoin.context import Context
from wjoin.grammar.plurals import counted
from wjoin.grammar.syntax import (
    AnalyzeStream,
    CreateView,
    Explain,
    InsertInto,
    Query,
    SparkStatement,
    Statement,
)
from wjoin.grammar.tokens import scan
from wjoin.joins.rewrite import rewrite
from wjoin.measured.kept import Kept
from wjoin.spark.failures import placed
from wjoin.statements.dispatch import execute
from wjoin.statements.inserts import plan_insert, refuse_unknown_sink, target_sink
from wjoin.statements.spark import pass_through

_HARMLESS = {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "SET", "RESET", "USE", "SHOW", "DESCRIBE", "DESC"}
"""First words of Spark's statements that read at most a schema and change only the session."""


def check(
    context: Context, text: str, statement: Statement, params: dict[str, Any], checkpoint: str | None
) -> str:
    """Return in a line what would become of a statement; nothing is run or written.

    What a later statement needs of it (a stream, a view, a setting) is declared. Raises WJoinError
    where the statement would be refused.
    """
    with placed(text, statement.span):
        return f"{_head(text, statement)}: {_found(context, text, statement, params, checkpoint)}"


def _found(
    context: Context, text: str, statement: Statement, params: dict[str, Any], checkpoint: str | None
) -> str:
    match statement:
        case InsertInto():
            return _insert(context, text, statement, params, checkpoint)
        case Query():
            return _query(context, text, statement, params)
        case Explain():
            return _query(context, text, statement.body, params)
        case AnalyzeStream():
            return "not run"
        case SparkStatement():
            words = [token.word for token in scan(statement.span.of(text))[:4]]
            if words[0] in _HARMLESS or (words[0] == "CREATE" and "VIEW" in words):
                pass_through(context.engine, context.catalog, statement.span.of(text), None, params)
                return "good"
            return "not run"
        case CreateView():
            execute(context, text, statement, params)
            return _query(context, text, statement.body, params)
        case _:
            execute(context, text, statement, params)
            return "good"


def _insert(
    context: Context, text: str, statement: InsertInto, params: dict[str, Any], checkpoint: str | None
) -> str:
    sink = target_sink(context.catalog, statement)
    if sink is None:
        refuse_unknown_sink(context, text, statement, params)
        if isinstance(statement.body, Query):
            return _query(context, text, statement.body, params)
        return "not run"
    planned = plan_insert(context, text, statement, params, sink, checkpoint)
    joins = len(planned.joins.planned) if planned.joins is not None else 0
    if not planned.frame.isStreaming:
        return f"good, {_joins(joins)}, written once"
    if planned.folder is None:
        return f"good, {_joins(joins)}, no checkpoint to compare with"
    context.queries.named(planned.folder)
    begun = "resumes from" if planned.kept.begun else "starts with"
    return f"good, {_joins(joins)}, {begun} checkpoint {planned.folder}"


def _query(context: Context, text: str, query: Query, params: dict[str, Any]) -> str:
    rewriting = rewrite(context, text, query, params, Kept(context.engine.spark, None))
    kind = "stream" if rewriting.run().isStreaming else "tables"
    return f"good, {_joins(len(rewriting.planned))} over {'a ' if kind == 'stream' else ''}{kind}"


def _joins(count: int) -> str:
    return counted(count or "no", "window join")


def _head(text: str, statement: Statement) -> str:
    """Return the line of a statement and its first words."""
    line = text.count("\n", 0, statement.span.start) + 1
    words = statement.span.of(text).split()
    return f"line {line}, {' '.join(words[:3])}"
