"""The state of a stage, taken out of one checkpoint and written for other workers.

A streaming query of one micro-batch writes that in Spark's store: so files, schema and metadata are those of
this Spark.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import MapState

from wjoin.executor import counted
from wjoin.executor.blocks import decode_block, decompressed
from wjoin.executor.routing import Router
from wjoin.executor.sites.ranges import HeldRows
from wjoin.executor.spark import messages
from wjoin.executor.spark.beginning import begin
from wjoin.executor.spark.messages import MESSAGES
from wjoin.executor.spark.operator import Operator, Operators
from wjoin.executor.spark.processor import Joining, JoinProcessor
from wjoin.executor.spark.state_store import MANIFEST
from wjoin.executor.spark.task import phase
from wjoin.executor.spark.warm import served
from wjoin.executor.spool import Spool, local_folder
from wjoin.executor.state.identity import fingerprint
from wjoin.executor.state.manifest import Manifest, decode_manifest, written_manifest
from wjoin.executor.state.marks import MATCHED, preserved_inputs
from wjoin.executor.state.moving import StageMove, moved_rows
from wjoin.executor.state.slices import Slice, piece_names
from wjoin.executor.state.worker_files import WorkerFiles, worker_folder
from wjoin.parts.routes.route import Role

STATE_OPERATOR = "transformWithStateInPandasExec"
"""What Spark calls an operator that keeps state as those of wjoin's stages do."""

Load = Callable[[Slice], pa.RecordBatch]
"""Returns the rows of a slice."""

Held = tuple[tuple[HeldRows, ...], ...]
"""What each input of a stage has at sites."""

ENTRIES_AT_ONCE = 8
"""Entries of state in one batch between Java and Python: each may be a few MiB."""

_MESSAGES_AT_ONCE = 64


def stored_manifests(spark: SparkSession, folder: str, operator: int) -> list[Manifest]:
    """Return the manifests of the workers of an operator of a checkpoint.

    Raises what Spark raises, and WJoinError WJ701.
    """
    rows = state_entries(spark, folder, operator).filter(F.col("name") == MANIFEST).collect()
    return [written_manifest(bytes(row.data)) for row in rows]


def filed_manifests(stage: Path, number: int, workers: int) -> list[Manifest]:
    """Return the manifests of a stage's workers after micro-batch ``number``; its state is in files.

    Raises WJoinError WJ701, and WJ719 where one is damaged.
    """
    found = (WorkerFiles(worker_folder(stage, place), number + 1).manifest() for place in range(workers))
    return [written_manifest(each) for each in found if each is not None]


