"""Pack: the rows of one stream to tuple blocks, one for each worker, with heartbeats."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.executor.blocks import concatenate, cut, encode_block, stable
from wjoin.executor.kernels.runs import Int64Array, int64_view, integers
from wjoin.executor.layout import code_name, column_name, stored_column, time_name
from wjoin.executor.route import worker_numbers
from wjoin.executor.spark.task import run_phase
from wjoin.executor.spark.transport import BLOCK_BYTES, BLOCK_ROWS, SCHEMA, transport_row
from wjoin.executor.tally import Tally
from wjoin.planner.physical import PhysicalPlan, StageInput

KEEP = "__wjoin_keep"
"""The column that tells whether a row passes its stream's filters."""

GATHERED_BYTES = 1 << 28
"""Bytes that are packed at once at the most."""

_INTEGER_BYTES = 8


@dataclass(frozen=True)
class Pack:
    """Packs one stream for the stage input that reads it; sent to Spark's Python workers.

    Its input batches have the columns of ``scan``: the event time, the filter's verdict where
    there is a filter, then codes and scan columns under the names of a block.
    """

    plan: PhysicalPlan
    stream: int
    number: int
    stage_input: StageInput
    workers: tuple[int, ...]
    heartbeats: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield transport rows for the rows of one partition."""
        return run_phase("pack", self._packed, batches)

    def _packed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tally = Tally()
        for batch in _gathered(batches):
            block = self._block(batch)
            times = block.column(time_name(self.stream))
            tally.note(times)
            joinable = self._joinable(batch, block)
            everything = pc.all(joinable).as_py() is not False
            kept = block if everything else block.filter(joinable)
            tally.passed += kept.num_rows
            tally.size += self._size(kept)
            yield self._blocks(kept)
            if self.heartbeats and not everything:
                yield from self._removed(times.filter(pc.invert(joinable)).drop_null())
        if self.heartbeats and tally.rows:
            yield self._heartbeats(tally)

    def _size(self, block: pa.RecordBatch) -> int:
        """Return the bytes of the columns of some rows, those not counted that the join adds itself."""
        scan = self.plan.streams[self.stream]
        stored = [stored_column(self.plan, self.stream, number) for number in range(len(scan.columns))]
        restored = sum(each.restored for each in stored)
        added = 1 + len(scan.codes)
        rows, size = int(block.num_rows), int(block.nbytes)
        return size + (restored - added) * _INTEGER_BYTES * rows

    def _block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return all rows as a block, with times and codes as int64."""
        scan = self.plan.streams[self.stream]
        columns: dict[str, pa.Array] = {
            time_name(self.stream): integers(batch.column(time_name(self.stream)))
        }
        for number in range(len(scan.codes)):
            name = code_name(self.stream, number)
            columns[name] = integers(batch.column(name))
        for number in range(len(scan.columns)):
            stored = stored_column(self.plan, self.stream, number)
            if not stored.restored:
                columns[stored.name] = stable(batch.column(column_name(self.stream, number)))
        return pa.RecordBatch.from_pydict(columns)

    def _joinable(self, batch: pa.RecordBatch, block: pa.RecordBatch) -> pa.Array:
        """Return which rows can join: those with a time and all codes that the filter keeps."""
        mask = pc.is_valid(block.column(time_name(self.stream)))
        if KEEP in batch.schema.names:
            mask = pc.and_(mask, pc.fill_null(batch.column(KEEP), False))
        for number in range(len(self.plan.streams[self.stream].codes)):
            mask = pc.and_(mask, pc.is_valid(block.column(code_name(self.stream, number))))
        return mask

    def _removed(self, times: pa.Array) -> Iterator[pa.RecordBatch]:
        """Yield the times of rows that cannot join, for one worker to count the late ones."""
        only = pa.RecordBatch.from_pydict({time_name(self.stream): times})
        packed = [
            transport_row(self.workers[0], stream=self.stream, block=encode_block(piece))
            for piece in cut(only, BLOCK_ROWS, BLOCK_BYTES)
        ]
        if packed:
            yield pa.RecordBatch.from_pylist(packed, schema=SCHEMA)

    def _blocks(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        packed = []
        for worker, share in self._shares(batch):
            for piece in cut(share, BLOCK_ROWS, BLOCK_BYTES):
                packed.append(transport_row(worker, self.number, block=encode_block(piece)))
        return pa.RecordBatch.from_pylist(packed, schema=SCHEMA)

    def _shares(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        key = self.stage_input.key
        if key is None or len(self.workers) == 1:
            yield self.workers[0], batch
            return
        assigned: Int64Array = worker_numbers(int64_view(batch.column(code_name(*key))), len(self.workers))
        for number, worker in enumerate(self.workers):
            mine = np.flatnonzero(assigned == number)
            if len(mine):
                yield worker, batch.take(pa.array(mine))

    def _heartbeats(self, tally: Tally) -> pa.RecordBatch:
        beats = [transport_row(worker, stream=self.stream, seen=tally.seen) for worker in self.workers]
        # Counted once: at the first worker.
        beats[0] |= vars(tally)
        return pa.RecordBatch.from_pylist(beats, schema=SCHEMA)


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of many small batches in few large ones."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if waiting and (rows + batch.num_rows > BLOCK_ROWS or size + batch.nbytes > GATHERED_BYTES):
            yield concatenate(waiting)
            waiting, rows, size = [], 0, 0
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    if waiting:
        yield concatenate(waiting)
