"""A streaming DataFrame run once, over what its sources hold."""

import time

from pyspark.sql import DataFrame


def collect_once(frame: DataFrame) -> str:
    """Run a stream until it has read all that is there; return the name of the table that holds its rows."""
    name = f"wjoin_once_{time.monotonic_ns()}"
    query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    return name
