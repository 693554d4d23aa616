"""What a cell waits for, and how an interrupt of the cell ends it."""

import contextlib
import itertools
from collections.abc import Callable
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from wjoin.notebook.shown_errors import Interrupted
from wjoin.shell.attended import Work
from wjoin.spark.spark_failures import RAISED_BY_SPARK

_LOOK_SECONDS = 0.2
_numbers = itertools.count()

Result = TypeVar("Result")


def interruptible(spark: SparkSession, work: Callable[[], Result]) -> Result:
    """Return what ``work`` returns; an interrupt ends what Spark runs for it, and only that.

    It runs in a thread of its own: an interrupt would cut off whatever is being said to Spark, which then
    goes on with its jobs. Raises Interrupted.
    """
    tag = f"wjoin-cell-{next(_numbers)}"
    begin, end = _tagging(spark)

    def tagged() -> Result:
        begin(tag)
        return work()

    running = Work(tagged)
    try:
        # Not join(): interrupted, it takes a thread that runs for ended.
        while not running.wait(_LOOK_SECONDS):
            pass
    except KeyboardInterrupt:
        while not running.wait(_LOOK_SECONDS):
            # Again and again, as Spark may not have begun with a job yet.
            with contextlib.suppress(*RAISED_BY_SPARK):
                end(tag)
        raise Interrupted from None
    return running.result()


def _tagging(spark: SparkSession) -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    """Return what gives this thread's jobs a tag, and what ends the jobs with it, from any thread."""
    if "connect" in type(spark).__module__:
        return spark.addTag, spark.interruptTag
    # The tags of a classic session are known to the thread only that has given them.
    return spark.sparkContext.addJobTag, spark.sparkContext.cancelJobsWithTag
