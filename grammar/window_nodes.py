"""Lark's trees of durations, the window clause and watermark clauses to nodes."""

# ruff: noqa: D102 (a method has the name of the rule of wjoin.lark whose node it builds)

from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from lark import Token as Leaf
from lark import Transformer, v_args
from lark.tree import Meta

from wjoin.grammar import syntax
from wjoin.grammar.durations import from_clock, from_pairs, microseconds, number_of, unit_of
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import counted
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import Duration, Identifier
from wjoin.grammar.tokens import string_value, unquoted

_BARE_LIMIT = 2**63


def span_of(meta: Meta | Leaf) -> Span:
    """Return the place of a tree or a token."""
    return Span(meta.start_pos or 0, meta.end_pos or 0)


class _NotThere(NamedTuple):
    """A step of a path that is not to be there."""

    stream: Identifier


@v_args(meta=True, inline=True)
class WindowNodes(Transformer[Leaf, Any]):
    """Builds the nodes of windows and watermarks from Lark's trees, bottom up."""

    def name(self, meta: Meta, leaf: Leaf) -> Identifier:
        return Identifier(unquoted(leaf.value), span=span_of(meta))

    # Durations

    def parameter(self, meta: Meta, leaf: Leaf) -> syntax.Parameter:
        return syntax.Parameter(leaf.value[1:], False, span=span_of(meta))

    def bare(self, meta: Meta, leaf: Leaf) -> syntax.BareNumber:
        return syntax.BareNumber(_whole(leaf, 1), span=span_of(meta))

    def amount(self, meta: Meta, number: Leaf, unit: Leaf) -> int:
        text = string_of(number) if number.type == "STRING" else number.value
        if unit.value.upper() == "ROWS":
            raise WJoinError(
                "WJ101",
                "rows are counted in a window of one stream alone",
                span=span_of(meta),
                help="write WINDOW A = 10 ROWS, with the name of the stream, or a unit of time",
            )
        value = number_of(text, span_of(number))
        return microseconds(value, unit_of(unit.value, span_of(unit)), span_of(meta))

    def negative_amount(self, meta: Meta, number: Leaf, unit: Leaf) -> int:
        return -self.amount(meta, number, unit)

    def amounts(self, meta: Meta, *amounts: int) -> syntax.TimeDuration:
        return syntax.TimeDuration(sum(amounts), span=span_of(meta))

    def interval(self, meta: Meta, duration: Duration) -> Duration:
        return replace(duration, span=span_of(meta))

    def interval_text(self, meta: Meta, text: Leaf) -> syntax.TimeDuration:
        return syntax.TimeDuration(from_pairs(string_of(text), span_of(text)), span=span_of(meta))

    def interval_bare(self, meta: Meta, number: Leaf) -> syntax.TimeDuration:
        del meta
        raise WJoinError("WJ102", f"the duration INTERVAL {number.value} has no unit", span=span_of(number))

    def interval_clock(self, meta: Meta, text: Leaf, first: Leaf, last: Leaf) -> syntax.TimeDuration:
        units = unit_of(first.value, span_of(first)), unit_of(last.value, span_of(last))
        return syntax.TimeDuration(from_clock(string_of(text), *units, span_of(text)), span=span_of(meta))

    def negative_clock(self, meta: Meta, text: Leaf, first: Leaf, last: Leaf) -> syntax.TimeDuration:
        return syntax.TimeDuration(
            -self.interval_clock(meta, text, first, last).microseconds, span=span_of(meta)
        )

    def negative(self, meta: Meta, duration: Duration) -> Duration:
        match duration:
            case syntax.TimeDuration(value):
                return syntax.TimeDuration(-value, span=span_of(meta))
            case syntax.BareNumber(value):
                return syntax.BareNumber(-value, span=span_of(meta))
            case syntax.Parameter(name, negative):
                return syntax.Parameter(name, not negative, span=span_of(meta))

    positive = interval

    # Window clause

    def width(self, meta: Meta, width: Duration) -> Duration:
        del meta
        remedy = "write a width of zero or more; WINDOW (A, B) BETWEEN l AND u takes signed bounds"
        return at_least_zero(width, "WJ110", "a window has a negative width", remedy)

    def window_pair(
        self, meta: Meta, first: Identifier, second: Identifier, width: Duration
    ) -> syntax.WindowPair:
        return syntax.WindowPair(first, second, width, False, span=span_of(meta))

    def directed_pair(
        self, meta: Meta, first: Identifier, second: Identifier, width: Duration
    ) -> syntax.WindowPair:
        return syntax.WindowPair(first, second, width, True, span=span_of(meta))

    def window_in_row(
        self, meta: Meta, first: Identifier, second: Identifier, bound: Leaf, width: Duration
    ) -> syntax.WindowPair:
        in_row = syntax.InRow(bound.value, span=span_of(bound))
        return replace(self.window_pair(meta, first, second, width), in_row=in_row)

    def directed_in_row(
        self, meta: Meta, first: Identifier, second: Identifier, bound: Leaf, width: Duration
    ) -> syntax.WindowPair:
        return replace(self.window_in_row(meta, first, second, bound, width), directed=True)

    def window_between(
        self,
        meta: Meta,
        first: Identifier,
        second: Identifier,
        low: Duration,
        high: Duration,
    ) -> syntax.WindowBetween:
        low, high = _same_kind(low, high), _same_kind(high, low)
        return syntax.WindowBetween(first, second, low, high, span=span_of(meta))

    def within(self, meta: Meta, *widths: Duration) -> tuple[Duration, Duration]:
        before, after = widths if len(widths) > 1 else (*widths, *widths)
        return self.negative(meta, before), after

    def window_rows(self, meta: Meta, stream: Identifier, number: Leaf) -> syntax.WindowRows:
        return syntax.WindowRows(stream, rows_of(number, "WJ110", "window"), span=span_of(meta))

    def window_rows_per_key(self, meta: Meta, stream: Identifier, number: Leaf) -> syntax.WindowRows:
        return replace(self.window_rows(meta, stream, number), per=syntax.Per.KEY)

    def window_rows_per_home(self, meta: Meta, stream: Identifier, number: Leaf) -> syntax.WindowRows:
        return replace(self.window_rows(meta, stream, number), per=syntax.Per.HOME)

    def window_since(self, meta: Meta, stream: Identifier, condition: Leaf) -> syntax.WindowSince:
        return syntax.WindowSince(stream, condition.value, span_of(condition), span=span_of(meta))

    def widths(self, meta: Meta, *widths: Duration) -> tuple[Duration, ...]:
        del meta
        return widths

    def absent(self, meta: Meta, stream: Identifier) -> _NotThere:
        del meta
        return _NotThere(stream)

    def window_path(self, meta: Meta, *parts: Any) -> syntax.WindowPath:
        *steps, widths, both = parts
        return _path(meta, steps, widths, both is not None)

    def window_and(self, meta: Meta, *terms: syntax.WindowCondition) -> syntax.WindowAnd:
        return syntax.WindowAnd(terms, span=span_of(meta))

    def window_or(self, meta: Meta, *terms: syntax.WindowCondition) -> syntax.WindowOr:
        return syntax.WindowOr(terms, span=span_of(meta))

    def group(self, meta: Meta, condition: syntax.WindowCondition) -> syntax.WindowCondition:
        if isinstance(condition, syntax.WindowAnd | syntax.WindowOr):
            return replace(condition, span=span_of(meta))
        return condition

    # Watermarks

    def watermark(self, meta: Meta, column: Identifier, delay: Duration | None) -> syntax.Watermark:
        if delay is not None:
            at_least_zero(delay, "WJ110", "a delay is negative", "write a delay of zero or more")
        return syntax.Watermark(column, delay, span=span_of(meta))

    def watermark_for(
        self, meta: Meta, column: Identifier, again: Identifier, delay: Duration | None
    ) -> syntax.Watermark:
        return self.watermark(meta, _same(column, again), delay)


