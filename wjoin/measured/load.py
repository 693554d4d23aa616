"""How busy the executors of a Spark session are, and executors that follow that (S2J, section 3.2.3)."""

import time
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from wjoin.grammar.errors import WJoinWarning
from wjoin.grammar.plurals import counted
from wjoin.measured.progress import Progress
from wjoin.measured.reports import MicroBatchReport
from wjoin.planner.cost.scaling import Scale, Scaling
from wjoin.planner.cost.shed_share import Thresholds, came_in, unshed
from wjoin.spark.cluster import partitions
from wjoin.spark.executors import Executors, allocates_itself, ask_for, executors
from wjoin.spark.notices import tell
from wjoin.spark.session_things import held

_CODE = "WJ822"


class Load:
    """How busy executors are while one run of a query goes on: τ without what the query sheds.

    A micro-batch that takes no longer than ``interval`` is in time. Each load is told to ``following``.
    """

    def __init__(self, run: str, interval: float, following: "Following") -> None:
        self._run = run
        self._interval = interval
        self._following = following
        self._before: tuple[Progress, float] | None = None

    def take(self, report: MicroBatchReport) -> None:
        """Take what a report tells of a micro-batch."""
        progress = report.progress
        if progress.idle:
            self._following.put(self._run, 0.0)
        found = None if progress.idle else self._following.found()
        if found is None:
            return
        before, self._before = self._before, (progress, found.worked)
        if before is not None and (passed := self._passed(before[0], progress)) is not None:
            shed = sum(progress.shed.values()) / max(1, sum(progress.rows_in.values()))
            load = (found.worked - before[1]) / (max(1, found.tasks) * max(passed, self._interval))
            self._following.put(self._run, unshed(load, shed))

    def _passed(self, before: Progress, progress: Progress) -> float | None:
        """Return the seconds since the micro-batch before, less where its rows came in less time."""
        if progress.ended is None or before.ended is None:
            return None
        passed, came = progress.ended - before.ended, came_in(progress.seen, before.seen, progress.ended)
        return passed if came is None else min(passed, came)

    def tend(self) -> None:
        """Ask for other executors where that is due."""
        self._following.tend()

    def end(self) -> None:
        """Need no executors any more."""
        self._following.drop(self._run)

    @property
    def words(self) -> str:
        """Which executors were asked for the last time; empty where none were."""
        return self._following.words


class Following:
    """Asks for executors as the queries of a Spark session need them: the busiest of these counts.

    The rules are those of the query that has started last.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._loads: dict[str, float] = {}
        self._scale = Scale(1)
        self._told = False
        self._rules: tuple[Scaling, Thresholds] | None = None
        self.words = ""

    def begin(self, scaling: Scaling, thresholds: Thresholds) -> bool:
        """Go by some rules from now on; return whether there is anything to ask for, and warn if not."""
        reason = ""
        if self.found() is None:
            reason = "this Spark has no executors that can be asked for"
        elif allocates_itself(self._spark):
            reason = "Spark asks for them by a rule of its own, spark.dynamicAllocation.enabled"
        if reason:
            tell(WJoinWarning(_CODE, f"executors do not follow wjoin.executors: {reason}"))
            return False
        self._rules = scaling, thresholds
        return True

    def found(self) -> Executors | None:
        """Return the executors that there are now, None where the driver runs the tasks."""
        return executors(self._spark)

    def put(self, run: str, load: float) -> None:
        """Take the load of a run of a query."""
        self._loads[run] = load
        self._told = False

    @property
    def load(self) -> float:
        """The load of the busiest query."""
        return max(self._loads.values(), default=0.0)

    def drop(self, run: str) -> None:
        """Forget a run of a query that has ended."""
        self._loads.pop(run, None)

    def tend(self) -> None:
        """Ask for more or fewer executors, where the load of the queries has been so for long enough."""
        if self._told or not self._loads or self._rules is None:
            return
        self._told = True
        scaling, thresholds = self._rules
        found = self.found()
        if found is None or not found.names:
            return
        # More than there are partitions for would have nothing to do.
        useful = -(-partitions(self._spark) // found.cores)
        load, number = self.load, len(found.names)
        scale = replace(self._scale, number=number)
        limited = replace(scaling, most=max(scaling.least, min(scaling.most, useful)))
        self._scale = scale.after(time.monotonic(), load, limited, thresholds)
        if self._scale.number != number and ask_for(self._spark, found, self._scale.number):
            self._tell(number, load, useful < min(scaling.most, scale.wanted(load, thresholds)))

    def _tell(self, before: int, load: float, short: bool) -> None:
        asked = counted(self._scale.number, "executor")
        self.words = f"{asked} in place of {before} since {datetime.now(UTC):%H:%M:%S} UTC"
        more = ", as many as there are partitions for (wjoin checkpoint repartition)" if short else ""
        tell(
            WJoinWarning(
                _CODE, f"{asked} asked for in place of {before}{more}: the utilization is {load:.2f}"
            )
        )


def following(spark: SparkSession) -> Following:
    """Return what asks for the executors of a Spark session."""
    return held(spark).get(Following, lambda: Following(spark))
