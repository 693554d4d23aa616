"""The kinds of statements, as nodes of the statement tree (``grammar.syntax``)."""

import re
from dataclasses import dataclass, field

from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import Duration, Identifier, Node, Parameter, SelectBlock, Watermark

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
class StateRead(Node):
    """``STATE OF QUERY name``, or ``STATE OF QUERY 'checkpoint'``, in a FROM; of the two one is None."""

    query: Identifier | None = None
    checkpoint: str | None = None


@dataclass(frozen=True)
class StateSelect(Statement):
    """A SELECT of Spark's that reads the state of queries; in text order."""

    reads: tuple[StateRead, ...]


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
    """``ANALYZE STREAM name [BY column] [SAMPLE n ROWS]``; ``sample`` is n, one or more.

    ``by`` is the column whose values say where rows live; left out, that of HOME BY.
    """

    name: Identifier
    sample: int | None
    by: Identifier | None = None


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
