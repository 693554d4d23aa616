"""Statements that are Spark's own: they go to Spark as they stand, views over streams noted on the way."""

import re
from typing import Any

from pyspark.sql import DataFrame

from wjoin.context import Context
from wjoin.grammar.errors import WJoinWarning
from wjoin.grammar.tokens import scan, unquoted
from wjoin.joins.predicates import called_predicates
from wjoin.planner.bind.lineage import joined_streams, reads
from wjoin.sources.catalog import Catalog
from wjoin.statements.streaming_rows import refuse_actions
from wjoin.statements.views import changed_view, prepare_view, view_head

_QUERIES = ("SELECT", "WITH", "FROM", "TABLE")


def pass_through(context: Context, text: str, params: dict[str, Any], args: Any = None) -> DataFrame:
    """Send a statement to Spark as it stands; ``args`` are parameters as Spark takes them."""
    engine, catalog = context.engine, context.catalog
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
        return engine.run(statement, **given, **variables)

    changed = changed_view(catalog, text)
    prepared = prepare_view(engine, catalog, text, run)
    rows = run(prepared.text)
    if changed is not None:
        catalog.rename_view(changed.name, changed.new)
    if prepared.name is not None:
        catalog.note_view(prepared.name, prepared.delays)
    _warn_of_unbounded(catalog, prepared.text, rows)
    return refuse_actions(rows) if _is_of_streams(catalog, prepared.text, rows) else rows


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
