"""Which column of each stream is its event time, and how late its rows may come."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import Identifier, WindowCondition
from wjoin.grammar.window_terms import names_in_window
from wjoin.planner.bind.time_columns import convertible, remedy_for_type, remedy_without_timestamp
from wjoin.planner.catalog import Column
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.text.scope import ScopeItem, find_column
from wjoin.planner.windows.lengths import duration_value, human

_TIMESTAMPS = (TimeKind.TIMESTAMP, TimeKind.TIMESTAMP_NTZ)
_INTEGRAL = {"tinyint", "smallint", "int", "integer", "bigint", "byte", "short", "long"}


@dataclass(frozen=True)
class EventTime:
    """Event-time column and allowed disorder of a stream; ``declared`` where somebody has told that.

    ``ahead``, ``shedding`` and ``idle_after`` are those of its ``Delay``.
    """

    column: Column
    kind: TimeKind
    delay: int
    declared: bool
    ahead: int | None = None
    shedding: str | None = None
    idle_after: int | None = None


EventTimes = tuple[EventTime | None, ...]
"""The event time of each source, None for a table that has none: it is in no window."""


def event_times(
    text: str,
    sources: Sequence[ScopeItem],
    parameters: Mapping[str, object],
    window: WindowCondition | None,
    those: frozenset[int] | None = None,
) -> EventTimes:
    """Return the event time of each source, of ``those`` that have one where that is known.

    A WATERMARK clause of the FROM item stands before the declaration of the relation, and that
    before the only timestamp column. A table without any of these that no window names has none, where two
    others have one. Raises WJ202, WJ205 to WJ208 and the errors of durations.
    """
    named = None if window is None else names_in_window(window)
    timeless = {each.number for each in sources if _is_timeless(each, named)}
    if len(sources) - len(timeless) < 2:
        timeless = set()
    if those is not None:
        timeless = {each.number for each in sources if each.number not in those}
    times = tuple(
        None if source.number in timeless else _dated(text, source, parameters, others=len(sources) - 1)
        for source in sources
    )
    dated = [(source, time) for source, time in zip(sources, times, strict=True) if time is not None]
    first, begun = dated[0]
    for source, time in dated[1:]:
        if time.kind is not begun.kind:
            shown = f"{first.name}.{begun.column.name} is {begun.column.type}"
            message = f"{shown}, but {source.name}.{time.column.name} is {time.column.type}"
            raise WJoinError("WJ208", message, span=source.item.span)
    return times


def _dated(text: str, source: ScopeItem, parameters: Mapping[str, object], others: int) -> EventTime:
    """Return the event time of a source; for a table beside several others errors say how it needs none."""
    try:
        return _event_time(text, source, parameters)
    except WJoinError as error:
        if error.code not in ("WJ205", "WJ206") or source.relation.streaming or others < 2:
            raise
        remedy = "without an event time it can be joined if the windows name only other streams"
        if error.code == "WJ206":
            remedy = "or put it into a subquery without these columns"
        raise WJoinError(error.code, error.message, span=error.span, help=f"{error.help}; {remedy}") from None


def _is_timeless(source: ScopeItem, named: Collection[str] | None) -> bool:
    """Return whether a source is a table that no window can be about; ``named`` are those that windows name.

    None: a window names all. A column that may be meant as event time then keeps it from being one.
    """
    relation = source.relation
    if relation.streaming or relation.event_time is not None or source.item.watermark is not None:
        return False
    if relation.derived and len(relation.delays) == 1:
        return False
    if any(time_kind(column.type) in _TIMESTAMPS for column in relation.columns):
        return False
    if named is None:
        return not convertible(relation.columns)
    return source.name.lower() not in named


def _event_time(text: str, source: ScopeItem, parameters: Mapping[str, object]) -> EventTime:
    clause = source.item.watermark
    declared = source.relation.event_time
    if clause is not None:
        column = find_column(source, clause.column)
        span = clause.column.span
    elif declared is not None:
        column = find_column(source, Identifier(declared, span=source.item.span))
        span = source.item.span
    else:
        column = _only_timestamp(text, source)
        span = source.item.span
    kind = checked_kind(source.name, column, source.relation.columns, span)
    known = source.relation.delay(column.name)
    told = (None,) * 3 if known is None else (known.ahead, known.shedding, known.idle_after)
    if clause is not None and clause.delay is not None:
        delay = duration_value(clause.delay, kind, parameters)
        if delay < 0:
            remedy = "give 0 or more"
            raise WJoinError("WJ110", "a delay cannot be negative", span=clause.delay.span, help=remedy)
        return EventTime(column, kind, delay, True, *told)
    if known is not None and known.value is not None:
        return EventTime(column, kind, known.value, known.declared, *told)
    if not source.relation.streaming:
        # Nothing is late there.
        return EventTime(column, kind, 0, True)
    reason = "is not bounded"
    if known is None:
        reason = "is unknown: a delay applies only to the unchanged event-time column"
    raise WJoinError(
        "WJ215",
        f"the delay of {source.name} by {column.name} {reason}",
        span=span,
        help=f"say it: {watermark_clause(text, source, column.name, kind)}",
    )


def undated(sources: Sequence[ScopeItem], times: Sequence[EventTime | None]) -> str:
    """Return why MATCH_TIME cannot go by the watermarks that Spark has of some inputs; empty where it can.

    A result is completed by a row that is not late on its own stream. Spark's watermark is the least of
    all its inputs', so no result is late for it where no stream allows more disorder than it has there.
    """
    for source, time in zip(sources, times, strict=True):
        relation = source.relation
        if time is None or not relation.watermark:
            continue
        own = relation.watermarks.get(time.column.name.lower())
        if own is None:
            return f"{source.name} has a Spark watermark, but not on {time.column.name}"
        if time.delay > own:
            allowed, delay = human(own, time.kind), human(time.delay, time.kind)
            return f"{source.name} has a Spark watermark of {allowed} and a delay of {delay}"
    return ""


def watermark_clause(text: str, source: ScopeItem, column: str, kind: TimeKind) -> str:
    """Return a FROM item with the clause that names its event time and delay, as an example."""
    relation = source.item.relation.of(text) if source.item.parts else "(…)"
    delay = "5" if kind is TimeKind.INTEGRAL else "INTERVAL 5 SECONDS"
    return f"{relation} WATERMARK {column} DELAY OF {delay} AS {source.name}"


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


def _only_timestamp(text: str, source: ScopeItem) -> Column:
    candidates = [column for column in source.relation.columns if time_kind(column.type) in _TIMESTAMPS]
    if len(candidates) == 1:
        return candidates[0]
    if not candidates and source.relation.derived and len(source.relation.delays) == 1:
        # The event time of the stream that it is made from is a whole number.
        (only,) = source.relation.delays
        return find_column(source, Identifier(only, span=source.item.span))
    if not candidates:
        relation = source.item.relation.of(text) if source.item.parts else "(…)"
        message = f"{source.name} has no timestamp column"
        help = remedy_without_timestamp(source.relation.columns, relation, source.name)
        raise WJoinError("WJ205", message, span=source.item.span, help=help)
    names = ", ".join(column.name for column in candidates)
    message = f"{source.name} has several columns that may be its event time: {names}"
    help = f"name one: {watermark_clause(text, source, candidates[0].name, TimeKind.TIMESTAMP)}"
    raise WJoinError("WJ206", message, span=source.item.span, help=help)
