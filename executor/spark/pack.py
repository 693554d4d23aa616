"""Pack: the rows of one stream to tuple blocks, for the workers of its joins, with what was counted."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.executor.blocks import concatenate, gathered, stable, value_bytes
from wjoin.executor.counted import shares, told_ticks
from wjoin.executor.late_rows import Suspects
from wjoin.executor.node_state import chooser_at
from wjoin.executor.report import NOTHING_SEEN, Report
from wjoin.executor.routing import Router
from wjoin.executor.shedding import Decision, Shedder
from wjoin.executor.spark import messages
from wjoin.executor.spark.column_blocks import column_batches
from wjoin.executor.spark.state_folder import handed
from wjoin.executor.spark.task import micro_batch, phase
from wjoin.executor.spark.watch import Watch
from wjoin.parts.kernels.runs import LEAST, integers
from wjoin.parts.routes.route import Role
from wjoin.planner.plan.ahead import greatest_time
from wjoin.planner.plan.block_columns import code_name, stored_column, time_name
from wjoin.planner.plan.edges import scan_columns
from wjoin.planner.plan.physical import PhysicalPlan

KEEP = "__wjoin_keep"
"""The column that tells whether a row passes its stream's filters."""

MEETS = "__wjoin_meets"
"""The column that tells whether a row can meet others where it enters; Pack has it where not all can."""

AHEAD = "__wjoin_ahead"
"""The column that tells whether a row is too far ahead; Pack has it where a limit is declared."""

CLOCK_COLUMN = "__wjoin_clock"
"""The column with the clock of the micro-batch; Pack has it where a stream of the join may be silent."""

GATHERED_BYTES = 1 << 24
"""Bytes that are packed at once at the most."""

_INTEGER_BYTES = 8

_MILLION = 1_000_000


