"""Physical plan to DataFrame: pack, join stages, unpack (DESIGN §3). Lazy; no JVM access."""

import itertools
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DayTimeIntervalType,
    LongType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from wjoin.executor.routing import Router, table_tasks, worker_count
from wjoin.executor.shedding import Shedder
from wjoin.executor.sites.held_input import HeldInput
from wjoin.executor.sites.stream import SiteStream
from wjoin.executor.spark.announce import Announce
from wjoin.executor.spark.lookup import joined_time, look_up, relation_rows
from wjoin.executor.spark.messages import MESSAGES
from wjoin.executor.spark.meter import Meter, rows_part, stage_part
from wjoin.executor.spark.native import native_rows
from wjoin.executor.spark.observe import REPORTED, observed, work_counts
from wjoin.executor.spark.operator import REPORTS, Operator, task_name
from wjoin.executor.spark.pack import AHEAD, KEEP, Pack
from wjoin.executor.spark.processor import JoinProcessor
from wjoin.executor.spark.site_source import arrow_schema
from wjoin.executor.spark.structs import structs, with_chars
from wjoin.executor.spark.task import named
from wjoin.executor.spark.typing import KEY_TYPES, carried, carried_type, restored_value, typed
from wjoin.executor.spark.unpack import MARK, Unpack, flat_name, part_name
from wjoin.executor.spark.warm import served
from wjoin.executor.spark.watermarks import unmoved, watermark_delay, watermarked
from wjoin.executor.state.identity import fingerprint
from wjoin.executor.state.worker_files import stage_folder
from wjoin.executor.step import StageLogic
from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.executor.workers import worker_ids
from wjoin.planner.plan.ahead import too_far_ahead
from wjoin.planner.plan.block_columns import (
    MATCH_COLUMNS,
    code_name,
    column_name,
    event_time_expression,
    quoted,
    stored_column,
    time_name,
)
from wjoin.planner.plan.edges import destinations
from wjoin.planner.plan.physical import KeyCode, Method, Output, PhysicalPlan, StreamScan, TimeKind
from wjoin.planner.plan.shedding import Shedding
from wjoin.planner.plan.to_come import is_dated
from wjoin.udfs.predicate import Predicate

