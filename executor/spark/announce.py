"""Announce: what is told of rows that stay at their sites, to the workers that may ask for them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from wjoin.executor.report import Report
from wjoin.executor.routing import Router
from wjoin.executor.sites.ranges import Announced
from wjoin.executor.spark import messages
from wjoin.executor.spark.task import phase


@dataclass(frozen=True)
class Announce:
    """Announces the rows of a stream to the stage input that it enters; sent to Spark's Python workers.

    Its input batches have the columns of ``EXTENTS`` (executor/spark/site_source.py), a row for each range.
    """

    router: Router

    @phase
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield messages for the ranges of one partition."""
        for batch in batches:
            for extent in batch.to_pylist():
                yield messages.batch(list(self._messages(extent)))

    def _messages(self, extent: dict[str, Any]) -> Iterator[messages.Message]:
        counted = Report()
        counted.add("rows", extent["rows"])
        counted.add("size", extent["size"])
        counted.add("passed", extent["rows"] - extent["ahead"])
        counted.add("ahead", extent["ahead"])
        if extent["furthest"] is not None:
            counted.add("furthest", extent["furthest"])
        if extent["latest"] is not None:
            counted.add("earliest", extent["earliest"])
            counted.add("seen", extent["latest"])
            numbers = (extent[name] for name in ("site", "start", "stop", "earliest", "latest"))
            new = Announced(*numbers)
            for worker in self.router.workers:
                yield messages.progress(worker, self.router.stream, new.latest)
                yield messages.announcement(worker, self.router.number, new)
        else:
            yield from map(messages.wake, self.router.workers)
        yield messages.report(self.router.workers[0], self.router.stream, counted)
