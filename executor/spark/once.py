"""A streaming DataFrame run once, over what its sources hold."""

import time

from pyspark.sql import DataFrame

from wjoin.executor.spark.beginning import begin

SELECT = "wjoin_select_"
"""With what the names of queries begin that run a SELECT for somebody who gave them none."""


def select_name() -> str:
    """Return a name for the query of a SELECT, that no other query has."""
    return f"{SELECT}{time.monotonic_ns()}"


def collect_once(frame: DataFrame) -> str:
    """Run a stream until it has read all that is there; return the name of the table that holds its rows."""
    name = select_name()
    writer = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True)
    begin(frame.sparkSession, writer.start, "a query that reads a stream once").awaitTermination()
    return name