_DATED = "__wjoin_dated"
"""The event time with Spark's own watermark, where an input needs one: NULL for a row too far ahead."""

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

    Spark's progress tells a stream's counts under the number ``query`` (see ``observe``).
    ``meter`` counts what a plan over tables does.
    """

    query: int = field(default_factory=query_number)
    meter: Meter | None = None


@dataclass(frozen=True)
class HeldStream:
    """A stream that is held at its sites; ``extents``: what is told of new rows (``EXTENTS``).

    ``names``: its columns as the sites name them.
    """

    extents: DataFrame
    site: SiteStream
    names: tuple[str, ...]

    def asking(self, plan: PhysicalPlan, stage: int, number: int, schema: StructType) -> HeldInput:
        """Return what asks for its rows at a stage; ``schema``: as which Spark reads them."""
        names = {name.lower(): name for name in self.names}
        types = {field.name.lower(): field.type for field in arrow_schema(schema)}
        return HeldInput(plan, stage, number, self.site, names, types, uuid.uuid4().hex)


@dataclass(frozen=True)
class Compiled:
    """A plan as DataFrames, which are lazy, and stream when its ``inputs`` do; these are in FROM order.

    ``made`` has the results of all outputs, which the stages make in one pass; None where no stage does.
    """

    plan: PhysicalPlan
    inputs: Sequence[DataFrame]
    counting: Counting
    made: DataFrame | None

    def rows(self, output: Output, made: DataFrame | None = None) -> DataFrame:
        """Return the joined rows of an output.

        They have one STRUCT column for each stream that has output columns, named by its alias, and the
        match columns that the output asks for. ``made``: a micro-batch of what the stages make, or another
        part of it, whose rows are asked for; so a query that has several sinks writes them of one pass.
        """
        rows = self._rows(output, self.made if made is None else made)
        return with_chars(self.plan, output.columns, self.inputs, rows)

    def _rows(self, output: Output, made: DataFrame | None) -> DataFrame:
        plan, query = self.plan, self.counting.query
        if made is not None:
            rows = _restored(plan, output, made, self.inputs)
            if plan.lookups:
                rows = look_up(plan, output, rows, self.inputs, query)
            return _dated(plan, output, rows)
        if plan.stages:
            return native_rows(
                plan, output, self.inputs, query, None if plan.streaming else self.counting.meter
            )
        only = plan.staged[0]
        source = self.inputs[only]
        if is_dated(plan, output):
            source = _marked_input(plan, only, source)
        rows = relation_rows(plan, output, only, source, query)
        return _dated(plan, output, look_up(plan, output, rows, self.inputs, query))


def compile_plan(
    plan: PhysicalPlan,
    inputs: Sequence[DataFrame],
    counting: Counting | None = None,
    stretch: int = STRETCH_BYTES,
    predicates: Mapping[str, Predicate] | None = None,
    statement: str = "",
    sites: Mapping[int, SiteStream] | None = None,
    held: Mapping[int, HeldStream] | None = None,
    cores: int | None = None,
    state: Path | None = None,
    shedding: Shedding | None = None,
) -> Compiled:
    """Return a plan as DataFrames; ``inputs`` are in FROM order.

    ``stretch``: the bytes of new rows that a worker joins at once. ``predicates``: those that the plan names,
    ``statement``: words for it, with which a failure of one is told. ``sites``: the streams at sites, by
    their numbers; their inputs then have the number of each row. ``held``: those of them that are held at
    their sites, of whose inputs no more than the schema is read. ``cores``: how many tasks run at once; None
    where that is not known. ``state``: the folder of the state where this is in files. ``shedding``: how
    the join sheds, and what limits its state; None where nothing does. Raises ValueError for a plan with
    results that no stage makes yet.
    """
    if plan.optional:
        raise ValueError("no stage makes the outer join that a result without a row of a stream needs")
    counting = counting or Counting()
    made = None
    if plan.stages and plan.method is not Method.NATIVE:
        unpack, schema = unpacking = _unpacking(plan, inputs, sites or {})
        logic = StageLogic(replace(plan, begun=None), 0, stretch, predicates or {}, statement)
        identities = [fingerprint(plan, stage) for stage in plan.stages]
        at_once = unpacking if state is not None or not plan.streaming else None
        made = _joined(logic, identities, inputs, counting, held or {}, cores, state, shedding, at_once)
        if at_once is None:
            made = made.mapInArrow(unpack.__call__, schema)
    return Compiled(plan, inputs, counting, made)


def _joined(
    logic: StageLogic,
    identities: Sequence[str],
    inputs: Sequence[DataFrame],
    counting: Counting,
    held: Mapping[int, HeldStream],
    cores: int | None,
    state: Path | None,
    shedding: Shedding | None,
    unpacking: tuple[Unpack, StructType] | None,
) -> DataFrame:
    """Return what leaves the last stage: messages, or rows by ``unpacking``.

    ``logic`` is that of the first stage; ``identities`` are those of the state of all stages.
    """
    plan = logic.plan
    meter = None if plan.streaming else counting.meter
    spark = inputs[0].sparkSession
    partitions = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    stageless = _stageless(plan)
    tasks: list[int | None]
    if state is not None:
        # Spark has no store that needs a task for each of its partitions.
        tasks = [worker_count(stage, partitions) for stage in plan.stages]
    else:
        tasks = [None if plan.streaming else table_tasks(stage, partitions, cores) for stage in plan.stages]
    workers = [
        worker_ids(count or partitions)[: count or worker_count(stage, partitions)]
        for stage, count in zip(plan.stages, tasks, strict=True)
    ]
    scans = {number: _scan(plan, number, inputs[number]) for number in plan.staged if number not in held}
    if meter is not None:
        scans = {
            number: meter.watch(rows_part(number), rows, [f"count({time_name(number)}) AS rows"])
            for number, rows in scans.items()
        }
    shedder = None
    if shedding is not None and state is not None:
        counts = tuple(map(len, workers))
        shedder = Shedder(shedding, state, counts, tuple(scan.delay for scan in plan.streams))
    results: list[DataFrame] = []
    for number, stage in enumerate(plan.stages):
        arriving = []
        asking: dict[int, HeldInput] = {}
        for place, each in enumerate(stage.inputs):
            if each.stage is not None:
                # All that a stage makes comes at once, also where it is for several inputs.
                if each.stage not in (source.stage for source in stage.inputs[:place]):
                    arriving.append(results[each.stage])
                continue
            if (stream := each.members[0]) in held:
                router = Router.to(plan, stage, place, workers[number])
                told = named(Announce(router).__call__, task_name(counting.query, f"in{stream}"))
                arriving.append(held[stream].extents.mapInArrow(told, MESSAGES))
                asking[place] = held[stream].asking(plan, number, place, inputs[stream].schema)
                continue
            pack = Pack(stageless, each.columns, Router.to(plan, stage, place, workers[number]), shedder)
            packed = named(pack.__call__, task_name(counting.query, f"rows{stream}"))
            arriving.append(scans[stream].mapInArrow(packed, MESSAGES))
        routers = {
            to[1]: Router.to(plan, plan.stages[to[0]], to[1], workers[to[0]])
            for to in destinations(plan, number)
            if to is not None
        }
        own = replace(logic, number=number, elsewhere=asking)
        folder = None if state is None else stage_folder(state, number)
        unpack, schema = (None, MESSAGES) if routers or unpacking is None else unpacking
        operator = Operator(own, workers[number], routers, identities[number], folder, unpack, shedding)
        results.append(_run(plan, operator, arriving, counting, tasks[number], schema))
    return results[-1]


def _stageless(plan: PhysicalPlan) -> PhysicalPlan:
    """Return a plan for tasks around the stages: each would read these, of eight streams 56 steps."""
    return replace(plan, stages=())


def _scan(plan: PhysicalPlan, number: int, source: DataFrame) -> DataFrame:
    """Return what the pack of a stream reads: event time, the filter's verdict, codes, columns."""
    scan = plan.streams[number]
    if plan.watermarked and any(is_dated(plan, output) for output in plan.outputs):
        # MATCH_TIME goes by the watermarks of the inputs, so each must have one.
        source = _marked_input(plan, number, source)
    rows = source.alias(scan.alias)
    time = F.expr(_time(scan, plan.time_kind)).alias(time_name(number))
    values = [(code_name(number, n), F.expr(key_code(code))) for n, code in enumerate(scan.codes)]
    types: dict[str, DataType | None] = {time_name(number): _TIME_TYPES[plan.time_kind]}
    for n, code in enumerate(scan.codes):
        types[code_name(number, n)] = KEY_TYPES.get(code.types[0]) if code.exact else LongType()
    for place, column in enumerate(scan.columns):
        if not stored_column(plan, number, place).restored:
            name = column_name(number, place)
            known = None if column.output is None else source.schema[column.output].dataType
            values.append((name, carried(column.expression, known)))
            types[name] = carried_type(known) if known else KEY_TYPES.get(column.type)
    judged_ahead: list[Column] = []
    if scan.streaming and scan.ahead is not None:
        beyond = too_far_ahead(event_time_expression(scan), plan.time_kind, scan.ahead)
        judged_ahead = [F.expr(beyond).alias(AHEAD)]
        types[AHEAD] = BooleanType()
    if not scan.filters:
        return typed(rows.select(time, *(value.alias(name) for name, value in values), *judged_ahead), types)
    verdict = F.expr(" AND ".join(f"({each})" for each in scan.filters))
    if not plan.streaming:
        remaining = rows.filter(verdict)
        return typed(remaining.select(time, *(value.alias(name) for name, value in values)), types)
    # Rows that a filter removes still move the stream's watermark. Nothing else of them is
    # evaluated: an expression may fail on just the rows that the filter is there to remove.
    judged = rows.select("*", verdict.alias(KEEP))
    kept = F.col(KEEP)
    hidden = (F.when(kept, value).alias(name) for name, value in values)
    return typed(judged.select(time, *hidden, *judged_ahead, kept), {**types, KEEP: BooleanType()})


