"""The window clause, watermark clauses and declarations: tokens to nodes, by Lark."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Any

from lark import Lark, Tree
from lark import Token as Leaf
from lark.exceptions import UnexpectedToken
from lark.lexer import Lexer

from wjoin.grammar import statement_kinds, syntax
from wjoin.grammar.declaration_nodes import build
from wjoin.grammar.durations import NOT_FIXED, UNITS, is_like_unit
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.tokens import Kind, Token, is_name, scan, string_value

MARKS = {
    **{"(": "LPAR", ")": "RPAR", ",": "COMMA", "=": "EQUAL", "-": "MINUS", "+": "PLUS", ".": "DOT"},
    "||": "_CONCAT",
}
"""The marks of the grammar, and what it calls them."""
_TYPES = {
    Kind.QUOTED: "NAME",
    Kind.STRING: "STRING",
    Kind.NUMBER: "NUMBER",
    Kind.PARAMETER: "PARAMETER",
    Kind.HINT: "HINT",
}


_WHEN = ["COMMIT", "WHEN"]

_AFTER_DURATION = frozenset(
    "AS ANTI ASOF CROSS FULL INNER JOIN LATERAL LEFT NATURAL ON RIGHT SEMI USING".split()
)


class _Given(Lexer):
    """Stands where Lark wants a lexer: the tokens are fed one by one."""

    def __init__(self, lexer_conf: object) -> None:
        del lexer_conf

    def lex(self, lexer_state: Any, parser_state: Any = None) -> Iterator[Leaf]:
        del parser_state
        yield from lexer_state


@cache
def grammar() -> Lark:
    """Return the parser of wjoin.lark."""
    source = files("wjoin.grammar").joinpath("wjoin.lark").read_text(encoding="utf-8")
    starts = ["clause", "within", "watermark", "declaration"]
    return Lark(source, parser="lalr", lexer=_Given, start=starts, propagate_positions=True)


@cache
def keywords() -> frozenset[str]:
    """Return the words of the grammar, upper case; each is a keyword only where the grammar has it."""
    return frozenset({terminal.name for terminal in grammar().terminals} - set(MARKS.values()))


class SyntaxSlip(Exception):  # noqa: N818 (it becomes an error in grammar.slips)
    """The token at which reading stopped, the parser's state there, and what it would take."""

    def __init__(self, leaf: Leaf, state: int, expected: frozenset[str]) -> None:
        self.leaf = leaf
        self.state = state
        self.expected = expected
        super().__init__(f"unexpected {leaf!r}")


def read_tree(start: str, leaves: Sequence[Leaf]) -> "Tree[Leaf]":
    """Return Lark's tree of ``leaves`` for a start rule; raises SyntaxSlip where they do not fit.

    Words are soft keywords: one that the grammar has no place for is a NAME.
    """
    parser = grammar().parse_interactive(start=start)
    state = parser.parser_state
    table = state.parse_conf.states
    last = leaves[-1].end_pos if leaves else 0
    end = Leaf("$END", "", last, end_pos=last)
    for leaf in (*leaves, end):
        actions = table[state.position]
        if leaf.type not in actions and leaf.type in keywords() and "NAME" in actions:
            leaf = _leaf("NAME", leaf.value, leaf.start_pos or 0)
        try:
            result = parser.feed_token(leaf)
        except UnexpectedToken:
            expected: Any = parser.accepts()  # type: ignore[no-untyped-call]  # has no types
            raise SyntaxSlip(leaf, state.position, frozenset(expected)) from None
    tree: Tree[Leaf] = result
    return tree


def _leaf(kind: str, text: str, start: int) -> Leaf:
    return Leaf(kind, text, start, end_pos=start + len(text))


_GLUED = re.compile(r"(\d+\.?\d*|\.\d+)([^\W\d]+)")


