"""Late rows of a join read apart from it: where its results go on to another one, or into groups.

There late rows cannot travel with the results. The state is in files, so that any task can read by which
watermarks the join drops rows in a micro-batch: by those that its stages knew before it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from wjoin.executor.late_rows import Suspects, told
from wjoin.executor.spark.compile import late_fields
from wjoin.executor.spark.pack import late_before
from wjoin.executor.spark.scans import Reading, late_scanned
from wjoin.executor.spark.site_source import arrow_schema
from wjoin.executor.spark.stages import stageless
from wjoin.executor.spark.task import phase
from wjoin.executor.spark.unpack import Unpack
from wjoin.parts.kernels.runs import integers
from wjoin.planner.plan.block_columns import time_name
from wjoin.planner.plan.physical import PhysicalPlan


@dataclass(frozen=True)
class _Telling:
    """Tells the late rows among those of a stream; sent to Spark's Python workers."""

    suspects: Suspects
    unpack: Unpack

    @phase
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the late rows of one partition, with the columns of those of all streams of the join."""
        stream, before = self.suspects.stream, late_before(self.suspects)
        for batch in batches:
            times = integers(batch.column(time_name(stream)))
            chosen = self.suspects.chosen(batch, times, before)
            late = None if chosen is None else told(stream, chosen, before)
            if late is not None:
                yield self.unpack.late_rows(late)


def late_rows_of(plan: PhysicalPlan, inputs: Sequence[DataFrame], state: Path) -> DataFrame:
    """Return the late rows of the streams of a plan whose late rows are told, with the columns of all.

    ``inputs`` are in FROM order, ``state`` is the folder of the join's state.
    """
    schema = StructType(list(late_fields(plan, inputs)))
    unpack = Unpack(stageless(plan), plan.outputs[0], arrow_schema(schema))
    made = (
        late_scanned(Reading(plan, stream, inputs[stream])).mapInArrow(
            _Telling(Suspects(stream, plan.streams[stream], state, _stages(plan, stream)), unpack).__call__,
            schema,
        )
        for stream in plan.telling
    )
    return reduce(DataFrame.union, made)


def _stages(plan: PhysicalPlan, stream: int) -> tuple[int, ...]:
    """Return the numbers of the stage that a stream enters, and of those after it."""
    for number, stage in enumerate(plan.stages):
        if any(each.stage is None and each.members[0] == stream for each in stage.inputs):
            return tuple(range(number, len(plan.stages)))
    raise AssertionError("a stream enters some stage")