@dataclass(frozen=True)
class Pack:
    """Packs one stream for a stage input that reads it.

    Its batches have the columns of a scan: the event time, whether the row is too far ahead where a limit is
    declared, the filter's verdict where there is a filter, the clock of the micro-batch where a stream may be
    silent, then codes and scan columns under the names of a block; ``columns`` are those that travel on. The
    stages of the plan are not read. ``names``: under which names what is read has them, None where those are
    their own. ``shedder``: what sheds rows when the join is overloaded, None where nothing does. ``alone``:
    whether rows that meet no other are results. ``codes``: the names of the keys without one of which a row
    meets no other. ``suspects``: what chooses the rows that may be late, None where late rows go to no sink.
    ``counting``: the windows of rows that count those of the stream, and by which code of their key what they
    count goes, None where it goes to all workers. ``stage``: where the state of the stage is, None where that
    is not in files. ``only_late``: no more travels than rows that may be late, and how far the stream has
    come; its batches then have the columns of ``scans.late_scanned``.
    """

    plan: PhysicalPlan
    columns: tuple[str, ...]
    router: Router
    names: Mapping[str, str] | None = None
    shedder: Shedder | None = None
    alone: bool = False
    codes: tuple[str, ...] = ()
    suspects: Suspects | None = None
    counting: Mapping[int, int | None] = field(default_factory=dict)
    stage: Path | None = None
    only_late: bool = False

    def choosing(self) -> "Pack":
        """Return it as it decides in the micro-batch that a task works for, in an approximate join."""
        nodes = self.router.nodes
        if self.stage is None or nodes is None:
            return self
        chooser = chooser_at(nodes, handed(self.stage), micro_batch())
        return replace(self, router=replace(self.router, chooser=chooser))

    def blocks(
        self, read: pa.RecordBatch, counted: Report, decided: Decision | None, before: int, *, whole: bool
    ) -> Iterator[pa.RecordBatch]:
        """Yield messages with rows that are read; ``whole``: they are all that the task has.

        ``decided``: what is decided of shedding in the micro-batch; rows ``before`` a time may be late.
        """
        streaming = self.plan.streaming
        given = self._own(read)
        if CLOCK_COLUMN in given.schema.names and given.num_rows:
            counted.add("clock", given.column(CLOCK_COLUMN)[0].as_py())
        batch = self._without_ahead(given, counted) if streaming else given
        times = integers(batch.column(time_name(self._stream)))
        counted.note(times)
        if self.suspects is not None:
            late = self.suspects.chosen(batch, times, before)
            if late is not None:
                yield messages.batch(list(self._anywhere(late, Role.LATE)))
        if self.only_late:
            return
        block = self._block(batch)
        for number, code in self.counting.items():
            ticks = told_ticks(self.plan, number, batch, times)
            parts = shares(self.plan, number, ticks, self.router.workers, code)
            sent = [each for workers, rows in parts for each in messages.ticks(workers, number, rows)]
            yield messages.batch(sent)
        joinable = self._joinable(batch, block)
        everything = pc.all(joinable).as_py() is not False
        kept = block if everything else block.filter(joinable)
        counted.add("passed", kept.num_rows)
        counted.add("size", self._size(kept))
        if self.shedder is not None and decided is not None:
            kept = self._unshed(self.shedder, decided, kept, counted)
        tuples = kept.select(self.columns)
        yield messages.batch(list(messages.routed(self.router, tuples, whole=whole)))
        if everything:
            return
        gone = pc.invert(joinable)
        if self.alone:
            alone = pc.and_(self._passing(batch, block), gone)
            rows = block.filter(alone).select(self.columns)
            if MEETS in batch.schema.names:
                counted.add("passed", rows.num_rows)
            yield messages.batch(list(self._anywhere(rows, Role.ALONE)))
            gone = pc.and_not(gone, alone)
        if streaming:
            yield from self._removed(times.filter(gone).drop_null())

    def told(self, counted: Report) -> Iterator[messages.Message]:
        """Yield what tells the workers what was counted, and how far the stream has come."""
        first, *others = self.router.workers
        clock = None if counted["clock"] == NOTHING_SEEN else counted["clock"]
        for worker in self.router.workers if self.only_late else (first,):
            yield messages.report(worker, self._stream, counted)
        if counted["seen"] == NOTHING_SEEN:
            yield from map(messages.wake, others)
        else:
            for worker in self.router.workers:
                yield messages.progress(worker, self._stream, counted["seen"], clock)
        if clock is not None:
            for worker in self.router.workers:
                yield messages.progress(worker, messages.CLOCK, clock)

    def _own(self, read: pa.RecordBatch) -> pa.RecordBatch:
        """Return its columns of what is read, under its own names for them."""
        if self.names is None:
            return read
        columns = [read.column(name) for name in self.names.values()]
        return pa.RecordBatch.from_arrays(columns, names=list(self.names))

    @property
    def _stream(self) -> int:
        return self.router.stream

    def _without_ahead(self, batch: pa.RecordBatch, counted: Report) -> pa.RecordBatch:
        """Return rows without those too far ahead, which are counted: they would make all later ones late."""
        scan, name = self.plan.streams[self._stream], time_name(self._stream)
        times = integers(batch.column(name))
        greatest = pc.max(times).as_py()
        limit = greatest_time(self.plan.time_kind)
        if not scan.streaming or greatest is None or (scan.ahead is None and greatest <= limit):
            return batch
        ahead = pc.fill_null(pc.greater(times, pa.scalar(limit, pa.int64())), False)
        if AHEAD in batch.schema.names:
            ahead = pc.or_(ahead, batch.column(AHEAD))
        count = pc.sum(ahead).as_py()
        if not count:
            return batch
        counted.add("rows", count)
        counted.add("ahead", count)
        counted.add("furthest", pc.max(times.filter(ahead)).as_py())
        return batch.filter(pc.invert(ahead))

    def _unshed(
        self, shedder: Shedder, decided: Decision, rows: pa.RecordBatch, counted: Report
    ) -> pa.RecordBatch:
        """Return the rows that are not shed; count the others, and what is decided of the micro-batch."""
        counted.add("utilization", round(_MILLION * decided.utilization))
        counted.add("lost", round(_MILLION * decided.lost))
        counted.add("lost_most", round(_MILLION * decided.lost_most))
        mask = shedder.keeps(self._stream, decided, rows, self.router.code)
        kept = rows if mask is None else rows.filter(pa.array(mask))
        counted.add("shed", rows.num_rows - kept.num_rows)
        return kept

    def _size(self, block: pa.RecordBatch) -> int:
        """Return the bytes of the columns of some rows, those not counted that the join adds itself."""
        scan = self.plan.streams[self._stream]
        stored = [stored_column(self.plan, self._stream, number) for number in range(len(scan.columns))]
        restored = sum(each.restored for each in stored)
        added = 1 + len(scan.codes)
        rows, size = int(block.num_rows), int(block.nbytes)
        return size + (restored - added) * _INTEGER_BYTES * rows

    def _block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return all rows as a block, with times and codes as int64."""
        numbers = range(len(self.plan.streams[self._stream].codes))
        own = {time_name(self._stream), *(code_name(self._stream, number) for number in numbers)}
        return pa.RecordBatch.from_pydict(
            {
                name: integers(batch.column(name)) if name in own else stable(batch.column(name))
                for name in scan_columns(self.plan, self._stream)
            }
        )

    def _passing(self, batch: pa.RecordBatch, block: pa.RecordBatch) -> pa.Array:
        """Return which rows have a time, and are kept by the filter."""
        mask = pc.is_valid(block.column(time_name(self._stream)))
        if KEEP in batch.schema.names:
            mask = pc.and_(mask, pc.fill_null(batch.column(KEEP), False))
        return mask

    def _joinable(self, batch: pa.RecordBatch, block: pa.RecordBatch) -> pa.Array:
        """Return which rows can join: those that pass and have their codes."""
        mask = self._passing(batch, block)
        for name in self.codes:
            mask = pc.and_(mask, pc.is_valid(block.column(name)))
        if MEETS in batch.schema.names:
            mask = pc.and_(mask, pc.fill_null(batch.column(MEETS), False))
        return mask

    def _anywhere(self, rows: pa.RecordBatch, role: Role) -> Iterator[messages.Message]:
        """Yield rows that meet no other: any worker can tell whether one is late."""
        workers = self.router.workers
        # Times of whole seconds would all go to one of them.
        places = np.arange(rows.num_rows) % len(workers)
        for place, worker in enumerate(workers):
            share = rows.filter(pa.array(places == place))
            yield from messages.blocks(worker, self.router.number, role, share)

    def _removed(self, times: pa.Array) -> Iterator[pa.RecordBatch]:
        """Yield the times of rows that cannot join, for one worker to count the late ones."""
        only = pa.RecordBatch.from_pydict({time_name(self._stream): times})
        router = self.router
        found = list(messages.blocks(router.workers[0], router.number, Role.PASSED, only))
        if found:
            yield messages.batch(found)


@dataclass(frozen=True)
class Packs:
    """Packs what is read of a stream for each of several stage inputs; sent to Spark's Python workers."""

    packs: tuple[Pack, ...]

    @phase
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield messages for the rows of one partition."""
        packs = tuple(each.choosing() for each in self.packs)
        counted = [Report() for _ in packs]
        packing = [Watch() for _ in packs]
        waiting, working = Watch(), Watch()
        yield from working.over(self._blocks(packs, waiting.over(column_batches(batches)), counted, packing))
        # What is done for all of them once is counted at the first one.
        rest = working.microseconds - sum(each.microseconds for each in (waiting, *packing))
        told: list[messages.Message] = []
        for place, (pack, own) in enumerate(zip(packs, counted, strict=True)):
            if pack.plan.streaming and own["rows"]:
                own.add("arriving", 0 if place else waiting.microseconds)
                own.add("packing", packing[place].microseconds + (0 if place else rest))
                told += pack.told(own)
        if told:
            yield messages.batch(told)

    def _blocks(
        self,
        packs: Sequence[Pack],
        batches: Iterator[pa.RecordBatch],
        counted: Sequence[Report],
        packing: Sequence[Watch],
    ) -> Iterator[pa.RecordBatch]:
        decided = [None if each.shedder is None else decision(each.shedder) for each in self.packs]
        before = [LEAST if each.suspects is None else late_before(each.suspects) for each in self.packs]
        # Nothing waits where it makes no difference.
        held, whole = _held(batches) if any(each.router.anywhere for each in self.packs) else ([], False)
        rest = gathered(itertools.chain(held, batches), messages.BLOCK_ROWS, GATHERED_BYTES)
        for read in [concatenate(held)] if held and whole else rest:
            for pack, own, made, time, watch in zip(packs, counted, decided, before, packing, strict=True):
                yield from watch.over(pack.blocks(read, own, made, time, whole=whole))


def _held(batches: Iterator[pa.RecordBatch]) -> tuple[list[pa.RecordBatch], bool]:
    """Return the first rows of a task, and whether these are all, in whatever order they come."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size += value_bytes(batch)
        if rows > messages.BLOCK_ROWS or size > GATHERED_BYTES:
            return held, False
    return held, True


def late_before(suspects: Suspects) -> int:
    """Return the time before which rows of the micro-batch that a task works for may be late."""
    return suspects.before(None if suspects.state is None else handed(suspects.state), micro_batch())


def decision(shedder: Shedder) -> Decision:
    """Return what is decided of the micro-batch that a task works for."""
    return shedder.decision(handed(shedder.folder), micro_batch())
