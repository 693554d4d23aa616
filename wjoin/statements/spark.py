"""Statements that are Spark's own: they go to Spark as they stand, views over streams noted on the way."""

import re
from typing import Any

from pyspark.sql import DataFrame

from wjoin.context import Asked, Context, check_values
from wjoin.grammar.errors import WJoinError, WJoinWarning
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import Statement
from wjoin.grammar.tokens import scan, unquoted
from wjoin.joins.predicates import called_predicates
from wjoin.planner.bind.lineage import joined_streams, reads
from wjoin.sources.catalog import Catalog
from wjoin.spark.spark_failures import RAISED_BY_SPARK
from wjoin.statements.about import changed_view, said_of_declared
from wjoin.statements.streaming_rows import refuse_actions
from wjoin.statements.views import prepare_view, view_head

_QUERIES = ("SELECT", "WITH", "FROM", "TABLE")


def pass_through(context: Context, text: str, params: dict[str, Any], args: Any = None) -> DataFrame:
    """Send a statement to Spark as it stands; ``args`` are parameters as Spark takes them.

    Raises WJoinError WJ115, and WJ602 and WJ621 where a stream or a sink in it is why Spark cannot run it.
    """
    engine, catalog = context.engine, context.catalog
    check_values(text, args)
    check_values(text, params)
    # Spark calls them itself here, and knows them after this.
    called_predicates(engine.spark, text)
    variables = {
        name: value for name, value in params.items() if re.search(r"\{" + re.escape(name) + r"\b", text)
    }
    named = {name: value for name, value in params.items() if name not in variables}
    if named:
        args = {**(args or {}), **named}
    given = {} if args is None else {"args": args}

    def run(statement: str) -> DataFrame:
        try:
            return engine.run(statement, **given, **variables)
        except RAISED_BY_SPARK as error:
            ours = said_of_declared(catalog, text, error)
            if ours is None:
                raise
            raise ours from error

    changed = changed_view(context, text)
    prepared = prepare_view(engine, catalog, text, run)
    rows = run(prepared.text)
    if changed is not None:
        catalog.rename_view(changed.name, changed.new)
    if prepared.name is not None:
        catalog.note_view(prepared.name, prepared.delays)
    _warn_of_unbounded(catalog, prepared.text, rows)
    return refuse_actions(rows) if _is_of_streams(catalog, prepared.text, rows) else rows


def send(asked: Asked, statement: Statement) -> DataFrame:
    """Send a statement of a text to Spark; errors of ``pass_through`` get their place in the whole text."""
    text, start = statement.written(asked.text), statement.span.start
    try:
        return pass_through(asked, text, asked.params)
    except WJoinError as error:
        if error.span is None or error.text != text:
            raise
        place = Span(start + error.span.start, start + error.span.end)
        raise error.at(place, asked.text) from error.__cause__


def _is_of_streams(catalog: Catalog, text: str, rows: DataFrame) -> bool:
    """Return whether a statement has the rows of a declared stream; Spark is asked only where it may."""
    tokens = scan(text)
    named = any(unquoted(token.text).lower() in catalog.delays for token in tokens)
    return named and tokens[0].word in _QUERIES and reads(text, catalog.delays) and rows.isStreaming


def _warn_of_unbounded(catalog: Catalog, text: str, rows: DataFrame) -> None:
    """Warn where Spark joins streams without a window: it keeps every row of them for ever."""
    head = view_head(text)
    joined = joined_streams(text[head.query :] if head else text, catalog.delays)
    if not joined or not rows.isStreaming:
        return
    for each in joined:
        first, second, *_ = each.names
        warning = WJoinWarning(
            "WJ802",
            f"{' and '.join(each.names)} are joined without a window clause, so Spark keeps all their rows",
            help=f"write after FROM, for example, WINDOW ({first}, {second}) = 10 SECONDS"
            if each.window is None
            else f"write after FROM what the conditions say: {each.window}",
        )
        catalog.warn_once(f"joined.{'.'.join(each.names)}.{text}", warning)
