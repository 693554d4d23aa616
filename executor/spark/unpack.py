"""Unpack: result blocks to rows with Spark's types."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from wjoin.executor.blocks import decode_block
from wjoin.executor.kernels.runs import int64_view
from wjoin.executor.layout import stored_column, time_name
from wjoin.executor.spark.task import run_phase
from wjoin.planner.physical import PhysicalPlan, TimeKind

MATCH_COLUMNS = {"time": "__wjoin_match_time", "start": "__wjoin_match_start", "span": "__wjoin_match_span"}


@dataclass(frozen=True)
class Unpack:
    """Turns transport rows of the last stage into its result rows; sent to Spark's Python workers."""

    plan: PhysicalPlan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of every block."""
        return run_phase("unpack", self._unpacked, batches)

    def _unpacked(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for block in batch.column("block"):
                if block.is_valid:
                    yield self.rows(decode_block(block.as_buffer()))

    def rows(self, block: pa.RecordBatch) -> pa.RecordBatch:
        """Return a result block with the columns that the rest of the statement reads."""
        columns: dict[str, pa.Array] = {}
        for stream, number, name in output_columns(self.plan):
            stored = stored_column(self.plan, stream, number)
            values = block.column(stored.name)
            if stored.restored:
                values = _restore(values, self.plan.streams[stream].columns[number].type)
            columns[name] = values
        if self.plan.lookups:
            # The joins with static relations come after, and the match functions after them.
            for stream in self.plan.staged:
                columns[time_name(stream)] = self._time(block.column(time_name(stream)))
        elif self.plan.match:
            times = [int64_view(block.column(time_name(n))) for n in range(len(self.plan.streams))]
            latest = np.maximum.reduce(times)
            earliest = np.minimum.reduce(times)
            values_by_name = {"time": latest, "start": earliest, "span": latest - earliest}
            for match in sorted(self.plan.match):
                columns[MATCH_COLUMNS[match]] = self._match_value(match, pa.array(values_by_name[match]))
        if not columns:
            # Nothing but the number of rows is wanted, and a batch needs a column to have one.
            columns["rows"] = pa.nulls(block.num_rows, pa.bool_())
        return pa.RecordBatch.from_pydict(columns)

    def _match_value(self, match: str, values: pa.Array) -> pa.Array:
        if match == "span" and self.plan.time_kind is not TimeKind.INTEGRAL:
            return values.view(pa.duration("us"))
        return self._time(values)

    def _time(self, values: pa.Array) -> pa.Array:
        return _restore(values, self.plan.time_kind.value)


def output_columns(plan: PhysicalPlan) -> list[tuple[int, int, str]]:
    """Return (stream, scan column, flat name) of the columns that leave the stages."""
    return [
        (stream, number, f"s{stream}_{number}")
        for stream in plan.staged
        for number, column in enumerate(plan.streams[stream].columns)
        if column.output is not None
    ]


def _restore(values: pa.Array, spark_type: str) -> pa.Array:
    if spark_type == "timestamp":
        return values.view(pa.timestamp("us", tz="UTC"))
    if spark_type == "timestamp_ntz":
        return values.view(pa.timestamp("us"))
    return values
