"""What an INSERT INTO finds beside its checkpoint, read when it is first asked for."""

from collections.abc import Mapping
from functools import cached_property

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from wjoin.beside import Beside
from wjoin.planner.physical import Method, PhysicalPlan
from wjoin.recorder import Measured, Recorder, read_measured


class Kept:
    """What is kept beside the checkpoint of one statement; nothing where it has no checkpoint."""

    def __init__(self, spark: SparkSession, folder: str | None) -> None:
        self._beside = None if folder is None else Beside(spark, folder.rstrip("/"))

    def measured(self) -> Measured:
        """Return what earlier runs measured."""
        return self._statistics[1]

    def recorder(self, query: StreamingQuery, plans: Mapping[int, PhysicalPlan]) -> Recorder | None:
        """Return what measures a query from now on, None where there is nothing to measure or no place."""
        counted = any(plan.stages and plan.method is Method.MULTIWAY for plan in plans.values())
        if self._beside is None or not counted:
            return None
        return Recorder(query, self._beside, plans, *self._statistics)

    @cached_property
    def _statistics(self) -> tuple[int, Measured]:
        return (0, []) if self._beside is None else read_measured(self._beside)
