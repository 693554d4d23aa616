"""Late rows of a join read apart from it: where its results go on to another one, or into groups.

There late rows cannot travel with the results. Where the state is in files, any task can read by which
watermarks the join drops rows in a micro-batch: by those that its stages knew before it. In Spark's store
only the join itself can. There a state of its own keeps the watermarks once more (``executor.marks``), and
rows that may be late come to it with how far the streams have come.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.stateful_processor import MapState
from pyspark.sql.types import StructType

from wjoin.executor.arrivals import Arrivals
from wjoin.executor.blocks import decode_block
from wjoin.executor.late_rows import Suspects, told
from wjoin.executor.marks import Marks
from wjoin.executor.routing import Router
from wjoin.executor.spark import messages
from wjoin.executor.spark.compile import late_fields
from wjoin.executor.spark.ending import Ending
from wjoin.executor.spark.messages import MESSAGES
from wjoin.executor.spark.pack import Pack, Packs, late_before
from wjoin.executor.spark.processor import JoinProcessor
from wjoin.executor.spark.scans import Reading, late_scanned
from wjoin.executor.spark.site_source import arrow_schema
from wjoin.executor.spark.stages import stageless
from wjoin.executor.spark.task import phase
from wjoin.executor.spark.unpack import Unpack
from wjoin.executor.spark.warm import served
from wjoin.executor.state.manifest import Manifest, written_manifest
from wjoin.executor.workers import worker_ids
from wjoin.parts.kernels.runs import integers
from wjoin.parts.routes.hash_route import HashRoute
from wjoin.planner.choose.held_streams import entered
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


@dataclass(frozen=True)
class _Judging:
    """Tells the late rows among those that come to a worker, by the watermarks that its state has.

    The state has a value for each stage, its manifest, which lists no slices.
    """

    marks: Marks
    workers: int

    @phase
    def join(self, worker: int, state: MapState, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Yield the late rows as blocks of what leaves; then keep how far the streams have come."""
        del worker  # All are told the same.
        before = [self._before(state, number) for number in range(len(self.marks.plan.stages))]
        came = Arrivals([])
        for frame in frames:
            for row in frame.to_dict("records"):
                if not messages.is_block(row):
                    messages.take_progress(came, row)
                    continue
                stream = row["number"]
                mark = self.marks.of(before, stream)
                late = None if mark is None else told(stream, decode_block(row["block"]), mark)
                if late is not None:
                    sent = list(messages.late_rows(messages.OUT, late))
                    yield pd.DataFrame(sent, columns=messages.SCHEMA.names)
        for number, after in enumerate(self.marks.after(before, came)):
            state.updateValue((str(number),), (after.encode(),))

    def _before(self, state: MapState, number: int) -> Manifest:
        stored = state.getValue((str(number),))
        inputs = len(self.marks.plan.stages[number].inputs)
        return (
            Manifest.fresh("", self.workers, inputs) if stored is None else written_manifest(bytes(stored[0]))
        )


def late_rows_of(
    plan: PhysicalPlan, inputs: Sequence[DataFrame], state: Path | None, ending: int | None = None
) -> DataFrame:
    """Return the late rows of the streams of a plan whose late rows are told, with the columns of all.

    ``inputs`` are in FROM order, ``state`` is the folder of the join's state, None where this is in Spark's
    store. ``ending``: the micro-batch with which all streams end, None where none is known to.
    """
    schema = StructType(list(late_fields(plan, inputs)))
    unpack = Unpack(stageless(plan), plan.outputs[0], arrow_schema(schema))
    if state is None:
        return _judged(plan, inputs, ending).mapInArrow(unpack.__call__, schema)
    made = (
        late_scanned(Reading(plan, stream, inputs[stream])).mapInArrow(
            _Telling(Suspects(stream, plan.streams[stream], state, _stages(plan, stream)), unpack).__call__,
            schema,
        )
        for stream in plan.telling
    )
    return reduce(DataFrame.union, made)


def _judged(plan: PhysicalPlan, inputs: Sequence[DataFrame], ending: int | None) -> DataFrame:
    """Return the late rows of a join whose state is in Spark's store, as blocks."""
    spark = inputs[0].sparkSession
    workers = worker_ids(int(str(spark.conf.get("spark.sql.shuffle.partitions"))))
    # A silent stream goes on with the others: then it counts how far these have come.
    read = [each for each in plan.staged if plan.clocked or each in plan.telling]
    sent = (_suspected(plan, each, inputs[each], workers) for each in read if plan.streams[each].streaming)
    blocks = reduce(DataFrame.union, sent)
    if ending is not None:
        blocks = blocks.repartition(1).mapInArrow(Ending(workers, ending).__call__, MESSAGES)
    with served(spark):
        return blocks.groupBy("worker").transformWithStateInPandas(
            JoinProcessor(_Judging(Marks(plan), len(workers))), MESSAGES, "append", "none"
        )


def _suspected(plan: PhysicalPlan, stream: int, source: DataFrame, workers: tuple[int, ...]) -> DataFrame:
    """Return a stream's rows that may be late, and how far it has come, as messages for all workers."""
    router = Router(stream, stream, None, HashRoute.name, workers)
    scan = plan.streams[stream]
    suspects = Suspects(stream, scan, None, ()) if scan.late else None
    pack = Pack(stageless(plan), (), router, suspects=suspects, only_late=True)
    return late_scanned(Reading(plan, stream, source), progress=True).mapInArrow(
        Packs((pack,)).__call__, MESSAGES
    )


def _stages(plan: PhysicalPlan, stream: int) -> tuple[int, ...]:
    """Return the numbers of the stage that a stream enters, and of those after it."""
    first, _ = entered(plan, stream)
    return tuple(range(first, len(plan.stages)))
