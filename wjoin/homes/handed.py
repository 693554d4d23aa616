"""The checkpoint of a query that a user starts, handed to its tasks: who plans the query does not know it.

Spark tells of a start in the thread of the query, before its first micro-batch. What is set there as a local
property comes with every task of the query.
"""

import re
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from wjoin.executor.spark.operator import task_name
from wjoin.executor.spark.state_folder import HANDED, REFUSED
from wjoin.executor.state.identity import fingerprint
from wjoin.executor.state.starting import STATE, Joins, begin, resume
from wjoin.grammar.errors import WJoinError
from wjoin.homes.homes import IN_WORDS, SPARK, check_shared
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.spark.hadoop_files import Files
from wjoin.spark.session_things import held

TWICE = "the query reads one window join in several places, and its state would be in files"
"""Why the state of a query cannot be in files: each place would take that of the others for its own."""

_PART = re.compile(task_name(r"(\d+)", r"\w+") + r"\b")
_SHARED = re.compile(r"CTERelationRef (\d+)")


@dataclass(frozen=True)
class HandedStages:
    """A compiled join whose state is in files: the name of its folder, and the workers of each stage."""

    folder: str
    workers: Sequence[int]


def folder_of(plan: PhysicalPlan) -> str:
    """Return the name of the folder of a join's state in a query that somebody else starts."""
    return "-".join(dict.fromkeys(fingerprint(plan, stage) for stage in plan.stages))


def hand_over(spark: SparkSession, number: int, stages: HandedStages) -> None:
    """Have the tasks of join ``number`` know the checkpoint of the query that it will be in."""
    known = held(spark).known(_Starts)
    if known is None:
        known = held(spark).get(_Starts, lambda: _Starts(spark))
        known.listen()
    known.stages[number] = stages


def analyzed(rows: DataFrame) -> str:
    """Return the plan of a DataFrame as Spark writes it."""
    frame: Any = rows
    return str(frame._jdf.queryExecution().analyzed().toString())


def reads_twice(plan: str) -> bool:
    """Return whether a query, by its plan as Spark writes it, may run one join in several places."""
    if not _PART.search(plan):
        return False
    found = Counter(each.group() for each in _PART.finditer(plan))
    shared = Counter(_SHARED.findall(plan))
    return max([*found.values(), *shared.values()]) > 1


class _Starts:
    """Sees to the state of each query of a session that starts.

    Spark tells it of micro-batches, too: a listener of PySpark's would read each report, which costs as much
    as a small micro-batch.
    """

    def __init__(self, spark: SparkSession) -> None:
        # What is held for a session must not keep it alive.
        self._spark = weakref.ref(spark)
        self.stages: dict[int, HandedStages] = {}

    def listen(self) -> None:
        """Have Spark tell of the session's queries."""
        spark: Any = self._spark()
        ensure_callback_server_started(spark._sc._gateway)  # type: ignore[no-untyped-call]  # has no types
        sql = spark._jvm.org.apache.spark.sql.streaming
        spark.streams._jsqm.addListener(sql.PythonStreamingQueryListenerWrapper(self))

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        """Set what the tasks of the query read."""
        spark: Any = self._spark()
        if spark is None:
            return
        execution = spark.streams._jsqm.get(event.id()).streamingQuery()
        plan = str(execution.analyzedPlan().toString())
        numbers = dict.fromkeys(int(each) for each in _PART.findall(plan))
        own = [self.stages[number] for number in numbers if number in self.stages]
        if not own:
            return
        try:
            folders = {each.folder: each.workers for each in own}
            if len(folders) < len(own) or reads_twice(plan):
                raise WJoinError("WJ720", TWICE)
            root = _checkpoint(spark, str(execution.resolvedCheckpointRoot()))
            _prepare(spark, root, folders)
            spark.sparkContext.setLocalProperty(HANDED, str(root / STATE))
        except WJoinError as error:
            spark.sparkContext.setLocalProperty(REFUSED, f"{error.code} {error.message}")
        except OSError as error:
            spark.sparkContext.setLocalProperty(REFUSED, f"WJ718 the state cannot be written: {error}")

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        """Do nothing."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        """Do nothing."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        """Do nothing."""

    class Java:
        """What Py4J implements with it."""

        implements = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]  # noqa: RUF012 (Py4J's)


def _checkpoint(spark: SparkSession, path: str) -> Path:
    """Return the folder of a checkpoint in which state can be files. Raises WJoinError WJ720."""
    root = Files.of(spark).local(path)
    if root is None:
        raise WJoinError("WJ720", f"the checkpoint {path} is not on a local file system")
    if (root / "offsets").is_dir() and any((root / "offsets").iterdir()) and not (root / STATE).is_dir():
        raise WJoinError("WJ720", f"the checkpoint {path} has its state in {IN_WORDS[SPARK]}")
    return root


def _prepare(spark: SparkSession, root: Path, folders: Joins) -> None:
    (resume if (root / STATE).is_dir() else begin)(root, folders)
    check_shared(spark, root / STATE)
