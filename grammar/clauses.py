"""The window clause, watermark clauses and declarations: tokens to nodes, by Lark."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from lark import Lark, Transformer, Tree, v_args
from lark import Token as Leaf
from lark.exceptions import UnexpectedToken, VisitError
from lark.lexer import Lexer
from lark.tree import Meta

from wjoin.grammar import syntax
from wjoin.grammar.durations import UNITS, from_clock, from_pairs, microseconds, number_of, unit_of
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.tokens import Kind, Token, is_name, string_value, unquoted

_MARKS = {"(": "LPAR", ")": "RPAR", ",": "COMMA", "=": "EQUAL", "-": "MINUS", "+": "PLUS", ".": "DOT"}
_TYPES = {
    Kind.QUOTED: "NAME",
    Kind.STRING: "STRING",
    Kind.NUMBER: "NUMBER",
    Kind.PARAMETER: "PARAMETER",
    Kind.HINT: "HINT",
}
_BARE_LIMIT = 2**63


class _Given(Lexer):
    """Stands where Lark wants a lexer: the tokens are fed one by one."""

    def __init__(self, lexer_conf: object) -> None:
        del lexer_conf

    def lex(self, lexer_state: Any, parser_state: Any = None) -> Iterator[Leaf]:
        del parser_state
        yield from lexer_state


class _Grammar(NamedTuple):
    lark: Lark
    keywords: frozenset[str]


@cache
def _grammar() -> _Grammar:
    source = files("wjoin.grammar").joinpath("wjoin.lark").read_text(encoding="utf-8")
    starts = ["clause", "watermark", "declaration", "duration"]
    lark = Lark(source, parser="lalr", lexer=_Given, start=starts, propagate_positions=True)
    words = {terminal.name for terminal in lark.terminals} - set(_MARKS.values())
    return _Grammar(lark, frozenset(words))


def keywords() -> frozenset[str]:
    """Return the words of the grammar, upper case; each is a keyword only where the grammar has it."""
    return _grammar().keywords


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
    lark, _ = _grammar()
    parser = lark.parse_interactive(start=start)
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
            expected: Any = parser.accepts()  # type: ignore[no-untyped-call]
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
        leaves.append(_leaf(kind or _MARKS.get(token.text, token.text), token.text, token.start))
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


# Trees to nodes --------------------------------------------------------------


def _span(meta: Meta | Leaf) -> Span:
    return Span(meta.start_pos or 0, meta.end_pos or 0)


@v_args(meta=True, inline=True)
class _Nodes(Transformer[Leaf, Any]):
    """Builds the nodes of grammar.syntax from Lark's trees, bottom up."""

    def name(self, meta: Meta, leaf: Leaf) -> syntax.Identifier:
        return syntax.Identifier(unquoted(leaf.value), _span(meta))

    # Durations

    def parameter(self, meta: Meta, leaf: Leaf) -> syntax.Parameter:
        return syntax.Parameter(leaf.value[1:], False, _span(meta))

    def bare(self, meta: Meta, leaf: Leaf) -> syntax.BareNumber:
        return syntax.BareNumber(_whole(leaf, 1), _span(meta))

    def amount(self, meta: Meta, number: Leaf, unit: Leaf) -> int:
        return _amount(meta, number, unit)

    def interval_amount(self, meta: Meta, number: Leaf, unit: Leaf) -> int:
        return _amount(meta, number, unit)

    def negative_amount(self, meta: Meta, number: Leaf, unit: Leaf) -> int:
        return -_amount(meta, number, unit)

    def amounts(self, meta: Meta, *amounts: int) -> syntax.TimeDuration:
        return syntax.TimeDuration(sum(amounts), _span(meta))

    def interval(self, meta: Meta, duration: syntax.TimeDuration) -> syntax.TimeDuration:
        return replace(duration, span=_span(meta))

    def interval_text(self, meta: Meta, text: Leaf) -> syntax.TimeDuration:
        return syntax.TimeDuration(from_pairs(_string(text), _span(text)), _span(meta))

    def interval_bare(self, meta: Meta, number: Leaf) -> syntax.TimeDuration:
        del meta
        raise WJoinError("WJ102", f"the duration INTERVAL {number.value} has no unit", span=_span(number))

    def interval_clock(self, meta: Meta, text: Leaf, first: Leaf, last: Leaf) -> syntax.TimeDuration:
        units = unit_of(first.value, _span(first)), unit_of(last.value, _span(last))
        return syntax.TimeDuration(from_clock(_string(text), *units, _span(text)), _span(meta))

    def negative_clock(self, meta: Meta, text: Leaf, first: Leaf, last: Leaf) -> syntax.TimeDuration:
        units = unit_of(first.value, _span(first)), unit_of(last.value, _span(last))
        return syntax.TimeDuration(-from_clock(_string(text), *units, _span(text)), _span(meta))

    def negative(self, meta: Meta, duration: syntax.Duration) -> syntax.Duration:
        match duration:
            case syntax.TimeDuration(value):
                return syntax.TimeDuration(-value, _span(meta))
            case syntax.BareNumber(value):
                return syntax.BareNumber(-value, _span(meta))
            case syntax.Parameter(name, negative):
                return syntax.Parameter(name, not negative, _span(meta))

    def positive(self, meta: Meta, duration: syntax.Duration) -> syntax.Duration:
        return replace(duration, span=_span(meta))

    # Window clause

    def window_all(self, meta: Meta, width: syntax.Duration) -> syntax.WindowAll:
        return syntax.WindowAll(_width(width), _span(meta))

    def window_pair(
        self, meta: Meta, first: syntax.Identifier, second: syntax.Identifier, width: syntax.Duration
    ) -> syntax.WindowPair:
        return syntax.WindowPair(first, second, _width(width), False, _span(meta))

    def directed_pair(
        self, meta: Meta, first: syntax.Identifier, second: syntax.Identifier, width: syntax.Duration
    ) -> syntax.WindowPair:
        return syntax.WindowPair(first, second, _width(width), True, _span(meta))

    def window_between(
        self,
        meta: Meta,
        first: syntax.Identifier,
        second: syntax.Identifier,
        low: syntax.Duration,
        high: syntax.Duration,
    ) -> syntax.WindowBetween:
        low, high = _same_kind(low, high), _same_kind(high, low)
        bounds = _value(low), _value(high)
        if bounds[0] is not None and bounds[1] is not None and bounds[0] > bounds[1]:
            raise WJoinError(
                "WJ110",
                "the lower bound of a window is above the upper",
                span=low.span.cover(high.span),
                help="write the smaller bound first; both are bounds on second minus first",
            )
        return syntax.WindowBetween(first, second, low, high, _span(meta))

    def window_stream(
        self, meta: Meta, stream: syntax.Identifier, width: syntax.Duration
    ) -> syntax.WindowStream:
        return syntax.WindowStream(stream, _width(width), _span(meta))

    def window_rows(self, meta: Meta, stream: syntax.Identifier, number: Leaf) -> syntax.WindowRows:
        rows = number_of(number.value, _span(number))
        if rows != int(rows) or not 0 < rows < _BARE_LIMIT:
            remedy = "write a whole number of one or more"
            raise WJoinError("WJ110", f"a window of {number.value} rows", span=_span(number), help=remedy)
        return syntax.WindowRows(stream, int(rows), _span(meta))

    def widths(self, meta: Meta, *widths: syntax.Duration) -> tuple[syntax.Duration, ...]:
        del meta
        return tuple(_width(width) for width in widths)

    def one_way(self, meta: Meta, *parts: Any) -> syntax.WindowPath:
        return _path(meta, parts, False)

    def both_ways(self, meta: Meta, *parts: Any) -> syntax.WindowPath:
        return _path(meta, parts, True)

    def window_and(self, meta: Meta, *terms: syntax.WindowCondition) -> syntax.WindowAnd:
        return syntax.WindowAnd(terms, _span(meta))

    def window_or(self, meta: Meta, *terms: syntax.WindowCondition) -> syntax.WindowOr:
        return syntax.WindowOr(terms, _span(meta))

    def group(self, meta: Meta, condition: syntax.WindowCondition) -> syntax.WindowCondition:
        if isinstance(condition, syntax.WindowAnd | syntax.WindowOr):
            return replace(condition, span=_span(meta))
        return condition

    # Watermarks

    def watermark_name(self, meta: Meta, column: syntax.Identifier) -> syntax.Watermark:
        return syntax.Watermark(column, None, _span(meta))

    def watermark_delay(
        self, meta: Meta, column: syntax.Identifier, delay: syntax.Duration
    ) -> syntax.Watermark:
        return syntax.Watermark(column, _delay(delay), _span(meta))

    def watermark_same(
        self, meta: Meta, column: syntax.Identifier, again: syntax.Identifier
    ) -> syntax.Watermark:
        return syntax.Watermark(_same(column, again), None, _span(meta))

    def watermark_minus(
        self, meta: Meta, column: syntax.Identifier, again: syntax.Identifier, delay: syntax.Duration
    ) -> syntax.Watermark:
        return syntax.Watermark(_same(column, again), _delay(delay), _span(meta))

    # Declarations

    def or_replace(self, meta: Meta, word: Leaf | None = None) -> bool:
        del meta
        return word is not None

    if_not_exists = if_exists = or_replace

    def columns(self, meta: Meta, *columns: Leaf | syntax.Watermark) -> "_Columns":
        marks = [column for column in columns if isinstance(column, syntax.Watermark)]
        texts = [column.value for column in columns if isinstance(column, Leaf)]
        if not texts:
            raise WJoinError("WJ106", "a column list without columns", span=_span(meta))
        return _Columns(", ".join(texts), marks)

    def key(self, meta: Meta, *leaves: Leaf) -> Leaf:
        text = ".".join(_string(leaf) if leaf.type == "STRING" else unquoted(leaf.value) for leaf in leaves)
        span = _span(meta)
        return Leaf("KEY", text, span.start, end_pos=span.end)

    provider = key

    def text(self, meta: Meta, *leaves: Leaf) -> str:
        del meta
        return "".join(_string(leaf) for leaf in leaves)

    def plain(self, meta: Meta, leaf: Leaf) -> str:
        if leaf.type == "NAME" and leaf.value.lower() not in ("true", "false"):
            message = f"the value {leaf.value} of an option has no quotes"
            raise WJoinError("WJ106", message, span=_span(meta), help=f"write '{unquoted(leaf.value)}'")
        return str(leaf.value)

    def minus(self, meta: Meta, leaf: Leaf) -> str:
        del meta
        return f"-{leaf.value}"

    def option(self, meta: Meta, key: Leaf, value: str) -> tuple[Leaf, str]:
        del meta
        return key, value

    def options(self, meta: Meta, *pairs: tuple[Leaf, str]) -> "_Options":
        seen: set[str] = set()
        for key, _ in pairs:
            if key.lower() in seen:
                raise WJoinError(
                    "WJ106",
                    f"the option {key.value} is given twice",
                    span=_span(key),
                    help="keep one of them",
                )
            seen.add(key.lower())
        return _Options(tuple((key.value, value) for key, value in pairs), _span(meta))

    def partitioned(self, meta: Meta, *names: syntax.Identifier) -> "_Partitioned":
        return _Partitioned(names, _span(meta))

    def create_stream(
        self, meta: Meta, or_replace: bool, if_not_exists: bool, name: syntax.Identifier, *parts: Any
    ) -> syntax.CreateStream:
        columns = _only([part for part in parts if isinstance(part, _Columns)], "column list", meta)
        options = _only([part for part in parts if isinstance(part, _Options)], "OPTIONS clause", meta)
        marks = [part for part in parts if isinstance(part, syntax.Watermark)]
        watermark = _only([*(columns.watermarks if columns else ()), *marks], "WATERMARK clause", meta)
        return syntax.CreateStream(
            name=name,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
            columns=columns.text if columns else None,
            provider=_provider(parts),
            options=options.pairs if options else (),
            watermark=watermark,
            span=_span(meta),
        )

    def create_sink(
        self, meta: Meta, or_replace: bool, if_not_exists: bool, name: syntax.Identifier, *parts: Any
    ) -> syntax.CreateSink:
        options = _only([part for part in parts if isinstance(part, _Options)], "OPTIONS clause", meta)
        folders = [part for part in parts if isinstance(part, _Partitioned)]
        partitioned = _only(folders, "PARTITIONED BY clause", meta)
        return syntax.CreateSink(
            name=name,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
            provider=_provider(parts),
            options=options.pairs if options else (),
            partitioned_by=partitioned.names if partitioned else (),
            span=_span(meta),
        )

    def show_streams(self, meta: Meta) -> syntax.ShowStreams:
        return syntax.ShowStreams(_span(meta))

    def describe_stream(self, meta: Meta, name: syntax.Identifier) -> syntax.DescribeStream:
        return syntax.DescribeStream(name, _span(meta))

    def drop_stream(self, meta: Meta, if_exists: bool, name: syntax.Identifier) -> syntax.DropStream:
        return syntax.DropStream(name, if_exists, _span(meta))

    def set_option(self, meta: Meta, key: Leaf, value: Leaf) -> syntax.SetOption:
        return syntax.SetOption(key.value, value.value, _span(meta))