def _marked_input(plan: PhysicalPlan, number: int, source: DataFrame) -> DataFrame:
    """Return an input with a watermark of Spark's, by its event time where it comes without one."""
    if number in plan.watermarked:
        return source
    scan = plan.streams[number]
    own = F.col(quoted(scan.event_time))
    ahead = F.expr(too_far_ahead(quoted(scan.event_time), plan.time_kind, scan.ahead))
    dated = source.withColumn(_DATED, F.when(~ahead, own))
    return dated.withWatermark(_DATED, watermark_delay(scan.delay))


def _time(scan: StreamScan, kind: TimeKind) -> str:
    expression = event_time_expression(scan)
    return f"CAST({expression} AS BIGINT)" if kind is TimeKind.INTEGRAL else expression


def key_code(code: KeyCode) -> str:
    """Return the expression of a key code: of an exact one the key itself."""
    if code.exact:
        return code.expressions[0]
    known = " AND ".join(f"({each}) IS NOT NULL" for each in code.expressions)
    return f"CASE WHEN {known} THEN xxhash64({', '.join(code.expressions)}) & {_HASH_BITS}L END"


def _run(
    plan: PhysicalPlan,
    operator: Operator,
    arriving: list[DataFrame],
    counting: Counting,
    tasks: int | None,
    schema: StructType,
) -> DataFrame:
    """Return what leaves a stage, in a ``schema``: messages, or rows, whose reports are taken out again."""
    number = operator.logic.number
    reported, made = REPORTED, schema
    if operator.unpack is not None:
        reported, made = REPORTS, StructType([*schema, StructField(REPORTS, ArrayType(LongType()))])
    blocks = arriving[0]
    for other in arriving[1:]:
        blocks = blocks.union(other)
    if plan.streaming and operator.folder is None:
        with served(blocks.sparkSession):
            joined = blocks.groupBy("worker").transformWithStateInPandas(
                JoinProcessor(operator), made, "append", "none"
            )
    else:
        # A grouped map would hold all messages of a worker at once, and all its results.
        # Of a number that is told Spark merges none.
        parted = blocks.repartition("worker") if tasks is None else blocks.repartition(tasks, "worker")
        work = operator.stream if plan.streaming else operator.batch
        joined = parted.mapInArrow(named(work, task_name(counting.query, number)), made)
    if plan.streaming:
        counted = observed(plan, number, joined, counting.query, reported)
        joined = typed(counted, {each.name: each.dataType for each in made})
    elif counting.meter is not None:
        joined = counting.meter.watch(stage_part(number), joined, work_counts(reported))
    if operator.unpack is None:
        return joined
    return joined.filter(F.col(REPORTS).isNull()).drop(REPORTS)


