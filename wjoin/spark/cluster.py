"""What a Spark session has for the workers of a join: cores, shuffle partitions, a network."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from wjoin.planner.cost.model import CostSettings

GIGABIT = 125_000_000
"""The bytes a second that reach an executor, where nobody says other."""


def weighed_with(spark: SparkSession, told: CostSettings) -> CostSettings:
    """Return what plans are weighed with: what the settings have not told, the session does."""
    return replace(
        told,
        cores=_cores(spark) if told.cores is None else told.cores,
        partitions=partitions(spark),
        network=GIGABIT if told.network is None and not is_local(spark) else told.network,
    )


def lasting_cores(spark: SparkSession, told: CostSettings) -> int | None:
    """Return how many tasks run at once all the time; None on a cluster, whose executors come and go."""
    if told.cores is not None:
        return told.cores
    return _cores(spark) if is_local(spark) else None


def partitions(spark: SparkSession) -> int:
    """Return the number of shuffle partitions: workers that a stage can have."""
    return int(str(spark.conf.get("spark.sql.shuffle.partitions")))


@contextlib.contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Give a setting of Spark's another value inside."""
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


def _cores(spark: SparkSession) -> int:
    """Return how many tasks run at once, 1 where nothing tells."""
    try:
        return spark.sparkContext.defaultParallelism
    except (PySparkException, AttributeError):
        # Under Spark Connect there is no context, and the settings tell.
        master = re.fullmatch(r"local\[(\d+)(?:, *\d+)?\]", _setting(spark, "spark.master") or "")
        if master is not None:
            return int(master[1])
        each, executors = (_setting(spark, f"spark.executor.{name}") for name in ("cores", "instances"))
        return int(each or 1) * int(executors or 1)


def is_local(spark: SparkSession) -> bool:
    """Return whether all tasks of a session run on this machine."""
    return (_setting(spark, "spark.master") or "").startswith("local")


def _setting(spark: SparkSession, name: str) -> str | None:
    return spark.conf.get(name, None)