class _Columns(NamedTuple):
    text: str
    watermarks: list[syntax.Watermark]


class _Options(NamedTuple):
    pairs: tuple[tuple[str, str], ...]
    span: Span


class _Partitioned(NamedTuple):
    names: tuple[syntax.Identifier, ...]
    span: Span


def _only(found: list[Any], what: str, meta: Meta) -> Any:
    """Return the one element of a list or None; raises WJ106 for more than one."""
    if len(found) > 1:
        span = getattr(found[1], "span", _span(meta))
        raise WJoinError("WJ106", f"a declaration has two {what}s", span=span, help="keep one of them")
    return found[0] if found else None


def _provider(parts: Sequence[Any]) -> syntax.Identifier:
    leaf = next(part for part in parts if isinstance(part, Leaf))
    return syntax.Identifier(leaf.value, _span(leaf))


def _string(leaf: Leaf) -> str:
    return string_value(leaf.value, _span(leaf))


def _amount(meta: Meta, number: Leaf, unit: Leaf) -> int:
    text = _string(number) if number.type == "STRING" else number.value
    if unit.value.upper() == "ROWS":
        raise WJoinError(
            "WJ101",
            "a window of rows is for one stream",
            span=_span(meta),
            help="write WINDOW A = 10 ROWS, with the name of the stream",
        )
    return microseconds(number_of(text, _span(number)), unit_of(unit.value, _span(unit)), _span(meta))