def _together(plan: PhysicalPlan) -> Output:
    """Return an output with the columns and match functions of all outputs of a plan."""
    if len(plan.outputs) == 1:
        return plan.outputs[0]
    columns = dict.fromkeys(column for each in plan.outputs for column in each.columns)
    match = frozenset().union(*(each.match for each in plan.outputs))
    delays = [each.match_delay or 0 for each in plan.outputs if is_dated(plan, each)]
    return Output("", tuple(columns), (), match, max(delays, default=None))


def _unpacking(
    plan: PhysicalPlan, inputs: Sequence[DataFrame], sites: Mapping[int, SiteStream]
) -> tuple[Unpack, StructType]:
    """Return what makes the rows of all outputs of blocks, and their schema as Spark has it."""
    output = _together(plan)
    parts = [number for number, each in enumerate(plan.outputs) if _has_part(plan, each)]
    fields = []
    for stream, number in plan.staged_columns(output):
        # An output is a column of the relation, whose schema is known: nothing is left to analyse.
        column = str(plan.streams[stream].columns[number].output)
        carried_as = carried_type(inputs[stream].schema[column].dataType)
        fields.append(StructField(flat_name(stream, number), carried_as))
    fields += [StructField(time_name(stream), _TIME_TYPES[plan.time_kind]) for stream in _own_times(plan)]
    for match in _own_matches(plan, output):
        span = match == "span" and plan.time_kind is not TimeKind.INTEGRAL
        kind = DayTimeIntervalType() if span else _TIME_TYPES[plan.time_kind]
        fields.append(StructField(MATCH_COLUMNS[match], kind))
    marked = _has_marks(plan)
    if marked:
        fields.append(StructField(MARK, _TIME_TYPES[plan.time_kind]))
    fields += [StructField(part_name(number), BooleanType()) for number in parts]
    if not fields:
        fields.append(StructField("rows", BooleanType()))
    schema = StructType(fields)
    mirror = uuid.uuid4().hex if sites else ""
    parts_of = {number: plan.outputs[number] for number in parts}
    return Unpack(_stageless(plan), output, arrow_schema(schema), marked, parts_of, sites, mirror), schema


