"""The join operator: one stage under Spark's transformWithState, or under a grouped map in batch."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from wjoin.executor.blocks import concatenate, cut, decode_block, encode_block
from wjoin.executor.faults import fault_point
from wjoin.executor.kernels.runs import int64_view
from wjoin.executor.layout import code_name
from wjoin.executor.route import worker_numbers
from wjoin.executor.spark.cache import SliceCache
from wjoin.executor.spark.task import run_phase
from wjoin.executor.spark.transport import BLOCK_BYTES, BLOCK_ROWS, SCHEMA, transport_row
from wjoin.executor.state.manifest import Manifest, decode_manifest
from wjoin.executor.step import Arrivals, Counts, StageLogic
from wjoin.executor.tally import NOTHING_SEEN, Tally
from wjoin.planner.measurement import KeyCount
from wjoin.planner.physical import StageInput

MANIFEST = "manifest"
"""The key of the manifest in Spark's state; the names of the slices that it lists are numbers."""


@dataclass(frozen=True)
class Destination:
    """Where the results of a stage go: an input of a later stage on its workers, or out (None)."""

    number: int
    stage_input: StageInput
    workers: tuple[int, ...]

    def rows(self, result: pa.RecordBatch) -> Iterator[dict[str, object]]:
        """Yield the transport rows that bring a result to its workers."""
        key = self.stage_input.key
        if key is None or len(self.workers) == 1:
            yield from _block_rows(self.workers[0], self.number, result)
            return
        assigned = worker_numbers(int64_view(result.column(code_name(*key))), len(self.workers))
        for place, worker in enumerate(self.workers):
            mine = pa.array(assigned == place)
            yield from _block_rows(worker, self.number, result.filter(mine))


@dataclass(frozen=True)
class Operator:
    """A stage with its workers and the destination of its results; sent to Spark's Python workers."""

    logic: StageLogic
    workers: tuple[int, ...]
    destination: Destination | None
    fingerprint: str

    def batch(self, group: pa.Table) -> pa.Table:
        """Join the blocks of one worker, all inputs complete."""
        arrivals = self.arrivals(row for batch in group.to_batches() for row in _arrow_rows(batch))
        counts = Counts()
        rows: list[dict[str, object]] = []
        for result in self.logic.batch(arrivals, counts):
            counts.matches += result.num_rows
            rows += self.result_rows(result)
        # A row without a block, for the meter: a next stage reads nothing from it.
        target = -1 if self.destination is None else self.destination.workers[0]
        rows.append(transport_row(target, matches=counts.matches, comparisons=counts.work.comparisons))
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def arrivals(self, rows: Iterable[dict[Any, Any]]) -> Arrivals:
        """Return what the transport rows of a worker bring."""
        arrivals = Arrivals([[] for _ in self.logic.stage.inputs])
        for row in rows:
            if row["input"] >= 0:
                arrivals.blocks[row["input"]].append(decode_block(row["block"]))
            elif row["block"] is not None:
                removed = int64_view(decode_block(row["block"]).column(0))
                arrivals.removed.setdefault(row["stream"], []).append(removed)
            else:
                self._heartbeat(arrivals, row)
        return arrivals

    def _heartbeat(self, arrivals: Arrivals, row: dict[Any, Any]) -> None:
        stream, seen = row["stream"], row["seen"]
        if stream in self.logic.stage.members and seen != NOTHING_SEEN:
            arrivals.seen[stream] = max(seen, arrivals.seen.get(stream, seen))
        if any(each.stage is None and each.members[0] == stream for each in self.logic.stage.inputs):
            arrivals.told.setdefault(stream, Tally()).add(row)

    def result_rows(self, result: pa.RecordBatch) -> Iterator[dict[str, object]]:
        """Yield the transport rows of one result batch."""
        if self.destination is None:
            yield from _block_rows(-1, -1, result)
        else:
            yield from self.destination.rows(result)

    def heartbeat_rows(
        self, worker: int, before: Manifest, after: Manifest, arrivals: Arrivals, counts: Counts
    ) -> list[dict[str, object]]:
        """Return the counts of a micro-batch, and the heartbeats for the next stage."""
        target = -1 if self.destination is None else self.destination.workers[0]
        seen = {stream: after.seen.get(stream, NOTHING_SEEN) for stream in self.logic.stage.members}
        rows = []
        for number, each in enumerate(self.logic.stage.inputs):
            kept = sum(piece.rows for piece in after.slices[number])
            kept_bytes = sum(piece.size for piece in after.slices[number])
            for stream in each.members:
                row = transport_row(
                    target,
                    stream=stream,
                    late=counts.late.get(stream, 0),
                    kept=kept if stream == each.members[0] else 0,
                    kept_bytes=kept_bytes if stream == each.members[0] else 0,
                )
                if each.stage is None:
                    row |= vars(arrivals.told.get(stream, Tally()))
                    row |= _key_counts(counts.keys.get(stream))
                    row["before"] = before.seen.get(stream, NOTHING_SEEN)
                rows.append(row | {"seen": seen[stream]})
        rows[0] |= {"matches": counts.matches, "comparisons": counts.work.comparisons}
        if self.destination is not None and worker == self.workers[0]:
            # All workers of a stage have seen the same heartbeats; one tells the next stage's others.
            for other in self.destination.workers[1:]:
                rows += [transport_row(other, stream=stream, seen=time) for stream, time in seen.items()]
        return rows