def _whole(leaf: Leaf, sign: int) -> int:
    value: Decimal = number_of(leaf.value, _span(leaf))
    if value != value.to_integral_value():
        raise WJoinError("WJ102", f"the duration {leaf.value} has no unit", span=_span(leaf))
    if value >= _BARE_LIMIT:
        raise WJoinError("WJ103", f"{leaf.value} is larger than a BIGINT", span=_span(leaf))
    return sign * int(value)


def _value(duration: syntax.Duration) -> int | None:
    match duration:
        case syntax.TimeDuration(value) | syntax.BareNumber(value):
            return value
        case syntax.Parameter():
            return None


def _same_kind(bound: syntax.Duration, other: syntax.Duration) -> syntax.Duration:
    """Return a bound beside another: a bare 0 beside a duration is no time at all."""
    if not isinstance(bound, syntax.BareNumber) or not isinstance(other, syntax.TimeDuration):
        return bound
    if bound.value:
        message = f"the bound {bound.value} has no unit, the other has one"
        raise WJoinError("WJ102", message, span=bound.span)
    return syntax.TimeDuration(0, bound.span)


def _width(width: syntax.Duration) -> syntax.Duration:
    value = _value(width)
    if value is not None and value < 0:
        raise WJoinError(
            "WJ110",
            "a window has a negative width",
            span=width.span,
            help="write a width of zero or more; WINDOW (A, B) BETWEEN l AND u takes signed bounds",
        )
    return width


