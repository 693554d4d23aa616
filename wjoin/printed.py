"""The rows of a SELECT, printed: of a table, of what a stream holds, or of a stream as they come."""

import contextlib
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark import StorageLevel

from wjoin.executor.spark.once import select_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery


def print_rows(frame: "DataFrame", most: int) -> None:
    """Print at most so many rows of a table."""
    frame.show(most, truncate=False)


def print_once(frame: "DataFrame", most: int) -> None:
    """Print at most so many rows of what a stream's sources hold."""
    found: list[DataFrame] = []

    def take(rows: "DataFrame", batch: int) -> None:
        # One more than is shown tells that there are more. Of the others only their number stays.
        missing = most + 1 - sum(each.count() for each in found)
        with _run_once(rows) as (kept, count):
            if count and missing > 0:
                found.append(kept.limit(missing).localCheckpoint())

    writer = frame.writeStream.foreachBatch(take).outputMode("append").queryName(select_name())
    writer.trigger(availableNow=True).start().awaitTermination()
    empty = frame.sparkSession.createDataFrame([], frame.schema)
    print_rows(functools.reduce(lambda first, second: first.union(second), found or [empty]), most)


def start_printing(frame: "DataFrame", most: int, every: str | None) -> "StreamingQuery":
    """Start a query that prints the new rows of each micro-batch, at most so many of each."""

    def show(rows: "DataFrame", batch: int) -> None:
        with _run_once(rows) as (kept, count):
            if count:
                print_rows(kept, most)
                print(f"micro-batch {batch}: {count:,} new row{'s' if count != 1 else ''}", flush=True)

    writer = frame.writeStream.foreachBatch(show).outputMode("append").queryName(select_name())
    return (writer if every is None else writer.trigger(processingTime=every)).start()


@contextlib.contextmanager
def _run_once(rows: "DataFrame") -> "Iterator[tuple[DataFrame, int]]":
    """Run a micro-batch, whose stateful part may run only once; yield what it gave, and how many rows."""
    kept = rows.persist(StorageLevel.DISK_ONLY)
    try:
        yield kept, kept.count()
    finally:
        kept.unpersist()
