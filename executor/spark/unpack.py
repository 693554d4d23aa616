"""Unpack: result blocks to rows with Spark's types."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from wjoin.executor.blocks import decode_block, restored
from wjoin.executor.spark.task import run_phase
from wjoin.executor.windows import wanted
from wjoin.parts.kernels.runs import GREATEST, Int64Array, int64_view
from wjoin.planner.layout import stored_column, time_name
from wjoin.planner.physical import Output, PhysicalPlan, TimeKind

MATCH_COLUMNS = {"time": "__wjoin_match_time", "start": "__wjoin_match_start", "span": "__wjoin_match_span"}


@dataclass(frozen=True)
class Unpack:
    """Turns the blocks of the last stage into the rows of an output; sent to Spark's Python workers."""

    plan: PhysicalPlan
    output: Output

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of every block."""
        return run_phase("unpack", self._unpacked, batches)

    def _unpacked(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for block in batch.column("block"):
                if block.is_valid:
                    yield self.rows(decode_block(block.as_buffer()))

    def rows(self, block: pa.RecordBatch) -> pa.RecordBatch:
        """Return a block's results of the output, with the columns that the rest of the statement reads."""
        if len(self.plan.outputs) > 1:
            # The stage has made the results of all outputs.
            mask = wanted(self.output, self._times(block))
            block = block if mask is None else block.filter(pa.array(mask))
        columns: dict[str, pa.Array] = {}
        for stream, number in self.plan.staged_columns(self.output):
            stored = stored_column(self.plan, stream, number)
            values = block.column(stored.name)
            if stored.restored:
                values = restored(values, self.plan.streams[stream].columns[number].type)
            columns[flat_name(stream, number)] = values
        if self.plan.lookups:
            # The joins with static relations come after, and the match functions after them.
            for stream in self.plan.staged:
                columns[time_name(stream)] = self._time(block.column(time_name(stream)))
        elif self.output.match:
            times = list(self._times(block).values())
            latest = np.maximum.reduce(times)
            earliest = np.minimum.reduce(times)
            values_by_name = {"time": latest, "start": earliest, "span": _span(latest, earliest)}
            for match in sorted(self.output.match):
                columns[MATCH_COLUMNS[match]] = self._match_value(match, pa.array(values_by_name[match]))
        if not columns:
            # Nothing but the number of rows is wanted, and a batch needs a column to have one.
            columns["rows"] = pa.nulls(block.num_rows, pa.bool_())
        return pa.RecordBatch.from_pydict(columns)

    def _times(self, block: pa.RecordBatch) -> dict[int, Int64Array]:
        return {stream: int64_view(block.column(time_name(stream))) for stream in self.plan.staged}

    def _match_value(self, match: str, values: pa.Array) -> pa.Array:
        if match == "span" and self.plan.time_kind is not TimeKind.INTEGRAL:
            return values.view(pa.duration("us"))
        return self._time(values)

    def _time(self, values: pa.Array) -> pa.Array:
        return restored(values, self.plan.time_kind.value)


def _span(latest: Int64Array, earliest: Int64Array) -> Int64Array:
    """Return the differences, those that 64 bits do not hold as the greatest that they do."""
    spans: Int64Array = latest - earliest
    if len(spans) and spans.min() < 0:
        spans[spans < 0] = GREATEST
    return spans


def flat_name(stream: int, number: int) -> str:
    """Return the name of a scan column among the rows that leave the stages."""
    return f"s{stream}_{number}"
