"""Statements of Spark's about a table or view by name, where that is the name of a stream or of a sink."""

import re
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException

from wjoin.context import Context
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.nesting import Code, pair
from wjoin.grammar.parser import begins_script
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import Identifier
from wjoin.grammar.tokens import scan, unquoted
from wjoin.planner.bind.lineage import session_name
from wjoin.planner.plan.block_columns import quoted
from wjoin.sources.catalog import Catalog, SinkDeclaration
from wjoin.sources.format_options import own_option
from wjoin.spark.refused_place import flinks_word
from wjoin.spark.spark_failures import first_line, is_endless, never_ends

_READ_ONLY = "its rows come from its source alone: write there, or INSERT INTO a sink"
_OF_STREAM = {
    "DROP": "write DROP STREAM {name}",
    "ALTER": "write CREATE OR REPLACE STREAM {name} …",
    "ANALYZE": "write ANALYZE STREAM {name}",
    "COMMENT": "a stream keeps no comment; write one on the table that it reads",
    "SHOW": "write SHOW CREATE STREAM {name}, or DESCRIBE STREAM {name}",
    "CACHE": "a query reads a stream itself: CACHE TABLE is for tables",
    **dict.fromkeys(
        ("DELETE", "INSERT", "LOAD", "MERGE", "MSCK", "REPAIR", "TRUNCATE", "UPDATE"), _READ_ONLY
    ),
}
"""What to write in place of a statement about a table that names a stream, by its first word."""

_OF_SINK = {
    "DROP": "write DROP SINK {name}",
    "ALTER": "write CREATE OR REPLACE SINK {name} …",
    "INSERT": "write INSERT INTO {name} SELECT …, or INSERT INTO {name} (x, y) SELECT …",
    "SHOW": "write SHOW CREATE SINK {name}, or DESCRIBE SINK {name}",
    **dict.fromkeys(("DESC", "DESCRIBE"), "write DESCRIBE SINK {name}"),
}
"""The same for the name of a sink."""

_OF_VIEW = frozenset({"ALTER", "DROP"})
"""What Spark does with a view over streams, a temporary view, but not with a stream."""

_READS = frozenset("COLUMNS DESC DESCRIBE REFRESH TBLPROPERTIES UNCACHE".split())
"""First or second words of statements that Spark runs for a stream as for any temporary view."""

_HEAD = re.compile(
    r"(?:DROP (?:TABLE|VIEW)(?: IF EXISTS)?|ALTER (?:TABLE|VIEW)|(?:ANALYZE|TRUNCATE|(?:MSCK )?REPAIR) TABLE"
    r"|(?:UN)?CACHE(?: LAZY)? TABLE(?: IF EXISTS)?|REFRESH(?: TABLE)?|COMMENT ON TABLE"
    r"|SHOW (?:CREATE TABLE|COLUMNS (?:IN|FROM)|PARTITIONS|TBLPROPERTIES)"
    r"|DESC(?:RIBE)?(?: TABLE)?(?: EXTENDED| FORMATTED)?|UPDATE|DELETE FROM"
    r"|LOAD DATA(?: LOCAL)? INPATH (?: OVERWRITE)? INTO TABLE|MERGE(?: WITH SCHEMA EVOLUTION)? INTO"
    r"|INSERT(?: WITH SCHEMA EVOLUTION)? (?:INTO|OVERWRITE)(?: TABLE)?) "
)
"""The words of a statement about a table, up to its name; a string stands for no word."""
_LONGEST_HEAD = 8
_CHANGES = frozenset("DELETE INSERT MERGE UPDATE".split())
_EXPLAIN_MODES = frozenset("CODEGEN COST EXTENDED FORMATTED".split())
_IN_WITH = frozenset({"AS", "MAX", ","})
"""What follows a parenthesis that closes in a WITH list; anything else begins the statement."""


class Subject(NamedTuple):
    """What a statement is about: the words before its name, the name's parts, and the place behind it."""

    code: Code
    head: list[str]
    parts: tuple[Identifier, ...]
    after: int


def subject(text: str) -> Subject | None:
    """Return which table or view a statement of Spark's is about by name, None for any other statement."""
    code = pair(text, scan(text))
    begin = _verb(code, 0)
    if begin is None:
        return None
    words = [code.word(place) for place in range(begin, begin + _LONGEST_HEAD)]
    head = _HEAD.match(" ".join(words) + " ")
    if head is None:
        return None
    # A string has no word, and two blanks around it.
    count = head.group().count(" ")
    parts, after = code.dotted(begin + count)
    return Subject(code, words[:count], parts, after) if parts else None


