"""The stages of joins as a DataFrame: pack, join, and what leaves. Lazy; no JVM access.

Joins whose state is in files may run together: a stream that several read is read once, their blocks go
through one shuffle, and the same tasks work off the stages of all. So a join costs its own work, not Spark's
for one more stage.
"""

import itertools
import uuid
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, LongType, StructField, StructType

from wjoin.executor.lacking import lacked_streams
from wjoin.executor.late_rows import Suspects
from wjoin.executor.routing import Router, table_tasks, worker_count
from wjoin.executor.shedding import Shedder
from wjoin.executor.sites.held_input import HeldInput
from wjoin.executor.sites.stream import SiteStream
from wjoin.executor.spark.absent import absent_values
from wjoin.executor.spark.announce import Announce
from wjoin.executor.spark.ending import Ending
from wjoin.executor.spark.messages import MESSAGES
from wjoin.executor.spark.meter import Meter, rows_part, stage_part
from wjoin.executor.spark.observe import REPORTED, observed, reported_to, work_counts
from wjoin.executor.spark.operator import PART, REPORTS, Operator, Operators, part_column, task_name
from wjoin.executor.spark.pack import Pack, Packs
from wjoin.executor.spark.processor import JoinProcessor
from wjoin.executor.spark.scans import Names, Reading, scanned, scanned_once
from wjoin.executor.spark.site_source import arrow_schema
from wjoin.executor.spark.task import named
from wjoin.executor.spark.typing import typed
from wjoin.executor.spark.unpack import Unpack
from wjoin.executor.spark.warm import served
from wjoin.executor.state.worker_files import stage_folder
from wjoin.executor.step import StageLogic
from wjoin.executor.workers import worker_ids
from wjoin.grammar.join_kinds import JoinKind
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.plan.block_columns import time_name
from wjoin.planner.plan.counting import goes_by
from wjoin.planner.plan.edges import destinations, needed_codes
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.shedding_models import Shedding
from wjoin.planner.plan.stage_kinds import Join, Stage

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
class Stages:
    """What runs the stages of a plan; ``made_of`` makes a DataFrame of it.

    ``unpack`` makes the rows of all outputs of blocks, in a ``schema``. ``streams``: by their numbers, the
    names of streams whose rows may be read together with those that other joins read of the same names.
    ``ending``: the micro-batch with which all streams end, None where none is known to; ``ended``: for each
    stage how far streams have come at later ones then, empty where files tell it.
    """

    logic: StageLogic
    identities: tuple[str, ...]
    inputs: Sequence[DataFrame]
    counting: Counting
    held: Mapping[int, HeldStream]
    cores: int | None
    state: Path | None
    shedding: Shedding | None
    unpack: Unpack
    schema: StructType
    streams: Mapping[int, str]
    ending: int | None = None
    ended: Sequence[Mapping[int, int]] = ()

    @property
    def plan(self) -> PhysicalPlan:
        """The plan whose stages run."""
        return self.logic.plan

    @property
    def meter(self) -> Meter | None:
        """What counts a plan over tables, None where nothing does."""
        return None if self.plan.streaming else self.counting.meter

    @property
    def unpacks(self) -> bool:
        """Whether the last stage makes the rows itself: not where Spark has the state."""
        return self.state is not None or not self.plan.streaming

    @cached_property
    def absent(self) -> dict[str, pa.Scalar]:
        """What columns are in tuples that lack a row of their stream."""
        found: dict[str, pa.Scalar] = {}
        for stream in sorted(
            frozenset().union(*(lacked_streams(self.plan, each) for each in self.plan.stages))
        ):
            found |= absent_values(Reading(self.plan, stream, self.inputs[stream]))
        return found

    def read_at(self) -> Iterator[tuple[str, int]]:
        """Yield the names of streams, and before how many stages of the join they are read."""
        for number, stage in enumerate(self.plan.stages if not self.plan.watermarked else ()):
            for each in stage.inputs:
                if each.stage is None and (name := self.streams.get(each.members[0])) is not None:
                    yield name, len(self.plan.stages) - number

    @property
    def in_turn(self) -> bool:
        """Whether the results of each stage go to the next one, and no further."""
        return all(
            to is None or to[0] == number + 1
            for number in range(len(self.plan.stages))
            for to in destinations(self.plan, number)
        )


@dataclass(frozen=True)
class _Working:
    """A stage of a join, and its workers."""

    join: int
    number: int
    of: Stages
    workers: tuple[int, ...]

    @property
    def stage(self) -> Stage:
        """The stage as it is planned."""
        return self.of.plan.stages[self.number]

    def name(self, part: object) -> str:
        """Return the name of a part of the join in a plan of Spark's."""
        return task_name(self.of.counting.query, part)

    def scans(self) -> Iterator[tuple[int, int]]:
        """Yield the number of each input that reads a stream for workers, and of that stream."""
        for place, each in enumerate(self.stage.inputs):
            if each.stage is None and each.members[0] not in self.of.held:
                yield place, each.members[0]


