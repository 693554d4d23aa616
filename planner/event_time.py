"""Which column of each stream is its event time, and how late its rows may come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import Identifier
from wjoin.planner.catalog import Column
from wjoin.planner.durations import duration_value
from wjoin.planner.names import Source, find_column
from wjoin.planner.physical import TimeKind
from wjoin.planner.time_columns import remedy_for_type, remedy_without_timestamp

_INTEGRAL = {"tinyint", "smallint", "int", "integer", "bigint", "byte", "short", "long"}


@dataclass(frozen=True)
class EventTime:
    """Event-time column and allowed disorder of a stream."""

    column: Column
    kind: TimeKind
    delay: int


def event_times(
    text: str, sources: Sequence[Source], parameters: Mapping[str, object]
) -> tuple[EventTime, ...]:
    """Return the event time of each source.

    A WATERMARK clause of the FROM item stands before the declaration of the relation, and that
    before the only timestamp column. Raises WJ202, WJ205 to WJ208 and the errors of durations.
    """
    times = tuple(_event_time(text, source, parameters) for source in sources)
    for source, time in zip(sources[1:], times[1:], strict=True):
        if time.kind is not times[0].kind:
            first = f"{sources[0].name}.{times[0].column.name} is {times[0].column.type}"
            message = f"{first}, but {source.name}.{time.column.name} is {time.column.type}"
            raise WJoinError("WJ208", message, span=source.item.span)
    return times


def _event_time(text: str, source: Source, parameters: Mapping[str, object]) -> EventTime:
    clause = source.item.watermark
    declared = source.relation.event_time
    if clause is not None:
        column = find_column(source, clause.column)
        span = clause.column.span
    elif declared is not None:
        column = find_column(source, Identifier(declared, source.item.span))
        span = source.item.span
    else:
        column = _only_timestamp(text, source)
        span = source.item.span
    kind = checked_kind(source.name, column, source.relation.columns, span)
    delay = source.relation.delay
    if clause is not None and clause.delay is not None:
        delay = duration_value(clause.delay, kind, parameters)
        if delay < 0:
            remedy = "give 0 or more"
            raise WJoinError("WJ110", "a delay cannot be negative", span=clause.delay.span, help=remedy)
    return EventTime(column, kind, delay)


def checked_kind(stream: str, column: Column, columns: Sequence[Column], span: Span) -> TimeKind:
    """Return the kind of event time that a column of a stream is. Raises WJ207 for one that is no time."""
    kind = time_kind(column.type)
    if kind is None:
        message = f"the event time {stream}.{column.name} is {column.type}"
        raise WJoinError("WJ207", message, span=span, help=remedy_for_type(column, columns))
    return kind


def time_kind(type_name: str) -> TimeKind | None:
    """Return the kind of event time that a column type can be, None for other types."""
    lowered = type_name.lower()
    if lowered in ("timestamp", "timestamp_ltz"):
        return TimeKind.TIMESTAMP
    if lowered == "timestamp_ntz":
        return TimeKind.TIMESTAMP_NTZ
    return TimeKind.INTEGRAL if lowered in _INTEGRAL else None


def _only_timestamp(text: str, source: Source) -> Column:
    timestamps = (TimeKind.TIMESTAMP, TimeKind.TIMESTAMP_NTZ)
    candidates = [column for column in source.relation.columns if time_kind(column.type) in timestamps]
    if len(candidates) == 1:
        return candidates[0]
    relation = source.item.relation.of(text) if source.item.parts else "(…)"
    if not candidates:
        message = f"{source.name} has no timestamp column"
        help = remedy_without_timestamp(source.relation.columns, relation, source.name)
        raise WJoinError("WJ205", message, span=source.item.span, help=help)
    names = ", ".join(column.name for column in candidates)
    message = f"{source.name} has several columns that may be its event time: {names}"
    help = f"name one: {relation} WATERMARK {candidates[0].name} DELAY OF INTERVAL 5 SECONDS AS {source.name}"
    raise WJoinError("WJ206", message, span=source.item.span, help=help)
