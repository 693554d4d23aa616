"""The rows of a SELECT, printed: of a table, of what a stream holds, or of a stream as they come."""

from typing import TYPE_CHECKING

from wjoin.executor.spark.once import collect_once, select_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


def print_rows(frame: "DataFrame", most: int) -> None:
    """Print at most so many rows of a table."""
    frame.show(most, truncate=False)


def print_once(spark: "SparkSession", frame: "DataFrame", most: int) -> None:
    """Print at most so many rows of what a stream's sources hold."""
    print_rows(spark.table(collect_once(frame)), most)


def start_printing(frame: "DataFrame", most: int, every: str | None) -> "StreamingQuery":
    """Start a query that prints the new rows of each micro-batch, at most so many of each."""

    def show(rows: "DataFrame", batch: int) -> None:
        # Counted and shown from what is kept: the stateful part of a micro-batch may run only once.
        kept = rows.persist()
        try:
            count = kept.count()
            if count:
                print_rows(kept, most)
                print(f"micro-batch {batch}: {count:,} new row{'s' if count != 1 else ''}", flush=True)
        finally:
            kept.unpersist()

    writer = frame.writeStream.foreachBatch(show).outputMode("append").queryName(select_name())
    return (writer if every is None else writer.trigger(processingTime=every)).start()