def _has_part(plan: PhysicalPlan, output: Output) -> bool:
    """Return whether an output has a part of the results that a plan's stages make."""
    return len(plan.outputs) > 1 and (bool(output.windows) or any(each.history for each in plan.outputs))


def _own_times(plan: PhysicalPlan) -> tuple[int, ...]:
    """Return the streams whose event times rows have that leave the stages."""
    return plan.staged if plan.lookups else ()


def _own_matches(plan: PhysicalPlan, output: Output) -> list[str]:
    """Return the match functions whose values rows have that leave the stages."""
    return [] if plan.lookups else sorted(output.match)


def _has_marks(plan: PhysicalPlan) -> bool:
    return not plan.watermarked and any(is_dated(plan, each) for each in plan.outputs)


def _restored(plan: PhysicalPlan, output: Output, flat: DataFrame, inputs: Sequence[DataFrame]) -> DataFrame:
    """Return rows that have left the stages with Spark's types, and a STRUCT for each stream."""
    times = _own_times(plan)
    if _has_marks(plan):
        # No filter of the statement comes below this one, where it would remove the marks.
        dated = time_name(times[0]) if times else MATCH_COLUMNS["time"]
        flat = flat.withWatermark(MARK, watermark_delay(0)).filter(unmoved(f"{dated} IS NOT NULL"))
    if _has_part(plan, output):
        flat = flat.filter(F.col(part_name(plan.outputs.index(output))))
    columns = [F.col(time_name(stream)).alias(joined_time(stream)) for stream in times]
    columns += [F.col(MATCH_COLUMNS[match]) for match in _own_matches(plan, output)]

    def value(stream: int, number: int) -> Column:
        column = str(plan.streams[stream].columns[number].output)
        return restored_value(flat_name(stream, number), inputs[stream].schema[column].dataType)

    made = structs(plan, plan.staged_columns(output), value)
    return flat.select(*(made + columns or [F.col("rows")]))


def _dated(plan: PhysicalPlan, output: Output, rows: DataFrame) -> DataFrame:
    """Return rows whose MATCH_TIME is an event time of Spark's, where it is asked for and can be one.

    A watermark is at work below: that of the last stage's marks, or those of the inputs.
    """
    if not is_dated(plan, output):
        return rows
    return rows.withMetadata(MATCH_COLUMNS["time"], watermarked(output.match_delay or 0))
