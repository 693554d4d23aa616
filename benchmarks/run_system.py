"""Run one system over one set of streams to its end and print what it measured as JSON.

A process of its own, so that no system inherits another's heap, workers or settings.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from systems import SYSTEMS, System


def session(system: System, memory: str, folder: Path, extra: dict[str, str]) -> SparkSession:
    """Start the Spark session of a system: two cores, two shuffle partitions."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName(system.title)
    common = {
        "spark.driver.memory": memory,
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        # A sink with timestamps as Spark and everything else reads them, and not as INT96.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    for name, value in {**common, **system.settings, **extra}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def run(name: str, window: int, data: Path, scratch: Path, memory: str, extra: dict[str, str]) -> dict[str, Any]:
    """Run a system until it has read all of ``data``; return its results and Spark's progress of it."""
    system = SYSTEMS[name]
    spark = session(system, memory, scratch, extra)
    out = scratch / "out"
    started = time.monotonic()
    query = (
        system.query(spark, data, window)
        .writeStream.format("parquet")
        .option("path", str(out))
        .option("checkpointLocation", str(scratch / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    seconds = time.monotonic() - started
    progress = [json.loads(each.json) for each in query.recentProgress]
    results = spark.read.parquet(str(out)).count()
    spark.stop()
    return {"results": results, "seconds": seconds, "progress": progress}


if __name__ == "__main__":
    task = json.loads(sys.argv[1])
    outcome = run(
        task["system"], task["window"], Path(task["data"]), Path(task["scratch"]), task["memory"], task["settings"]
    )
    Path(task["report"]).write_text(json.dumps(outcome))