def leaves_of(tokens: Sequence[Token]) -> list[Leaf]:
    """Return tokens as Lark wants them; a number glued to its unit (``250ms``) becomes two."""
    words = keywords()
    leaves: list[Leaf] = []
    for token in tokens:
        kind = _TYPES.get(token.kind)
        if token.kind is Kind.WORD:
            if token.text[0].isdigit():
                leaves += _unglue(token, leaves)
                continue
            kind = token.word if token.word in words else "NAME"
            kind = "DESCRIBE" if token.word == "DESC" else kind
        elif token.kind is Kind.NUMBER and token.text[-1:].isalpha() and token.text[-1].upper() in "SD":
            # Spark reads 5S as a SMALLINT and 5D as a DOUBLE; in a duration they are units.
            leaves += _unglue(token, leaves)
            continue
        leaves.append(_leaf(kind or MARKS.get(token.text, token.text), token.text, token.start))
    return leaves


def _unglue(token: Token, before: list[Leaf]) -> list[Leaf]:
    text, start = token.text, token.start
    if len(before) > 1 and before[-1].type == "DOT" and before[-1].end_pos == start:
        number = before[-2]
        if number.type == "NUMBER" and number.end_pos == before[-1].start_pos:
            del before[-2:]
            text, start = f"{number.value}.{text}", number.start_pos or 0
    found = _GLUED.fullmatch(text)
    if found is None:
        return [_leaf("NAME", text, start)]
    return [_leaf("NUMBER", found[1], start), _leaf("NAME", found[2], start + len(found[1]))]


def read_clause(text: str, tokens: Sequence[Token]) -> syntax.WindowCondition:
    """Return the window condition that ``tokens`` of ``text`` spell.

    Raises SyntaxSlip where they do not fit the grammar, and WJ102, WJ103, WJ109 and WJ110.
    """
    condition: syntax.WindowCondition = build(read_tree("clause", clause_leaves(text, tokens)))
    return condition


def clause_leaves(text: str, tokens: Sequence[Token]) -> list[Leaf]:
    """Return the leaves of a window clause; landmarks' conditions and bounds in the row are raw text."""
    found, done, place = list[Leaf](), 0, 0
    while place < len(tokens):
        own = tokens[place : place + 4]
        if [own[0].word, *(each.word for each in own[2:3])] == ["WINDOW", "SINCE"] and own[-1].text == "(":
            raw, end = _condition_leaves(text, tokens, place + 3)
            found += [*leaves_of(tokens[done : place + 3]), *raw]
            done = place = end
        elif own[0].text == "=" and (end := _bound_end(tokens, place + 1)) > place + 1:
            start = own[1].start
            bound = _leaf("EXPRESSION", text[start : tokens[end - 1].end], start)
            found += [*leaves_of(tokens[done : place + 1]), bound]
            done = place = end
        else:
            place += 1
    return [*found, *leaves_of(tokens[done:])]


def _bound_end(tokens: Sequence[Token], start: int) -> int:
    """Return the place of the AT MOST behind an expression; ``start`` where none follows."""
    depth = 0
    for place in range(start, len(tokens) - 1):
        token = tokens[place]
        opens = token.text in ("(", "[") or token.word == "CASE"
        depth += opens - (token.text in (")", "]") or token.word == "END")
        if depth < 0 or (depth == 0 and token.word in ("AND", "OR")):
            break
        if depth == 0 and token.word == "AT" and tokens[place + 1].word == "MOST":
            return place
    return start


def read_within(tokens: Sequence[Token]) -> tuple[syntax.Duration, syntax.Duration]:
    """Return how much earlier and later the right side of a join may be; raises as read_clause does."""
    found: tuple[syntax.Duration, syntax.Duration] = build(read_tree("within", leaves_of(tokens)))
    return found


def read_watermark(tokens: Sequence[Token]) -> syntax.Watermark:
    """Return the watermark clause that ``tokens`` spell; raises as read_clause does, and WJ106."""
    watermark: syntax.Watermark = build(read_tree("watermark", leaves_of(tokens)))
    return watermark


def read_declaration(text: str, tokens: Sequence[Token]) -> statement_kinds.Statement:
    """Return the declaration that ``tokens`` of ``text`` spell; raises as read_watermark does, and WJ113."""
    statement: statement_kinds.Statement = build(read_tree("declaration", declaration_leaves(text, tokens)))
    return statement


