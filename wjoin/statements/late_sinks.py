"""LATE ROWS INTO in a query: late rows are the rows of one more sink.

The joins of a statement set make them beside their results. A statement whose results go on to another join,
or into groups, is a query whose rows come together with late rows that are read apart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from wjoin.context import Asked
from wjoin.executor.late_rows import LATE, LATE_BY, MICRO_BATCH
from wjoin.executor.spark.late_apart import late_rows_of
from wjoin.executor.spark.operator import PART, part_column
from wjoin.executor.spark.typing import restored_value
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import InsertInto, Query
from wjoin.grammar.suggestions import suggestion
from wjoin.grammar.syntax import Identifier
from wjoin.joins.from_items import name_in_session
from wjoin.joins.planned_joins import Joins, PlannedJoin
from wjoin.joins.rewrite import rewrite
from wjoin.joins.set_joins import SetJoin, SetStatement, by_itself, groups_in, without_rows
from wjoin.measured.kept import Kept
from wjoin.planner.plan.block_columns import late_name
from wjoin.sources.catalog import SinkDeclaration
from wjoin.sources.format_options import own_option
from wjoin.sources.late_rows import LATE_FOR, of_query
from wjoin.statements.sinks import rows_for

_WITHOUT_INTERVALS = frozenset({"delta", "iceberg"})
"""Formats of tables without intervals: they have them as text, as files of JSON and CSV do."""


@dataclass(frozen=True)
class _Telling:
    """A join whose late rows are told, under the number ``part`` where others make rows, too.

    ``schema`` has the columns of its late rows, as the join names them.
    """

    planned: PlannedJoin
    schema: StructType
    part: int | None

    def named(self, name: str) -> str:
        """Return under what name a column of the join's late rows is made."""
        return name if self.part is None else part_column(name, self.part)

    def are_of(self, stream: int) -> Column:
        """Return whether rows are late ones of a stream of the join."""
        own = F.col(self.named(LATE)) == stream
        return own if self.part is None else (F.col(PART) == self.part) & own


@dataclass(frozen=True)
class _LateStream:
    """A stream whose late rows go to a sink, as stream ``number`` of a join."""

    name: str
    join: _Telling
    number: int
    event_time: str
    delay: int


def tells_late_rows(asked: Asked, statement: InsertInto, sink: SinkDeclaration) -> bool:
    """Return whether an INSERT INTO is a set that tells late rows: one window join, each row by itself."""
    body = statement.body
    block = body.only_block if isinstance(body, Query) else None
    if not isinstance(body, Query) or block is None:
        return False
    declared = (asked.catalog.stream(name_in_session(each) or "") for each in block.items)
    if not any(each is not None and each.late_into for each in declared):
        return False
    kept = Kept(asked.engine.spark, None, asked.settings.home())
    rewriting = rewrite(asked, body, kept, runs=False)
    (planned,) = rewriting.planned
    if not planned.physical.telling or not planned.physical.stages:
        return False
    if not hasattr(asked.engine.spark, "_jsparkSession"):
        return True
    part = by_itself(rewriting, SetStatement(statement, sink), asked.params)
    return groups_in(part.sample(*part.takers)) is None


def late_rows(
    asked: Asked, parts: Sequence[SetJoin], made: DataFrame, query: str, insert: InsertInto
) -> Iterator[tuple[SetStatement, DataFrame]]:
    """Yield the late rows of the joins of a set for each of their sinks, of what they have ``made``.

    ``insert`` is a statement of the query, which has the name ``query``. Raises WJoinError WJ602 for an
    unknown sink, and WJ623 for one that cannot have them.
    """
    several = PART in made.columns
    joins = (
        _Telling(part.rewriting.done[0], part.stages.schema, number if several else None)
        for number, part in enumerate(parts)
    )
    return _for_sinks(asked, list(joins), made, query, insert)


@dataclass(frozen=True)
class RowsAndLate:
    """The rows of a statement, and late rows of its joins, in what one query has ``made``.

    ``sinks`` have theirs over a ``shape`` that stands for what is made; the first is the statement's.
    """

    made: DataFrame
    shape: DataFrame
    sinks: list[tuple[SinkDeclaration, DataFrame]]


def with_late_rows(
    asked: Asked, statement: SetStatement, frame: DataFrame, joins: Joins, kept: Kept, query: str
) -> RowsAndLate:
    """Return the rows of a statement with late rows of its joins, which are read apart from them.

    Raises WJoinError WJ602 for an unknown sink, and WJ623 for one that cannot have them.
    """
    insert = statement.insert
    told, late = [], []
    for place, join in joins.telling.items():
        rows = late_rows_of(join.planned.physical, join.inputs, kept.state(place), kept.ending)
        told.append(_Telling(join, rows.schema, place + 1))
        late.append(_numbered(rows, rows.columns, place + 1))
    names = [str(number) for number in range(len(frame.columns))]
    made = reduce(
        lambda first, other: first.unionByName(other, allowMissingColumns=True),
        late,
        _numbered(frame.toDF(*names), names, 0),
    )
    shape = without_rows(asked.engine.spark, made.schema)
    own = (
        F.col(part_column(name, 0)).alias(column) for name, column in zip(names, frame.columns, strict=True)
    )
    rows = shape.filter(F.col(PART) == 0).select(*own)
    beside = _for_sinks(asked, told, shape, query, insert)
    written = ((each.sink, rows_for(each.sink, own, each.insert)) for each, own in beside)
    return RowsAndLate(made, shape, [(statement.sink, rows), *written])


