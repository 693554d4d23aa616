"""What can stand at the cursor of an unfinished statement."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from wjoin.grammar.durations import UNITS
from wjoin.grammar.lookahead import CLAUSE_WORDS
from wjoin.grammar.parser import unended
from wjoin.grammar.syntax import SITE_FORMAT
from wjoin.grammar.tokens import Kind, Token, is_name, scan, unquoted
from wjoin.shell import words
from wjoin.shell.from_items import FromItem, from_items


class What(Enum):
    """A kind of thing that can stand at a place."""

    NOTHING = auto()
    WORDS = auto()
    RELATION = auto()
    TARGET = auto()
    COLUMN = auto()
    EXPRESSION = auto()
    OPERAND = auto()
    ALIAS = auto()
    UNIT = auto()
    SETTING = auto()
    VALUE = auto()
    HINT = auto()
    HINT_VALUE = auto()
    FORMAT = auto()
    OPTION = auto()
    STREAM = auto()
    SINK = auto()
    QUERY = auto()


@dataclass(frozen=True)
class Place:
    """What can stand at the cursor.

    ``prefix`` is what has been typed of it. ``words`` are keywords that can stand there as well. ``of``: the
    alias whose columns, the setting or hint whose values, or the format whose options are meant. ``items``:
    the relations of the statement. ``singular``: the number before a unit is 1. ``new``: the names of a
    WITH clause.
    """

    what: What
    prefix: str
    words: tuple[str, ...] = ()
    of: str = ""
    items: tuple[FromItem, ...] = ()
    singular: bool = False
    new: tuple[str, ...] = ()


_WORD_BEFORE = re.compile(r"(?:`(?:[^`]|``)*|\w+)\Z")
_SETTING = re.compile(r"\s*SET\s+([\w.]*)\Z", re.IGNORECASE)
_VALUE = re.compile(r"\s*SET\s+([\w.]+)\s*=\s*(\w*)\Z", re.IGNORECASE)
_HINT_VALUE = re.compile(r"(\w+)\s*\(\s*(\w*)\Z")
_HINT = re.compile(r"(?:/\*\+|[,)]|\s)\s*(\w*)\Z")

_EXPECT_RELATION = frozenset({"FROM", "JOIN", "TABLE", "REFRESH"})
_EXPECT_OPERAND = frozenset(
    """
    SELECT WHERE AND OR NOT ON BY HAVING CASE WHEN THEN ELSE DISTINCT BETWEEN IN LIKE RLIKE ILIKE QUALIFY
    ALL IS DIV OVER FILTER
    """.split()
)
_CLAUSE_AT = frozenset(
    """
    SELECT FROM WHERE GROUP ORDER HAVING LIMIT ON USING OPTIONS SET VALUES WINDOW DWINDOW PATH WATERMARK JOIN
    STATISTICS
    """.split()
)
_BEFORE_DURATION = frozenset({"BETWEEN", "AND", "INTERVAL", "OF", "WITHIN", "DELAY"})


def place_at(text: str, cursor: int) -> Place:
    """Return what can stand at a cursor in a text, which may have several statements."""
    before = text[:cursor]
    begin = min(unended(before), cursor)
    before = before[begin:]
    if found := _setting(before):
        return found
    tokens = scan(before)
    if tokens and tokens[-1].kind is Kind.UNCLOSED:
        if tokens[-1].text.startswith("/*+"):
            return _hint(tokens[-1].text)
        if not tokens[-1].text.startswith("`"):
            return Place(What.NOTHING, "")
    typed = _WORD_BEFORE.search(before)
    prefix = typed[0] if typed is not None else ""
    if prefix and tokens and tokens[-1].end == len(before):
        if tokens[-1].kind not in (Kind.WORD, Kind.UNCLOSED):
            return Place(What.NOTHING, "")
        tokens = tokens[:-1]
    whole = _statement(f"{before.removesuffix(prefix)} {text[cursor:]}")
    return _place(tokens, prefix, from_items(whole), _with_names(whole))


def _statement(text: str) -> list[Token]:
    """Return the tokens of the statement with which a text begins."""
    tokens = scan(text)
    end = next((place for place, token in enumerate(tokens) if token.text == ";"), len(tokens))
    return tokens[:end]


def _with_names(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the names of common tables, ``name AS (``, in a statement that begins with WITH."""
    if not any(token.word == "WITH" for token in tokens):
        return ()
    return tuple(
        unquoted(name.text)
        for name, as_, opening in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if is_name(name) and as_.word == "AS" and opening.text == "("
    )


def _setting(before: str) -> Place | None:
    """Return the place in a SET statement, None in another statement."""
    if found := _SETTING.match(before):
        return Place(What.SETTING, found[1])
    if found := _VALUE.match(before):
        return Place(What.VALUE, found[2], of=found[1].lower())
    return None


