"""The method NATIVE: a chain of Spark's own joins of two, as an expert writes it by hand.

On streams a hint alone takes it: it is all that clients of Spark Connect 4.0 have, which know no operator for
wjoin's stages, and what those are measured against.

Spark allows one column with a watermark in the input of a join of streams. In a scan that is a
copy of the event time. What a join returns has the latest event time of each combination: it
is the row that completes a combination that is not late, so no combination is late for the next
join, however old its other rows are. The event times themselves go on as plain values.
"""

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wjoin.executor.spark.dated import dated_rows
from wjoin.executor.spark.lookup import HOW, bounds, joined_time, look_up, one_alternative
from wjoin.executor.spark.meter import RESULTS, Meter, rows_part
from wjoin.executor.spark.pack import KEEP
from wjoin.executor.spark.structs import structs
from wjoin.executor.spark.watermarks import WATERMARKED, unmoved, watermark_delay, watermarked
from wjoin.grammar.join_kinds import JoinKind
from wjoin.planner.choose.native_method import PairJoin, latest_bound, pair_joins, whole_seconds
from wjoin.planner.plan.block_columns import (
    MATCH_COLUMNS,
    code_name,
    column_name,
    event_time_expression,
    stored_column,
    time_name,
)
from wjoin.planner.plan.physical import Output, PhysicalPlan, TimeKind, windows_of
from wjoin.planner.plan.stage_kinds import Join, Joined, StageEdge


def native_rows(
    plan: PhysicalPlan,
    output: Output,
    inputs: Sequence[DataFrame],
    query: int,
    meter: Meter | None = None,
) -> DataFrame:
    """Return the joined rows of an output, as ``compile_plan`` does; ``meter`` counts over tables.

    Spark's progress tells what was dropped under the number ``query``.
    """
    if plan.kind is not JoinKind.INNER:
        return _outer_rows(plan, output, inputs, query, meter)
    scans = {stream: _scan(plan, stream, inputs[stream], query) for stream in plan.staged}
    if meter is not None:
        scans = {
            stream: meter.watch(rows_part(stream), rows, ["count(1) AS rows"])
            for stream, rows in scans.items()
        }
    parts = {frozenset([stream]): rows for stream, rows in scans.items()}
    for join in pair_joins(plan):
        left, right = parts.pop(frozenset(join.left)), parts.pop(frozenset(join.right))
        parts[frozenset(join.left + join.right)] = _joined(plan, join, left, right)
    (rows,) = parts.values()
    if output.windows and not plan.lookups:
        rows = rows.filter(F.expr(one_alternative(plan, output.windows)))
    if meter is not None:
        rows = meter.watch(RESULTS, rows, ["count(1) AS matches"])
    times = [F.col(joined_time(stream)) for stream in plan.staged]
    made = structs(plan, plan.staged_columns(output), lambda *each: F.col(_column(plan, *each)))
    rows = look_up(plan, output, rows.select(*made, *times), inputs, query)
    if plan.streaming and "time" in output.match:
        rows = rows.withMetadata(MATCH_COLUMNS["time"], watermarked(output.match_delay or 0))
    return rows


def _outer_rows(
    plan: PhysicalPlan, output: Output, inputs: Sequence[DataFrame], query: int, meter: Meter | None
) -> DataFrame:
    """Return the rows of joins of tables that are not all inner ones: all of ON is Spark's."""
    sides = {}
    for stream in plan.staged:
        scan = plan.streams[stream]
        rows = dated_rows(plan, stream, inputs[stream], query)
        for each in scan.filters:
            rows = rows.filter(F.expr(each))
        time = event_time_expression(scan)
        if plan.time_kind is TimeKind.INTEGRAL:
            time = f"CAST({time} AS BIGINT)"
        timed = rows.select("*", F.expr(time).alias(joined_time(stream)))
        if meter is not None:
            timed = meter.watch(rows_part(stream), timed, ["count(1) AS rows"])
        sides[stream] = timed.alias(scan.alias)
    joined = _tree(plan, output, sides)
    if meter is not None:
        joined = meter.watch(RESULTS, joined, ["count(1) AS matches"])

    def value(stream: int, number: int) -> Column:
        return F.expr(plan.streams[stream].columns[number].expression)

    made = structs(plan, plan.staged_columns(output), value)
    # The greatest of times passes over those that are not there.
    shown = min({*plan.staged} - plan.hidden)
    known = {stream: shown if stream in plan.hidden else stream for stream in plan.staged}
    times = [F.col(joined_time(own)).alias(joined_time(stream)) for stream, own in known.items()]
    return look_up(plan, output, joined.select(*made, *times), inputs, query)


def _tree(plan: PhysicalPlan, output: Output, sides: Mapping[int, DataFrame]) -> DataFrame:
    """Return the rows of joins of tables, each after those of its sides."""

    def made(source: StageEdge) -> DataFrame:
        if source.stage is None:
            return sides[source.members[0]]
        each = plan.stages[source.stage]
        if not isinstance(each, Join):
            raise AssertionError("the stages of a tree are joins")
        if not each.asked and each.kind is JoinKind.INNER:
            return _together(plan, each, sides)
        (first, second), (left, right) = zip(*((one.members, made(one)) for one in each.inputs), strict=True)
        conditions = [*each.on, *bounds(plan, windows_of(plan, each), first, second)]
        if each.alternatives:
            conditions.append(one_alternative(plan, each.alternatives))
        if output.windows:
            conditions.append(one_alternative(plan, output.windows))
        joined: DataFrame = left.join(right, F.expr(_all_of(conditions)), HOW[each.kind])
        return joined

    return made(StageEdge(Joined(len(plan.stages) - 1, ())))


