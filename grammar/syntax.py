"""The nodes of the statement tree; those of whole statements are in ``grammar.statement_kinds``.

Every node is immutable and carries its place in the source text. What Spark itself
reads (expressions, relations, whole statements) stays text: a node keeps its span.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.spans import Span


@dataclass(frozen=True, kw_only=True)
class Node:
    """A part of a statement, with its place in the text: two of another place are equal."""

    span: Span = field(compare=False)


@dataclass(frozen=True)
class Identifier(Node):
    """A name as Spark compares it: quotes removed, case kept."""

    name: str

    def matches(self, other: str) -> bool:
        """Return whether ``other`` is the same name, case ignored."""
        return self.name.lower() == other.lower()


# Durations ------------------------------------------------------------------


@dataclass(frozen=True)
class TimeDuration(Node):
    """A signed duration with a unit, in microseconds."""

    microseconds: int


@dataclass(frozen=True)
class BareNumber(Node):
    """A signed number without a unit: legal only where event time is integral."""

    value: int


@dataclass(frozen=True)
class Parameter(Node):
    """A named parameter ``:name``, bound when the statement is planned."""

    name: str
    negative: bool


Duration = TimeDuration | BareNumber | Parameter

# Window clause --------------------------------------------------------------


@dataclass(frozen=True)
class WindowAll(Node):
    """``WINDOW = w``: every pair of streams within w (form 1)."""

    width: Duration


@dataclass(frozen=True)
class InRow(Node):
    """The bound that a row says itself, an expression on the columns of one stream; ``span`` is its place."""

    expression: str


@dataclass(frozen=True)
class WindowPair(Node):
    """``WINDOW (A, B) = w``, or ``DWINDOW (A, B) = w`` when directed.

    ``in_row``, of ``WINDOW (A, B) = expression AT MOST w``, is what a row says itself; None for nothing.
    """

    first: Identifier
    second: Identifier
    width: Duration
    directed: bool
    in_row: InRow | None = None


@dataclass(frozen=True)
class WindowBetween(Node):
    """``WINDOW (A, B) BETWEEN l AND u``: l <= b - a <= u."""

    first: Identifier
    second: Identifier
    low: Duration
    high: Duration


@dataclass(frozen=True)
class WindowStream(Node):
    """``WINDOW A = w``: the tuple's latest timestamp minus a is at most w."""

    stream: Identifier
    width: Duration


class Per(Enum):
    """Which rows of its stream a window of rows counts: all, or those with the same key, or the same home."""

    STREAM = ""
    KEY = "KEY"
    HOME = "HOME"

    @property
    def clause(self) -> str:
        """What follows ROWS."""
        return f" PER {self.value}" if self.value else ""


@dataclass(frozen=True)
class WindowRows(Node):
    """``WINDOW A = n ROWS [PER KEY | PER HOME]``: fewer than n rows of A are later than a's and not than the
    tuple's latest timestamp."""

    stream: Identifier
    rows: int
    per: Per = Per.STREAM


@dataclass(frozen=True)
class WindowSince(Node):
    """``WINDOW A SINCE (condition)``: no row of A for which it is true is later than a's and not than the
    tuple's latest timestamp. ``place`` is that of the condition."""

    stream: Identifier
    condition: str
    place: Span = field(compare=False)


@dataclass(frozen=True)
class Absent(Node):
    """``NOT C`` in a path: no row of C from the stream with the number ``after`` on.

    To the next one, or at the end of the path, where none follows, for ``width``.
    """

    stream: Identifier
    after: int
    width: Duration | None


@dataclass(frozen=True)
class WindowPath(Node):
    """``PATH (A, B, NOT C) WITHIN (w1, w2) [BIDIRECTIONAL]``; ``streams`` are those that have rows."""

    streams: tuple[Identifier, ...]
    widths: tuple[Duration, ...]
    bidirectional: bool
    absent: tuple[Absent, ...] = ()


@dataclass(frozen=True)
class WindowAnd(Node):
    """A conjunction of window conditions."""

    terms: tuple["WindowCondition", ...]


@dataclass(frozen=True)
class WindowOr(Node):
    """A disjunction of window conditions."""

    terms: tuple["WindowCondition", ...]


WindowTerm = WindowAll | WindowPair | WindowBetween | WindowStream | WindowRows | WindowSince | WindowPath
WindowCondition = WindowTerm | WindowAnd | WindowOr

# SELECT blocks --------------------------------------------------------------