def _hint(comment: str) -> Place:
    """Return the place in a hint comment that is not closed."""
    if found := _HINT_VALUE.search(comment):
        return Place(What.HINT_VALUE, found[2], of=found[1].upper())
    if found := _HINT.search(comment):
        return Place(What.HINT, found[1])
    return Place(What.NOTHING, "")


def _place(tokens: list[Token], prefix: str, items: tuple[FromItem, ...], new: tuple[str, ...]) -> Place:
    if not tokens:
        return Place(What.WORDS, prefix, words.STATEMENTS)
    last = tokens[-1]
    if last.text == ".":
        of = unquoted(tokens[-2].text) if len(tokens) > 1 else ""
        return Place(What.COLUMN, prefix, of=of, items=items)
    found = _in_declaration(tokens, prefix) or _in_duration(tokens, prefix)
    return found or _in_query(tokens, prefix, items, new)


_AFTER_FIRST: dict[str, tuple[What, tuple[str, ...]]] = {
    "SHOW": (What.WORDS, words.SHOWN),
    "SHOW CREATE": (What.WORDS, words.SHOWN_CREATE),
    "SHOW CREATE STREAM": (What.STREAM, ()),
    "SHOW CREATE SINK": (What.SINK, ()),
    "DESCRIBE": (What.RELATION, words.DESCRIBED),
    "DESCRIBE STREAM": (What.STREAM, ()),
    "DESCRIBE SINK": (What.SINK, ()),
    "DESCRIBE QUERY": (What.QUERY, ("SELECT",)),
    "DROP": (What.WORDS, words.DROPPED),
    "DROP STREAM": (What.STREAM, ("IF EXISTS",)),
    "DROP STREAM IF EXISTS": (What.STREAM, ()),
    "DROP SINK": (What.SINK, ("IF EXISTS",)),
    "DROP SINK IF EXISTS": (What.SINK, ()),
    "DROP TABLE": (What.RELATION, ("IF EXISTS",)),
    "DROP VIEW": (What.RELATION, ("IF EXISTS",)),
    "ALTER": (What.WORDS, words.ALTERED),
    "ALTER STREAM": (What.STREAM, ()),
    "ANALYZE": (What.WORDS, ("STREAM", "TABLE")),
    "ANALYZE STREAM": (What.STREAM, ()),
    "STOP": (What.WORDS, ("QUERY",)),
    "STOP QUERY": (What.QUERY, ()),
    "EXPLAIN": (What.WORDS, words.EXPLAINED),
    "EXPLAIN COST": (What.WORDS, ("SELECT", "INSERT INTO", "WITH")),
    "EXPLAIN ANALYZE": (What.WORDS, ("SELECT", "INSERT INTO", "WITH")),
    "EXPLAIN FORMATTED": (What.WORDS, ("SELECT", "INSERT INTO", "WITH")),
    "CREATE": (What.WORDS, words.CREATED),
    "CREATE OR": (What.WORDS, ("REPLACE",)),
    "CREATE OR REPLACE": (What.WORDS, ("STREAM", "SINK", "VIEW", "TEMPORARY VIEW")),
    "CREATE STREAM": (What.NOTHING, ()),
    "CREATE SINK": (What.NOTHING, ()),
    "INSERT": (What.WORDS, ("INTO", "OVERWRITE")),
    "INSERT INTO": (What.TARGET, ()),
}
"""What can stand after the first words of a statement."""


def _in_declaration(tokens: list[Token], prefix: str) -> Place | None:
    """Return the place in a statement that begins with a verb, None in a query."""
    first = ["DESCRIBE" if token.word == "DESC" and n == 0 else token.word for n, token in enumerate(tokens)]
    if after := _AFTER_FIRST.get(" ".join(first)) if all(first) else None:
        return Place(after[0], prefix, after[1])
    if _explains(first):
        return None
    creates = first[0] == "CREATE" and next((word for word in first if word in ("STREAM", "SINK")), "")
    if creates:
        return _in_create(tokens, first, prefix, creates)
    if first[0] in ("ALTER", "ANALYZE") and first[1:2] == ["STREAM"] and len(tokens) >= 3:
        return _in_statistics(first, tokens, prefix)
    if first[:2] == ["INSERT", "INTO"] and len(tokens) == 3:
        return Place(What.WORDS, prefix, ("SELECT", "WITH", "VALUES", "TABLE"))
    if first[0] in ("SHOW", "DROP", "DESCRIBE", "STOP") and len(tokens) > 2:
        return Place(What.NOTHING, prefix)
    return None


def _explains(first: Sequence[str]) -> bool:
    return first[0] in ("SELECT", "WITH", "EXPLAIN", "FROM", "VALUES")