def _delay(delay: syntax.Duration) -> syntax.Duration:
    value = _value(delay)
    if value is not None and value < 0:
        raise WJoinError(
            "WJ110", "a delay is negative", span=delay.span, help="write a delay of zero or more"
        )
    return delay


def _same(column: syntax.Identifier, again: syntax.Identifier) -> syntax.Identifier:
    if not column.matches(again.name):
        raise WJoinError(
            "WJ106",
            f"WATERMARK FOR {column.name} is built from the column {again.name}",
            span=again.span,
            help=f"write WATERMARK FOR {column.name} AS {column.name} - INTERVAL 5 SECONDS",
        )
    return column


def _path(meta: Meta, parts: tuple[Any, ...], bidirectional: bool) -> syntax.WindowPath:
    *streams, widths = parts
    if len(streams) < 2:
        raise WJoinError(
            "WJ109", "a path has one stream only", span=streams[0].span, help="name two or more streams"
        )
    if len(widths) != len(streams) - 1:
        raise WJoinError(
            "WJ109",
            f"a path of {len(streams)} streams has {len(widths)} width{'s' if len(widths) != 1 else ''}",
            span=widths[0].span.cover(widths[-1].span),
            help=f"give {len(streams) - 1}: one for each step from a stream to the next",
        )
    return syntax.WindowPath(tuple(streams), widths, bidirectional, _span(meta))


