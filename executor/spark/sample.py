"""A few rows of a DataFrame, had cheaply or not at all."""

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, is_remote
from pyspark.sql import functions as F

from wjoin.executor.blocks import stable
from wjoin.planner.plan.block_columns import quoted

ROWS = 64
"""The most rows of a sample."""

SECONDS = 15.0
"""Longer than this Spark may not look for them; its first query in a process takes some seconds by itself."""


def sample(frame: DataFrame, columns: Sequence[str], seconds: float = SECONDS) -> dict[str, pa.Array]:
    """Return columns of the first rows of a DataFrame that does not stream, by their names.

    Raises what Spark raises, and TimeoutError where it takes longer than it may.
    """
    spark = frame.sparkSession
    first = frame.select(*(F.col(quoted(name)) for name in columns))
    with _limited(spark, seconds):
        # As rows: Spark then reads the first partition alone, where that has enough.
        rows = first.take(ROWS)
    found = spark.createDataFrame(rows, first.schema).toArrow()
    return {name: _whole(found.column(place)) for place, name in enumerate(columns)}


@contextmanager
def _limited(spark: SparkSession, seconds: float) -> Iterator[None]:
    """Give up what Spark runs inside after some time. Raises TimeoutError then."""
    tag, given_up = f"wjoin-sample-{uuid.uuid4().hex}", threading.Event()
    # Tags of a session are those of a thread, but for Spark Connect; those of jobs are not.
    jobs = None if is_remote() else spark.sparkContext
    add, remove = (spark.addTag, spark.removeTag) if jobs is None else (jobs.addJobTag, jobs.removeJobTag)

    def give_up() -> None:
        given_up.set()
        if jobs is None:
            spark.interruptTag(tag)
        else:
            jobs.cancelJobsWithTag(tag)

    limit = threading.Timer(seconds, give_up)
    limit.daemon = True
    add(tag)
    limit.start()
    try:
        yield
    except Exception as error:
        if given_up.is_set():
            raise TimeoutError(f"Spark takes longer than {seconds:g} s") from error
        raise
    finally:
        limit.cancel()
        remove(tag)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return stable(pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type))
