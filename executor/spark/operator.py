"""The join operator: one stage under a map of partitions, or under Spark's transformWithState.

A map joins tables, and streams whose state is in files.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState

from wjoin.executor.arrivals import Arrivals
from wjoin.executor.blocks import concatenate, decode_block
from wjoin.executor.counted import passed_on
from wjoin.executor.counts import Counts
from wjoin.executor.faults import fault_point
from wjoin.executor.made import PAST, Made
from wjoin.executor.node_state import Measuring, chooser_at
from wjoin.executor.nodes import Nodes
from wjoin.executor.report import PLACES, Report
from wjoin.executor.routing import Router
from wjoin.executor.shared_parts import SharedParts
from wjoin.executor.shedding import over_limit
from wjoin.executor.silence import with_later
from wjoin.executor.sites.ranges import Announced
from wjoin.executor.spark import messages
from wjoin.executor.spark.cache import cache_of_this_process
from wjoin.executor.spark.state_folder import handed
from wjoin.executor.spark.state_store import StoredState
from wjoin.executor.spark.task import clock_of, micro_batch, partition, phase, unbroken
from wjoin.executor.spark.timed_state import TimedSlices, Watches, WorkerState
from wjoin.executor.spark.unpack import Unpack
from wjoin.executor.spark.watch import Watch
from wjoin.executor.spool import Spool, local_folder
from wjoin.executor.state.manifest import Manifest, decode_manifest, written_manifest
from wjoin.executor.state.worker_files import WorkerFiles, stage_folder, worker_folder
from wjoin.executor.step import StageLogic
from wjoin.executor.stored_results import State, stored_results, with_histories
from wjoin.executor.stretches import Arrived
from wjoin.executor.workers import partition_of
from wjoin.parts.kernels.runs import GREATEST, LEAST
from wjoin.parts.routes.hash_route import HashRoute
from wjoin.parts.routes.route import Role
from wjoin.planner.plan.shedding_models import Shedding
from wjoin.planner.plan.to_come import least_to_come

REPORTS = "__wjoin_reports"
"""The column of rows that leave as columns which has the values of a report."""

PART = "__wjoin_part"
"""The column that tells the results of several joins apart, by their numbers."""

_REPORTED = pa.list_(pa.int64())

_TOGETHER_BYTES = 1 << 22


@dataclass(frozen=True)
class _Work:
    """A part of what a worker has done: results, and messages that are told beside them."""

    made: list[Made]
    told: list[messages.Message]


def part_column(name: str, number: int) -> str:
    """Return the name of a column of a join's results among those of others."""
    return f"{name}_{number}"


def task_name(query: object, part: object) -> str:
    """Return under what name a part of a join stands in a plan of Spark's."""
    return f"wjoin_{query}_{part}"


