"""Lark's trees of all that wjoin.lark reads to nodes: declarations and other statements here."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from lark import Token as Leaf
from lark import Tree, v_args
from lark.exceptions import VisitError
from lark.tree import Meta

from wjoin.grammar import statement_kinds, syntax
from wjoin.grammar.durations import number_of
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.statistic_names import once_each, statistic_key, statistic_value
from wjoin.grammar.syntax import Duration, Identifier
from wjoin.grammar.tokens import unquoted
from wjoin.grammar.window_nodes import WindowNodes, at_least_zero, rows_of, span_of, string_of, value_of

_RECORD_FORMATS = ("json", "csv", "avro")


@v_args(meta=True, inline=True)
class _Nodes(WindowNodes):
    """Builds the nodes of grammar.syntax and grammar.statement_kinds from Lark's trees, bottom up."""

    # Declarations

    def or_replace(self, meta: Meta, word: Leaf | None = None) -> bool:
        del meta
        return word is not None

    if_not_exists = if_exists = or_replace

    def computed(self, meta: Meta, name: Identifier, expression: Leaf) -> statement_kinds.ComputedColumn:
        return statement_kinds.ComputedColumn(
            name, expression.value, 0, span=span_of(meta), expression_span=span_of(expression)
        )

    def columns(
        self, meta: Meta, *entries: Leaf | statement_kinds.ComputedColumn | syntax.Watermark
    ) -> "_Columns":
        marks = [entry for entry in entries if isinstance(entry, syntax.Watermark)]
        columns = [entry for entry in entries if not isinstance(entry, syntax.Watermark)]
        if not columns:
            raise WJoinError("WJ106", "a column list without columns", span=span_of(meta))
        texts = [column.value for column in columns if isinstance(column, Leaf)]
        computed = tuple(
            replace(column, place=place)
            for place, column in enumerate(columns)
            if isinstance(column, statement_kinds.ComputedColumn)
        )
        return _Columns(", ".join(texts) or None, computed, marks)

    def key(self, meta: Meta, *leaves: Leaf) -> Leaf:
        text = ".".join(string_of(leaf) if leaf.type == "STRING" else unquoted(leaf.value) for leaf in leaves)
        span = span_of(meta)
        return Leaf("KEY", text, span.start, end_pos=span.end)

    provider = key

    def text(self, meta: Meta, *leaves: Leaf) -> str:
        del meta
        return "".join(string_of(leaf) for leaf in leaves)

    def plain(self, meta: Meta, leaf: Leaf) -> str:
        if leaf.type == "NAME" and leaf.value.lower() not in ("true", "false"):
            message = f"the value {leaf.value} of an option has no quotes"
            raise WJoinError("WJ106", message, span=span_of(meta), help=f"write '{unquoted(leaf.value)}'")
        return str(leaf.value)

    def minus(self, meta: Meta, leaf: Leaf) -> str:
        del meta
        return f"-{leaf.value}"

    def given(self, meta: Meta, leaf: Leaf) -> statement_kinds.Composed:
        return statement_kinds.Composed((self.parameter(meta, leaf),))

    def joined(self, meta: Meta, *pieces: str | statement_kinds.Composed) -> str | statement_kinds.Composed:
        del meta
        if all(isinstance(piece, str) for piece in pieces):
            return "".join(str(piece) for piece in pieces)
        parts = [piece.parts if isinstance(piece, statement_kinds.Composed) else (piece,) for piece in pieces]
        return statement_kinds.Composed(tuple(part for each in parts for part in each))

    def option(self, meta: Meta, key: Leaf, value: str | statement_kinds.Composed) -> "_Pair":
        del meta
        return key, value

    def options(self, meta: Meta, *pairs: "_Pair") -> "_Clause":
        seen: set[str] = set()
        for key, _ in pairs:
            if key.lower() in seen:
                raise WJoinError(
                    "WJ106",
                    f"the option {key.value} is given twice",
                    span=span_of(key),
                    help="keep one of them",
                )
            seen.add(key.lower())
        plain = tuple((key.value, value) for key, value in pairs if isinstance(value, str))
        composed = tuple(
            (key.value, value) for key, value in pairs if isinstance(value, statement_kinds.Composed)
        )
        return _Clause("OPTIONS clause", (plain, composed), span_of(meta))

    def partitioned(self, meta: Meta, *names: Identifier) -> "_Clause":
        return _Clause("PARTITIONED BY clause", names, span_of(meta))

    def record_format(self, meta: Meta, name: Identifier) -> "_Clause":
        word = name.name.lower()
        if word not in _RECORD_FORMATS:
            raise WJoinError(
                "WJ106",
                f"records have no format {name.name}",
                span=name.span,
                help="write FORMAT JSON, FORMAT CSV or FORMAT AVRO",
            )
        return _Clause("FORMAT clause", Identifier(word, span=name.span), span_of(meta))

    def record_key(self, meta: Meta, *names: Identifier) -> "_Clause":
        if len(names) > 1:
            together = ", ".join(name.name for name in names)
            raise WJoinError(
                "WJ106",
                "a record has only one key",
                span=names[1].span,
                help=f"combine them in the query: concat_ws('/', {together}) AS id, and KEY (id)",
            )
        return _Clause("KEY clause", names[0], span_of(meta))

    def retain(self, meta: Meta, time: Duration, grace: Duration | None) -> "_Clause":
        for each in (time, grace):
            if each is not None:
                _above_zero(each, "a sink")
        return _Clause(
            "RETAIN clause", statement_kinds.Retain(time, grace, span=span_of(meta)), span_of(meta)
        )

    def commit_every(self, meta: Meta, time: Duration) -> "_Clause":
        return _Clause("COMMIT EVERY clause", _above_zero(time, "a sink"), span_of(meta))

    def commit_when(self, meta: Meta, stream: Identifier, condition: Leaf) -> "_Clause":
        span = span_of(meta)
        return _Clause(
            "COMMIT WHEN clause", statement_kinds.CommitWhen(stream, condition.value, span=span), span
        )

    def idle_after(self, meta: Meta, time: Duration) -> "_Clause":
        return _Clause("IDLE AFTER clause", _above_zero(time, "a stream"), span_of(meta))

    def unique(self, meta: Meta, *names: Identifier) -> "_Clause":
        return _Clause("DROP DUPLICATES clause", names, span_of(meta))

    def late_rows(self, meta: Meta, sink: Identifier) -> "_Clause":
        return _Clause("LATE ROWS INTO clause", sink, span_of(meta))

    def home(self, meta: Meta, column: Identifier) -> "_Clause":
        return _Clause("HOME BY clause", column, span_of(meta))

    def site_address(self, meta: Meta, leaf: Leaf) -> str | syntax.Parameter:
        return self.parameter(meta, leaf) if leaf.type == "PARAMETER" else string_of(leaf)

    def site(self, meta: Meta, *parts: Any) -> statement_kinds.AtSite:
        named = [part for part in parts if isinstance(part, Identifier)]
        addresses = tuple(part for part in parts if isinstance(part, str))
        again = next((each for n, each in enumerate(addresses) if each in addresses[:n]), None)
        if again is not None:
            message = f"the site {again} is given twice"
            raise WJoinError("WJ106", message, span=span_of(meta), help="keep one of them")
        given = tuple(part for part in parts if isinstance(part, syntax.Parameter))
        return statement_kinds.AtSite(addresses, named[0] if named else None, span=span_of(meta), given=given)

    def create_stream(
        self, meta: Meta, or_replace: bool, if_not_exists: bool, name: Identifier, *parts: Any
    ) -> statement_kinds.CreateStream:
        columns = next((part for part in parts if isinstance(part, _Columns)), _Columns(None, (), []))
        options, composed = _clause(parts, "OPTIONS clause", ((), ()))
        marks = [part for part in parts if isinstance(part, syntax.Watermark)]
        site = next((part for part in parts if isinstance(part, statement_kinds.AtSite)), None)
        return statement_kinds.CreateStream(
            name=name,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
            columns=columns.text,
            provider=Identifier(statement_kinds.SITE_FORMAT, span=site.span) if site else _provider(parts),
            options=options,
            watermark=_only([*columns.watermarks, *marks], "WATERMARK clause"),
            span=span_of(meta),
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
    ) -> statement_kinds.CreateSink:
        options, composed = _clause(parts, "OPTIONS clause", ((), ()))
        return statement_kinds.CreateSink(
            name=name,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
            provider=_provider(parts),
            options=options,
            partitioned_by=_clause(parts, "PARTITIONED BY clause", ()),
            span=span_of(meta),
            record_format=_clause(parts, "FORMAT clause"),
            key=_clause(parts, "KEY clause"),
            composed=composed,
            retain=_clause(parts, "RETAIN clause"),
            commit_every=_clause(parts, "COMMIT EVERY clause"),
            commit_when=_clause(parts, "COMMIT WHEN clause"),
        )

    def __default__(self, data: str, children: list[Any], meta: Meta) -> Any:
        """Return a node that is made of its parts as they are: its class has the name of the rule."""
        name = "".join(word.title() for word in data.split("_"))
        kind = getattr(statement_kinds, name, None) or getattr(syntax, name)
        return kind(*children, span=span_of(meta))

    # Statistics

    def statistic_key(self, meta: Meta, *parts: Leaf) -> "_Key":
        del meta
        return statistic_key([_identifier(part) for part in parts])

    def number(self, meta: Meta, number: Leaf) -> tuple[float, Span]:
        return float(number_of(number.value, span_of(number))), span_of(meta)

    def negative_number(self, meta: Meta, number: Leaf) -> tuple[float, Span]:
        return -float(number_of(number.value, span_of(number))), span_of(meta)

    def statistic(
        self, meta: Meta, key: "_Key", number: tuple[float, Span]
    ) -> statement_kinds.StatisticEntry:
        return statement_kinds.StatisticEntry(*key, statistic_value(key[0], *number), span=span_of(meta))

    def disorder(self, meta: Meta, duration: Duration) -> statement_kinds.StatisticEntry:
        at_least_zero(duration, "WJ113", "disorder is negative", "write a duration of zero or more")
        return statement_kinds.StatisticEntry("disorder", (), duration, span=span_of(meta))

    def set_statistics(
        self, meta: Meta, name: Leaf, *entries: statement_kinds.StatisticEntry
    ) -> statement_kinds.AlterStream:
        return statement_kinds.AlterStream(_identifier(name), once_each(entries), span=span_of(meta))

    def reset_statistics(self, meta: Meta, name: Leaf) -> statement_kinds.AlterStream:
        return statement_kinds.AlterStream(_identifier(name), None, span=span_of(meta))

    def analyze_stream(
        self, meta: Meta, name: Leaf, *rest: Identifier | Leaf | None
    ) -> statement_kinds.AnalyzeStream:
        by = next((each for each in rest if isinstance(each, Identifier)), None)
        number = next((each for each in rest if isinstance(each, Leaf)), None)
        sample = None if number is None else rows_of(number, "WJ106", "sample")
        return statement_kinds.AnalyzeStream(_identifier(name), sample, by, span=span_of(meta))

    def set_option(self, meta: Meta, key: Leaf, value: Leaf) -> statement_kinds.SetOption:
        return statement_kinds.SetOption(key.value, value.value, span=span_of(meta))