@dataclass(frozen=True)
class Watermark(Node):
    """Event-time column and allowed disorder, from either spelling of the clause."""

    column: Identifier
    delay: Duration | None


@dataclass(frozen=True)
class MatchCondition(Node):
    """``MATCH_CONDITION (…)`` of an ASOF JOIN; ``condition``: what is in the parentheses.

    ``asof`` is the word ASOF.
    """

    condition: Span
    asof: Span


@dataclass(frozen=True)
class FromItem(Node):
    """One relation of a FROM list.

    ``relation`` marks what Spark reads as the relation (a table name, or a subquery
    with its parentheses, or a table function, a name with column aliases and the like);
    ``parts`` are the parts of a plain table name, empty for all else, which then has an
    alias. ``streaming`` says whether the word STREAM
    stands before it; it is not in ``relation``. ``crossed``: it is joined by CROSS JOIN. ``kind`` is that
    of the join whose right side it begins, ``match`` its MATCH_CONDITION, and ``joined`` says how many items
    that side has: two of B, ``A LEFT JOIN (B JOIN C)``.
    """

    relation: Span
    parts: tuple[Identifier, ...]
    alias: Identifier | None
    watermark: Watermark | None
    streaming: bool = False
    crossed: bool = False
    kind: JoinKind = JoinKind.INNER
    match: MatchCondition | None = None
    joined: int = 1


@dataclass(frozen=True)
class Hint(Node):
    """One hint of ``/*+ … */`` that belongs to wjoin: its name and arguments, upper case.

    ``span`` is what to cut: Spark can read the text without the spans of all hints.
    """

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class UsingColumns(Node):
    """``JOIN … USING (x, y)`` between the items before and the item ``right``.

    ``columns`` is None for NATURAL JOIN: all that have one name on both sides.
    """

    right: int
    columns: tuple[Identifier, ...] | None


@dataclass(frozen=True)
class LateralView:
    """``LATERAL VIEW [OUTER] generator name AS columns``; ``span`` is all of it."""

    generator: Span
    name: Identifier
    columns: tuple[Identifier, ...]
    span: Span


@dataclass(frozen=True)
class Conjunct:
    """A piece that AND joins to others at the top level of WHERE, or of the ON of the FROM item ``on``."""

    span: Span
    on: int | None = None


@dataclass(frozen=True)
class Exists:
    """``[NOT] EXISTS (SELECT … FROM item WINDOW …)`` as a condition of WHERE: a SEMI or ANTI JOIN.

    ``item`` is the number of its FROM item, which is one of the block's; ``span`` is all of the condition.
    """

    item: int
    select_list: Span
    window_span: Span
    span: Span


@dataclass(frozen=True)
class SelectBlock:
    """A SELECT that has a window clause, or an EXISTS in WHERE with one, or an ASOF JOIN, which needs none.

    Spans index the whole source text. ``source`` runs from FROM to the end of the window
    clause or the WHERE predicate, whichever comes last: the piece that the join replaces.
    ``conjuncts`` are those of every ON, then those of WHERE. ``withs`` are the
    WITH clauses in scope, outermost first, each from WITH to before the body that uses it.
    ``nested`` are the blocks inside this one (subqueries in FROM or elsewhere). ``laterals`` are the LATERAL
    VIEWs before and behind the window clause. ``window_span`` is empty where there is none. What is in its
    ``exists`` is part of the block: the items come last, the conditions are those of their ON, and ``window``
    has their windows, too. ``implicit``: it has none of these, and its conditions may be windows.
    """

    span: Span
    select_list: Span
    hints: tuple[Hint, ...]
    items: tuple[FromItem, ...]
    using: tuple[UsingColumns, ...]
    window: WindowCondition | None
    window_span: Span
    conjuncts: tuple[Conjunct, ...]
    source: Span
    tail: Span
    withs: tuple[Span, ...]
    nested: tuple["SelectBlock", ...]
    laterals: tuple[LateralView, ...] = ()
    exists: tuple[Exists, ...] = ()
    implicit: bool = False

    @property
    def window_spans(self) -> frozenset[Span]:
        """The places of its window clauses: its own, and those of its ``exists``."""
        return frozenset({self.window_span, *(each.window_span for each in self.exists)})


def innermost_first(blocks: Iterable[SelectBlock]) -> Iterator[SelectBlock]:
    """Yield blocks and those inside them, each behind those inside it."""
    for each in blocks:
        yield from innermost_first(each.nested)
        yield each
