"""SET wjoin.sharing = auto: the INSERT INTOs of a script that follow each other run as one statement set."""

from collections.abc import Iterable, Iterator, Sequence

from wjoin.context import Asked
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.statement_kinds import (
    CreateSink,
    CreateStream,
    CreateView,
    InsertInto,
    Statement,
    StatementSet,
)
from wjoin.joins.recognised import recognised
from wjoin.joins.set_joins import SetStatement, parts_of
from wjoin.measured.kept import Kept
from wjoin.settings.settable import SHARED
from wjoin.statements.inserts import target_sink
from wjoin.statements.set_sinks import sink_of
from wjoin.statements.statement_sets import WrittenSet


def in_sets(asked: Asked, statements: Iterable[Statement]) -> Iterator[Statement]:
    """Yield the statements of a script to run them one by one, those that may be in a set together as one.

    A set comes behind its last statement and what has been created between them. It ends where something else
    stands, such as an INSERT INTO that a set cannot run, for that may be about its results. What is a W-join
    by its conditions is one here.
    """
    together: list[InsertInto] = []
    for each in statements:
        statement = recognised(asked, each)
        if isinstance(statement, InsertInto) and _fits(asked, statement, together):
            together.append(statement)
            continue
        if not _creates(statement, together):
            yield from _as_set(together)
            together = []
        yield statement
    yield from _as_set(together)


def _as_set(inserts: Sequence[InsertInto]) -> Iterator[Statement]:
    if len(inserts) > 1:
        yield StatementSet(None, tuple(inserts), span=inserts[0].span.cover(inserts[-1].span))
    else:
        yield from inserts


def _creates(statement: Statement, together: Sequence[InsertInto]) -> bool:
    """Return whether a statement creates something that statements before it do not use."""
    if not isinstance(statement, CreateSink | CreateStream | CreateView):
        return False
    return not statement.or_replace or (
        isinstance(statement, CreateSink)
        and not any(statement.name.matches(each.target[-1].name) for each in together)
    )


def _fits(asked: Asked, insert: InsertInto, together: Sequence[InsertInto]) -> bool:
    """Return whether an INSERT INTO may be in a set; what is wrong with it is told where it runs."""
    if asked.settings.get("wjoin.sharing") != SHARED or not hasattr(asked.engine.spark, "_jsparkSession"):
        return False
    try:
        sink = target_sink(asked.catalog, insert)
        if sink is None or any(insert.target[-1].matches(each.target[-1].name) for each in together):
            return False
        kept = Kept(asked.engine.spark, None, asked.settings.home())
        alone = [SetStatement(insert, sink)]
        for each, rows in WrittenSet.of(parts_of(asked, alone, kept), kept, alone, sink.name).rows:
            if each.insert is insert:
                sink_of(sink, rows)
    except WJoinError:
        return False
    return True