@dataclass(frozen=True)
class Operator:
    """A stage with its workers, and the routers of its results; sent to Spark's Python workers.

    There is one by each input of the next stage that results are for; without any, they leave the stages.
    ``folder`` is that of the stage's state where this is in files: a relative one below what the tasks are
    told (``HANDED``). ``unpack`` makes rows of the results of the last stage, which then leave as columns,
    and each report as a row that has nothing but ``REPORTS``. ``shedding``: how the join sheds, and what
    limits its state; None where nothing does either. ``later``: how far streams have come at later stages
    once all have ended, where no files tell it.
    """

    logic: StageLogic
    workers: tuple[int, ...]
    routers: Mapping[int, Router]
    fingerprint: str
    folder: Path | None
    unpack: Unpack | None
    shedding: Shedding | None
    later: Mapping[int, int] = field(default_factory=dict)

    @phase
    def batch(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Join the blocks of the workers of one partition, all inputs complete."""
        return self._left(self._batch_work(batches))

    def _batch_work(self, batches: Iterator[pa.RecordBatch]) -> Iterator[_Work]:
        for worker, arrivals in _arrived([self], batches)[0].items():
            counts = Counts()
            for made in self.logic.batch(arrivals, counts):
                yield _Work([made], [])
            yield _Work([], list(self._ticks(worker, arrivals)))
            # For the meter: a next stage reads nothing from it.
            yield _Work([], [messages.report(self.target, messages.NO_STREAM, counts.stage)])
            arrivals.spool.close()

    def _left(self, work: Iterator[_Work]) -> Iterator[pa.RecordBatch]:
        """Yield what leaves a stage: messages, or the rows of results and the reports."""
        if self.unpack is None:
            for done in work:
                yield messages.batch([*self._all_messages(done.made), *done.told])
            return
        told: list[messages.Message] = []
        schema = self.unpack.schema
        waiting, working = Watch(), Watch()
        for rows in working.over(self.unpack.unpacked(waiting.over(_results(work, told)))):
            schema = rows.schema
            yield _with_reports(rows)
        marks = [int(str(each["seen"])) for each in told if each["kind"] == messages.PROGRESS]
        if marks and self.unpack.marked:
            yield _with_reports(self.unpack.mark(schema, max(marks)))
        reports: list[Any] = [each["counts"] for each in told if each["kind"] == messages.REPORT]
        if reports:
            reports[0][PLACES["making"]] += working.microseconds - waiting.microseconds
        nothing = [pa.nulls(len(reports), each.type) for each in schema]
        yield _with_reports(pa.RecordBatch.from_arrays(nothing, schema=schema), reports)

    def no_arrivals(self) -> Arrivals:
        """Return what a worker has before its first message."""
        inputs: list[Arrived] = [[] for _ in self.logic.stage.inputs]
        return Arrivals(inputs, spool=Spool(local_folder()), by_key=self.logic.by_key)

    def take(self, arrivals: Arrivals, row: Mapping[Any, Any], shares: int = 1) -> None:
        """Add to arrivals what a message brings; so many operators share the memory for what arrives."""
        number = row["number"]
        if messages.is_block(row):
            logic = self.logic
            block = logic.lacking.filled(number, decode_block(row["block"]))
            arrivals.add(number, Role(row["kind"]), block, logic.shapes, logic.held // shares)
        elif row["kind"] == messages.PROGRESS and (number < 0 or number in self.logic.streams):
            messages.take_progress(arrivals, row)
        elif row["kind"] == messages.ANNOUNCED:
            new = Announced(*(int(each) for each in row["counts"]))
            arrivals.announced.setdefault(number, []).append(new)
        elif row["kind"] == messages.TICKS:
            ticks = arrivals.spool.put(decode_block(row["block"]))
            arrivals.ticks.setdefault(number, []).append(ticks)
        elif row["kind"] == messages.WAITING:
            arrivals.waiting.append(arrivals.spool.put(decode_block(row["block"])))
        elif row["kind"] == messages.LATE_ROWS:
            arrivals.past.append(arrivals.spool.put(decode_block(row["block"])))
        elif row["kind"] == messages.REPORT and self._enters(number):
            arrivals.told.setdefault(number, Report()).merge(row["counts"])

    def _enters(self, stream: int) -> bool:
        inputs = self.logic.stage.inputs
        return any(each.stage is None and each.members[0] == stream for each in inputs)

    @property
    def _next_workers(self) -> tuple[int, ...]:
        """The workers of the next stage, none after the last."""
        return next((router.workers for router in self.routers.values()), ())

    @property
    def target(self) -> int:
        """The worker that what is told once is addressed to."""
        return next(iter(self._next_workers), messages.OUT)

    def result_messages(self, result: pa.RecordBatch, to: int | None) -> Iterator[messages.Message]:
        """Yield the blocks of one batch of results, which is for input ``to`` of the next stage."""
        if to is None or (to == PAST and not self.routers):
            yield from messages.blocks(messages.OUT, 0, Role.BOTH, result)
            return
        if to == PAST:
            yield from messages.late_rows(self.target, result)
            return
        yield from messages.routed(self.routers[to], result)

    def _all_messages(self, made: Sequence[Made]) -> Iterator[messages.Message]:
        """Yield the blocks of many batches, those for one input together."""
        for to in dict.fromkeys(each.to for each in made):
            for rows in _alike([each.rows for each in made if each.to == to]):
                yield from self.result_messages(rows, to)

    def last_messages(
        self, worker: int, after: Manifest, arrivals: Arrivals, counts: Counts
    ) -> Iterator[messages.Message]:
        """Yield the report of a micro-batch, and the progress: for the next stage, or of the results."""
        of_streams = []
        for stream in self.logic.stage.members:
            counted = counts.of(stream)
            counted.add("delay", self.logic.plan.streams[stream].delay)
            if stream in arrivals.told:
                counted.merge(arrivals.told[stream].values)
            of_streams.append(counted)
        yield messages.report(self.target, messages.NO_STREAM, counts.stage, *of_streams)
        if worker == self.workers[0]:
            yield from map(messages.wake, self._next_workers)
            # All workers of a stage have been told the same.
            for other in self._next_workers:
                for stream, seen in after.seen.items():
                    yield messages.progress(other, stream, seen, after.came.get(stream))
                if arrivals.ended:
                    yield messages.ended(other)
                if arrivals.clock is not None:
                    yield messages.progress(other, messages.CLOCK, arrivals.clock)
            mark = None if self.routers else least_to_come(self.logic.plan, after.seen)
            if mark is not None:
                # Any other time of 64 bits is a bound as well as one beyond them.
                yield messages.progress(messages.OUT, messages.NO_STREAM, max(LEAST, min(GREATEST, mark)))

    def _ticks(self, worker: int, arrivals: Arrivals) -> Iterator[messages.Message]:
        """Yield what windows of rows count, which the next stage is to know, too."""
        plan, number, place = self.logic.plan, self.logic.number, self.workers.index(worker)
        told = passed_on(plan, number, place, arrivals.ticks, self._next_workers)
        for window, workers, rows in told:
            yield from messages.ticks(workers, window, rows)

    def worked_off(self, arrived: Mapping[int, Arrivals], watches: Watches) -> Iterator[pa.RecordBatch]:
        """Join what has come for some workers with their state, which is in files; yield what leaves.

        ``watches``: the time in which the task has waited for it.
        """
        choosing = self._choosing()
        return choosing._left(choosing._files_work(arrived, watches))

    def _choosing(self) -> "Operator":
        """Return it as it decides in the micro-batch that a task works for, where an approximate join goes on
        in the next stage."""
        if self.folder is None or not any(router.nodes for router in self.routers.values()):
            return self
        later, number = stage_folder(handed(self.folder).parent, self.logic.number + 1), self._micro_batch()
        routers = {
            to: router
            if router.nodes is None
            else replace(router, chooser=chooser_at(router.nodes, later, number))
            for to, router in self.routers.items()
        }
        return replace(self, routers=routers)

    def _files_work(self, arrived: Mapping[int, Arrivals], watches: Watches) -> Iterator[_Work]:
        if self.folder is None:
            raise AssertionError("the state is not in files")
        folder, number = handed(self.folder), self._micro_batch()
        for worker, arrivals in arrived.items():
            if self.logic.plan.clocked and arrivals.clock is None:
                arrivals.clock = clock_of(folder.parents[3], number)
            state = WorkerFiles(worker_folder(folder, self.workers.index(worker)), number)
            yield from self._worked(worker, state, arrivals, watches)
            watches = Watches()

    def _micro_batch(self) -> int:
        return micro_batch()

    @phase
    def join(self, worker: int, state: MapState, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Join the new blocks of one worker with its state, which Spark has, and with each other."""
        arrivals, watches = self.no_arrivals(), Watches()
        with watches.gathering.running():
            for frame in frames:
                for row in frame.to_dict("records"):
                    self.take(arrivals, row)
        stored = StoredState(state, cache_of_this_process())
        for done in self._worked(worker, stored, arrivals, watches):
            sent = [*self._all_messages(done.made), *done.told]
            yield pd.DataFrame(sent, columns=messages.SCHEMA.names)

    def _worked(
        self, worker: int, state: WorkerState, arrivals: Arrivals, watches: Watches
    ) -> Iterator[_Work]:
        """Yield what a worker makes of new rows; the state is written before the last of it."""
        keeping, working = watches.keeping, Watch()
        with keeping.running():
            manifest = self._manifest(state)
        read = keeping.seconds
        fault_point("state-read")
        counts = Counts(shared=self._shared_parts(), measuring=self._measuring(worker, state, arrivals))
        after = manifest
        waiting: list[Made] = []
        place = self.workers.index(worker)
        store = TimedSlices(state, keeping)
        stored = partial(self._stored, (manifest, store), place, state)
        for before in working.over(stored_results(self.logic, place, len(self.workers), stored)):
            yield _Work([Made(before, None)], [])
        manifest = with_histories(self.logic, manifest)
        if self.logic.plan.asks_later and isinstance(state, WorkerFiles):
            manifest, arrivals.whole = with_later(manifest, self._later(state)), True
        joined = self.logic.stream(manifest, store, arrivals, counts, place)
        for result in working.over(joined):
            if isinstance(result, Manifest):
                told = counts.measuring
                after = result if told is None else told.after(manifest, result, store, counts.stage)
                continue
            waiting.append(result)
            # A batch of its own costs more than the rows of a small result.
            if sum(each.rows.nbytes for each in waiting) > _TOGETHER_BYTES:
                yield _Work(waiting, [])
                waiting = []
        for past in arrivals.past:
            yield _Work([Made(past, PAST)], [])
        yield _Work([], list(self._ticks(worker, arrivals)))
        self._refuse_above_limit(after)
        if counts.shared is not None:
            counts.stage.add("squares", counts.shared.squares(len(self.workers)))
        fault_point("before-state-write")
        counts.stage.add("joining", round(1e6 * (working.seconds - (keeping.seconds - read))))
        with keeping.running():
            # The next stages are told what this one has decided by, and not what it has only learned.
            known = with_later(after, [replace(after, seen=dict(self.later))]) if arrivals.ended else after
            state.commit(known.encode())
        counts.stage.add("keeping", keeping.microseconds)
        counts.stage.add("gathering", watches.gathering.microseconds)
        yield _Work(waiting, list(self.last_messages(worker, after, arrivals, counts)))
        arrivals.spool.close()

    def _measuring(self, worker: int, state: WorkerState, arrivals: Arrivals) -> Measuring | None:
        """Return what measures at a node of an approximate join, None of an exact one."""
        plan, stage = self.logic.plan, self.logic.stage
        nodes = Nodes.of(plan, stage, len(self.workers))
        if nodes is None or not isinstance(state, WorkerFiles):
            return None
        place = self.workers.index(worker)
        chooser = chooser_at(nodes, state.folder.parent, state.number)
        found = Measuring.of(plan, stage, nodes, place, chooser)
        found.arrived(arrivals.blocks, stage.inputs)
        return found

    def _shared_parts(self) -> SharedParts | None:
        """Return what counts results by their parts, None where none are shed."""
        if self.shedding is None or not self.shedding.sheds:
            return None
        stage = self.logic.stage
        by_key = all(each.key is not None for each in stage.inputs)
        plain = len(self.logic.plan.stages) > 1
        return SharedParts(by_key, plain, by_key and stage.placement.route == HashRoute.name)

    def _refuse_above_limit(self, after: Manifest) -> None:
        """Refuse a state of one worker that is above the limit of all. Raises WJoinError WJ725."""
        limit = None if self.shedding is None or not self.shedding.refuses else self.shedding.rules.memory
        used = sum(each.size for each in after.all_slices)
        if limit is not None and used > limit:
            raise over_limit("wjoin.memory", used, limit)

    def _stored(self, own: State, place: int, state: WorkerState, other: int) -> State:
        """Return what a worker has stored, by its place; of others that is known where it is in files."""
        if other == place:
            return own
        if not isinstance(state, WorkerFiles):
            raise AssertionError("no worker reads the state of another one in Spark's store")
        files = WorkerFiles(worker_folder(state.folder.parent, other), state.number)
        return self._manifest(files), files

    def _later(self, state: WorkerFiles) -> Iterator[Manifest]:
        """Yield what later stages knew before the micro-batch: all workers of a stage know the same."""
        for number in range(self.logic.number + 1, len(self.logic.plan.stages)):
            own = worker_folder(stage_folder(state.folder.parent.parent, number), 0)
            if (stored := WorkerFiles(own, state.number).manifest()) is not None:
                yield written_manifest(stored)

    def _manifest(self, state: WorkerState) -> Manifest:
        stored = state.manifest()
        if stored is None:
            return Manifest.fresh(self.fingerprint, len(self.workers), len(self.logic.stage.inputs))
        return decode_manifest(stored, self.fingerprint, len(self.workers))


@dataclass(frozen=True)
class Operators:
    """The stages of several joins that the same tasks work off, each with workers and state of its own.

    The state is in files. ``parts`` are the schemas of the rows of each by the numbers of the joins, where
    rows leave: their columns then end with that number, and ``PART`` tells it. One join by itself has none.
    ``tasks``: how many there are.
    """

    operators: tuple[Operator, ...]
    parts: Mapping[int, pa.Schema] = field(default_factory=dict)
    tasks: int = 1

    @phase
    def stream(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Join the new blocks of the workers of one partition with their state."""
        watches = Watches()
        with watches.gathering.running():
            arrived = _arrived(self.operators, unbroken(batches))
            for operator, came in zip(self.operators, arrived, strict=True):
                self._wake(operator, came)
        numbers = self.parts or dict.fromkeys(range(len(self.operators)))
        for operator, own, number in zip(self.operators, arrived, numbers, strict=True):
            made = operator.worked_off(own, watches)
            yield from (self._of_part(number, rows) for rows in made) if self.parts else made
            # The task has waited once.
            watches = Watches()

    def _wake(self, operator: Operator, arrived: dict[int, Arrivals]) -> None:
        """Have the workers of this partition work for which nothing came, where silence may decide rows.

        In a tree of joins a stream goes on where it enters, also when only others send rows.
        """
        if not operator.logic.plan.clocked or not operator.logic.plan.tree:
            return
        for worker in operator.workers:
            if worker not in arrived and partition_of(worker, self.tasks) == partition():
                arrived[worker] = operator.no_arrivals()

    def _of_part(self, number: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of a join among the columns of all."""
        count = rows.num_rows
        columns: dict[str, pa.Array] = {PART: pa.repeat(pa.scalar(number, pa.int32()), count)}
        for part, schema in self.parts.items():
            for each in schema:
                # Batches of a task have one schema: that of what leaves first.
                own = rows.column(each.name).cast(each.type) if part == number else pa.nulls(count, each.type)
                columns[part_column(each.name, part)] = own
        return pa.RecordBatch.from_pydict({**columns, REPORTS: rows.column(REPORTS)})


def _arrived(operators: Sequence[Operator], batches: Iterator[pa.RecordBatch]) -> list[dict[int, Arrivals]]:
    """Return what has come for the workers of one partition, for each stage."""
    arrived: list[dict[int, Arrivals]] = [{} for _ in operators]
    stages = {worker: number for number, each in enumerate(operators) for worker in each.workers}
    for batch in batches:
        for row in _arrow_rows(batch):
            number, worker = stages[row["worker"]], row["worker"]
            if worker not in arrived[number]:
                arrived[number][worker] = operators[number].no_arrivals()
            operators[number].take(arrived[number][worker], row, len(operators))
    return arrived


def _with_reports(rows: pa.RecordBatch, reports: list[Any] | None = None) -> pa.RecordBatch:
    """Return rows with the values of reports, which results have none of."""
    schema = rows.schema.append(pa.field(REPORTS, _REPORTED))
    values = pa.nulls(rows.num_rows, _REPORTED) if reports is None else pa.array(reports, _REPORTED)
    return pa.RecordBatch.from_arrays([*rows.columns, values], schema=schema)


def _results(work: Iterator[_Work], told: list[messages.Message]) -> Iterator[pa.RecordBatch]:
    """Yield the results; add to ``told`` what is told beside them."""
    for done in work:
        told += done.told
        yield from _alike([each.rows for each in done.made])


def _alike(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches, together those that have the same columns: some lack those of a stream."""
    groups: list[list[pa.RecordBatch]] = []
    for batch in batches:
        group = next((each for each in groups if each[0].schema == batch.schema), None)
        if group is None:
            groups.append([batch])
        else:
            group.append(batch)
    yield from map(concatenate, groups)


def _arrow_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield messages with their blocks not copied."""
    for row, block in zip(batch.drop_columns(["block"]).to_pylist(), batch.column("block"), strict=True):
        yield {**row, "block": block.as_buffer() if block.is_valid else None}