@dataclass(frozen=True)
class _Level:
    """The stages that the same tasks work off; Spark says how many these are where ``tasks`` is None."""

    stages: tuple[_Working, ...]
    tasks: int | None


_Workers = Mapping[tuple[int, int], tuple[int, ...]]
"""The workers by the numbers of joins and stages."""


def made_of(joins: Mapping[int, Stages]) -> DataFrame:
    """Return the rows that joins make.

    Several joins run in the same tasks; the columns of their results then have the numbers of the joins
    (``Operators``). Their state is in files, and they have stages ``in_turn``.
    """
    levels, together = list(_levels(joins)), len(joins) > 1
    workers = {(each.join, each.number): each.workers for level in levels for each in level.stages}
    made: dict[tuple[int, int], DataFrame] = {}
    for level in levels:
        # All that a stage makes comes at once, also where it is for several inputs.
        earlier = {
            id(rows): rows
            for each in level.stages
            for edge in each.stage.inputs
            if edge.stage is not None
            for rows in [made[each.join, edge.stage]]
        }
        arriving = [*earlier.values(), *_announced(level), *_packed(level, workers, together=together)]
        operators = tuple(_operator(each, workers) for each in level.stages)
        rows = _run(level, operators, arriving, together=together)
        made |= {(each.join, each.number): rows for each in level.stages}
    last = levels[-1].stages[0].of
    return rows if last.unpacks else rows.mapInArrow(last.unpack.__call__, last.schema)


def _levels(joins: Mapping[int, Stages]) -> Iterator[_Level]:
    """Yield the stages that run at once, the last ones of all joins in the last level."""
    spark = next(iter(joins.values())).inputs[0].sparkSession
    partitions = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    depth = max(len(each.plan.stages) for each in joins.values())
    for level in range(depth):
        numbers = {join: level - depth + len(each.plan.stages) for join, each in joins.items()}
        counts = {
            join: _tasks(joins[join], number, partitions) for join, number in numbers.items() if number >= 0
        }
        tasks = max(counts.values(), key=lambda each: each or 0)
        stages = []
        for turn, (join, count) in enumerate(counts.items()):
            number, of = numbers[join], joins[join]
            least = count or worker_count(of.plan.stages[number], partitions)
            workers = worker_ids(tasks or partitions, turn)[:least]
            stages.append(_Working(join, number, of, workers))
        yield _Level(tuple(stages), tasks)


def _tasks(join: Stages, number: int, partitions: int) -> int | None:
    """Return how many tasks a stage needs, None where Spark has as many as it wants."""
    stage = join.plan.stages[number]
    if join.state is not None:
        # Spark has no store that needs a task for each of its partitions.
        return worker_count(stage, partitions)
    return None if join.plan.streaming else table_tasks(stage, partitions, join.cores)


def _announced(level: _Level) -> Iterator[DataFrame]:
    """Yield what is told of the streams that are held at their sites."""
    for each in level.stages:
        for place, edge in enumerate(each.stage.inputs):
            if edge.stage is None and (stream := edge.members[0]) in each.of.held:
                announce = Announce(Router.to(each.of.plan, each.stage, place, each.workers))
                told = named(announce.__call__, each.name(f"in{stream}"))
                yield each.of.held[stream].extents.mapInArrow(told, MESSAGES)


def _packed(level: _Level, workers: _Workers, *, together: bool) -> Iterator[DataFrame]:
    """Yield the blocks of the streams that are read; what several joins read alike is read once."""
    groups: dict[Hashable, list[tuple[_Working, int, Reading]]] = {}
    for each in level.stages:
        for place, stream in each.scans():
            reading = Reading(each.of.plan, stream, each.of.inputs[stream])
            own = each.join, stream
            shares = together and not reading.alone
            key = each.of.streams.get(stream, own) if shares else own
            groups.setdefault(key, []).append((each, place, reading))
    for group in groups.values():
        rows, names = _scanned([reading for *_, reading in group])
        first, _, reading = group[0]
        if (meter := first.of.meter) is not None:
            counts = [f"count({time_name(reading.number)}) AS rows"]
            rows = meter.watch(rows_part(reading.number), rows, counts)
        packs = (_pack(each, place, own, workers) for (each, place, _), own in zip(group, names, strict=True))
        packed = named(Packs(tuple(packs)).__call__, first.name(f"rows{reading.number}"))
        sent = rows.mapInArrow(packed, MESSAGES)
        if first.of.ending is not None:
            told = tuple(worker for each, *_ in group for worker in each.workers)
            sent = sent.repartition(1).mapInArrow(Ending(told, first.of.ending).__call__, MESSAGES)
        yield sent


def _scanned(readings: Sequence[Reading]) -> tuple[DataFrame, tuple[Names | None, ...]]:
    """Return what is read of a stream, and for each reading under what names, None for its own ones."""
    first = readings[0]
    # Most columns of late rows are read for the join, too.
    once = len(readings) > 1 or (bool(first.scan.late) and not first.needs_watermark)
    return scanned_once(readings) if once else (scanned(first), (None,))


