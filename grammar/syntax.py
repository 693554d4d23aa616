"""The nodes of the statement tree.

Every node is immutable and carries its place in the source text. What Spark itself
reads (expressions, relations, whole statements) stays text: a node keeps its span.
"""

import re
from dataclasses import dataclass, field

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
class WindowPair(Node):
    """``WINDOW (A, B) = w``, or ``DWINDOW (A, B) = w`` when directed."""

    first: Identifier
    second: Identifier
    width: Duration
    directed: bool


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


@dataclass(frozen=True)
class WindowRows(Node):
    """``WINDOW A = n ROWS [PER KEY]``: fewer than n rows of A are later than a's and not than the tuple's
    latest timestamp."""

    stream: Identifier
    rows: int
    per_key: bool = False


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


# Statements -----------------------------------------------------------------


NOTHING = Span(0, 0)
"""No piece of a text."""


class Statement(Node):
    """What a text has between two semicolons; ``span`` is all of it."""

    left_out: Span = NOTHING

    def written(self, text: str) -> str:
        """Return the statement as it stands in a text, blanks in place of what is ``left_out``."""
        if self.left_out == NOTHING:
            return self.span.of(text)
        blanks = re.sub(r"[^\n]", " ", self.left_out.of(text))
        return text[self.span.start : self.left_out.start] + blanks + text[self.left_out.end : self.span.end]


@dataclass(frozen=True)
class Query(Statement):
    """Any Spark statement that contains at least one W-join; outermost blocks in text order."""

    blocks: tuple[SelectBlock, ...]
    left_out: Span = field(default=NOTHING, compare=False)

    @property
    def only_block(self) -> SelectBlock | None:
        """The one W-join that it has, None where it has several."""
        return self.blocks[0] if len(self.blocks) == 1 and not self.blocks[0].nested else None


@dataclass(frozen=True)
class SparkStatement(Statement):
    """A statement with nothing of ours in it: goes to Spark as it stands."""

    left_out: Span = field(default=NOTHING, compare=False)


@dataclass(frozen=True)
class ExecuteImmediate(Statement):
    """``EXECUTE IMMEDIATE text [INTO …] [USING …]``; ``bound`` where one of the clauses is written.

    ``said`` is where the expression stands that says the statement.
    """

    said: Span = field(compare=False)
    bound: bool


@dataclass(frozen=True)
class ComputedColumn(Node):
    """``name AS expression`` in a column list.

    ``expression`` is Spark's, as it was written; ``place`` is the column's place in the list.
    """

    name: Identifier
    expression: str
    place: int
    expression_span: Span = field(compare=False)


@dataclass(frozen=True)
class Composed:
    """The value of an option with parameters: ``:root || '/camera1'``; its parts one after the other."""

    parts: tuple[str | Parameter, ...]


SITE_FORMAT = "wjoin_site"
"""The name of Spark's data source for streams at sites."""

ROW_NUMBER = "__wjoin_row"
"""The column of a stream at a site with the number that a row has there."""


@dataclass(frozen=True)
class AtSite(Node):
    """``AT SITE 'address' [STREAM name]`` or ``AT SITES ('address', …) [STREAM name]``.

    ``stream`` is the stream's name there, None where it has the same one. ``given`` are addresses that are
    parameters.
    """

    addresses: tuple[str, ...]
    stream: Identifier | None
    given: tuple[Parameter, ...] = ()


@dataclass(frozen=True)
class CreateStream(Statement):
    """``CREATE [OR REPLACE] STREAM [IF NOT EXISTS] name [(columns)] USING format … [FORMAT name]``.

    ``columns`` are those that the source holds, as Spark DDL; None when the source knows them
    itself. ``computed`` are the others of the list. ``record_format``: how the source's records are
    written, json, csv or avro; None where that is not said. ``site``: where it is read from sites, in the
    place of USING; the provider is then ``SITE_FORMAT``. ``composed`` are the options with parameters.
    ``unique``, of ``DROP DUPLICATES ON (…)``, are the columns that are equal in copies of a row.
    ``idle_after``: without a row for so long the stream is silent, None where it never is.
    ``late_rows``, of ``LATE ROWS INTO sink``, is the sink that late rows go to. ``home``, of ``HOME BY
    column``, is the column that says at which node a row lives.
    """

    name: Identifier
    or_replace: bool
    if_not_exists: bool
    columns: str | None
    provider: Identifier
    options: tuple[tuple[str, str], ...] = field(repr=False)
    watermark: Watermark | None
    computed: tuple[ComputedColumn, ...] = ()
    record_format: Identifier | None = None
    site: AtSite | None = None
    composed: tuple[tuple[str, Composed], ...] = ()
    unique: tuple[Identifier, ...] = ()
    idle_after: Duration | None = None
    late_rows: Identifier | None = None
    home: Identifier | None = None


@dataclass(frozen=True)
class Retain(Node):
    """``RETAIN time [GRACE grace]``: how long a sink keeps results, and how much longer their files stay.

    ``grace`` is None where it is not said.
    """

    time: Duration
    grace: Duration | None


@dataclass(frozen=True)
class CommitWhen(Node):
    """``COMMIT WHEN stream (condition)``: each row of a stream that satisfies it commits the results."""

    stream: Identifier
    condition: str


