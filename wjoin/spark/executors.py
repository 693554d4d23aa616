"""The executors of a Spark that runs on a cluster: which there are, and asking for more or fewer."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

_DRIVER = "driver"


@dataclass(frozen=True)
class Executors:
    """The executors that there are: their names, and how many tasks each runs at once."""

    names: tuple[str, ...]
    cores: int


def executors(spark: SparkSession) -> Executors | None:
    """Return the executors, None where the driver runs the tasks itself, or nothing tells of them."""
    if not hasattr(spark, "_jsparkSession"):
        return None
    context = _context(spark)
    found = context.statusStore().executorList(True)
    told = [found.apply(place) for place in range(found.size())]
    cores = {each.id(): each.totalCores() for each in told if each.id() != _DRIVER}
    if not cores:
        return None
    tasks = int(context.conf().get("spark.task.cpus", "1"))
    return Executors(tuple(sorted(cores, key=int)), max(1, min(cores.values()) // tasks))


def ask_for(spark: SparkSession, found: Executors, number: int) -> bool:
    """Ask the cluster for a number of executors, in place of those ``found``; the last ones end first.

    What ran on those is done again elsewhere. Returns whether the cluster takes such wishes.
    """
    context, java = _context(spark), session_java(spark)
    nowhere = getattr(java, "scala.collection.immutable.Map$").__getattr__("MODULE$").empty()
    extra = found.names[number:]
    # Spark takes those that end from how many it was asked for last.
    taken = context.requestTotalExecutors(number + len(extra), 0, nowhere)
    if taken and extra:
        names = java.java.util.List.of(*extra)
        taken = context.killExecutors(java.scala.jdk.javaapi.CollectionConverters.asScala(names).toSeq())
    return bool(taken)


def session_java(spark: SparkSession) -> Any:
    """Return the classes of Spark's Java."""
    return spark._jvm


def _context(spark: SparkSession) -> Any:
    """Return Spark's context in Java."""
    return spark.sparkContext._jsc.sc()
