"""The rows that the state of a join has, as a DataFrame: what they are, and for what each waits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from wjoin.executor.blocks import restored
from wjoin.executor.lacking import there_name
from wjoin.executor.spark.moved_state import Load, filed_states, state_entries, stored_states
from wjoin.executor.spark.site_source import arrow_schema
from wjoin.executor.spark.task import phase
from wjoin.executor.state.kept_columns import KeptColumn, KeptJoin
from wjoin.executor.state.manifest import Manifest, written_manifest
from wjoin.executor.state.marks import MATCHED
from wjoin.executor.state.worker_files import worker_folder
from wjoin.parts.kernels.runs import GREATEST, LEAST, BoolArray, Int64Array, int64_view, shifted
from wjoin.planner.plan.block_columns import quoted, time_name
from wjoin.planner.plan.stage_kinds import Retention

OWN = ("stage", "worker", "stream", "kept_until", "waits_for", "matched", "bytes")
"""The columns that rows of every state have."""


@dataclass(frozen=True)
class Place:
    """A stage with state: its number, and where that is.

    Files of a folder with so many workers, or an operator of a checkpoint.
    """

    stage: int
    folder: str
    workers: int = 0
    operator: int = 0


def filed_rows(spark: SparkSession, places: Sequence[Place], number: int, join: KeptJoin) -> DataFrame:
    """Return the rows of a join whose state after micro-batch ``number`` is in files."""
    folders = [
        (each.stage, worker, str(worker_folder(Path(each.folder), worker)), number + 1)
        for each in places
        for worker in range(each.workers)
    ]
    states = spark.createDataFrame(folders, "stage INT, worker INT, folder STRING, number BIGINT")
    showing = Showing.of(join, 0)
    return _structs(join, states.repartition(len(folders)).mapInArrow(showing.files, showing.schema))


def stored_rows(spark: SparkSession, place: Place, number: int, join: KeptJoin) -> DataFrame:
    """Return the rows of a stage whose state after micro-batch ``number`` is in Spark's store."""
    showing = Showing.of(join, place.stage)
    entries = state_entries(spark, place.folder, place.operator, number)
    return _structs(join, entries.mapInArrow(showing.entries, showing.schema))


def _flat(stream: int, column: str) -> str:
    return f"s{stream}_{column.lower()}"


def _columns(join: KeptJoin) -> dict[str, KeptColumn]:
    """Return the columns of all streams, by the names that they have on their way."""
    found: dict[str, KeptColumn] = {}
    for each in (column for stage in join.stages for own in stage.inputs for column in own.columns):
        found.setdefault(_flat(each.stream, each.name), each)
    return found


def _structs(join: KeptJoin, rows: DataFrame) -> DataFrame:
    """Return rows with a STRUCT for each stream, NULL where they have no row of it."""
    members: dict[int, list[str]] = {}
    for name, each in _columns(join).items():
        members.setdefault(each.stream, []).append(f"{quoted(name)} AS {quoted(each.name)}")
    made = []
    for stream, columns in sorted(members.items()):
        struct = f"CASE WHEN {there_name(stream)} THEN struct({', '.join(columns)}) END"
        # The names of columns and of streams are not to be confused.
        made.append(F.expr(struct).alias(join.aliases[stream]))
    return rows.select(*OWN, *made)