def _key_counts(count: KeyCount | None) -> dict[str, object]:
    if count is None:
        return {}
    return {"counted": count.rows, "distinct": count.distinct, "heaviest": count.heaviest}


def _block_rows(worker: int, number: int, result: pa.RecordBatch) -> Iterator[dict[str, object]]:
    for piece in cut(result, BLOCK_ROWS, BLOCK_BYTES):
        yield transport_row(worker, number, block=encode_block(piece))


class JoinProcessor(StatefulProcessor):
    """Runs one stage's step on Spark's state: a manifest and the slices that it lists."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state. One variable: every further one costs round trips to the JVM in every task."""
        self._state = handle.getMapState("state", "name STRING", "data BINARY")

    def handleInputRows(  # noqa: N802 (Spark's name)
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803 (Spark's name)
    ) -> Iterator[pd.DataFrame]:
        """Join the new blocks of one worker with its state and with each other."""
        return run_phase("operator", lambda frames: self._join(int(key[0]), frames), rows)

    def _join(self, worker: int, rows: Iterator[Any]) -> Iterator[pd.DataFrame]:
        operator = self._operator
        arrivals = operator.arrivals(row for frame in rows for row in frame.to_dict("records"))
        # Not in init(): Spark also calls that at the driver, to learn the state's schema.
        manifest = self._read_manifest()
        self._cache = SliceCache.of_this_process(manifest.lineage)
        fault_point("state-read")
        counts = Counts()
        after = manifest
        waiting: list[pa.RecordBatch] = []
        for result in operator.logic.stream(manifest, self, arrivals, counts):
            if isinstance(result, Manifest):
                after = result
                continue
            waiting.append(result)
            # A data frame of its own costs more than the rows of a small result.
            if sum(each.nbytes for each in waiting) > BLOCK_BYTES:
                yield _frame(list(operator.result_rows(concatenate(waiting))))
                waiting = []
        fault_point("before-state-write")
        self._state.updateValue((MANIFEST,), (after.encode(),))
        last = list(operator.result_rows(concatenate(waiting))) if waiting else []
        yield _frame(last + operator.heartbeat_rows(worker, manifest, after, arrivals, counts))

    def close(self) -> None:
        """Nothing is held between micro-batches."""

    def _read_manifest(self) -> Manifest:
        operator = self._operator
        stored = self._state.getValue((MANIFEST,))
        if stored is None:
            return Manifest.fresh(
                operator.fingerprint, len(operator.workers), len(operator.logic.stage.inputs)
            )
        return decode_manifest(bytes(stored[0]), operator.fingerprint, len(operator.workers))

    def load(self, name: str) -> pa.RecordBatch:
        """Return a slice, from this machine's cache or from Spark's state."""
        block = self._cache.get(name)
        if block is None:
            stored = self._state.getValue((name,))
            if stored is None:
                raise RuntimeError(f"slice {name} is listed in the state but not stored in it")
            block = pa.py_buffer(bytes(stored[0]))
            self._cache.put(name, block)
        return decode_block(block)

    def save(self, name: str, batch: pa.RecordBatch) -> int:
        """Write a slice under a new name."""
        data = encode_block(batch)
        self._state.updateValue((name,), (data,))
        self._cache.put(name, pa.py_buffer(data))
        return len(data)

    def remove(self, name: str) -> None:
        """Forget a slice."""
        self._state.removeKey((name,))
        self._cache.remove(name)


def _arrow_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield transport rows with their blocks not copied."""
    for row, block in zip(batch.drop_columns(["block"]).to_pylist(), batch.column("block"), strict=True):
        yield {**row, "block": block.as_buffer() if block.is_valid else None}


def _frame(rows: list[dict[str, object]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=SCHEMA.names)