def greatest(told: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the greatest time of each stream that the workers of a stage have been told."""
    found: dict[int, int] = {}
    for stream, time in (each for times in told for each in times.items()):
        found[stream] = max(time, found.get(stream, time))
    return found


def send_rows(spark: SparkSession, folder: str, operator: int, move: StageMove, to: str) -> None:
    """Write the rows that an operator of a checkpoint keeps as blocks for the new workers, into a folder."""
    entries = state_entries(spark, folder, operator)
    entries.mapInArrow(_Moving.of(move).entries, MESSAGES).write.mode("append").parquet(to)


def send_filed_rows(spark: SparkSession, stage: Path, number: int, move: StageMove, to: str) -> None:
    """Do as ``send_rows`` for a stage whose state after micro-batch ``number`` is in files."""
    workers = move.old_workers
    folders = [(worker, str(worker_folder(stage, place)), number + 1) for place, worker in enumerate(workers)]
    states = spark.createDataFrame(folders, "worker INT, folder STRING, number BIGINT")
    parted = states.repartition(len(workers), "worker")
    parted.mapInArrow(_Moving.of(move).files, MESSAGES).write.mode("append").parquet(to)


def send_times(
    spark: SparkSession, workers: Sequence[int], seen: Mapping[int, int], came: Mapping[int, int], to: str
) -> None:
    """Write what wakes each worker, and tells it the event times seen, into the folder of its rows.

    ``came``: when the last rows of streams came, where that counts.
    """
    told = [messages.wake(worker) for worker in workers]
    for worker in workers:
        told += [messages.progress(worker, *each, came.get(each[0])) for each in seen.items()]
    spark.createDataFrame(told, MESSAGES).coalesce(1).write.mode("append").parquet(to)


def write_state(
    spark: SparkSession,
    sent: str,
    move: StageMove | None,
    stretch: int,
    checkpoint: str,
    held: Held = (),
) -> None:
    """Write the state of a stage's new workers from what was sent them, as operator 0 of a new checkpoint.

    ``held``: what each input has at sites. Without a ``move`` what is written is the state of workers that
    have not begun. The session must have as many shuffle partitions as the state is for. Raises what Spark
    raises.
    """
    operator: Joining = _Nothing()
    if move is not None:
        logic = move.logic(stretch)
        begun = move.begun(logic, held)
        operator = _Refill(logic, move.new_workers, {}, move.fingerprint, None, None, None, begun=begun)
    rows = spark.readStream.schema(MESSAGES).parquet(sent)
    with served(spark):
        kept = rows.groupBy("worker").transformWithStateInPandas(
            JoinProcessor(operator), MESSAGES, "append", "none"
        )
    writer = kept.writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = begin(spark, writer.trigger(availableNow=True).start, "the query that writes the state anew")
    try:
        query.awaitTermination()
    finally:
        query.stop()


def write_files(
    spark: SparkSession, sent: str, move: StageMove, stretch: int, stage: Path, number: int, held: Held = ()
) -> None:
    """Write the state of a stage's new workers after micro-batch ``number`` into files, from what was sent.

    ``held`` as in ``write_state``. Raises what Spark raises.
    """
    logic, workers = move.logic(stretch), move.new_workers
    begun = move.begun(logic, held)
    operator = _Refill(logic, workers, {}, move.fingerprint, stage, None, None, begun=begun, number=number)
    rows = spark.read.schema(MESSAGES).parquet(sent).repartition(len(workers), "worker")
    rows.mapInArrow(Operators((operator,)).stream, MESSAGES).write.format("noop").mode("append").save()


def state_entries(spark: SparkSession, folder: str, operator: int, batch: int | None = None) -> DataFrame:
    """Return the entries of state of an operator, after a micro-batch: without one, the last committed."""
    reader = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", "state")
    if batch is not None:
        reader = reader.option("batchId", batch)
    return reader.load(folder).select(
        F.col("key.worker").alias("worker"),
        F.col("user_map_key.name").alias("name"),
        F.col("user_map_value.data").alias("data"),
    )


@dataclass(frozen=True)
class _Moving:
    """Brings what old workers keep of a stage to the new ones; the routers are by input.

    ``fingerprint`` and ``workers`` are those that the old workers' manifests have; rows of the inputs
    ``preserved`` come with their marks.
    """

    fingerprint: str
    workers: int
    before: tuple[Router, ...]
    after: tuple[Router, ...]
    preserved: tuple[int, ...]
    move: StageMove

    @classmethod
    def of(cls, move: StageMove) -> "_Moving":
        own = fingerprint(move.before, move.before.stages[move.number])
        preserved = preserved_inputs(move.before.stages[move.number])
        return cls(own, len(move.old_workers), move.old_routers, move.new_routers, preserved, move)

    @phase
    def files(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Bring what is in files (``filed_states``)."""
        for row, manifest, load in filed_states(batches):
            yield from self._sent(row["worker"], manifest, load)

    @phase
    def entries(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Bring what is in entries of Spark's state."""
        for worker, manifest, load in stored_states(batches):
            yield from self._sent(worker, manifest, load)

    def _sent(self, worker: int, manifest: bytes, load: Load) -> Iterator[pa.RecordBatch]:
        found = self._blocks(worker, decode_manifest(manifest, self.fingerprint, self.workers), load)
        while some := list(itertools.islice(found, _MESSAGES_AT_ONCE)):
            yield messages.batch(some)

    def _blocks(self, worker: int, manifest: Manifest, load: Load) -> Iterator[messages.Message]:
        for number, group in enumerate(manifest.slices):
            for each in group:
                kept = load(each)
                if number in self.preserved:
                    known = manifest.marks.get(each.name)
                    none = pa.array([False] * kept.num_rows, pa.bool_())
                    marks = none if known is None else load(known).column(MATCHED)
                    kept = kept.append_column(MATCHED, marks)
                for to, rows in moved_rows(self.before[number], self.after[number], worker, kept):
                    yield from messages.blocks(to, number, Role.STORE, rows)
        move, groups = self.move, [[load(each) for each in group] for group in manifest.counted]
        place = move.old_workers.index(worker)
        told = counted.moved_ticks(move.before, move.after, move.number, place, groups, move.new_workers)
        for window, workers, ticks in told:
            yield from messages.ticks(workers, window, ticks)
        for number, held in counted.moved_rows(move.before, move.number, groups):
            for to, rows in moved_rows(self.before[number], self.after[number], worker, held):
                yield from messages.blocks(to, number, Role.STORE, rows)
        for to, rows in counted.moved_results(move.after, move.number, groups, move.new_workers):
            yield from messages.waiting(to, rows)


@dataclass(frozen=True)
class Entries:
    """The entries of one worker's state, mapped from disk."""

    found: dict[str, pa.RecordBatch] = field(default_factory=dict)

    @classmethod
    def of_workers(cls, batches: Iterable[pa.RecordBatch], spool: Spool) -> "dict[int, Entries]":
        """Return the entries of all workers of a partition, by worker."""
        states: dict[int, Entries] = {}
        for batch in batches:
            for place in range(batch.num_rows):
                entry = batch.slice(place, 1)
                worker, name = (entry.column(each)[0].as_py() for each in ("worker", "name"))
                # The manifest, which tells what the others are, may come last.
                states.setdefault(worker, cls()).put(name, spool.put(entry.select(["data"])))
        return states

    def put(self, name: str, entry: pa.RecordBatch) -> None:
        """Take an entry: a batch of one row."""
        self.found[name] = entry

    def data(self, name: str) -> bytes:
        """Return the bytes of an entry."""
        return bytes(self.found[name].column("data")[0].as_py())

    def slice(self, stored: Slice) -> pa.RecordBatch:
        """Return the rows of a slice."""
        names = piece_names(stored.name, stored.pieces)
        return decode_block(b"".join(decompressed(self.data(name), stored.compression) for name in names))


def filed_states(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Mapping[str, Any], bytes, Load]]:
    """Yield what workers keep in files: their rows, which name a folder and the micro-batch to come, their
    manifests, and what loads their slices. Left out are those that have no manifest."""
    for batch in batches:
        for row in batch.to_pylist():
            state = WorkerFiles(Path(row["folder"]), row["number"])
            manifest = state.manifest()
            if manifest is not None:
                yield row, manifest, state.load


def stored_states(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes, Load]]:
    """Yield what workers keep in entries of Spark's state: their numbers, and as ``filed_states`` does."""
    spool = Spool(local_folder())
    for worker, state in Entries.of_workers(batches, spool).items():
        yield worker, state.data(MANIFEST), state.slice
    spool.close()


@dataclass(frozen=True)
class _Refill(Operator):
    """The operator of a stage whose workers keep what they get, by the rules of its plan at once."""

    begun: Manifest = field(kw_only=True)
    number: int = field(default=0, kw_only=True)

    def _manifest(self, state: object) -> Manifest:
        return self.begun

    def _micro_batch(self) -> int:
        return self.number


@dataclass(frozen=True)
class _Nothing:
    """What keeps nothing."""

    def join(self, worker: int, state: MapState, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Take what comes, and leave the state empty."""
        for _ in frames:
            yield from ()
