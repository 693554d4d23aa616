"""A query on a cluster of Spark's of two hosts, in a process of its own; the driver is at neither.

Arguments: the folder of the streams, where the state is, the master, the other statements of its set (those
of ``child.MORE``, with + between), and settings of Spark's.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession

import wjoin
from tests.faults.child import KEYED, script
from tests.faults.killing import committed
from wjoin.grammar.errors import WJoinError
from wjoin.udfs.predicate import predicate

SLOWED = "slowed"
"""The file that tells how often a task was slow."""


def run(root: Path, state: str, master: str, together: list[str], settings: dict[str, str]) -> None:
    """Run the query; of each stage the first attempt of one task is slow."""
    slowed = root / SLOWED

    # With its cost given, it is not tried in this process.
    @predicate(cost_us=1, selectivity=1)
    def slow(left: Any, right: Any) -> Any:
        task = TaskContext.get()
        if task is not None and task.attemptNumber() == 0 and task.partitionId() == 1:
            with slowed.open("a") as note:
                note.write("x")
            time.sleep(6)
        return left > 0

    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = wjoin.connect(builder.getOrCreate())
    session.sql(f"SET wjoin.state = {state}")
    statements = script(root, None, "parquet", together).replace(
        KEYED, f"{KEYED} AND slow(A.row_id, C.row_id)"
    )
    try:
        session.run_script(statements, once=True, checkpoint=str(root / "checkpoints"))
        for sink in ("tracked", *together):
            committed(session.spark, root, sink)
    except WJoinError as error:
        print(error)
        sys.exit(1)
    finally:
        session.spark.stop()


if __name__ == "__main__":
    run(Path(sys.argv[1]), *sys.argv[2:4], [*filter(None, sys.argv[4].split("+"))], json.loads(sys.argv[5]))
