"""Physical plan to DataFrame: pack, join stages, unpack (DESIGN §3). Lazy; no JVM access."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DayTimeIntervalType,
    LongType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from wjoin.executor.layout import (
    code_name,
    column_name,
    event_time_expression,
    quoted,
    stored_column,
    time_name,
)
from wjoin.executor.route import worker_ids
from wjoin.executor.spark.lookup import joined_time, look_up, relation_rows
from wjoin.executor.spark.meter import Meter, rows_part, stage_part
from wjoin.executor.spark.native import WATERMARKED, native_rows, watermark_delay
from wjoin.executor.spark.observe import observed, work_counts
from wjoin.executor.spark.operator import Destination, JoinProcessor, Operator
from wjoin.executor.spark.pack import KEEP, Pack
from wjoin.executor.spark.transport import TRANSPORT
from wjoin.executor.spark.typing import KEY_TYPES, typed
from wjoin.executor.spark.unpack import MATCH_COLUMNS, Unpack, output_columns
from wjoin.executor.state.identity import fingerprint, worker_count
from wjoin.executor.step import StageLogic
from wjoin.planner.physical import (
    KeyCode,
    Method,
    PhysicalPlan,
    Stage,
    StreamScan,
    TimeKind,
)

_HASH_BITS = 0xFFFFFFFF
"""Hashed codes are 32 bits wide: (code, time) then mostly fits one 64-bit sort key. Keys are verified."""

_TIME_TYPES: dict[TimeKind, DataType] = {
    TimeKind.TIMESTAMP: TimestampType(),
    TimeKind.TIMESTAMP_NTZ: TimestampNTZType(),
    TimeKind.INTEGRAL: LongType(),
}

_query_numbers = itertools.count()


def query_number() -> int:
    """Return a number under which no plan has been compiled yet."""
    return next(_query_numbers)


@dataclass(frozen=True)
class Counting:
    """What is counted of a plan while it runs.

    Spark's progress tells a stream's counts under the number ``query`` (see ``observe``); where
    ``measured``, also what the statistics of its streams follow from, which Spark must plan in
    every micro-batch. ``meter`` counts what a plan over tables does.
    """

    query: int = field(default_factory=query_number)
    measured: bool = False
    meter: Meter | None = None


def compile_plan(
    plan: PhysicalPlan, inputs: Sequence[DataFrame], counting: Counting | None = None
) -> DataFrame:
    """Return the joined rows of a plan over its streams' DataFrames, in FROM order.

    One STRUCT column for each stream that has output columns, named by its alias, and the
    match columns that the plan asks for. A streaming DataFrame when the inputs stream.
    """
    counting = counting or Counting()
    meter = None if plan.streaming else counting.meter
    spark = inputs[0].sparkSession
    partitions = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    workers = [_workers(stage, partitions) for stage in plan.stages]
    if not plan.stages:
        only = plan.staged[0]
        return _dated(plan, look_up(plan, relation_rows(plan, only, inputs[only]), inputs))
    if plan.method is Method.NATIVE:
        return native_rows(plan, inputs, meter)
    scans = {number: _scan(plan, number, inputs[number]) for number in plan.staged}
    if meter is not None:
        scans = {
            number: meter.watch(rows_part(number), rows, [f"count({time_name(number)}) AS rows"])
            for number, rows in scans.items()
        }
    results: list[DataFrame] = []
    for number, stage in enumerate(plan.stages):
        arriving = []
        for place, each in enumerate(stage.inputs):
            if each.stage is not None:
                arriving.append(results[each.stage])
                continue
            pack = Pack(plan, each.members[0], place, each, workers[number], plan.streaming)
            arriving.append(scans[each.members[0]].mapInArrow(pack.__call__, TRANSPORT))
        operator = Operator(
            StageLogic(plan, number),
            workers[number],
            _destination(plan, number, workers),
            fingerprint(plan, stage),
        )
        results.append(_run(plan, operator, arriving, counting))
    rows = _unpacked(plan, results[-1], inputs)
    return _dated(plan, look_up(plan, rows, inputs)) if plan.lookups else rows


def _workers(stage: Stage, partitions: int) -> tuple[int, ...]:
    return worker_ids(partitions)[: worker_count(stage, partitions)]


def _scan(plan: PhysicalPlan, number: int, source: DataFrame) -> DataFrame:
    """Return what the pack of a stream reads: event time, the filter's verdict, codes, columns."""
    scan = plan.streams[number]
    if _is_dated(plan) and plan.watermarked and not plan.undated and number not in plan.watermarked:
        # MATCH_TIME goes by the watermarks of the inputs, so each must have one.
        source = source.withWatermark(quoted(scan.event_time), watermark_delay(scan.delay))
    rows = source.alias(scan.alias)
    time = F.expr(_time(scan, plan.time_kind)).alias(time_name(number))
    values = [(code_name(number, n), F.expr(_code(code))) for n, code in enumerate(scan.codes)]
    types: dict[str, DataType | None] = {time_name(number): _TIME_TYPES[plan.time_kind]}
    for n, code in enumerate(scan.codes):
        types[code_name(number, n)] = KEY_TYPES.get(code.types[0]) if code.exact else LongType()
    for place, column in enumerate(scan.columns):
        if not stored_column(plan, number, place).restored:
            name = column_name(number, place)
            values.append((name, F.expr(column.expression)))
            known = None if column.output is None else source.schema[column.output].dataType
            types[name] = known or KEY_TYPES.get(column.type)
    if not scan.filters:
        return typed(rows.select(time, *(value.alias(name) for name, value in values)), types)
    verdict = F.expr(" AND ".join(f"({each})" for each in scan.filters))
    if not plan.streaming:
        remaining = rows.filter(verdict)
        return typed(remaining.select(time, *(value.alias(name) for name, value in values)), types)
    # Rows that a filter removes still move the stream's watermark. Nothing else of them is
    # evaluated: an expression may fail on just the rows that the filter is there to remove.
    judged = rows.select("*", verdict.alias(KEEP))
    kept = F.col(KEEP)
    hidden = (F.when(kept, value).alias(name) for name, value in values)
    return typed(judged.select(time, *hidden, kept), {**types, KEEP: BooleanType()})