def declaration_leaves(text: str, tokens: Sequence[Token]) -> list[Leaf]:
    """Return a declaration's tokens with column definitions and a setting's value as raw text."""
    words = [token.word for token in tokens]
    if words[0] == "SET":
        return _setting_leaves(text, tokens)
    if words[0] == "CREATE" and "STREAM" in words[:6]:
        name = words.index("STREAM") + 1
        name += 3 if words[name : name + 3] == ["IF", "NOT", "EXISTS"] else 0
        if name + 1 < len(tokens) and tokens[name + 1].text == "(":
            listed, after = _column_leaves(text, tokens, name + 1)
            return [*leaves_of(tokens[: name + 1]), *listed, *leaves_of(tokens[after:])]
    opening = 3 + next((place for place, each in enumerate(words) if words[place : place + 2] == _WHEN), -3)
    if opening and tokens[opening : opening + 1] and tokens[opening].text == "(":
        return _with_condition(text, tokens, opening)
    return leaves_of(tokens)


def _with_condition(text: str, tokens: Sequence[Token], opening: int) -> list[Leaf]:
    """Return the leaves of a CREATE SINK with the condition of COMMIT WHEN in parentheses as raw text."""
    condition, closing = _condition_leaves(text, tokens, opening)
    return [*leaves_of(tokens[:opening]), *condition, *leaves_of(tokens[closing:])]


def _condition_leaves(text: str, tokens: Sequence[Token], opening: int) -> tuple[list[Leaf], int]:
    """Return the leaves of a parenthesis, the condition in it as raw text, and the place that closes it."""
    depths = accumulate((token.text == "(") - (token.text == ")") for token in tokens[opening:])
    closing = opening + list(depths).index(0)
    inside = tokens[opening + 1 : closing]
    condition = [_leaf("EXPRESSION", text[one.start : inside[-1].end], one.start) for one in inside[:1]]
    return [*leaves_of(tokens[opening : opening + 1]), *condition], closing


def _setting_leaves(text: str, tokens: Sequence[Token]) -> list[Leaf]:
    equal = next((place for place, token in enumerate(tokens) if token.text == "="), len(tokens))
    rest = tokens[equal + 1 :]
    leaves = leaves_of(tokens[: equal + 1])
    if len(rest) == 1 and rest[0].kind is Kind.STRING:
        value = string_value(rest[0].text, rest[0].span)
        leaves.append(Leaf("REST", value, rest[0].start, end_pos=rest[0].end))
    elif rest:
        leaves.append(_leaf("REST", text[rest[0].start : rest[-1].end], rest[0].start))
    return leaves


def _column_leaves(text: str, tokens: Sequence[Token], opening: int) -> tuple[list[Leaf], int]:
    """Return the leaves of the column list that opens at a token, and the place after it."""
    leaves = leaves_of(tokens[opening : opening + 1])
    first = opening + 1
    for place in _edges(tokens, first):
        leaves += _one_column(text, tokens[first:place])
        leaves += leaves_of(tokens[place : place + 1])
        first = place + 1
        if tokens[place].text == ")":
            return leaves, first
    return leaves + leaves_of(tokens[first:]), len(tokens)


def split_columns(columns: str) -> list[str]:
    """Return the entries of a column list.

    >>> split_columns("a MAP<STRING, DECIMAL(10,2)>, b INT COMMENT 'x, y'")
    ['a MAP<STRING, DECIMAL(10,2)>', "b INT COMMENT 'x, y'"]
    """
    tokens = scan(columns)
    edges = [tokens[place].start for place in _edges(tokens, 0)]
    starts = [0, *(edge + 1 for edge in edges)]
    return [columns[start:end].strip() for start, end in zip(starts, [*edges, len(columns)], strict=True)]


def _edges(tokens: Sequence[Token], first: int) -> Iterator[int]:
    """Yield the places of the commas of a column list that begins at a place, and of what closes it."""
    parentheses = angles = 0
    entry = first
    for place in range(first, len(tokens)):
        mark = tokens[place].text
        if parentheses == 0 and (mark == ")" or (mark == "," and angles <= 0)):
            yield place
            if mark == ")":
                return
            entry, angles = place + 1, 0
        parentheses += (mark == "(") - (mark == ")")
        # In an expression < compares, but for that of a type.
        if mark == ">" or (mark == "<" and _opens_type(tokens, entry, place)):
            angles = max(0, angles + (1 if mark == "<" else -1))


