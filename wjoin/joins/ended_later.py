"""How far streams will have come at later stages once all have ended, where Spark's store has the state.

There a stage knows nothing of later ones while it runs. Before the micro-batch with which all streams end,
the state of all stages can be read.
"""

from pyspark.sql import SparkSession

from wjoin.executor.arrivals import Arrivals
from wjoin.executor.marks import Marks
from wjoin.executor.spark.moved_state import STATE_OPERATOR, stored_manifests
from wjoin.executor.state.identity import fingerprint
from wjoin.executor.state.manifest import Manifest
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.spark.hadoop_files import Files
from wjoin.spark.state_operators import operators


def ended_later(spark: SparkSession, folder: str, plan: PhysicalPlan) -> tuple[dict[int, int], ...]:
    """Return for each stage the greatest event times of streams that it must know when all have ended.

    ``folder`` is the checkpoint of the query. Raises what Spark raises, and WJoinError WJ701.
    """
    files, found = Files.of(spark), dict[str, Manifest]()
    for number, kind in operators(files, folder).items():
        if kind == STATE_OPERATOR:
            # All workers of a stage have been told the same.
            found |= {each.plan: each for each in stored_manifests(spark, folder, number)}
    own = (fingerprint(plan, stage) for stage in plan.stages)
    before = [
        found.get(each, Manifest.fresh(each, 1, len(stage.inputs)))
        for each, stage in zip(own, plan.stages, strict=True)
    ]
    return tuple(each.seen for each in Marks(plan).after(before, Arrivals([], ended=True)))
