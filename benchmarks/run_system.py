"""Run one system over one set of streams to its end and write what it measured as JSON.

A process of its own, so that no system inherits another's heap, workers or settings.
"""

import json
import sys
from pathlib import Path
from typing import Any

from systems import SYSTEMS


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Run a system until it has read all of its data; return its results and Spark's progress of it."""
    system = SYSTEMS[task["system"]]
    scratch = Path(task["scratch"])
    spark = system.start({**_common(scratch, task["memory"]), **system.settings, **task["settings"]})
    spark.sparkContext.setLogLevel("ERROR")
    query = (
        system.query(spark, Path(task["data"]), task["window"])
        .writeStream.format("parquet")
        .option("path", str(scratch / "out"))
        .option("checkpointLocation", str(scratch / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    progress = [json.loads(each.json) for each in query.recentProgress]
    results = spark.read.parquet(str(scratch / "out")).count()
    spark.stop()
    return {"results": results, "progress": progress}


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
