"""Run one system over one set of streams to its end and write what it measured as JSON.

A process of its own, so that no system inherits another's heap, workers or settings.
"""

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from systems import SYSTEMS


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Run a system until it has read all of its data; return its results and Spark's progress of it.

    Before that the same query runs for at least ``warm_up`` seconds, again and again over the
    micro-batches of ``practice``, so that the virtual machine has compiled what it will, for
    the fast systems and the slow ones alike.
    """
    system = SYSTEMS[task["system"]]
    scratch = Path(task["scratch"])
    spark = system.start({**_common(scratch, task["memory"]), **system.settings, **task["settings"]})
    spark.sparkContext.setLogLevel("ERROR")
    end = time.monotonic() + task["warm_up"]
    while time.monotonic() < end:
        _start(spark, task, Path(task["practice"]), scratch / "warm-up").awaitTermination()
        shutil.rmtree(scratch / "warm-up")
    _forget(spark)
    query = _start(spark, task, Path(task["data"]), scratch)
    query.awaitTermination()
    progress = [json.loads(each.json) for each in query.recentProgress]
    results = spark.read.parquet(str(scratch / "out")).count()
    spark.stop()
    return {"results": results, "progress": progress}


def _forget(spark: SparkSession) -> None:
    """Free the memory that state of the practice still holds."""
    # Spark offers no other way, and keeps the state of an ended query for up to a minute.
    java: Any = spark._jvm
    java.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    java.System.gc()


def _start(spark: SparkSession, task: dict[str, Any], data: Path, folder: Path) -> StreamingQuery:
    rows = SYSTEMS[task["system"]].query(spark, data, task["window"])
    writer = rows.writeStream.format("parquet").option("path", str(folder / "out"))
    return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()


def _common(scratch: Path, memory: str) -> dict[str, str]:
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": memory,
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # INT96, Spark's default, costs every system more to write than to join.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    Path(given["report"]).write_text(json.dumps(run(given)))
