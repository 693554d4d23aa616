"""Lark's trees of the window clause, watermark clauses and declarations to nodes."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from lark import Token as Leaf
from lark import Transformer, Tree, v_args
from lark.exceptions import VisitError
from lark.tree import Meta

from wjoin.grammar import syntax
from wjoin.grammar.durations import from_clock, from_pairs, microseconds, number_of, unit_of
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import counted
from wjoin.grammar.spans import Span
from wjoin.grammar.statistic_names import once_each, statistic_key, statistic_value
from wjoin.grammar.syntax import Duration, Identifier
from wjoin.grammar.tokens import string_value, unquoted

_BARE_LIMIT = 2**63
_RECORD_FORMATS = ("json", "csv", "avro")


def _span(meta: Meta | Leaf) -> Span:
    return Span(meta.start_pos or 0, meta.end_pos or 0)


class _NotThere(NamedTuple):
    """A step of a path that is not to be there."""

    stream: Identifier


@v_args(meta=True, inline=True)
class _Nodes(Transformer[Leaf, Any]):
    """Builds the nodes of grammar.syntax from Lark's trees, bottom up."""

    def name(self, meta: Meta, leaf: Leaf) -> Identifier:
        return Identifier(unquoted(leaf.value), span=_span(meta))

    # Durations

    def parameter(self, meta: Meta, leaf: Leaf) -> syntax.Parameter:
        return syntax.Parameter(leaf.value[1:], False, span=_span(meta))

    def bare(self, meta: Meta, leaf: Leaf) -> syntax.BareNumber:
        return syntax.BareNumber(_whole(leaf, 1), span=_span(meta))

    def amount(self, meta: Meta, number: Leaf, unit: Leaf) -> int:
        text = _string(number) if number.type == "STRING" else number.value
        if unit.value.upper() == "ROWS":
            raise WJoinError(
                "WJ101",
                "rows are counted in a window of one stream alone",
                span=_span(meta),
                help="write WINDOW A = 10 ROWS, with the name of the stream, or a unit of time",
            )
        return microseconds(number_of(text, _span(number)), unit_of(unit.value, _span(unit)), _span(meta))

    def negative_amount(self, meta: Meta, number: Leaf, unit: Leaf) -> int:
        return -self.amount(meta, number, unit)

    def amounts(self, meta: Meta, *amounts: int) -> syntax.TimeDuration:
        return syntax.TimeDuration(sum(amounts), span=_span(meta))

    def interval(self, meta: Meta, duration: Duration) -> Duration:
        return replace(duration, span=_span(meta))

    def interval_text(self, meta: Meta, text: Leaf) -> syntax.TimeDuration:
        return syntax.TimeDuration(from_pairs(_string(text), _span(text)), span=_span(meta))

    def interval_bare(self, meta: Meta, number: Leaf) -> syntax.TimeDuration:
        del meta
        raise WJoinError("WJ102", f"the duration INTERVAL {number.value} has no unit", span=_span(number))

    def interval_clock(self, meta: Meta, text: Leaf, first: Leaf, last: Leaf) -> syntax.TimeDuration:
        units = unit_of(first.value, _span(first)), unit_of(last.value, _span(last))
        return syntax.TimeDuration(from_clock(_string(text), *units, _span(text)), span=_span(meta))

    def negative_clock(self, meta: Meta, text: Leaf, first: Leaf, last: Leaf) -> syntax.TimeDuration:
        return syntax.TimeDuration(
            -self.interval_clock(meta, text, first, last).microseconds, span=_span(meta)
        )

    def negative(self, meta: Meta, duration: Duration) -> Duration:
        match duration:
            case syntax.TimeDuration(value):
                return syntax.TimeDuration(-value, span=_span(meta))
            case syntax.BareNumber(value):
                return syntax.BareNumber(-value, span=_span(meta))
            case syntax.Parameter(name, negative):
                return syntax.Parameter(name, not negative, span=_span(meta))

    positive = interval

    # Window clause

    def width(self, meta: Meta, width: Duration) -> Duration:
        del meta
        remedy = "write a width of zero or more; WINDOW (A, B) BETWEEN l AND u takes signed bounds"
        return _at_least_zero(width, "WJ110", "a window has a negative width", remedy)

    def window_pair(
        self, meta: Meta, first: Identifier, second: Identifier, width: Duration
    ) -> syntax.WindowPair:
        return syntax.WindowPair(first, second, width, False, span=_span(meta))

    def directed_pair(
        self, meta: Meta, first: Identifier, second: Identifier, width: Duration
    ) -> syntax.WindowPair:
        return syntax.WindowPair(first, second, width, True, span=_span(meta))

    def window_between(
        self,
        meta: Meta,
        first: Identifier,
        second: Identifier,
        low: Duration,
        high: Duration,
    ) -> syntax.WindowBetween:
        low, high = _same_kind(low, high), _same_kind(high, low)
        return syntax.WindowBetween(first, second, low, high, span=_span(meta))

    def within(self, meta: Meta, *widths: Duration) -> tuple[Duration, Duration]:
        before, after = widths if len(widths) > 1 else (*widths, *widths)
        return self.negative(meta, before), after

    def window_rows(self, meta: Meta, stream: Identifier, number: Leaf) -> syntax.WindowRows:
        return syntax.WindowRows(stream, _rows(number, "WJ110", "window"), span=_span(meta))

    def window_rows_per_key(self, meta: Meta, stream: Identifier, number: Leaf) -> syntax.WindowRows:
        return replace(self.window_rows(meta, stream, number), per_key=True)

    def window_since(self, meta: Meta, stream: Identifier, condition: Leaf) -> syntax.WindowSince:
        return syntax.WindowSince(stream, condition.value, _span(condition), span=_span(meta))

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
        return syntax.WindowAnd(terms, span=_span(meta))

    def window_or(self, meta: Meta, *terms: syntax.WindowCondition) -> syntax.WindowOr:
        return syntax.WindowOr(terms, span=_span(meta))

    def group(self, meta: Meta, condition: syntax.WindowCondition) -> syntax.WindowCondition:
        if isinstance(condition, syntax.WindowAnd | syntax.WindowOr):
            return replace(condition, span=_span(meta))
        return condition

    # Watermarks

    def watermark(self, meta: Meta, column: Identifier, delay: Duration | None) -> syntax.Watermark:
        if delay is not None:
            _at_least_zero(delay, "WJ110", "a delay is negative", "write a delay of zero or more")
        return syntax.Watermark(column, delay, span=_span(meta))

    def watermark_for(
        self, meta: Meta, column: Identifier, again: Identifier, delay: Duration | None
    ) -> syntax.Watermark:
        return self.watermark(meta, _same(column, again), delay)

    # Declarations

    def or_replace(self, meta: Meta, word: Leaf | None = None) -> bool:
        del meta
        return word is not None

    if_not_exists = if_exists = or_replace

    def computed(self, meta: Meta, name: Identifier, expression: Leaf) -> syntax.ComputedColumn:
        return syntax.ComputedColumn(
            name, expression.value, 0, span=_span(meta), expression_span=_span(expression)
        )

    def columns(self, meta: Meta, *entries: Leaf | syntax.ComputedColumn | syntax.Watermark) -> "_Columns":
        marks = [entry for entry in entries if isinstance(entry, syntax.Watermark)]
        columns = [entry for entry in entries if not isinstance(entry, syntax.Watermark)]
        if not columns:
            raise WJoinError("WJ106", "a column list without columns", span=_span(meta))
        texts = [column.value for column in columns if isinstance(column, Leaf)]
        computed = tuple(
            replace(column, place=place)
            for place, column in enumerate(columns)
            if isinstance(column, syntax.ComputedColumn)
        )
        return _Columns(", ".join(texts) or None, computed, marks)

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

    def given(self, meta: Meta, leaf: Leaf) -> syntax.Composed:
        return syntax.Composed((self.parameter(meta, leaf),))

    def joined(self, meta: Meta, *pieces: str | syntax.Composed) -> str | syntax.Composed:
        del meta
        if all(isinstance(piece, str) for piece in pieces):
            return "".join(str(piece) for piece in pieces)
        parts = [piece.parts if isinstance(piece, syntax.Composed) else (piece,) for piece in pieces]
        return syntax.Composed(tuple(part for each in parts for part in each))

    def option(self, meta: Meta, key: Leaf, value: str | syntax.Composed) -> "_Pair":
        del meta
        return key, value

    def options(self, meta: Meta, *pairs: "_Pair") -> "_Clause":
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
        plain = tuple((key.value, value) for key, value in pairs if isinstance(value, str))
        composed = tuple((key.value, value) for key, value in pairs if isinstance(value, syntax.Composed))
        return _Clause("OPTIONS clause", (plain, composed), _span(meta))

    def partitioned(self, meta: Meta, *names: Identifier) -> "_Clause":
        return _Clause("PARTITIONED BY clause", names, _span(meta))

    def record_format(self, meta: Meta, name: Identifier) -> "_Clause":
        word = name.name.lower()
        if word not in _RECORD_FORMATS:
            raise WJoinError(
                "WJ106",
                f"records have no format {name.name}",
                span=name.span,
                help="write FORMAT JSON, FORMAT CSV or FORMAT AVRO",
            )
        return _Clause("FORMAT clause", Identifier(word, span=name.span), _span(meta))

    def record_key(self, meta: Meta, *names: Identifier) -> "_Clause":
        if len(names) > 1:
            together = ", ".join(name.name for name in names)
            raise WJoinError(
                "WJ106",
                "a record has only one key",
                span=names[1].span,
                help=f"combine them in the query: concat_ws('/', {together}) AS id, and KEY (id)",
            )
        return _Clause("KEY clause", names[0], _span(meta))

    def retain(self, meta: Meta, time: Duration, grace: Duration | None) -> "_Clause":
        for each in (time, grace):
            if each is not None:
                _above_zero(each, "a sink")
        return _Clause("RETAIN clause", syntax.Retain(time, grace, span=_span(meta)), _span(meta))

    def commit_every(self, meta: Meta, time: Duration) -> "_Clause":
        return _Clause("COMMIT EVERY clause", _above_zero(time, "a sink"), _span(meta))

    def commit_when(self, meta: Meta, stream: Identifier, condition: Leaf) -> "_Clause":
        span = _span(meta)
        return _Clause("COMMIT WHEN clause", syntax.CommitWhen(stream, condition.value, span=span), span)

    def idle_after(self, meta: Meta, time: Duration) -> "_Clause":
        return _Clause("IDLE AFTER clause", _above_zero(time, "a stream"), _span(meta))

    def unique(self, meta: Meta, *names: Identifier) -> "_Clause":
        return _Clause("DROP DUPLICATES clause", names, _span(meta))

    def late_rows(self, meta: Meta, sink: Identifier) -> "_Clause":
        return _Clause("LATE ROWS INTO clause", sink, _span(meta))

    def home(self, meta: Meta, column: Identifier) -> "_Clause":
        return _Clause("HOME BY clause", column, _span(meta))

    def site_address(self, meta: Meta, leaf: Leaf) -> str | syntax.Parameter:
        return self.parameter(meta, leaf) if leaf.type == "PARAMETER" else _string(leaf)

    def site(self, meta: Meta, *parts: Any) -> syntax.AtSite:
        named = [part for part in parts if isinstance(part, Identifier)]
        addresses = tuple(part for part in parts if isinstance(part, str))
        again = next((each for n, each in enumerate(addresses) if each in addresses[:n]), None)
        if again is not None:
            message = f"the site {again} is given twice"
            raise WJoinError("WJ106", message, span=_span(meta), help="keep one of them")
        given = tuple(part for part in parts if isinstance(part, syntax.Parameter))
        return syntax.AtSite(addresses, named[0] if named else None, span=_span(meta), given=given)

    def create_stream(
        self, meta: Meta, or_replace: bool, if_not_exists: bool, name: Identifier, *parts: Any
    ) -> syntax.CreateStream:
        columns = next((part for part in parts if isinstance(part, _Columns)), _Columns(None, (), []))
        options, composed = _clause(parts, "OPTIONS clause", ((), ()))
        marks = [part for part in parts if isinstance(part, syntax.Watermark)]
        site = next((part for part in parts if isinstance(part, syntax.AtSite)), None)
        return syntax.CreateStream(
            name=name,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
            columns=columns.text,
            provider=Identifier(syntax.SITE_FORMAT, span=site.span) if site else _provider(parts),
            options=options,
            watermark=_only([*columns.watermarks, *marks], "WATERMARK clause"),
            span=_span(meta),
            computed=columns.computed,
            record_format=_clause(parts, "FORMAT clause"),
            site=site,
            composed=composed,
            unique=_clause(parts, "DROP DUPLICATES clause", ()),
            idle_after=_clause(parts, "IDLE AFTER clause"),
            late_rows=_clause(parts, "LATE ROWS INTO clause"),
            home=_clause(parts, "HOME BY clause"),
        )

    def create_sink(
        self, meta: Meta, or_replace: bool, if_not_exists: bool, name: Identifier, *parts: Any
    ) -> syntax.CreateSink:
        options, composed = _clause(parts, "OPTIONS clause", ((), ()))
        return syntax.CreateSink(
            name=name,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
            provider=_provider(parts),
            options=options,
            partitioned_by=_clause(parts, "PARTITIONED BY clause", ()),
            span=_span(meta),
            record_format=_clause(parts, "FORMAT clause"),
            key=_clause(parts, "KEY clause"),
            composed=composed,
            retain=_clause(parts, "RETAIN clause"),
            commit_every=_clause(parts, "COMMIT EVERY clause"),
            commit_when=_clause(parts, "COMMIT WHEN clause"),
        )

    def __default__(self, data: str, children: list[Any], meta: Meta) -> Any:
        """Return a node that is made of its parts as they are: its class has the name of the rule."""
        kind = getattr(syntax, "".join(word.title() for word in data.split("_")))
        return kind(*children, span=_span(meta))

    # Statistics

    def statistic_key(self, meta: Meta, *parts: Leaf) -> "_Key":
        del meta
        return statistic_key([_identifier(part) for part in parts])

    def number(self, meta: Meta, number: Leaf) -> tuple[float, Span]:
        return float(number_of(number.value, _span(number))), _span(meta)

    def negative_number(self, meta: Meta, number: Leaf) -> tuple[float, Span]:
        return -float(number_of(number.value, _span(number))), _span(meta)

    def statistic(self, meta: Meta, key: "_Key", number: tuple[float, Span]) -> syntax.StatisticEntry:
        return syntax.StatisticEntry(*key, statistic_value(key[0], *number), span=_span(meta))

    def disorder(self, meta: Meta, duration: Duration) -> syntax.StatisticEntry:
        _at_least_zero(duration, "WJ113", "disorder is negative", "write a duration of zero or more")
        return syntax.StatisticEntry("disorder", (), duration, span=_span(meta))

    def set_statistics(self, meta: Meta, name: Leaf, *entries: syntax.StatisticEntry) -> syntax.AlterStream:
        return syntax.AlterStream(_identifier(name), once_each(entries), span=_span(meta))

    def reset_statistics(self, meta: Meta, name: Leaf) -> syntax.AlterStream:
        return syntax.AlterStream(_identifier(name), None, span=_span(meta))

    def analyze_stream(self, meta: Meta, name: Leaf, number: Leaf | None = None) -> syntax.AnalyzeStream:
        sample = None if number is None else _rows(number, "WJ106", "sample")
        return syntax.AnalyzeStream(_identifier(name), sample, span=_span(meta))

    def set_option(self, meta: Meta, key: Leaf, value: Leaf) -> syntax.SetOption:
        return syntax.SetOption(key.value, value.value, span=_span(meta))