@dataclass(frozen=True)
class Showing:
    """Makes rows of state for people; sent to Spark's Python workers. ``stage``: that of entries."""

    join: KeptJoin
    stage: int
    schema: StructType
    arrow: pa.Schema

    @classmethod
    def of(cls, join: KeptJoin, stage: int) -> "Showing":
        """Return what makes rows of a join; needs a session of Spark."""
        there = (f"{there_name(number)} BOOLEAN" for number in range(len(join.aliases)))
        columns = (f"{quoted(name)} {each.type}" for name, each in _columns(join).items())
        own = (
            f"stage INT, worker INT, stream STRING, kept_until {join.time}, "
            f"waits_for MAP<STRING, {join.time}>, matched BOOLEAN, bytes DOUBLE"
        )
        schema: Any = StructType.fromDDL(", ".join([own, *there, *columns]))
        return cls(join, stage, schema, arrow_schema(schema))

    @phase
    def files(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what is in files (``filed_states``), by the numbers of stages and workers."""
        for row, manifest, load in filed_states(batches):
            yield from self.rows(row["stage"], row["worker"], written_manifest(manifest), load)

    @phase
    def entries(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what is in entries of Spark's state."""
        for worker, manifest, load in stored_states(batches):
            yield from self.rows(self.stage, worker, written_manifest(manifest), load)

    def rows(self, stage: int, worker: int, manifest: Manifest, load: Load) -> Iterator[pa.RecordBatch]:
        """Yield what a worker of a stage keeps, by its manifest."""
        own = self.join.stages[stage]
        rules = ((),) * len(own.inputs) if manifest.writing is None else manifest.writing.retentions
        for each, slices, retentions in zip(own.inputs, manifest.slices, rules, strict=True):
            for stored in slices:
                marks = manifest.marks.get(stored.name)
                batch = load(stored)
                count, names = batch.num_rows, batch.schema.names
                if not count:
                    continue
                there = {
                    stream: _mask(batch, there_name(stream)) if there_name(stream) in names else None
                    for stream in each.members
                }
                times = {stream: int64_view(batch.column(time_name(stream))) for stream in each.members}
                until, waits = self._waits(stage, retentions, times, manifest.seen, count)
                matched = pa.nulls(count, pa.bool_())
                if each.marked:
                    matched = (
                        pa.array(np.zeros(count, bool)) if marks is None else load(marks).column(MATCHED)
                    )
                size = stored.size + (0 if marks is None else marks.size)
                found: dict[str, pa.Array] = {
                    "stage": pa.repeat(pa.scalar(stage + 1, pa.int32()), count),
                    "worker": pa.repeat(pa.scalar(worker, pa.int32()), count),
                    "stream": self._streams(there, count),
                    "kept_until": until,
                    "waits_for": waits,
                    "matched": matched,
                    "bytes": pa.repeat(pa.scalar(size / count), count),
                }
                for stream, mask in there.items():
                    found[there_name(stream)] = pa.array(np.ones(count, bool) if mask is None else mask)
                for column in each.columns:
                    kind = self.arrow.field(_flat(column.stream, column.name)).type
                    found[_flat(column.stream, column.name)] = _as(batch.column(column.block), kind)
                yield self._whole(found, count)

    def _streams(self, there: Mapping[int, BoolArray | None], count: int) -> pa.Array:
        """Return the names of the streams that rows have a row of."""
        names: list[list[str]] = [
            [] for _ in range(count if any(m is not None for m in there.values()) else 1)
        ]
        for stream, mask in there.items():
            for place, each in enumerate(names):
                if mask is None or mask[place]:
                    each.append(self.join.aliases[stream])
        told = [", ".join(each) for each in names]
        return pa.repeat(pa.scalar(told[0]), count) if len(told) < count else pa.array(told)

    def _whole(self, found: Mapping[str, pa.Array], count: int) -> pa.RecordBatch:
        columns = [
            found[each.name].cast(each.type) if each.name in found else pa.nulls(count, each.type)
            for each in self.arrow
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.arrow)

    def _waits(
        self,
        stage: int,
        retentions: Sequence[Retention],
        times: Mapping[int, Int64Array],
        seen: Mapping[int, int],
        count: int,
    ) -> tuple[pa.Array, pa.Array]:
        """Return until when rows are kept, and the watermarks that must pass what for them to go.

        NULL stands for ever. A row for which nothing waits goes when its slice is written anew.
        """
        passing, ends = self.join.stages[stage].passing, dict[int, Int64Array]()
        for rule in retentions:
            known = [shifted(times[m], far, GREATEST) for m, far in rule.distances if far is not None]
            end = np.minimum.reduce(known) if known else np.full(count, GREATEST)
            for stream, later in passing[rule.stream].items():
                own = np.where(
                    end == GREATEST, GREATEST, shifted(end, later, GREATEST if later > 0 else LEAST)
                )
                ends[stream] = np.maximum(own, ends[stream]) if stream in ends else own
        if not ends:
            return pa.nulls(count, pa.int64()), pa.nulls(count, pa.map_(pa.string(), pa.int64()))
        streams = sorted(ends)
        until = np.stack([ends[stream] for stream in streams], axis=1)
        marks = [seen[each] - self.join.delays[each] if each in seen else LEAST for each in streams]
        waits = until >= np.array(marks)
        latest = np.where(waits.any(1), np.where(waits, until, LEAST).max(1), until.max(1))
        names = np.array([self.join.aliases[each] for each in streams])
        keys = np.broadcast_to(names, waits.shape)[waits]
        offsets = np.concatenate([[0], np.cumsum(waits.sum(1))]).astype(np.int32)
        told = pa.MapArray.from_arrays(
            pa.array(offsets), pa.array(keys, pa.string()), self._time(until[waits])
        )
        return self._time(latest), told

    def _time(self, values: Int64Array) -> pa.Array:
        return restored(pa.array(values, mask=values == GREATEST), self.join.time)


def _mask(batch: pa.RecordBatch, name: str) -> BoolArray:
    return np.asarray(batch.column(name).to_numpy(zero_copy_only=False), bool)


def _as(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column of a slice in a type of Arrow's: keys and times are whole numbers there."""
    if not pa.types.is_int64(values.type) or pa.types.is_int64(kind):
        return values
    if pa.types.is_timestamp(kind):
        return values.view(pa.timestamp("us", kind.tz))
    return values.cast(pa.int32()).cast(kind) if pa.types.is_date32(kind) else values.cast(kind)
