"""Statements that are W-joins by their conditions alone, without a window clause."""

from collections.abc import Iterator

from wjoin.context import Asked
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.statement_kinds import (
    AlterSet,
    CreateView,
    Explain,
    ExplainSet,
    InsertInto,
    Query,
    SparkStatement,
    Statement,
    StatementSet,
)
from wjoin.grammar.syntax import innermost_first
from wjoin.grammar.tokens import names_in
from wjoin.joins.rewrite import Rewriting

_MAY_JOIN = (AlterSet, CreateView, Explain, ExplainSet, InsertInto, Query, SparkStatement, StatementSet)


def recognised(asked: Asked, statement: Statement) -> Statement:
    """Return a statement with its joins of declared streams whose conditions are windows, if it has some.

    Raises WJoinError where conditions leave streams unbounded, or contradict each other.
    """
    names = asked.looked_for
    if not names or not isinstance(statement, _MAY_JOIN):
        return statement
    piece = statement.span.of(asked.text)
    if names.isdisjoint(names_in(piece)):
        return statement
    try:
        found = parse_statement(" " * statement.span.start + piece, names)
    except WJoinError:
        # Of what stands around it only Spark knows.
        return statement
    return found if any(_has_windows(asked, each) for each in _queries(found)) else statement


def _queries(statement: Statement) -> Iterator[Query]:
    """Yield the queries of a statement that has W-joins, or may have."""
    match statement:
        case Query():
            yield statement
        case InsertInto() | CreateView() | Explain() | ExplainSet():
            yield from _queries(statement.body)
        case StatementSet():
            for each in statement.inserts:
                yield from _queries(each)
        case AlterSet() if statement.added is not None:
            yield from _queries(statement.added)


def _has_windows(asked: Asked, query: Query) -> bool:
    """Return whether a block of a query without a window clause is a W-join.

    One beside a window clause is told where the query is planned: what it reads is not known before.
    """
    blocks = [*innermost_first(query.blocks)]
    if not all(each.implicit for each in blocks):
        return any(each.implicit for each in blocks)
    rewriting = Rewriting(asked, " " * query.span.start + query.written(asked.text), query, runs=False)
    return any(rewriting.decided(each) for each in blocks)