class _Columns(NamedTuple):
    text: str | None
    computed: tuple[syntax.ComputedColumn, ...]
    watermarks: list[syntax.Watermark]


_Pair = tuple[Leaf, str | syntax.Composed]
_Key = tuple[str, tuple[Identifier, ...]]


class _Clause(NamedTuple):
    what: str
    value: Any
    span: Span


def _identifier(leaf: Leaf) -> Identifier:
    return Identifier(unquoted(leaf.value), span=_span(leaf))


def _only(found: list[Any], what: str) -> Any:
    """Return the one element of a list or None; raises WJ106 for more than one."""
    if len(found) > 1:
        message = f"a declaration has two {what}s"
        raise WJoinError("WJ106", message, span=found[1].span, help="keep one of them")
    return found[0] if found else None


def _clause(parts: Sequence[Any], what: str, without: Any = None) -> Any:
    """Return what a clause says that may be there once."""
    found = _only([part for part in parts if isinstance(part, _Clause) and part.what == what], what)
    return without if found is None else found.value


def _provider(parts: Sequence[Any]) -> Identifier:
    leaf = next(part for part in parts if isinstance(part, Leaf))
    return Identifier(leaf.value, span=_span(leaf))


def _string(leaf: Leaf) -> str:
    return string_value(leaf.value, _span(leaf))