def _time(scan: StreamScan, kind: TimeKind) -> str:
    expression = event_time_expression(scan)
    return f"CAST({expression} AS BIGINT)" if kind is TimeKind.INTEGRAL else expression


def _code(code: KeyCode) -> str:
    if code.exact:
        return code.expressions[0]
    known = " AND ".join(f"({each}) IS NOT NULL" for each in code.expressions)
    return f"CASE WHEN {known} THEN xxhash64({', '.join(code.expressions)}) & {_HASH_BITS}L END"


def _destination(plan: PhysicalPlan, number: int, workers: list[tuple[int, ...]]) -> Destination | None:
    for later in range(number + 1, len(plan.stages)):
        for place, each in enumerate(plan.stages[later].inputs):
            if each.stage == number:
                return Destination(place, each, workers[later])
    return None


def _run(plan: PhysicalPlan, operator: Operator, arriving: list[DataFrame], counting: Counting) -> DataFrame:
    blocks = arriving[0]
    for other in arriving[1:]:
        blocks = blocks.union(other)
    grouped = blocks.groupBy("worker")
    if not plan.streaming:
        # A plain function of one argument: Spark would count self of a method.
        joined = grouped.applyInArrow(lambda group: operator.batch(group), TRANSPORT)
        part = stage_part(operator.logic.number)
        return joined if counting.meter is None else counting.meter.watch(part, joined, work_counts())
    joined = grouped.transformWithStateInPandas(JoinProcessor(operator), TRANSPORT, "append", "none")
    counted = observed(plan, operator.logic.number, joined, counting.query, counting.measured)
    return typed(counted, {each.name: each.dataType for each in TRANSPORT})


def _unpacked(plan: PhysicalPlan, joined: DataFrame, inputs: Sequence[DataFrame]) -> DataFrame:
    fields = []
    for stream, number, name in output_columns(plan):
        # An output is a column of the relation, whose schema is known: nothing is left to analyse.
        column = str(plan.streams[stream].columns[number].output)
        fields.append(StructField(name, inputs[stream].schema[column].dataType))
    times = plan.staged if plan.lookups else ()
    fields += [StructField(time_name(stream), _TIME_TYPES[plan.time_kind]) for stream in times]
    matches = [] if plan.lookups else sorted(plan.match)
    for match in matches:
        span = match == "span" and plan.time_kind is not TimeKind.INTEGRAL
        kind = DayTimeIntervalType() if span else _TIME_TYPES[plan.time_kind]
        fields.append(StructField(MATCH_COLUMNS[match], kind))
    if not fields:
        fields.append(StructField("rows", BooleanType()))
    flat = joined.mapInArrow(Unpack(plan).__call__, StructType(fields))
    columns = [F.col(time_name(stream)).alias(joined_time(stream)) for stream in times]
    columns += [F.col(MATCH_COLUMNS[match]) for match in matches]
    if not plan.lookups:
        flat = _dated(plan, flat)
    return flat.select(*(_structs(plan) + columns or [F.col("rows")]))


def _dated(plan: PhysicalPlan, rows: DataFrame) -> DataFrame:
    """Return rows with a watermark on MATCH_TIME where it is asked for and can be an event time."""
    time = MATCH_COLUMNS["time"]
    if not _is_dated(plan) or plan.match_delay is None or plan.undated:
        return rows
    if plan.watermarked:
        return rows.withMetadata(time, WATERMARKED)
    return rows.withWatermark(time, watermark_delay(plan.match_delay))


def _is_dated(plan: PhysicalPlan) -> bool:
    # Spark takes a TIMESTAMP only as event time of a watermark.
    return plan.streaming and "time" in plan.match and plan.time_kind is TimeKind.TIMESTAMP


def _structs(plan: PhysicalPlan) -> list[F.Column]:
    structs = []
    for stream, scan in enumerate(plan.streams):
        members = [
            F.col(name).alias(str(scan.columns[number].output))
            for each, number, name in output_columns(plan)
            if each == stream
        ]
        if members:
            structs.append(F.struct(*members).alias(scan.alias))
    return structs