class _Columns(NamedTuple):
    text: str | None
    computed: tuple[statement_kinds.ComputedColumn, ...]
    watermarks: list[syntax.Watermark]


_Pair = tuple[Leaf, str | statement_kinds.Composed]
_Key = tuple[str, tuple[Identifier, ...]]


class _Clause(NamedTuple):
    what: str
    value: Any
    span: Span


def _identifier(leaf: Leaf) -> Identifier:
    return Identifier(unquoted(leaf.value), span=span_of(leaf))


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
    return Identifier(leaf.value, span=span_of(leaf))


def _above_zero(duration: Duration, of: str) -> Duration:
    if isinstance(duration, syntax.BareNumber):
        raise WJoinError("WJ102", f"the time {duration.value} has no unit", span=duration.span)
    value = value_of(duration)
    if value is not None and value <= 0:
        message = f"a time of {of} is not above zero"
        raise WJoinError("WJ110", message, span=duration.span, help="write one such as 1 DAY or 10 SECONDS")
    return duration


_NODES = _Nodes()


def build(tree: "Tree[Leaf]") -> Any:
    """Return the node of a tree; raises WJ101, WJ102, WJ103, WJ106, WJ109, WJ110 and WJ113."""
    try:
        return _NODES.transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, WJoinError):
            raise error.orig_exc from None
        raise
