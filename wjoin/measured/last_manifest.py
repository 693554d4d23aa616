"""What a checkpoint at rest says of its state: how far it has come, and by which rules it keeps rows."""

from pyspark.sql import SparkSession

from wjoin.executor.spark.moved_state import filed_manifests, stored_manifests
from wjoin.executor.state.identity import fingerprint
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.state.worker_files import stage_folder
from wjoin.measured.kept import Kept
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.spark.hadoop_files import Files


def last_manifest(
    spark: SparkSession, folder: str, kept: Kept, join: int, plan: PhysicalPlan
) -> Manifest | None:
    """Return what a worker of the last stage of a join has written last, None where none has yet.

    ``folder`` is that of the checkpoint. All workers of a stage have been told the same event times. Raises
    what Spark raises, and WJoinError WJ701 and WJ719.
    """
    state = kept.state(join)
    if state is not None:
        found = filed_manifests(stage_folder(state, len(plan.stages) - 1), kept.last_commit, 1)
        return next(iter(found), None)
    own = fingerprint(plan, plan.stages[-1])
    # A set has no operators of Spark's that keep state.
    for operator in Files.of(spark).numbers(f"{folder}/state"):
        for each in stored_manifests(spark, folder, operator):
            if each.plan == own:
                return each
    return None