def _in_statistics(first: Sequence[str], tokens: Sequence[Token], prefix: str) -> Place:
    """Return the place after ALTER STREAM name or ANALYZE STREAM name."""
    if first[0] == "ANALYZE":
        more: dict[int, tuple[str, ...]] = {3: ("SAMPLE",), 5: ("ROWS",)}
        return Place(What.WORDS, prefix, more.get(len(tokens), ()))
    if "STATISTICS" in first and tokens[-1].text in ("(", ","):
        return Place(What.WORDS, prefix, words.STATISTICS)
    more = {3: ("SET STATISTICS (", "RESET STATISTICS"), 4: ("STATISTICS",)}
    return Place(What.WORDS, prefix, more.get(len(tokens), ()))


def _in_create(tokens: list[Token], first: Sequence[str], prefix: str, creates: str) -> Place | None:
    """Return the place in CREATE STREAM or CREATE SINK."""
    last = tokens[-1]
    using = _origin_at(tokens)
    if last.word == "USING":
        return Place(What.FORMAT, prefix, of=creates)
    if last.word == "AT" and using == len(tokens) - 1:
        return Place(What.WORDS, prefix, ("SITE", "SITES ("))
    if last.word in ("IF", "NOT"):
        return Place(What.WORDS, prefix, {"IF": ("NOT EXISTS",), "NOT": ("EXISTS",)}[last.word])
    if last.word == "WATERMARK":
        columns = _declared_columns(tokens)
        return Place(What.WORDS, prefix, (*columns, "FOR") if _depth(tokens) else columns)
    if len(tokens) > 1 and tokens[-2].word == "WATERMARK":
        return Place(What.WORDS, prefix, ("DELAY OF INTERVAL",))
    if last.word == "DELAY":
        return Place(What.WORDS, prefix, ("OF INTERVAL",))
    if last.word == "OF":
        return Place(What.WORDS, prefix, ("INTERVAL",))
    if using < 0:
        if last.text == ")" or (is_name(last) and not _depth(tokens) and last.word != creates):
            sources = ("USING", "AT SITE") if creates == "STREAM" else ("USING",)
            return Place(What.WORDS, prefix, (*sources, "(") if last.text != ")" else sources)
        return _in_duration(tokens, prefix) or Place(What.NOTHING, prefix)
    if _depth(tokens) and "OPTIONS" in first:
        provider = SITE_FORMAT if tokens[using].word == "AT" else tokens[using + 1].text.lower()
        named = last.text in ("(", ",")
        return Place(What.OPTION if named else What.NOTHING, prefix, of=f"{creates} {provider}")
    if found := _in_duration(tokens, prefix):
        return found
    stream = ("OPTIONS (", "WATERMARK", "DROP DUPLICATES ON (")
    more = stream if creates == "STREAM" else ("OPTIONS (", "PARTITIONED BY (")
    return Place(What.WORDS, prefix, more)


def _origin_at(tokens: Sequence[Token]) -> int:
    """Return the place of the USING or AT of a declaration, -1 before it; columns may have such names."""
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if not depth and token.word in ("USING", "AT") and place > 2:
            return place
    return -1


