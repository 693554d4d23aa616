"""Spark, as the statements of a session meet it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Engine:
    """A SparkSession, and ``run``: its own ``sql``, kept apart because enable() puts another in its place."""

    spark: SparkSession
    run: Callable[..., DataFrame]

    def rows(self, rows: Iterable[Any], schema: str) -> DataFrame:
        """Return what a statement answers."""
        return self.spark.createDataFrame(list(rows), schema)

    def nothing(self) -> DataFrame:
        """Return the answer of a statement that has none."""
        return self.rows([], "nothing STRING").drop("nothing")

    def exists(self, name: str) -> bool:
        """Return whether there is a table or view; ``name`` is quoted as Spark wants it."""
        return self.spark.catalog.tableExists(name)


def at_work(spark: SparkSession) -> None:
    """Have this thread work for a session: some of Spark's calls ask for the one that was last at work."""
    session: Any = spark
    if hasattr(session, "_jsparkSession"):
        session._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)
