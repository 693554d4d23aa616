"""Views over streams: over window joins, and Spark's own statements that read a declared stream."""

from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import DataFrame

from wjoin.context import Context
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.nesting import pair
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import CreateView
from wjoin.grammar.syntax import Identifier
from wjoin.grammar.tokens import scan
from wjoin.joins.delays import relation_delays
from wjoin.planner.catalog import Delays
from wjoin.planner.plan.block_columns import quoted
from wjoin.sources.catalog import Catalog
from wjoin.spark.engine import Engine

_TEMPORARY = ("TEMP", "TEMPORARY")
_BEFORE_VIEW = frozenset({"GLOBAL", "OR", "REPLACE", *_TEMPORARY})
"""What stands before VIEW; a MATERIALIZED VIEW is one of a pipeline's."""


class ViewHead(NamedTuple):
    """What stands before the query of a CREATE VIEW or of an ALTER VIEW.

    ``verb`` is the first word, ``words`` are those before VIEW, ``view`` the place of VIEW, ``if_not_exists``
    that of IF NOT EXISTS (empty where it is not written), ``names`` the parts of the view's name, ``plain``
    whether the query follows it, so that the view has the columns of the query. ``query`` is where that
    begins, the end of the text where there is none: CREATE TEMPORARY VIEW … USING.
    """

    verb: str
    words: tuple[str, ...]
    view: Span
    if_not_exists: Span
    names: tuple[Identifier, ...]
    plain: bool
    query: int


def view_head(text: str) -> ViewHead | None:
    """Return the head of a CREATE VIEW, or an ALTER VIEW with a query, None for any other statement."""
    code = pair(text, scan(text))
    words = [code.word(place) for place in range(min(8, len(code.tokens)))]
    if words[:1] not in (["CREATE"], ["ALTER"]) or "VIEW" not in words:
        return None
    view = words.index("VIEW")
    if not _BEFORE_VIEW.issuperset(words[1:view]):
        return None
    name = view + 1 + 3 * (words[view + 1 : view + 4] == ["IF", "NOT", "EXISTS"])
    names, after = code.dotted(name)
    level = code.level(after, len(code.tokens))
    body = next((place for place in level if code.word(place) in ("AS", "USING")), None)
    if body is None or body + 1 >= len(code.tokens) or not names:
        return None
    has_query = code.word(body) == "AS"
    return ViewHead(
        words[0],
        tuple(words[1:view]),
        code.tokens[view].span,
        code.span(view + 1, name),
        names,
        body == after and has_query,
        code.tokens[body + 1].start if has_query else len(text),
    )


class PreparedView(NamedTuple):
    """A statement for Spark, and the view that the catalog is to note once Spark has taken it.

    ``delays`` are those of the columns of the view ``name``, None where it reads no stream.
    """

    text: str
    name: str | None = None
    delays: Delays | None = None


def prepare_view(
    engine: Engine, catalog: Catalog, text: str, run: Callable[[str], DataFrame] | None = None
) -> PreparedView:
    """Return the statement by which Spark makes a view; any other statement as it stands.

    ``run`` runs a query with the statement's parameters. A stream is a name of its session, so a view that
    reads one is a temporary view for Spark.
    Raises WJoinError WJ606 for one that would have to outlive the session.
    """
    head = view_head(text)
    if head is None or "GLOBAL" in head.words:
        return PreparedView(text)
    name = head.names[-1].name
    query = text[head.query :].rstrip().rstrip(";")
    delays = relation_delays(query, catalog, engine, lambda: (run or engine.run)(query)) if query else None
    own = name if len(head.names) == 1 else None
    if head.verb == "ALTER":
        return PreparedView(text, own, delays)
    columns = delays if delays is None or head.plain else {}
    if set(head.words) & set(_TEMPORARY):
        return PreparedView(text, own, columns)
    known = catalog.stream(name) if own else None
    if delays is None and (known is None or known.source != "view"):
        # It outlives the session, behind a stream of its name.
        return PreparedView(text)
    if len(head.names) > 1:
        raise WJoinError(
            "WJ606",
            f"the view {name} reads a stream, and a stream exists only in this session",
            span=head.names[0].span.cover(head.names[-1].span),
            text=text,
            help=f"leave {head.names[0].name} out: CREATE VIEW {name} AS …",
        )
    if head.if_not_exists.start < head.if_not_exists.end and engine.exists(quoted(name)):
        return PreparedView(f"SELECT * FROM {quoted(name)} LIMIT 0")
    text = f"{text[: head.view.start]}TEMPORARY VIEW{text[max(head.view.end, head.if_not_exists.end) :]}"
    return PreparedView(text, name, columns)


def create_view(context: Context, statement: CreateView, rows: DataFrame, delays: Delays) -> None:
    """Name the rows of a statement with window joins; ``delays`` are those of its columns.

    Raises WJoinError WJ601.
    """
    name = statement.name
    if not statement.or_replace and context.engine.exists(quoted(name.name)):
        message = f"a table or view {name.name} exists already"
        raise WJoinError("WJ601", message, span=name.span)
    rows.createOrReplaceTempView(name.name)
    context.catalog.note_view(name.name, delays)