def _declared_columns(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the names of the column list of CREATE STREAM."""
    found, depth = [], 0
    for before, token in itertools.pairwise(tokens):
        if before.word in ("USING", "OPTIONS"):
            break
        depth += (before.text == "(") - (before.text == ")")
        if depth == 1 and before.text in ("(", ",") and is_name(token) and token.word != "WATERMARK":
            found.append(unquoted(token.text))
    return tuple(found)


def _depth(tokens: Sequence[Token]) -> int:
    return sum((token.text == "(") - (token.text == ")") for token in tokens)


def _in_duration(tokens: list[Token], prefix: str) -> Place | None:
    """Return the place after the number of a duration, None elsewhere."""
    number = len(tokens) - 1
    if tokens[number].kind not in (Kind.NUMBER, Kind.STRING):
        return None
    before = number - 1
    while (
        before > 0 and tokens[before].word in UNITS and tokens[before - 1].kind in (Kind.NUMBER, Kind.STRING)
    ):
        before -= 2
    if before >= 0 and tokens[before].text in ("-", "+"):
        before -= 1
    lead = tokens[before] if before >= 0 else None
    interval = lead is not None and lead.word == "INTERVAL"
    if tokens[number].kind is Kind.STRING and not interval:
        return None
    if not interval and (lead is None or _clause(tokens) not in (*CLAUSE_WORDS, "WATERMARK")):
        return None
    if (
        not interval
        and lead is not None
        and lead.text not in ("=", "(", ",")
        and lead.word not in _BEFORE_DURATION
    ):
        return None
    more = ("ROWS",) if not interval and _clause(tokens) == "WINDOW" else ()
    return Place(What.UNIT, prefix, more, singular=tokens[number].text.strip("'") == "1")


def _clause(tokens: Sequence[Token]) -> str:
    """Return the clause, upper case, in which the end of the tokens lies; that of parentheses around it."""
    depth = 0
    for place in range(len(tokens) - 1, -1, -1):
        token = tokens[place]
        depth += (token.text == ")") - (token.text == "(")
        if depth <= 0 and token.word in _CLAUSE_AT and not _is_field(tokens, place):
            return token.word
    return ""


def _is_field(tokens: Sequence[Token], place: int) -> bool:
    return place > 0 and tokens[place - 1].text == "."


def _in_query(tokens: list[Token], prefix: str, items: tuple[FromItem, ...], new: tuple[str, ...]) -> Place:
    last, clause = tokens[-1], _clause(tokens)
    before = tokens[-2].word if len(tokens) > 1 else ""
    if last.word in _EXPECT_RELATION or (last.text == "," and clause in ("FROM", "JOIN")):
        return Place(What.RELATION, prefix, ("STREAM",) if last.word == "FROM" else (), new=new)
    if last.word == "STREAM":
        return Place(What.RELATION, prefix)
    if last.word == "INTO":
        return Place(What.TARGET, prefix)
    if last.word == "AS":
        return Place(What.NOTHING, prefix)
    if clause in CLAUSE_WORDS and (found := _in_window(tokens, prefix, items, clause)):
        return found
    if last.word == "WATERMARK":
        named = _item_before(tokens)
        return Place(What.COLUMN, prefix, of=named, items=(*items, FromItem(named, named)))
    if before == "WATERMARK" or last.word == "DELAY":
        return Place(
            What.WORDS, prefix, ("DELAY OF INTERVAL", "AS") if before == "WATERMARK" else ("OF INTERVAL",)
        )
    if last.word in ("GROUP", "ORDER", "PARTITION", "CLUSTER", "SORT", "DISTRIBUTE"):
        return Place(What.WORDS, prefix, ("BY",))
    if _expects_operand(last):
        return Place(What.EXPRESSION, prefix, words.BEFORE_OPERAND, items=items)
    if clause in ("FROM", "JOIN"):
        return Place(What.WORDS, prefix, words.AFTER_RELATION)
    return Place(What.OPERAND, prefix, words.AFTER_OPERAND, items=items)


def _in_window(tokens: list[Token], prefix: str, items: tuple[FromItem, ...], clause: str) -> Place | None:
    """Return the place in a window clause."""
    last = tokens[-1]
    opening = _opening(tokens)
    if last.word in CLAUSE_WORDS:
        return Place(What.ALIAS if last.word == "WINDOW" else What.WORDS, prefix, ("(",), items=items)
    if opening >= 1 and tokens[opening - 1].word in CLAUSE_WORDS:
        listed = last.text in ("(", ",")
        return Place(What.ALIAS, prefix, items=items) if listed else Place(What.NOTHING, prefix)
    if last.text == ")" and clause == "PATH" and not any(token.word == "WITHIN" for token in tokens[-12:]):
        return Place(What.WORDS, prefix, ("WITHIN (",))
    if last.text == ")" and clause != "PATH":
        return Place(What.WORDS, prefix, ("=", "BETWEEN", *words.AFTER_DURATION))
    if last.word in UNITS or last.text == ")":
        more = ("BIDIRECTIONAL",) if clause == "PATH" and last.text == ")" else ()
        return Place(What.WORDS, prefix, (*words.AFTER_DURATION, *more))
    if last.word in ("AND", "OR") and tokens[-2].word in UNITS:
        return Place(What.WORDS, prefix, (*sorted(CLAUSE_WORDS, key=len, reverse=True), "("))
    if last.text == "=" or last.word in _BEFORE_DURATION:
        return Place(What.WORDS, prefix, ("INTERVAL",) if last.word != "INTERVAL" else ())
    return None


def _opening(tokens: Sequence[Token]) -> int:
    """Return where the parenthesis opens in which the end of the tokens lies, -1 for none."""
    depth = 0
    for place in range(len(tokens) - 1, -1, -1):
        depth += (tokens[place].text == ")") - (tokens[place].text == "(")
        if depth < 0:
            return place
    return -1


def _item_before(tokens: Sequence[Token]) -> str:
    """Return the relation before the WATERMARK that ends the tokens."""
    return unquoted(tokens[-2].text) if len(tokens) > 1 else ""


def _expects_operand(last: Token) -> bool:
    if last.kind is Kind.OPERATOR:
        return last.text not in (")", "]", "}", "?")
    return last.word in _EXPECT_OPERAND or last.kind is Kind.HINT
