"""Statistics of streams in a session: given, analyzed, measured; and the statements about them."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from wjoin.context import Asked, Context
from wjoin.executor.arrival_order import rounded_up
from wjoin.executor.spark.analyze import Profile, analyze
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.statement_kinds import AlterStream, AnalyzeStream, StatisticEntry
from wjoin.grammar.suggestions import suggestion
from wjoin.joins.relations import event_time, kind_of, stream_fields
from wjoin.planner.catalog import Origin
from wjoin.planner.cost.stream_statistics import statistic_unit, units_per_second
from wjoin.planner.plan.block_columns import quoted
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.windows.lengths import duration_value
from wjoin.sources.catalog import StreamDeclaration, find
from wjoin.spark.spark_failures import RAISED_BY_SPARK, cause

_COUNTABLE = (
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "string",
    "date",
    "timestamp",
    "timestamp_ntz",
    "boolean",
)
"""Types of columns whose values ANALYZE counts; keys are mostly of these."""

_MEASURED = ("float", "double", "decimal")
"""Types of columns of which ANALYZE tells the least and the greatest value only."""


def alter_stream(asked: Asked, statement: AlterStream) -> DataFrame:
    """Take the statistics that a user gives, or forget all that is known; return what is known then."""
    catalog, name = asked.catalog, statement.name
    stream = find(catalog.streams, "stream", name.name, name.span)
    if statement.statistics is None:
        catalog.statistics.pop(stream.name.lower(), None)
        return _known(asked, stream.name)
    fields = stream_fields(asked.engine.spark, stream)
    kind = _kind(stream, fields)
    values = {_key(entry, fields): _value(entry, kind, asked.params) for entry in statement.statistics}
    catalog.learn(stream.name, Origin.GIVEN, values)
    return _known(asked, stream.name)


def analyze_stream(asked: Asked, statement: AnalyzeStream) -> DataFrame:
    """Read what a stream's source holds; return what was found, a row for each statistic.

    Raises WJoinError WJ202 for a column that the stream has not, and WJ604 where it cannot be read.
    """
    spark, name = asked.engine.spark, statement.name
    stream = find(asked.catalog.streams, "stream", name.name, name.span)
    fields = stream_fields(spark, stream)
    time, _ = event_time(stream, fields)
    columns = [each for each, type_name in fields.items() if type_name in _COUNTABLE and each != time]
    measures = [each for each, type_name in fields.items() if type_name.startswith(_MEASURED)]
    try:
        frame = spark.table(quoted(stream.name)) if stream.rows is None else stream.rows
        by = _by(stream, statement, fields)
        profile = analyze(frame, time, columns, measures, statement.sample, by)
    except RAISED_BY_SPARK as error:
        message = f"the stream {stream.name} cannot be read: {cause(error)}"
        raise WJoinError("WJ604", message, span=statement.span) from error
    found = _found(profile, _kind(stream, fields), whole=statement.sample is None)
    asked.catalog.learn(stream.name, Origin.ANALYZED, found)
    unordered = frame.isStreaming and profile.span is not None and profile.disorder is None
    return _known(
        asked, stream.name, ("disorder",) if unordered else (), _proposed(stream, time, profile.disorder)
    )


def _proposed(stream: StreamDeclaration, time: str | None, disorder: float | None) -> int | None:
    """Return a delay, of two digits, by which no row is late; None where the declared one is enough."""
    declared = stream.delays.get((time or "").lower())
    own = (declared.value or 0) if declared is not None and declared.declared else 0
    if disorder is None or disorder <= own:
        return None
    return int(rounded_up(np.array([math.ceil(disorder)], np.uint64))[0])


def _by(stream: StreamDeclaration, statement: AnalyzeStream, fields: dict[str, str]) -> str | None:
    """Return the column by whose values rows live at nodes, None where nothing says it."""
    if statement.by is None:
        return stream.home or None
    found = next((each for each in fields if each.lower() == statement.by.name.lower()), None)
    if found is None:
        remedy = suggestion(statement.by.name, fields) or f"it has {', '.join(fields)}"
        message = f"the stream {stream.name} has no column {statement.by.name}"
        raise WJoinError("WJ202", message, span=statement.by.span, help=remedy)
    return found


def _kind(stream: StreamDeclaration, fields: dict[str, str]) -> TimeKind:
    return kind_of(event_time(stream, fields)[0], fields)


def _known(
    context: Context, stream: str, unknown: Sequence[str] = (), proposed: int | None = None
) -> DataFrame:
    """Return what is known of a stream: statistic, value, unit and source.

    Those that were looked for and are ``unknown`` have no value. ``proposed``: a delay, None for none.
    """
    known, declared, kind = context.catalog.known(stream), context.catalog.stream(stream), TimeKind.TIMESTAMP
    if declared is not None:
        kind = _kind(declared, stream_fields(context.engine.spark, declared))
    rows: list[tuple[str, float | None, str, str]] = []
    for name, each in known.items():
        scale = units_per_second(kind) if name == "disorder" else 1
        rows.append((name, each.value / scale, statistic_unit(name, kind), each.origin.value))
    rows += [(name, None, statistic_unit(name, kind), "unknown") for name in unknown if name not in known]
    if proposed is not None:
        rows.append(
            ("delay", proposed / units_per_second(kind), statistic_unit("disorder", kind), "proposed")
        )
    schema = "statistic STRING, value DOUBLE, unit STRING, source STRING"
    return context.engine.rows(sorted(rows), schema)


def _key(entry: StatisticEntry, fields: dict[str, str]) -> str:
    if not entry.column:
        return entry.name
    first = entry.column[0]
    if first.name.lower() not in map(str.lower, fields):
        remedy = suggestion(first.name, fields) or f"it has {', '.join(fields)}"
        raise WJoinError("WJ202", f"the stream has no column {first.name}", span=first.span, help=remedy)
    return f"{entry.name}.{'.'.join(part.name.lower() for part in entry.column)}"


def _value(entry: StatisticEntry, kind: TimeKind, params: dict[str, Any]) -> float:
    if isinstance(entry.value, float):
        return entry.value
    return float(duration_value(entry.value, kind, params))


def _found(profile: Profile, kind: TimeKind, *, whole: bool) -> dict[str, float]:
    """Return the statistics that a profile tells; ``whole`` where all rows were read."""
    values: dict[str, float] = {}
    if profile.rows == 0:
        return values
    values["width"] = profile.width
    if profile.disorder is not None:
        values["disorder"] = profile.disorder
    if whole:
        values["rows"] = float(profile.rows)
        # The rows of a sample may be those of one file or partition of many: they tell no rate.
        if profile.span:
            values["rate"] = profile.rows / profile.span * units_per_second(kind)
    for column, count in profile.distinct.items():
        values[f"distinct.{column.lower()}"] = count
        values[f"heaviest.{column.lower()}"] = max(profile.heaviest[column], 1 / count)
    values |= {f"local.{column.lower()}": share for column, share in profile.local.items()}
    values |= {f"bucket.{column.lower()}": float(bucket) for column, bucket in profile.buckets.items()}
    for column, (least, greatest) in profile.ranges.items():
        values[f"minimum.{column.lower()}"] = least
        values[f"maximum.{column.lower()}"] = greatest
    return values
