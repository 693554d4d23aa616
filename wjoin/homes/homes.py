"""Where the state of a query is: in files beside its checkpoint, or in Spark's state store."""

import uuid
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from wjoin.executor.routing import worker_count
from wjoin.executor.state.starting import STATE
from wjoin.grammar.errors import WJoinError
from wjoin.planner.plan.physical import Method, PhysicalPlan
from wjoin.spark.cluster import is_local, partitions
from wjoin.spark.hadoop_files import Files

AUTO, FILES, SPARK = HOMES = ("auto", "files", "spark")
"""The values of wjoin.state."""

IN_WORDS = {FILES: "files beside the checkpoint", SPARK: "Spark's state store"}

_ASKED = "wjoin.state is files"


@dataclass(frozen=True)
class Home:
    """Where a query keeps its state, in ``files`` or in Spark's store, and ``why``.

    Files are below the folder ``checkpoint``, None where it is not known before the query starts.
    """

    files: bool
    checkpoint: Path | None
    why: str


def home(spark: SparkSession, checkpoint: str | None, begun: bool, asked: str) -> Home:
    """Return where the state of a query is, or will be.

    ``begun``: whether a query has begun on the checkpoint, whose state stays where it is; ``asked``: the
    value of wjoin.state. Raises WJoinError WJ720 where it cannot be where it is asked for.
    """
    if checkpoint is None:
        if asked == FILES:
            return Home(True, None, _ASKED)
        return Home(False, None, "the checkpoint is not known before the query starts")
    folder = None if not hasattr(spark, "_jsparkSession") else Files.of(spark).local(checkpoint)
    if begun:
        return _begun(checkpoint, folder, asked)
    if asked == SPARK:
        return Home(False, None, "wjoin.state is spark")
    if folder is None:
        if asked == FILES:
            message = f"wjoin.state is files, and the checkpoint {checkpoint} is not on a local file system"
            raise WJoinError("WJ720", message)
        return Home(False, None, "the checkpoint is not on a local file system")
    if asked == FILES:
        return Home(True, folder, _ASKED)
    if not is_local(spark):
        return Home(False, None, "executors on other machines may not reach the folder of the checkpoint")
    return Home(True, folder, "all workers reach the folder of the checkpoint")


def check_shared(spark: SparkSession, folder: Path) -> None:
    """See that tasks on all machines of a cluster read what is written to a folder.

    Raises WJoinError WJ720.
    """
    if is_local(spark):
        return
    told = uuid.uuid4().hex
    path = folder / "shared"
    path.write_text(told)
    context = spark.sparkContext
    tasks = 4 * max(2, context.defaultParallelism)
    found = context.parallelize(range(tasks), tasks).map(lambda _: _reads(path, told)).collect()
    path.unlink()
    if not all(found):
        raise WJoinError(
            "WJ720",
            f"{found.count(False)} of {tasks} tasks do not find {folder}, where the state would be in files",
            help="put the checkpoint on a file system that all machines share, or SET wjoin.state = spark",
        )


def _reads(path: Path, told: str) -> bool:
    try:
        return path.read_text() == told
    except OSError:
        return False


def keeps_state(plan: PhysicalPlan) -> bool:
    """Return whether stages of wjoin's own keep state for a plan."""
    return plan.streaming and plan.method is Method.MULTIWAY


def state_workers(spark: SparkSession, plan: PhysicalPlan) -> list[int]:
    """Return the workers of each stage of a plan that keeps state, none of one that keeps none."""
    if not keeps_state(plan):
        return []
    return [worker_count(stage, partitions(spark)) for stage in plan.stages]


def _begun(checkpoint: str, folder: Path | None, asked: str) -> Home:
    found = folder if folder is not None and (folder / STATE).is_dir() else None
    kept = SPARK if found is None else FILES
    if folder is not None and found is None and asked == FILES and not (folder / "state").is_dir():
        # Nor has Spark any: the query keeps none.
        return Home(True, folder, _ASKED)
    if asked not in (AUTO, kept):
        message = f"wjoin.state is {asked}, and the checkpoint {checkpoint} has its state in {IN_WORDS[kept]}"
        raise WJoinError("WJ720", message)
    return Home(found is not None, found, "the checkpoint has it there")