@dataclass(frozen=True)
class CreateSink(Statement):
    """``CREATE [OR REPLACE] SINK [IF NOT EXISTS] name USING format [OPTIONS (…)] [PARTITIONED BY (…)]``.

    ``record_format``, of ``FORMAT name``, says how its records are written: json, csv or avro. ``key``, of
    ``KEY (column)``, is the column that is their key. ``commit_every`` is the time between micro-batches,
    ``commit_when`` what commits their results. They are None where they are not said, and so is ``retain``.
    ``composed`` are the options with parameters.
    """

    name: Identifier
    or_replace: bool
    if_not_exists: bool
    provider: Identifier
    options: tuple[tuple[str, str], ...] = field(repr=False)
    partitioned_by: tuple[Identifier, ...]
    record_format: Identifier | None = None
    key: Identifier | None = None
    composed: tuple[tuple[str, Composed], ...] = ()
    retain: Retain | None = None
    commit_every: Duration | None = None
    commit_when: CommitWhen | None = None


@dataclass(frozen=True)
class InsertInto(Statement):
    """``INSERT INTO [TABLE] target [(columns)] query``; the query may or may not hold a W-join.

    Where it begins before INSERT (``WITH … INSERT INTO``, ``FROM … INSERT INTO``), the query leaves the
    words of the INSERT out.
    """

    target: tuple[Identifier, ...]
    body: Query | SparkStatement
    columns: tuple[Identifier, ...] = ()


@dataclass(frozen=True)
class StatementSet(Statement):
    """``EXECUTE STATEMENT SET [name] BEGIN insert; insert; … END``: statements that run as one query.

    ``keep_others``: ``ON FAILURE KEEP OTHERS`` stands before BEGIN, so a sink that fails holds up no other.
    """

    name: Identifier | None
    inserts: tuple[InsertInto, ...]
    keep_others: bool = False


@dataclass(frozen=True)
class AlterSet(Statement):
    """``ALTER STATEMENT SET name ADD insert [WITH HISTORY]``, or ``ALTER STATEMENT SET name DROP sink``.

    Of ``added`` and ``dropped`` one is None.
    """

    name: Identifier
    added: InsertInto | None = None
    dropped: Identifier | None = None
    history: bool = False


@dataclass(frozen=True)
class CreateView(Statement):
    """``CREATE [OR REPLACE] [TEMP] VIEW name AS query`` where the query holds a W-join."""

    name: Identifier
    or_replace: bool
    body: Query


class ShowStreams(Statement):
    """``SHOW STREAMS``."""


class ShowSinks(Statement):
    """``SHOW SINKS``."""


class ShowPredicates(Statement):
    """``SHOW PREDICATES``."""


class ShowQueries(Statement):
    """``SHOW QUERIES``."""


@dataclass(frozen=True)
class _Named(Statement):
    """A statement about what has a name."""

    name: Identifier


class DescribeStream(_Named):
    """``DESCRIBE STREAM name``."""


class ShowCreateStream(_Named):
    """``SHOW CREATE STREAM name``."""


class DescribeSink(_Named):
    """``DESCRIBE SINK name``."""


class ShowCreateSink(_Named):
    """``SHOW CREATE SINK name``."""


class DescribeQuery(_Named):
    """``DESCRIBE QUERY name``."""


class StopQuery(_Named):
    """``STOP QUERY name``."""


@dataclass(frozen=True)
class _Dropped(Statement):
    """A statement that removes what has a name."""

    if_exists: bool
    name: Identifier


class DropStream(_Dropped):
    """``DROP STREAM [IF EXISTS] name``."""


class DropSink(_Dropped):
    """``DROP SINK [IF EXISTS] name``."""


@dataclass(frozen=True)
class StatisticEntry(Node):
    """One statistic of a stream, as ALTER STREAM gives it.

    ``name`` is lower case: ``rate``, the rows per second of event time; ``width``, the bytes
    of a row; ``disorder``, how far rows are usually out of order; ``selectivity``, the share
    of rows that the statement's filters of the stream keep; ``distinct``, the number of
    different values of a column; ``heaviest``, the share of the rows that have the most
    frequent value of a column. ``column`` are the parts of that column's name (more than one
    for a field of a struct), empty for the statistics of the whole stream. ``value`` is a
    Duration for ``disorder`` and a number for all others.
    """

    name: str
    column: tuple[Identifier, ...]
    value: float | Duration


@dataclass(frozen=True)
class AlterStream(Statement):
    """``ALTER STREAM name SET STATISTICS (name = value, …)`` or ``… RESET STATISTICS``.

    ``statistics`` has one entry or more, no two alike, and is None for RESET.
    """

    name: Identifier
    statistics: tuple[StatisticEntry, ...] | None


@dataclass(frozen=True)
class AnalyzeStream(Statement):
    """``ANALYZE STREAM name [SAMPLE n ROWS]``; ``sample`` is n, one or more."""

    name: Identifier
    sample: int | None


@dataclass(frozen=True)
class SetOption(Statement):
    """``SET wjoin.key = value`` (settings of wjoin; every other SET is Spark's)."""

    key: str
    value: str


@dataclass(frozen=True)
class MeantRows:
    """``A(condition)`` of EXPLAIN MATCH: the rows of a stream that are meant."""

    stream: Identifier
    condition: Span


@dataclass(frozen=True)
class Explain(Statement):
    """``EXPLAIN [FORMATTED | COST | ANALYZE] query`` where the query holds a W-join.

    ``mode`` is upper case, empty when none is written; ``target`` is that of an INSERT INTO whose
    query is explained, else empty. ``EXPLAIN MATCH A(…), B(…) query`` has the rows that are ``meant``.
    """

    mode: str
    body: Query
    target: tuple[Identifier, ...] = ()
    meant: tuple[MeantRows, ...] = ()


@dataclass(frozen=True)
class ExplainDelay(Statement):
    """``EXPLAIN DELAY name``: what delays of a stream would cost and save."""

    name: Identifier


@dataclass(frozen=True)
class ExplainSet(Statement):
    """``EXPLAIN [FORMATTED | COST] STATEMENT SET [name] BEGIN …; END``; ``mode`` as in Explain."""

    mode: str
    body: StatementSet
