"""The executors of a Spark that runs on a cluster: which there are, and asking for more or fewer."""

from dataclasses import dataclass
from typing import Any, cast

from pyspark.sql import SparkSession

_DRIVER = "driver"


@dataclass(frozen=True)
class Executors:
    """The executors that there are: their names, and how many tasks each runs at once.

    ``worked``: seconds of all tasks that have ended, also on executors that are gone.
    """

    names: tuple[str, ...]
    cores: int
    worked: float

    @property
    def tasks(self) -> int:
        """How many tasks run at once."""
        return len(self.names) * self.cores


def executors(spark: SparkSession) -> Executors | None:
    """Return the executors, None where the driver runs the tasks itself, and under Spark Connect.

    There may be none yet.
    """
    if not hasattr(spark, "_jsparkSession"):
        return None
    context = _context(spark)
    if context.isLocal():
        return None
    found = context.statusStore().executorList(False)
    told = [found.apply(place) for place in range(found.size())]
    cores = {each.id(): each.totalCores() for each in told if each.isActive() and each.id() != _DRIVER}
    worked = sum(each.totalDuration() for each in told) / 1000
    setting = context.conf().get
    least = min(cores.values(), default=int(setting("spark.executor.cores", "1")))
    tasks = max(1, least // int(setting("spark.task.cpus", "1")))
    return Executors(tuple(sorted(cores, key=int)), tasks, worked)


def allocates_itself(spark: SparkSession) -> bool:
    """Return whether Spark asks for executors by a rule of its own: then nobody else can."""
    return bool(_context(spark).conf().getBoolean("spark.dynamicAllocation.enabled", False))


def ask_for(spark: SparkSession, found: Executors, number: int) -> bool:
    """Ask the cluster for a number of executors, in place of those ``found``; the last ones end first.

    What ran on those is done again elsewhere. Returns whether the cluster takes such wishes.
    """
    context, java = _context(spark), cast(Any, spark._jvm)
    nowhere = getattr(getattr(java.scala.collection.immutable, "Map$"), "MODULE$").empty()
    extra = found.names[number:]
    # Spark takes those that end from how many it was asked for last.
    taken = context.requestTotalExecutors(number + len(extra), 0, nowhere)
    if taken and extra:
        names = java.java.util.List.of(*extra)
        taken = context.killExecutors(java.scala.jdk.javaapi.CollectionConverters.asScala(names).toSeq())
    return bool(taken)


def _context(spark: SparkSession) -> Any:
    """Return Spark's context in Java."""
    return spark.sparkContext._jsc.sc()