def string_of(leaf: Leaf) -> str:
    """Return the value of a string of a token."""
    return string_value(leaf.value, span_of(leaf))


def rows_of(number: Leaf, code: str, what: str) -> int:
    """Return a number of rows; raises the error of a code for one that is not whole, or below one."""
    rows = number_of(number.value, span_of(number))
    if rows != int(rows) or not 0 < rows < _BARE_LIMIT:
        remedy = "write a whole number of one or more"
        raise WJoinError(code, f"a {what} of {number.value} rows", span=span_of(number), help=remedy)
    return int(rows)


def _whole(leaf: Leaf, sign: int) -> int:
    value: Decimal = number_of(leaf.value, span_of(leaf))
    if value != value.to_integral_value():
        raise WJoinError("WJ102", f"the duration {leaf.value} has no unit", span=span_of(leaf))
    if value >= _BARE_LIMIT:
        raise WJoinError("WJ103", f"{leaf.value} is larger than a BIGINT", span=span_of(leaf))
    return sign * int(value)


def value_of(duration: Duration) -> int | None:
    """Return the number of a duration, None for a parameter."""
    match duration:
        case syntax.TimeDuration(value) | syntax.BareNumber(value):
            return value
        case syntax.Parameter():
            return None


def _same_kind(bound: Duration, other: Duration) -> Duration:
    """Return a bound beside another: a bare 0 beside a duration is no time at all."""
    if not isinstance(bound, syntax.BareNumber) or not isinstance(other, syntax.TimeDuration):
        return bound
    if bound.value:
        message = f"the bound {bound.value} has no unit, the other has one"
        raise WJoinError("WJ102", message, span=bound.span)
    return syntax.TimeDuration(0, span=bound.span)


