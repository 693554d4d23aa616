"""Small texts that wjoin keeps beside a checkpoint of Spark, in a folder of its own inside of it.

Spark itself reads and writes them, because the checkpoint may lie wherever Spark can reach, and the
session may be a client of Spark Connect.
"""

import json
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

FORMAT = 1
"""Raised whenever what an older version kept can no longer be read."""

UNREACHABLE = (PySparkException, Py4JError, OSError)
"""What reading and writing through Spark raises: its own errors, those of the JVM, a lost connection."""

_SLOTS = 2


def stopped(spark: SparkSession) -> bool:
    """Return whether a Spark has been stopped, or does not answer; of Spark Connect its client."""
    if (closed := getattr(spark, "is_stopped", None)) is not None:
        return bool(closed)
    java = getattr(spark, "_jsc", None)
    try:
        return java is not None and bool(java.sc().isStopped())
    except UNREACHABLE:
        return True


class KeptWarning(UserWarning):
    """Something could not be kept beside a checkpoint, or not be read there; the query runs without."""


@dataclass(frozen=True)
class Beside:
    """The folder of a checkpoint."""

    spark: SparkSession
    folder: str

    def begun(self) -> bool:
        """Return whether a query has begun to run on the checkpoint."""
        return exists(self.spark, f"{self.folder}/metadata")

    def committed(self) -> bool:
        """Return whether a query has committed a micro-batch on the checkpoint."""
        return exists(self.spark, f"{self.folder}/commits/[0-9]*")

    def read(self, name: str) -> tuple[int, Any]:
        """Return the newest value kept under a name, and its number; (0, None) where there is none.

        Raises ValueError where there are only values that cannot be read, and what Spark raises.
        """
        path = f"{self.folder}/wjoin/{name}"
        if not exists(self.spark, path):
            return 0, None
        rows = self.spark.read.option("recursiveFileLookup", "true").text(path).collect()
        newest: tuple[int, Any] = (0, None)
        broken = None
        for row in rows:
            try:
                number, value = _decoded(row.value)
            except ValueError as error:
                broken = error
                continue
            newest = max(newest, (number, value), key=lambda each: each[0])
        if newest[0] == 0 and broken is not None:
            raise broken
        return newest

    def write(self, name: str, number: int, value: Any) -> None:
        """Keep a value for JSON; ``number`` is one more than that of the value before, 1 at first.

        The value before stays until the next one: a crash while one is written leaves the other.
        """
        text = json.dumps({"format": FORMAT, "number": number, "value": value})
        line = self.spark.range(1, numPartitions=1).select(F.lit(text).alias("value"))
        line.write.mode("overwrite").text(f"{self.folder}/wjoin/{name}/{number % _SLOTS}")


def _decoded(line: str) -> tuple[int, Any]:
    """Return the number and the value of a line that ``write`` has written. Raises ValueError."""
    body = json.loads(line)
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise ValueError(f"it has not the format {FORMAT}")
    if not isinstance(body.get("number"), int) or "value" not in body:
        raise ValueError("it has no number or no value")
    return body["number"], body["value"]


def exists(spark: SparkSession, path: str) -> bool:
    """Return whether Spark finds a file or folder; lists it and reads nothing."""
    try:
        # Twice: where one path alone is missing Spark logs a stack trace. A client of Spark Connect
        # asks Spark only when it must know the columns.
        return bool(spark.read.text([path, path]).columns)
    except AnalysisException as error:
        if "PATH_NOT_FOUND" in str(error):
            return False
        raise
