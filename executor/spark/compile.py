"""Physical plan to DataFrame: pack, join stages, unpack (DESIGN §3). Lazy; no JVM access."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DayTimeIntervalType,
    IntegerType,
    LongType,
    StructField,
    StructType,
)

from wjoin.executor.late_rows import LATE, LATE_BY, MICRO_BATCH
from wjoin.executor.sites.stream import SiteStream
from wjoin.executor.spark.lookup import joined_time, look_up, relation_rows
from wjoin.executor.spark.native import native_rows
from wjoin.executor.spark.scans import TIME_TYPES, marked
from wjoin.executor.spark.site_source import arrow_schema
from wjoin.executor.spark.stages import Counting, HeldStream, Stages, made_of, stageless
from wjoin.executor.spark.structs import structs, with_chars
from wjoin.executor.spark.typing import carried_type, restored_value
from wjoin.executor.spark.unpack import MARK, Unpack, flat_name, part_name
from wjoin.executor.spark.watermarks import unmoved, watermark_delay, watermarked
from wjoin.executor.state.identity import fingerprint
from wjoin.executor.step import StageLogic
from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.planner.plan.block_columns import MATCH_COLUMNS, late_name, time_name
from wjoin.planner.plan.physical import Method, Output, PhysicalPlan, TimeKind
from wjoin.planner.plan.shedding_models import Shedding
from wjoin.planner.plan.to_come import is_dated
from wjoin.udfs.predicate import Predicate


@dataclass(frozen=True)
class Compiled:
    """A plan as DataFrames, which are lazy, and stream when its ``inputs`` do; these are in FROM order.

    ``stages`` is None where the plan has none of wjoin's.
    """

    plan: PhysicalPlan
    inputs: Sequence[DataFrame]
    counting: Counting
    stages: Stages | None

    @cached_property
    def made(self) -> DataFrame | None:
        """The results of all outputs, which the stages make in one pass; None without stages."""
        return None if self.stages is None else made_of({0: self.stages})

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
            source = marked(plan, only, source)
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
    streams: Mapping[int, str] | None = None,
    ending: int | None = None,
    ended: Sequence[Mapping[int, int]] = (),
) -> Compiled:
    """Return a plan as DataFrames; ``inputs`` are in FROM order.

    ``stretch``: the bytes of new rows that a worker joins at once. ``predicates``: those that the plan names,
    ``statement``: words for it, with which a failure of one is told. ``sites``: the streams at sites, by
    their numbers; their inputs then have the number of each row. ``held``: those of them that are held at
    their sites, of whose inputs no more than the schema is read. ``cores``: how many tasks run at once; None
    where that is not known. ``state``: the folder of the state where this is in files. ``shedding``: how
    the join sheds, and what limits its state; None where nothing does. ``streams``, ``ending`` and
    ``ended``: see ``Stages``.
    """
    counting = counting or Counting()
    stages = None
    if plan.stages and plan.method is not Method.NATIVE:
        logic = StageLogic(replace(plan, begun=None), 0, stretch, predicates or {}, statement)
        stages = Stages(
            logic,
            tuple(fingerprint(plan, stage) for stage in plan.stages),
            inputs,
            counting,
            held or {},
            cores,
            state,
            shedding,
            *_unpacking(plan, inputs, sites or {}),
            streams or {},
            ending,
            ended,
        )
    return Compiled(plan, inputs, counting, stages)


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
    fields += [StructField(time_name(stream), TIME_TYPES[plan.time_kind]) for stream in _own_times(plan)]
    for match in _own_matches(plan, output):
        span = match == "span" and plan.time_kind is not TimeKind.INTEGRAL
        kind = DayTimeIntervalType() if span else TIME_TYPES[plan.time_kind]
        fields.append(StructField(MATCH_COLUMNS[match], kind))
    marked = _has_marks(plan)
    if marked:
        fields.append(StructField(MARK, TIME_TYPES[plan.time_kind]))
    fields += [StructField(part_name(number), BooleanType()) for number in parts]
    if not fields:
        fields.append(StructField("rows", BooleanType()))
    fields += late_fields(plan, inputs)
    schema = StructType(fields)
    mirror = uuid.uuid4().hex if sites else ""
    parts_of = {number: plan.outputs[number] for number in parts}
    return Unpack(stageless(plan), output, arrow_schema(schema), marked, parts_of, sites, mirror), schema


def late_fields(plan: PhysicalPlan, inputs: Sequence[DataFrame]) -> Iterator[StructField]:
    """Yield the columns of late rows that go to sinks."""
    for stream in plan.telling:
        for number, column in enumerate(plan.streams[stream].late):
            declared = inputs[stream].schema[str(column.output)].dataType
            yield StructField(late_name(stream, number), carried_type(declared))
    if plan.telling:
        yield StructField(LATE, IntegerType())
        integral = plan.time_kind is TimeKind.INTEGRAL
        yield StructField(LATE_BY, LongType() if integral else DayTimeIntervalType())
        yield StructField(MICRO_BATCH, LongType())


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
    if plan.telling:
        flat = flat.filter(F.col(LATE).isNull())
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