def _together(plan: PhysicalPlan, last: Join, sides: Mapping[int, DataFrame]) -> DataFrame:
    """Return the rows of tables that inner joins link, the last of which is given, all at once."""
    members = last.members
    rows = sides[members[0]]
    for stream in members[1:]:
        rows = rows.crossJoin(sides[stream])
    joins = [each for each in plan.stages if isinstance(each, Join) and {*each.members} <= {*members}]
    asked = [condition for each in joins for condition in each.on]
    for place, stream in enumerate(members[1:], 1):
        asked += bounds(plan, windows_of(plan, last), members[:place], [stream])
    asked += [one_alternative(plan, each.alternatives) for each in joins if each.alternatives]
    return rows.filter(F.expr(_all_of(asked))) if asked else rows


def _all_of(conditions: Sequence[str]) -> str:
    return " AND ".join(f"({each})" for each in conditions) or "true"


def _latest(members: Sequence[int]) -> str:
    """Return the name of the column with a watermark of the rows of some streams."""
    return f"__wjoin_latest_{'_'.join(map(str, sorted(members)))}"


# Scans ----------------------------------------------------------------------


def _scan(plan: PhysicalPlan, stream: int, source: DataFrame, query: int) -> DataFrame:
    """Return the rows of a stream that can join: its event time, keys and columns."""
    scan = plan.streams[stream]
    time = event_time_expression(scan)
    rows = dated_rows(plan, stream, source, query)
    verdict = F.expr(" AND ".join(f"({each})" for each in scan.filters) or "true")
    own = F.expr(f"CAST({time} AS BIGINT)" if plan.time_kind is TimeKind.INTEGRAL else time)
    columns = [F.expr(expression).alias(name) for name, expression in _values(plan, stream)]
    if not plan.streaming:
        return rows.filter(verdict).select(own.alias(joined_time(stream)), *columns)
    latest = _latest([stream])
    dated = rows.select("*", own.alias(latest), verdict.alias(KEEP)).withWatermark(
        latest, watermark_delay(scan.delay)
    )
    # Rows that a filter removes still move the watermark.
    return dated.filter(unmoved(KEEP)).select(F.col(latest), own.alias(joined_time(stream)), *columns)


def _values(plan: PhysicalPlan, stream: int) -> Iterator[tuple[str, str]]:
    """Yield name and expression of the keys and columns of a stream, each value once."""
    scan = plan.streams[stream]
    for number, column in enumerate(scan.columns):
        if not stored_column(plan, stream, number).restored:
            yield column_name(stream, number), column.expression
    for number, code in enumerate(scan.codes):
        if not code.verify:
            yield from zip(_key(plan, (stream, number)), code.expressions, strict=True)


def _key(plan: PhysicalPlan, key: tuple[int, int]) -> list[str]:
    """Return the columns of the parts of a key."""
    stream, number = key
    code = plan.streams[stream].codes[number]
    if code.exact:
        return [code_name(stream, number)]
    if code.verify:
        return [_column(plan, stream, each) for each in code.verify]
    return [f"{code_name(stream, number)}_{part}" for part in range(len(code.expressions))]


def _column(plan: PhysicalPlan, stream: int, number: int) -> str:
    """Return the column that holds a scan column's value."""
    name = stored_column(plan, stream, number).name
    return joined_time(stream) if name == time_name(stream) else name


# Joins ----------------------------------------------------------------------


def _joined(plan: PhysicalPlan, join: PairJoin, left: DataFrame, right: DataFrame) -> DataFrame:
    conditions = list(_conditions(plan, join)) or ["true"]
    rows = left.join(right, F.expr(" AND ".join(conditions)))
    if not plan.streaming:
        return rows
    both = [_latest(join.left), _latest(join.right)]
    latest = F.greatest(*both).alias(_latest(join.left + join.right), metadata=WATERMARKED)
    return rows.select("*", latest).drop(*both)


def _conditions(plan: PhysicalPlan, join: PairJoin) -> Iterator[str]:
    if join.keys is not None:
        pairs = zip(*(_key(plan, key) for key in join.keys), strict=True)
        yield from (f"{first} = {second}" for first, second in pairs)
    if not plan.streaming:
        yield from _checks(plan, join)
        return
    yield from _ranges(plan, join)
    # In one expression: Spark looks for a time range in each comparison, and logs those without one.
    checks = " AND ".join(_checks(plan, join)) or "true"
    yield f"coalesce({checks}, false)"


def _checks(plan: PhysicalPlan, join: PairJoin) -> Iterator[str]:
    yield from bounds(plan, plan.windows, join.left, join.right)
    for each in join.comparisons:
        first, second = (_column(plan, *operand) for operand in (each.left, each.right))
        yield f"{first} {each.operator} {second}"


def _ranges(plan: PhysicalPlan, join: PairJoin) -> Iterator[str]:
    """Yield the conditions by which Spark drops state: implied by the bounds, in whole seconds.

    As numbers: Spark adds the days of an interval in local time, with the change of the clock in it.
    """
    for first, second in ((join.left, join.right), (join.right, join.left)):
        bound = latest_bound(plan.windows, first, second)
        if bound is not None:
            earlier, later = (f"CAST({_latest(each)} AS BIGINT)" for each in (first, second))
            yield f"{later} <= {earlier} + ({whole_seconds(bound)})"