def _pack(each: _Working, place: int, names: Names | None, workers: _Workers) -> Pack:
    of, plan, shedder = each.of, each.of.plan, None
    if of.shedding is not None and of.state is not None:
        counts = tuple(len(workers[each.join, number]) for number in range(len(plan.stages)))
        shedder = Shedder(of.shedding, of.state, counts, tuple(scan.delay for scan in plan.streams))
    router = Router.to(plan, each.stage, place, each.workers)
    edge = each.stage.inputs[place]
    kind = each.stage.kind if isinstance(each.stage, Join) else JoinKind.INNER
    alone = kind.alone and place in kind.preserved
    codes = needed_codes(plan, each.number, edge.members[0])
    scan, suspects = plan.streams[edge.members[0]], None
    if scan.late:
        numbers = tuple(range(each.number, len(plan.stages)))
        suspects = Suspects(edge.members[0], scan, of.state, numbers)
    counting = {
        number: goes_by(plan, each.number, window)
        for number, window in enumerate(plan.counted)
        if window.stream == edge.members[0]
    }
    told = (edge.columns, router, names, shedder, alone, codes, suspects, counting)
    return Pack(stageless(plan), *told, None if of.state is None else stage_folder(of.state, each.number))


def _operator(each: _Working, workers: _Workers) -> Operator:
    of, plan, number = each.of, each.of.plan, each.number
    routers = {
        to[1]: Router.to(plan, plan.stages[to[0]], to[1], workers[each.join, to[0]], of.absent)
        for to in destinations(plan, number)
        if to is not None
    }
    asking = {
        place: of.held[stream].asking(plan, number, place, of.inputs[stream].schema)
        for place, edge in enumerate(each.stage.inputs)
        if edge.stage is None and (stream := edge.members[0]) in of.held
    }
    folder = None if of.state is None else stage_folder(of.state, number)
    unpack = of.unpack if of.unpacks and not routers else None
    logic = replace(of.logic, number=number, elsewhere=asking, absent=of.absent)
    later = of.ended[number] if of.ended else {}
    return Operator(logic, each.workers, routers, of.identities[number], folder, unpack, of.shedding, later)


def _run(
    level: _Level, operators: Sequence[Operator], arriving: Sequence[DataFrame], *, together: bool
) -> DataFrame:
    """Return what leaves the stages of a level: messages, or rows without their reports.

    ``together``: whether several joins run, whose rows have numbers then.
    """
    first, of = level.stages[0], level.stages[0].of
    unpacks = operators[0].unpack is not None
    parts = {each.join: each.of for each in level.stages} if together and unpacks else {}
    leaving = _leaving(of, parts) if unpacks else MESSAGES
    made = StructType([*leaving, StructField(REPORTS, ArrayType(LongType()))]) if unpacks else leaving
    blocks = arriving[0]
    for other in arriving[1:]:
        blocks = blocks.union(other)
    if of.plan.streaming and of.state is None:
        with served(blocks.sparkSession):
            joined = blocks.groupBy("worker").transformWithStateInPandas(
                JoinProcessor(operators[0]), made, "append", "none"
            )
    else:
        # A grouped map would hold all messages of a worker at once, and all its results.
        # Of a number that is told Spark merges none.
        tasks = level.tasks
        parted = blocks.repartition("worker") if tasks is None else blocks.repartition(tasks, "worker")
        schemas = {join: each.unpack.schema for join, each in parts.items()}
        work = (
            Operators(tuple(operators), schemas, tasks or 1).stream
            if of.plan.streaming
            else operators[0].batch
        )
        joined = parted.mapInArrow(named(work, first.name(first.number)), made)
    for each, operator in zip(level.stages, operators, strict=True):
        reported = _reported(each, operator, together=together)
        if of.plan.streaming:
            route = ROUTES[each.of.plan.stages[each.number].placement.route]
            nodes = len(each.workers) if route.approximate else 0
            joined = observed(each.of.plan, each.number, joined, each.of.counting.query, reported, nodes)
        elif of.meter is not None:
            joined = of.meter.watch(stage_part(each.number), joined, work_counts(reported))
    if of.plan.streaming:
        joined = typed(joined, {each.name: each.dataType for each in made})
    return joined.filter(F.col(REPORTS).isNull()).drop(REPORTS) if unpacks else joined


def _leaving(of: Stages, parts: Mapping[int, Stages]) -> StructType:
    """Return the schema of rows that leave: of the one join, or of several, with their numbers."""
    if not parts:
        return of.schema
    fields = (
        StructField(part_column(each.name, join), each.dataType)
        for join, part in parts.items()
        for each in part.schema
    )
    return StructType([StructField(PART, IntegerType()), *fields])


def _reported(each: _Working, operator: Operator, *, together: bool) -> str:
    """Return in SQL the values of a report of a stage among what leaves a level, NULL of all else."""
    if operator.unpack is not None:
        return f"IF({PART} = {each.join}, {REPORTS}, NULL)" if together else REPORTS
    return reported_to(operator.target) if together else REPORTED


def stageless(plan: PhysicalPlan) -> PhysicalPlan:
    """Return a plan for tasks around the stages: each would read these, of eight streams 56 steps."""
    return replace(plan, stages=())