def _opens_type(tokens: Sequence[Token], entry: int, place: int) -> bool:
    return not _is_computed(tokens[entry:place]) or tokens[place - 1].word in ("ARRAY", "MAP", "STRUCT")


def _is_computed(tokens: Sequence[Token]) -> bool:
    """Return whether an entry of a column list is ``name AS …``; a column may have the name ``as``."""
    return len(tokens) > 1 and is_name(tokens[0]) and tokens[1].word == "AS"


def _one_column(text: str, tokens: Sequence[Token]) -> list[Leaf]:
    words = [token.word for token in tokens]
    if words[:1] == ["WATERMARK"] and ("FOR" in words[1:2] or "DELAY" in words[2:3]):
        return leaves_of(tokens)
    if not tokens:
        return []
    span = tokens[0].span.cover(tokens[-1].span)
    if _is_computed(tokens):
        return _computed_column(text, tokens, span)
    if len(tokens) < 2 or not is_name(tokens[0]):
        remedy = "write a name and a type, for example obj_id BIGINT"
        raise WJoinError("WJ106", f"the column {span.of(text)} cannot be read", span=span, help=remedy)
    if (written := _typed_as(tokens)) is not None:
        raise WJoinError(
            "WJ106",
            f"the computed column {tokens[0].text} has a type",
            span=tokens[1].span.cover(tokens[written].span),
            help=f"leave it out: {tokens[0].text} AS expression; the expression can CAST to it",
        )
    return [_leaf("COLUMN", span.of(text), span.start)]


def _typed_as(tokens: Sequence[Token]) -> int | None:
    """Return the place of the AS of ``name TYPE [GENERATED ALWAYS] AS …``, None where there is none."""
    depth = 0
    for place, token in enumerate(tokens):
        if place > 1 and depth == 0 and token.word == "AS":
            return place
        depth += (token.text in ("(", "<")) - (token.text in (")", ">"))
    return None


def _computed_column(text: str, tokens: Sequence[Token], span: Span) -> list[Leaf]:
    name = tokens[0]
    if len(tokens) < 3:
        raise WJoinError(
            "WJ106",
            f"the computed column {name.text} has no expression",
            span=span,
            help="write one, for example ts AS timestamp_millis(ms)",
        )
    expression = Span(tokens[2].start, tokens[-1].end)
    return [
        _leaf("NAME", name.text, name.start),
        _leaf("AS", tokens[1].text, tokens[1].start),
        _leaf("EXPRESSION", expression.of(text), expression.start),
    ]


def duration_end(tokens: Sequence[Token], start: int) -> int:
    """Return the place after the duration that starts at a token: where an alias may follow."""
    place = _after_signs(tokens, start)
    interval = place < len(tokens) and tokens[place].word == "INTERVAL"
    place = _after_signs(tokens, place + interval)
    if place < len(tokens) and tokens[place].kind is Kind.PARAMETER:
        return place + 1
    while place < len(tokens) and (
        tokens[place].kind in (Kind.NUMBER, Kind.STRING) or tokens[place].text[0].isdigit()
    ):
        place += 1
        if place < len(tokens) and _is_unit(tokens, place, interval):
            place += 1
            place += 2 if place < len(tokens) and tokens[place].word == "TO" else 0
        place = _after_signs(tokens, place)
    return min(place, len(tokens))


def _after_signs(tokens: Sequence[Token], place: int) -> int:
    while place < len(tokens) and tokens[place].text in ("-", "+"):
        place += 1
    return place


def _is_unit(tokens: Sequence[Token], place: int, interval: bool) -> bool:
    """Return whether the word after a number is its unit, well spelt or not, and no alias."""
    token, before = tokens[place], tokens[place - 1]
    if before.kind is Kind.STRING and any(map(str.isalpha, before.text[1:-1])):
        return False  # the string says its units itself
    if token.word in UNITS or token.word in NOT_FIXED:
        return True
    if not token.word or token.word in _AFTER_DURATION or before.kind is not Kind.NUMBER:
        return False
    return interval or is_like_unit(token.word)
