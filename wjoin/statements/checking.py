"""``wjoin check``: what a script would meet when it runs, without running any of it."""

from wjoin.context import Asked
from wjoin.grammar.nesting import QUERY_WORDS
from wjoin.grammar.plurals import counted
from wjoin.grammar.statement_kinds import (
    AlterSet,
    AnalyzeStream,
    CreateView,
    ExecuteImmediate,
    Explain,
    ExplainDelay,
    ExplainSet,
    InsertInto,
    Query,
    SparkStatement,
    Statement,
    StatementSet,
    StateSelect,
)
from wjoin.grammar.tokens import first_word, scan
from wjoin.joins.rewrite import rewrite
from wjoin.measured.kept import Kept
from wjoin.statements.dispatch import execute
from wjoin.statements.inserts import plan_insert, refuse_unknown_sink, target_sink
from wjoin.statements.statement_sets import PlannedSet, plan_alone, plan_set, set_of_one

_HARMLESS = {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "SET", "RESET", "USE", "SHOW", "DESCRIBE", "DESC"}
"""First words of Spark's statements that read at most a schema and change only the session."""


def check(asked: Asked, statement: Statement, checkpoint: str | None) -> str:
    """Return in a line what would become of a statement; nothing is run or written.

    What a later statement needs of it (a stream, a view, a setting) is declared. Raises WJoinError
    where the statement would be refused.
    """
    with asked.placed(statement.span):
        return f"{_head(asked.text, statement)}: {_found(asked, statement, checkpoint)}"


def _found(asked: Asked, statement: Statement, checkpoint: str | None) -> str:
    match statement:
        case InsertInto():
            return _insert(asked, statement, checkpoint)
        case Query():
            return _query(asked, statement)
        case StatementSet():
            return _set(asked, statement, checkpoint)
        case ExplainSet():
            return _set(asked, statement.body, checkpoint)
        case Explain():
            return _query(asked, statement.body)
        case AlterSet() | AnalyzeStream() | ExecuteImmediate() | ExplainDelay() | StateSelect():
            return "not run"
        case SparkStatement():
            words = [token.word for token in scan(statement.span.of(asked.text))[:4]]
            if words[0] in _HARMLESS or (words[0] == "CREATE" and "VIEW" in words):
                execute(asked, statement)
                return "good"
            return "not run"
        case CreateView():
            execute(asked, statement)
            return _query(asked, statement.body)
        case _:
            execute(asked, statement)
            return "good"


def _insert(asked: Asked, statement: InsertInto, checkpoint: str | None) -> str:
    sink = target_sink(asked.catalog, statement)
    if sink is None:
        refuse_unknown_sink(asked, statement)
        if isinstance(statement.body, Query):
            return _query(asked, statement.body)
        return "not run"
    alone = set_of_one(asked, statement)
    if alone is not None:
        return _planned_set(asked, plan_alone(asked, alone, checkpoint))
    planned = plan_insert(asked, statement, sink, checkpoint)
    joins = len(planned.joins.planned) if planned.joins is not None else 0
    if not planned.frame.isStreaming:
        return f"good, {_joins(joins)}, written once"
    return f"good, {_joins(joins)}, {_checkpoint(asked, planned.folder, planned.kept)}"


def _set(asked: Asked, statement: StatementSet, checkpoint: str | None) -> str:
    return _planned_set(asked, plan_set(asked, statement, checkpoint))


def _planned_set(asked: Asked, planned: PlannedSet) -> str:
    statements = counted(len(planned.statements), "statement")
    checkpoint = _checkpoint(asked, planned.folder, planned.kept)
    return f"good, {statements}, {_joins(len(planned.parts))}, {checkpoint}"


def _checkpoint(asked: Asked, folder: str | None, kept: Kept) -> str:
    """Return what a query would do with its checkpoint, and note the folder as named."""
    if folder is None:
        return "no checkpoint to compare with"
    asked.queries.named(folder)
    return f"{'resumes from' if kept.begun else 'starts with'} checkpoint {folder}"


def _query(asked: Asked, query: Query) -> str:
    rewriting = rewrite(asked, query, Kept(asked.engine.spark, None, asked.settings.home()))
    rewriting.refuse_endless()
    if first_word(query.written(asked.text)) in QUERY_WORDS:
        kind = "stream" if rewriting.run().isStreaming else "tables"
    else:
        # Spark would run a command at once.
        kind = "stream" if rewriting.streaming else "tables"
    return f"good, {_joins(len(rewriting.planned))} over {'a ' if kind == 'stream' else ''}{kind}"


def _joins(count: int) -> str:
    return counted(count or "no", "window join")


def _head(text: str, statement: Statement) -> str:
    """Return the line of a statement and its first words."""
    line = text.count("\n", 0, statement.span.start) + 1
    words = statement.span.of(text).split()
    return f"line {line}, {' '.join(words[:3])}"
