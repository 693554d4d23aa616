"""The micro-batch with which all streams end: workers are woken without a row, and told."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from wjoin.executor.spark import messages
from wjoin.executor.spark.task import micro_batch, phase


@dataclass(frozen=True)
class Ending:
    """Tells ``workers`` that all streams end with micro-batch ``number``; sent to Spark's Python workers.

    Of a stream without new rows Spark has no task, so this runs after a shuffle to a single one. No other
    micro-batch is run with it.
    """

    workers: tuple[int, ...]
    number: int

    @phase
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the messages that come, and those of the end."""
        yield from batches
        if self.number == micro_batch():
            yield messages.batch([messages.ended(worker) for worker in self.workers])
