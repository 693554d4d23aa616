"""The columns of a block, by name.

``t0`` is the event time of stream 0 (int64), ``k0_1`` its key code 1 (int64), ``c0_2`` its
scan column 2, ``r0`` the number of its row that has begun partial results (int64); ``l0_1`` is column 1
of those of a late row, and ``n0`` what is told of the rows that window of rows 0 counts. A scan column
that equals the event time or an exact 64-bit code is not stored twice: it is restored from that
column when the result leaves the join.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from wjoin.parts.kernels.runs import GREATEST
from wjoin.planner.plan.physical import PhysicalPlan, StreamScan, TimeKind
from wjoin.planner.plan.stage_kinds import Pairs, StageEdge

MATCH_COLUMNS = {what: f"__wjoin_match_{what}" for what in ("time", "start", "span")}
"""The columns of joined rows for the match functions that a statement uses."""
_RESTORABLE = {"bigint", "timestamp", "timestamp_ntz"}


def time_name(stream: int) -> str:
    """Return the name of a stream's event-time column in a block."""
    return f"t{stream}"


def code_name(stream: int, code: int) -> str:
    """Return the name of a stream's key code in a block."""
    return f"k{stream}_{code}"


def row_name(stream: int) -> str:
    """Return the name of the number of a stream's row in a block of partial results."""
    return f"r{stream}"


def meeting_name(each: StageEdge) -> str | None:
    """Return the name of the block column on which the rows of an input meet others, None where on none."""
    if isinstance(each.source, Pairs):
        return row_name(each.source.begun_by)
    return None if each.key is None else code_name(*each.key)


def column_name(stream: int, column: int) -> str:
    """Return the name of a stream's scan column in a block."""
    return f"c{stream}_{column}"


def late_name(stream: int, column: int) -> str:
    """Return the name of a column of a stream's late rows in a block."""
    return f"l{stream}_{column}"


def counted_name(window: int, place: int | None = None) -> str:
    """Return the name of a column that is read of the rows that a window counts: of what is told of them.

    Without a ``place`` whether a row counts, else that part of its key (``counting.key_parts``).
    """
    return f"n{window}" if place is None else f"n{window}_{place}"


@dataclass(frozen=True)
class StoredColumn:
    """Where a scan column is found in a block: the block's column and, when restored, its type."""

    name: str
    restored: bool


def stored_column(plan: PhysicalPlan, stream: int, column: int) -> StoredColumn:
    """Return where scan column ``column`` of ``stream`` is found in a block."""
    scan = plan.streams[stream]
    wanted = scan.columns[column]
    if wanted.type in _RESTORABLE:
        if _same(wanted.expression, event_time_expression(scan)):
            return StoredColumn(time_name(stream), True)
        for number, code in enumerate(scan.codes):
            if number == scan.home:
                # On its way it becomes a mark of what a row visits.
                continue
            if code.exact and code.types == (wanted.type,) and _same(code.expressions[0], wanted.expression):
                return StoredColumn(code_name(stream, number), True)
    return StoredColumn(column_name(stream, column), False)


MICROSECONDS = {
    TimeKind.INTEGRAL: "CAST({} AS BIGINT)",
    TimeKind.TIMESTAMP: "unix_micros({})",
    # Spark tells them of a timestamp with a time zone only.
    TimeKind.TIMESTAMP_NTZ: "unix_micros(from_utc_timestamp(CAST({} AS TIMESTAMP), current_timezone()))",
}
"""The Spark expression of an event time as a number, by its kind: microseconds, its own unit if integral."""


def match_expression(kind: TimeKind, match: str, times: Sequence[str]) -> str:
    """Return the Spark expression of a match function, ``time``, ``start`` or ``span``, of some event times.

    >>> match_expression(TimeKind.INTEGRAL, "time", ["A.n", "B.n"])
    'greatest(A.n, B.n)'
    """
    listed = ", ".join(times if len(times) > 1 else [*times] * 2)
    latest, earliest = f"greatest({listed})", f"least({listed})"
    if match != "span":
        return latest if match == "time" else earliest
    if kind is TimeKind.TIMESTAMP:
        # A difference of timestamps is one of local times in Spark, a change of the clock in it.
        span = f"try_subtract(unix_micros({latest}), unix_micros({earliest}))"
        return f"coalesce({span}, {GREATEST}) * INTERVAL '0.000001' SECOND"
    if kind is TimeKind.INTEGRAL:
        return f"coalesce(try_subtract({latest}, {earliest}), {GREATEST})"
    return f"{latest} - {earliest}"


def event_time_expression(scan: StreamScan) -> str:
    """Return the Spark expression of a scan's event time."""
    return f"{quoted(scan.alias)}.{quoted(scan.event_time)}"


def quoted(name: str) -> str:
    """Return a name as a quoted Spark identifier."""
    return "`" + name.replace("`", "``") + "`"


def _same(first: str, second: str) -> bool:
    return first.replace("`", "").lower() == second.replace("`", "").lower()