_NODES = _Nodes()


def _build(tree: "Tree[Leaf]") -> Any:
    try:
        return _NODES.transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, WJoinError):
            raise error.orig_exc from None
        raise


# What the rest of the grammar calls -----------------------------------------


def read_clause(tokens: Sequence[Token]) -> syntax.WindowCondition:
    """Return the window condition that ``tokens`` spell.

    Raises SyntaxSlip where they do not fit the grammar, and WJ102, WJ103, WJ109 and WJ110.
    """
    condition: syntax.WindowCondition = _build(read_tree("clause", leaves_of(tokens)))
    return condition


def read_watermark(tokens: Sequence[Token]) -> syntax.Watermark:
    """Return the watermark clause that ``tokens`` spell; raises as read_clause does, and WJ106."""
    watermark: syntax.Watermark = _build(read_tree("watermark", leaves_of(tokens)))
    return watermark


def read_declaration(text: str, tokens: Sequence[Token]) -> syntax.Statement:
    """Return the declaration that ``tokens`` of ``text`` spell; raises as read_watermark does."""
    statement: syntax.Statement = _build(read_tree("declaration", declaration_leaves(text, tokens)))
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
    return leaves_of(tokens)


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
    first, depth = opening + 1, 0
    for place in range(opening + 1, len(tokens)):
        mark = tokens[place].text
        if depth <= 0 and mark in (",", ")"):
            leaves += _one_column(text, tokens[first:place])
            leaves += leaves_of(tokens[place : place + 1])
            first = place + 1
            if mark == ")":
                return leaves, place + 1
        depth += (mark in ("(", "<")) - (mark in (")", ">"))
    return leaves + leaves_of(tokens[first:]), len(tokens)


def _one_column(text: str, tokens: Sequence[Token]) -> list[Leaf]:
    words = [token.word for token in tokens]
    if words[:1] == ["WATERMARK"] and ("FOR" in words[1:2] or "DELAY" in words[2:3]):
        return leaves_of(tokens)
    if tokens and (len(tokens) < 2 or not is_name(tokens[0])):
        span = tokens[0].span.cover(tokens[-1].span)
        remedy = "write a name and a type, for example obj_id BIGINT"
        raise WJoinError("WJ106", f"the column {span.of(text)} cannot be read", span=span, help=remedy)
    return [_leaf("COLUMN", text[tokens[0].start : tokens[-1].end], tokens[0].start)] if tokens else []


def duration_end(tokens: Sequence[Token], start: int) -> int:
    """Return the place after the duration that starts at a token: where an alias may follow."""
    place = start
    while place < len(tokens) and tokens[place].text in ("-", "+"):
        place += 1
    if place < len(tokens) and tokens[place].word == "INTERVAL":
        place += 1
    while place < len(tokens):
        if tokens[place].text in ("-", "+"):
            place += 1
        elif tokens[place].kind in (Kind.NUMBER, Kind.STRING):
            place += 1
            # A word after a number is a unit, well spelt or not; after a string only a unit is.
            if place < len(tokens) and (
                tokens[place].word in UNITS
                or (tokens[place - 1].kind is Kind.NUMBER and is_name(tokens[place]) and tokens[place].word)
            ):
                place += 1
            if place + 1 < len(tokens) and tokens[place].word == "TO":
                place += 2
        elif tokens[place].kind is Kind.PARAMETER or tokens[place].text[0].isdigit():
            return place + 1
        else:
            return place
    return place