def late_for(name: str, folder: str | None) -> str:
    """Return under what name late rows tell of a query: its own, as its checkpoint has it."""
    own = "" if folder is None else folder.rstrip("/").rpartition("/")[2]
    return own if own.startswith(name) else name


def _numbered(rows: DataFrame, names: Sequence[str], number: int) -> DataFrame:
    """Return rows under names that no others have."""
    own = (F.col(name).alias(part_column(name, number)) for name in names)
    return rows.select(F.lit(number).alias(PART), *own)


def _for_sinks(
    asked: Asked, joins: Sequence[_Telling], made: DataFrame, query: str, insert: InsertInto
) -> Iterator[tuple[SetStatement, DataFrame]]:
    """Yield the late rows of joins for each of their sinks (see ``late_rows``)."""
    span = insert.target[-1].span
    for sink, streams in _sinks(joins, span).items():
        found = asked.catalog.sinks.get(sink.lower())
        if found is None:
            told = ", ".join(each.name for each in streams)
            remedy = suggestion(sink, asked.catalog.sinks) or f"CREATE SINK {sink} USING …"
            message = f"no sink is named {sink}, and late rows of {told} go there"
            raise WJoinError("WJ602", message, span=span, help=remedy)
        if found.commit_when is not None or own_option(found.options, "trigger") is not None:
            message = (
                f"late rows go to {found.name} with the results of a query, and it has commits of its own"
            )
            raise WJoinError("WJ623", message, span=span, help="CREATE SINK another one for late rows")
        name = Identifier(found.name, span=span)
        into = InsertInto((name,), insert.body, span=insert.span)
        rows = _rows(made, streams, query, name)
        if found.provider.lower() in _WITHOUT_INTERVALS:
            rows = rows.withColumn(LATE_BY, F.col(LATE_BY).cast("string"))
        yield SetStatement(into, of_query(found, query)), rows


def _sinks(joins: Sequence[_Telling], span: Span) -> dict[str, list[_LateStream]]:
    """Return the streams whose late rows go to each sink, each stream once."""
    found: dict[str, dict[str, _LateStream]] = {}
    names: dict[str, str] = {}
    for join in joins:
        plan = join.planned.planned.physical
        for number in plan.telling:
            scan, declared = plan.streams[number], join.planned.sources[number].declared
            if declared is None:
                raise AssertionError("late rows are told of declared streams")
            own = _LateStream(declared.name, join, number, scan.event_time, scan.delay)
            sink = names.setdefault(scan.late_into.lower(), scan.late_into)
            known = found.setdefault(sink, {}).setdefault(declared.name.lower(), own)
            if known.event_time != own.event_time:
                message = f"{own.name} is read by two event times, so a row of it can be late twice"
                raise WJoinError("WJ623", message, span=span, help="read it by one, or make it two queries")
            if own.delay < known.delay:
                # What is late by a longer delay is late by a shorter one.
                found[sink][declared.name.lower()] = own
    return {sink: list(streams.values()) for sink, streams in found.items()}


def _rows(
    made: DataFrame,
    streams: Sequence[_LateStream],
    query: str,
    sink: Identifier,
) -> DataFrame:
    """Return the late rows of streams, with the columns of all of them. Raises WJoinError WJ623."""
    columns: dict[str, list[_Read]] = {}
    chosen: list[Column] = []
    for each in streams:
        chosen.append(each.join.are_of(each.number))
        for read in _reads(each.join, each.number):
            columns.setdefault(read.shown.lower(), []).append(read)
    for name, found in columns.items():
        if len({each.kind.simpleString() for each in found}) > 1:
            told = ", ".join(each.name for each in streams)
            message = f"late rows of {told} go to {sink.name}, and their columns {name} have several types"
            help = "give each stream a sink of its own for late rows"
            raise WJoinError("WJ623", message, span=sink.span, help=help)
    values = {name: _first(found) for name, found in columns.items()}
    behind, number = values.pop(LATE_BY), values.pop(MICRO_BATCH)
    beside = (behind, F.lit(query).alias(LATE_FOR), number)
    return made.filter(reduce(or_, chosen)).select(*values.values(), *beside)


@dataclass(frozen=True)
class _Read:
    """A column of late rows as it is shown, under what name the set has made it, and its type."""

    shown: str
    made: str
    kind: DataType


def _reads(join: _Telling, stream: int) -> Iterator[_Read]:
    source = join.planned.inputs[stream].schema
    for place, column in enumerate(join.planned.planned.physical.streams[stream].late):
        name = str(column.output)
        yield _Read(name, join.named(late_name(stream, place)), source[name].dataType)
    for name in (LATE_BY, MICRO_BATCH):
        yield _Read(name, join.named(name), join.schema[name].dataType)


def _first(found: Sequence[_Read]) -> Column:
    """Return the value of the stream that a row is of: in the columns of others it has NULL."""
    values = [restored_value(*each) for each in dict.fromkeys((each.made, each.kind) for each in found)]
    return (values[0] if len(values) == 1 else F.coalesce(*values)).alias(found[0].shown)