def at_least_zero(duration: Duration, code: str, message: str, help: str) -> Duration:
    """Return a duration; raises the error of a code for one below zero."""
    value = value_of(duration)
    if value is not None and value < 0:
        raise WJoinError(code, message, span=duration.span, help=help)
    return duration


def _same(column: Identifier, again: Identifier) -> Identifier:
    if not column.matches(again.name):
        raise WJoinError(
            "WJ106",
            f"WATERMARK FOR {column.name} is built from the column {again.name}",
            span=again.span,
            help=f"write WATERMARK FOR {column.name} AS {column.name} - INTERVAL 5 SECONDS",
        )
    return column


def _path(
    meta: Meta,
    steps: list[Identifier | _NotThere],
    widths: tuple[Duration, ...],
    bidirectional: bool,
) -> syntax.WindowPath:
    streams = [each for each in steps if isinstance(each, Identifier)]
    if len(steps) < 2 or not streams:
        first = steps[0] if isinstance(steps[0], Identifier) else steps[0].stream
        message = "a path has one stream only" if len(steps) < 2 else "a path has streams with NOT only"
        raise WJoinError("WJ109", message, span=first.span, help="name two or more streams")
    if isinstance(steps[0], _NotThere):
        message = f"a path begins with NOT {steps[0].stream.name}"
        help = "begin with a stream without NOT"
        raise WJoinError("WJ109", message, span=steps[0].stream.span, help=help)
    last = max(place for place, each in enumerate(steps) if isinstance(each, Identifier))
    hops, ends = len(streams) - 1, len(steps) - last - 1
    if len(widths) != hops + ends:
        of_end = " and one for each NOT at the end" if ends else ""
        raise WJoinError(
            "WJ109",
            f"a path of {counted(len(streams) + ends, 'stream')} has {counted(len(widths), 'width')}",
            span=widths[0].span.cover(widths[-1].span),
            help=f"give {hops + ends}: one per step between neighbours{of_end}",
        )
    absent, after = [], -1
    for place, each in enumerate(steps):
        if isinstance(each, Identifier):
            after += 1
        else:
            width = widths[hops + place - last - 1] if place > last else None
            absent.append(syntax.Absent(each.stream, after, width, span=each.stream.span))
    if absent and bidirectional:
        message = "a path with NOT cannot be BIDIRECTIONAL"
        raise WJoinError("WJ109", message, span=span_of(meta), help="write one statement for each direction")
    return syntax.WindowPath(tuple(streams), widths[:hops], bidirectional, tuple(absent), span=span_of(meta))
