"""Joins with static relations: Spark's own joins, after the stages.

A static relation gets no new rows, so these joins keep no state, and a result is still emitted
in the micro-batch in which its last streaming row arrives.
"""

from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from wjoin.executor.spark.dated import dated_rows
from wjoin.executor.spark.structs import structs
from wjoin.grammar.join_kinds import JoinKind
from wjoin.planner.plan.block_columns import MATCH_COLUMNS, event_time_expression, match_expression, quoted
from wjoin.planner.plan.physical import Output, PhysicalPlan, StaticJoin, TimeKind
from wjoin.planner.plan.probes import window_checks
from wjoin.planner.windows.bounds import Windows

HOW = {
    JoinKind.INNER: "inner",
    JoinKind.LEFT: "left_outer",
    JoinKind.RIGHT: "right_outer",
    JoinKind.FULL: "full_outer",
    JoinKind.SEMI: "left_semi",
    JoinKind.ANTI: "left_anti",
}
"""What Spark calls the kinds of joins."""


def joined_time(stream: int) -> str:
    """Return the name of a stream's event time in rows that static relations are joined to."""
    return f"__wjoin_time_{stream}"


def relation_rows(
    plan: PhysicalPlan, output: Output, stream: int, source: DataFrame, query: int
) -> DataFrame:
    """Return the filtered rows of a relation that no stage reads: its struct and its event time.

    They are those of ``dated_rows``, all of a table that has no event time.
    """
    scan = plan.streams[stream]
    time = event_time_expression(scan) if scan.dated else "CAST(NULL AS BOOLEAN)"
    rows = dated_rows(plan, stream, source, query) if scan.dated else source.alias(scan.alias)
    for each in scan.filters:
        rows = rows.filter(F.expr(each))
    # Of a relation that a SEMI or ANTI JOIN joins no column is one of the output.
    columns = [(stream, number) for number, each in enumerate(scan.columns) if each.output is not None]
    made = structs(plan, columns, lambda stream, number: F.expr(scan.columns[number].expression))
    if scan.dated and plan.time_kind is TimeKind.INTEGRAL:
        time = f"CAST({time} AS BIGINT)"
    return rows.select(*made, F.expr(time).alias(joined_time(stream)))


def look_up(
    plan: PhysicalPlan, output: Output, rows: DataFrame, inputs: Sequence[DataFrame], query: int
) -> DataFrame:
    """Return the rows joined with every static relation: a struct for each stream, and the match columns.

    ``rows`` has the structs and event times of the other streams.
    """
    joined = list(plan.staged)
    for join in plan.lookups:
        right = relation_rows(plan, output, join.stream, inputs[join.stream], query)
        conditions = [f"({each})" for each in _conditions(plan, output, join, joined)] or ["true"]
        if join.kind is not JoinKind.INNER and not join.equalities:
            # Spark must find no equality in it, which it would look up in a broadcast hash table.
            conditions = [f"coalesce({' AND '.join(conditions)}, false)"]
        if plan.streaming:
            # The stages must be read once and to their end, or their state is not committed. Spark
            # stops reading beside an empty broadcast hash table, and reads one side of a Cartesian
            # product again and again.
            right = right.hint("shuffle_hash" if join.equalities else "broadcast")
        rows = rows.join(right, F.expr(" AND ".join(conditions)), HOW[join.kind])
        if not join.kind.one_sided:
            joined.append(join.stream)
    shown = dict.fromkeys(plan.streams[stream].alias for stream, _ in output.columns)
    joined_structs = [F.col(quoted(name)) for name in shown]
    matches = [F.expr(_match(plan, each, joined)).alias(MATCH_COLUMNS[each]) for each in sorted(output.match)]
    return rows.select(*(joined_structs + matches or [F.lit(None).cast("boolean").alias("rows")]))


def _conditions(plan: PhysicalPlan, output: Output, join: StaticJoin, joined: Sequence[int]) -> Iterator[str]:
    yield from join.equalities
    yield from join.comparisons
    yield from bounds(plan, join.windows or plan.windows, [join.stream], joined)
    if join.alternatives:
        yield one_alternative(plan, join.alternatives)
    if output.windows and join.windows is None and join is plan.lookups[-1]:
        yield one_alternative(plan, output.windows)


def one_alternative(plan: PhysicalPlan, alternatives: Sequence[Windows]) -> str:
    """Return the condition on rows with all event times that one alternative holds as a whole."""
    streams = range(len(plan.streams))
    branches = (" AND ".join(bounds(plan, branch, streams, streams)) for branch in alternatives)
    return " OR ".join(f"({each})" for each in branches)


def bounds(
    plan: PhysicalPlan, windows: Windows, streams: Sequence[int], others: Sequence[int]
) -> Iterator[str]:
    """Yield the bounds between streams and others, each once, as conditions on their event times."""
    checks = window_checks(windows, streams, others)
    for each in sorted(checks, key=lambda check: (check.first, check.second)):
        yield _bound(plan.time_kind, joined_time(each.first), joined_time(each.second), each.upper)


def _bound(kind: TimeKind, first: str, second: str, bound: int) -> str:
    """Return ``second - first <= bound`` in SQL, exact in every time zone."""
    if kind is TimeKind.TIMESTAMP:
        # The sum of a time at the ends of 64 bits may not be one; then it is beyond all times.
        beyond = f"{first} IS NOT NULL AND {second} IS NOT NULL" if bound > 0 else "false"
        return f"coalesce(unix_micros({second}) <= try_add(unix_micros({first}), {bound}), {beyond})"
    if kind is TimeKind.TIMESTAMP_NTZ:
        seconds, rest = divmod(abs(bound), 1_000_000)
        sign = "-" if bound < 0 else ""
        return f"{second} - {first} <= INTERVAL '{sign}{seconds}.{rest:06d}' SECOND"
    # The difference of two BIGINT may not be one.
    return f"CAST({second} AS DECIMAL(20, 0)) - CAST({first} AS DECIMAL(20, 0)) <= {bound}"


def _match(plan: PhysicalPlan, match: str, joined: Sequence[int]) -> str:
    times = [joined_time(stream) for stream in sorted(joined) if plan.streams[stream].dated]
    return match_expression(plan.time_kind, match, times)