def _rows(number: Leaf, code: str, what: str) -> int:
    """Return a number of rows; raises the error of a code for one that is not whole, or below one."""
    rows = number_of(number.value, _span(number))
    if rows != int(rows) or not 0 < rows < _BARE_LIMIT:
        remedy = "write a whole number of one or more"
        raise WJoinError(code, f"a {what} of {number.value} rows", span=_span(number), help=remedy)
    return int(rows)


def _whole(leaf: Leaf, sign: int) -> int:
    value: Decimal = number_of(leaf.value, _span(leaf))
    if value != value.to_integral_value():
        raise WJoinError("WJ102", f"the duration {leaf.value} has no unit", span=_span(leaf))
    if value >= _BARE_LIMIT:
        raise WJoinError("WJ103", f"{leaf.value} is larger than a BIGINT", span=_span(leaf))
    return sign * int(value)


def _value(duration: Duration) -> int | None:
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


def _at_least_zero(duration: Duration, code: str, message: str, help: str) -> Duration:
    value = _value(duration)
    if value is not None and value < 0:
        raise WJoinError(code, message, span=duration.span, help=help)
    return duration


def _above_zero(duration: Duration, of: str) -> Duration:
    if isinstance(duration, syntax.BareNumber):
        raise WJoinError("WJ102", f"the time {duration.value} has no unit", span=duration.span)
    value = _value(duration)
    if value is not None and value <= 0:
        message = f"a time of {of} is not above zero"
        raise WJoinError("WJ110", message, span=duration.span, help="write one such as 1 DAY or 10 SECONDS")
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
        help = "begin with the stream whose rows are to be there"
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
        raise WJoinError("WJ109", message, span=_span(meta), help="write one statement for each direction")
    return syntax.WindowPath(tuple(streams), widths[:hops], bidirectional, tuple(absent), span=_span(meta))


_NODES = _Nodes()


def build(tree: "Tree[Leaf]") -> Any:
    """Return the node of a tree; raises WJ101, WJ102, WJ103, WJ106, WJ109, WJ110 and WJ113."""
    try:
        return _NODES.transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, WJoinError):
            raise error.orig_exc from None
        raise