def _verb(code: Code, start: int) -> int | None:
    """Return the place of the word that says what a statement does, None for one that only reads.

    Before it stand EXPLAIN, common table expressions, or the rows that it inserts: WITH … MERGE, FROM …
    """
    match code.word(start):
        case "EXPLAIN":
            return _verb(code, start + 1 + (code.word(start + 1) in _EXPLAIN_MODES))
        case "WITH":
            closed = (
                place for place in code.level(start + 1, len(code.tokens)) if code.mark(place - 1) == ")"
            )
            after = next((place for place in closed if code.mark(place).upper() not in _IN_WITH), 0)
            return after if code.word(after) in _CHANGES else None
        case "FROM":
            level = code.level(start + 1, len(code.tokens))
            words = ("INTO", "OVERWRITE")
            found = (each for each in level if code.word(each) == "INSERT" and code.word(each + 1) in words)
            return next(found, None)
    return start


class ChangedView(NamedTuple):
    """A name of the session that Spark drops, or gives the name ``new``."""

    name: str
    new: str | None = None


def changed_view(context: Context, text: str) -> ChangedView | None:
    """Return which name of the session a statement drops or changes, None for any other statement.

    Raises WJoinError WJ602 where it is about a table, and the name that of a stream or a sink, or of a view
    over streams that it does not only drop or alter.
    """
    about = subject(text)
    if about is None or session_name([each.name for each in about.parts]) is None:
        return None
    name = about.parts[-1]
    _refuse(context, about, name, text)
    code, place = about.code, about.after
    match code.word(0):
        case "DROP":
            return ChangedView(name.name)
        case "ALTER" if [code.word(place), code.word(place + 1)] == ["RENAME", "TO"]:
            new = code.dotted(place + 2)[0]
            return ChangedView(name.name, new[-1].name) if new else None
    return None


def _refuse(context: Context, about: Subject, name: Identifier, text: str) -> None:
    """Refuse a statement about a table where its name is a stream's or a sink's. Raises WJoinError WJ602."""
    verb, catalog = about.head[0], context.catalog
    stream = catalog.stream(name.name)
    is_view = stream is not None and stream.source == "view"
    kind = about.head[1].lower() if verb in ("DROP", "ALTER") else "table"
    if stream is not None:
        if not _READS.isdisjoint(about.head[:2]) or (is_view and verb in _OF_VIEW):
            return
        message = f"{name.name} is a {'view over streams' if is_view else 'stream'}, not a {kind}"
        remedy = _OF_STREAM[verb]
    elif (sink := catalog.sinks.get(name.name.lower())) and not context.engine.exists(quoted(name.name)):
        message, remedy = f"{name.name} is a sink, not a {kind}", _OF_SINK.get(verb) or _where(sink)
    else:
        return
    help = remedy.format(name=name.name)
    raise WJoinError("WJ602", message, span=name.span, text=text, help=help)


def _where(sink: SinkDeclaration) -> str:
    path = own_option(sink.options, "path")
    read = "" if path is None else f": SELECT * FROM {sink.provider}.`{path}`"
    return f"what {sink.name} has written can be read in its folder{read}"


def said_of_declared(catalog: Catalog, text: str, error: BaseException) -> WJoinError | None:
    """Return what Spark refuses in the words of the language, where it is about a stream or a sink.

    A statement that needs all rows of a stream is WJ621, one that reads a sink WJ602.
    """
    tokens = scan(text)
    streams = [each for each in tokens if catalog.stream(unquoted(each.text)) is not None]
    # Spark fails in a script that reads a stream before it has said why.
    if is_endless(error) or (streams and isinstance(error, Py4JError) and begins_script(tokens, 0)):
        return never_ends("the statement", streams[0].span if streams else None, text)
    flinks = flinks_word(error, Span(0, len(text)), text) if streams else None
    if flinks is not None:
        place, remedy = flinks
        message = f"Spark refused the statement: {first_line(error)}"
        return WJoinError("WJ607", message, span=place, text=text, help=remedy)
    if not isinstance(error, AnalysisException) or error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
        return None
    missing = (error.getMessageParameters() or {}).get("relationName", "").replace("`", "").lower()
    sink = catalog.sinks.get(missing)
    read = [each for each in tokens if unquoted(each.text).lower() == missing]
    if sink is None or not read:
        return None
    return WJoinError(
        "WJ602", f"{sink.name} is a sink, not a table", span=read[-1].span, text=text, help=_where(sink)
    )
