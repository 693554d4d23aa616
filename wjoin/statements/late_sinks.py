"""LATE ROWS INTO in a query: late rows are the rows of one more sink of a statement set."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from wjoin.context import Asked
from wjoin.executor.late_rows import LATE, LATE_BY, MICRO_BATCH
from wjoin.executor.spark.operator import PART, part_column
from wjoin.executor.spark.typing import restored_value
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.suggestions import suggestion
from wjoin.grammar.syntax import Identifier, InsertInto, Query
from wjoin.joins.from_items import name_in_session
from wjoin.joins.rewrite import rewrite
from wjoin.joins.set_joins import SetJoin, SetStatement
from wjoin.measured.kept import Kept
from wjoin.planner.plan.block_columns import late_name
from wjoin.sources.format_options import own_option
from wjoin.sources.late_rows import LATE_FOR, of_query

_WITHOUT_INTERVALS = frozenset({"delta", "iceberg"})
"""Formats of tables without intervals: they have them as text, as files of JSON and CSV do."""


@dataclass(frozen=True)
class _LateStream:
    """A stream whose late rows go to a sink, as stream ``number`` of the join ``part`` of a set."""

    name: str
    part: int
    number: int
    event_time: str
    delay: int


def tells_late_rows(asked: Asked, statement: InsertInto) -> bool:
    """Return whether an INSERT INTO joins streams whose late rows go to sinks, in one window join."""
    body = statement.body
    block = body.only_block if isinstance(body, Query) else None
    if not isinstance(body, Query) or block is None:
        return False
    declared = (asked.catalog.stream(name_in_session(each) or "") for each in block.items)
    if not any(each is not None and each.late_into for each in declared):
        return False
    kept = Kept(asked.engine.spark, None, asked.settings.home())
    (planned,) = rewrite(asked, body, kept, runs=False).planned
    return bool(planned.physical.telling and planned.physical.stages)


def late_rows(
    asked: Asked, parts: Sequence[SetJoin], made: DataFrame, query: str, insert: InsertInto
) -> Iterator[tuple[SetStatement, DataFrame]]:
    """Yield the late rows of the joins of a set for each of their sinks, of what they have ``made``.

    ``insert`` is a statement of the query, which has the name ``query``. Raises WJoinError WJ602 for an
    unknown sink, and WJ623 for one that cannot have them.
    """
    span = insert.target[-1].span
    for sink, streams in _sinks(parts).items():
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
        rows = _rows(parts, made, streams, query, name)
        if found.provider.lower() in _WITHOUT_INTERVALS:
            rows = rows.withColumn(LATE_BY, F.col(LATE_BY).cast("string"))
        yield SetStatement(into, of_query(found, query)), rows


def _sinks(parts: Sequence[SetJoin]) -> dict[str, list[_LateStream]]:
    """Return the streams whose late rows go to each sink, each stream once."""
    found: dict[str, dict[str, _LateStream]] = {}
    names: dict[str, str] = {}
    for part, join in enumerate(parts):
        (done,) = join.rewriting.done
        plan = done.planned.physical
        for number in plan.telling:
            scan, declared = plan.streams[number], done.sources[number].declared
            if declared is None:
                raise AssertionError("late rows are told of declared streams")
            own = _LateStream(declared.name, part, number, scan.event_time, scan.delay)
            sink = names.setdefault(scan.late_into.lower(), scan.late_into)
            known = found.setdefault(sink, {}).setdefault(declared.name.lower(), own)
            if known.event_time != own.event_time:
                message = f"{own.name} is read by two event times, so a row of it can be late twice"
                span = join.takers[0].statement.insert.target[-1].span if join.takers else None
                raise WJoinError("WJ623", message, span=span, help="read it by one, or make it two queries")
            if own.delay < known.delay:
                # What is late by a longer delay is late by a shorter one.
                found[sink][declared.name.lower()] = own
    return {sink: list(streams.values()) for sink, streams in found.items()}


def _rows(
    parts: Sequence[SetJoin],
    made: DataFrame,
    streams: Sequence[_LateStream],
    query: str,
    sink: Identifier,
) -> DataFrame:
    """Return the late rows of streams, with the columns of all of them. Raises WJoinError WJ623."""
    columns: dict[str, list[_Read]] = {}
    chosen: list[Column] = []
    for each in streams:
        part = each.part if PART in made.columns else None
        own = F.col(_named(LATE, part)) == each.number
        chosen.append(own if part is None else (F.col(PART) == part) & own)
        for read in _reads(parts[each.part], each.number, part):
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


def _reads(join: SetJoin, stream: int, part: int | None) -> Iterator[_Read]:
    stages = join.stages
    source = stages.inputs[stream].schema
    for place, column in enumerate(stages.plan.streams[stream].late):
        name = str(column.output)
        yield _Read(name, _named(late_name(stream, place), part), source[name].dataType)
    for name in (LATE_BY, MICRO_BATCH):
        yield _Read(name, _named(name, part), stages.schema[name].dataType)


def _named(name: str, part: int | None) -> str:
    return name if part is None else part_column(name, part)


def _first(found: Sequence[_Read]) -> Column:
    """Return the value of the stream that a row is of: in the columns of others it has NULL."""
    values = [restored_value(*each) for each in dict.fromkeys((each.made, each.kind) for each in found)]
    return (values[0] if len(values) == 1 else F.coalesce(*values)).alias(found[0].shown)
