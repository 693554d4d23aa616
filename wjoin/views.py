"""Views over streams: over window joins, and Spark's own statements that read a declared stream."""

from typing import NamedTuple

from pyspark.sql import DataFrame

from wjoin.catalog import Catalog
from wjoin.delays import relation_delays
from wjoin.engine import Engine
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.nesting import pair
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import CreateView, Identifier
from wjoin.grammar.tokens import identifier, is_name, scan
from wjoin.planner.catalog import Delays
from wjoin.planner.layout import quoted

_TEMPORARY = ("TEMP", "TEMPORARY")


class ViewHead(NamedTuple):
    """What stands before the query of a CREATE VIEW.

    ``words`` are those before VIEW, ``view`` the place of VIEW, ``if_not_exists`` that of IF NOT EXISTS
    (empty where it is not written), ``names`` the parts of the view's name, ``plain`` whether the query
    follows it, so that the view has the columns of the query. ``query`` is where that begins.
    """

    words: tuple[str, ...]
    view: Span
    if_not_exists: Span
    names: tuple[Identifier, ...]
    plain: bool
    query: int


def view_head(text: str) -> ViewHead | None:
    """Return the head of a CREATE VIEW, None for any other statement."""
    code = pair(text, scan(text))
    words = [code.word(place) for place in range(min(8, len(code.tokens)))]
    if words[:1] != ["CREATE"] or "VIEW" not in words:
        return None
    view = words.index("VIEW")
    name = view + 1 + 3 * (words[view + 1 : view + 4] == ["IF", "NOT", "EXISTS"])
    after, names = name, []
    while after < len(code.tokens) and is_name(code.tokens[after]):
        names.append(identifier(code.tokens[after]))
        after += 1
        if code.mark(after) != ".":
            break
        after += 1
    body = next((place for place in code.level(after, len(code.tokens)) if code.word(place) == "AS"), None)
    if body is None or body + 1 >= len(code.tokens) or not names:
        return None
    return ViewHead(
        tuple(words[1:view]),
        code.tokens[view].span,
        code.span(view + 1, name),
        tuple(names),
        body == after,
        code.tokens[body + 1].start,
    )


class Prepared(NamedTuple):
    """A statement for Spark, and the view that the catalog is to note once Spark has taken it.

    ``delays`` are those of the columns of the view ``name``, None where it reads no stream.
    """

    text: str
    name: str | None = None
    delays: Delays | None = None


def prepare_view(engine: Engine, catalog: Catalog, text: str) -> Prepared:
    """Return the statement by which Spark makes a view; any other statement as it stands.

    A stream is a name of its session, so a view that reads one is a temporary view for Spark.
    Raises WJoinError WJ606 for one that would have to outlive the session.
    """
    head = view_head(text)
    if head is None or "GLOBAL" in head.words:
        return Prepared(text)
    name = head.names[-1].name
    delays = relation_delays(text[head.query :].rstrip().rstrip(";"), catalog, engine)
    if delays is None:
        return Prepared(text, name if len(head.names) == 1 else None)
    if not set(head.words) & set(_TEMPORARY):
        if len(head.names) > 1:
            raise WJoinError(
                "WJ606",
                f"the view {name} reads a stream, which lives in this session only",
                span=head.names[0].span.cover(head.names[-1].span),
                text=text,
                help=f"leave {head.names[0].name} out: CREATE VIEW {name} AS …",
            )
        if head.if_not_exists.start < head.if_not_exists.end and engine.exists(quoted(name)):
            return Prepared(f"SELECT * FROM {quoted(name)} LIMIT 0")
        text = f"{text[: head.view.start]}TEMPORARY VIEW{text[max(head.view.end, head.if_not_exists.end) :]}"
    return Prepared(text, name, delays if head.plain else {})


def create_view(
    engine: Engine, catalog: Catalog, text: str, statement: CreateView, rows: DataFrame, delays: Delays
) -> None:
    """Name the rows of a statement with window joins; ``delays`` are those of its columns.

    Raises WJoinError WJ601.
    """
    name = statement.name
    if not statement.or_replace and engine.exists(quoted(name.name)):
        message = f"a table or view {name.name} exists already"
        raise WJoinError("WJ601", message, span=name.span, text=text)
    rows.createOrReplaceTempView(name.name)
    catalog.note_view(name.name, delays)
