"""Run one system over one set of streams to its end, and write what it measured as JSON.

A process of its own, so that no system inherits another's heap, workers or settings.
"""

import itertools
import json
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from streams import Load
from systems import SYSTEMS

SINKS = ("noop", "parquet")
COMMITS = "run/*/checkpoint/commits/[0-9]*"
"""The files that tell what micro-batches the running query has committed, in the scratch folder."""

MEASURED = 20.0
"""Seconds that the practised runs of a system take at least, all together."""

_TICK = 0.1


@dataclass(frozen=True)
class Task:
    """What one process does; folders and files as text, ``warm_up`` in seconds.

    The data are worked off after the practice for ``measured`` seconds, and, where ``fresh`` says so,
    once before it, too.
    """

    system: str
    load: dict[str, int]
    sink: str
    data: str
    practice: str
    scratch: str
    report: str
    memory: str
    warm_up: float
    fresh: bool
    settings: dict[str, str]
    measured: float = MEASURED


def run(task: Task) -> dict[str, list[dict[str, Any]]]:
    """Work off the data of a task; return what the fresh and the practised runs gave."""
    clock = RunningTime()
    clock.start()
    system, load, scratch = SYSTEMS[task.system], Load(**task.load), Path(task.scratch)
    spark = system.start({**common(scratch, task.memory), **system.settings, **task.settings})
    spark.sparkContext.setLogLevel("ERROR")

    def work(data: Path, folder: Path) -> dict[str, Any]:
        return work_off(spark, system.query(spark, data, load), task.sink, folder)

    found = fresh_and_practised(task, work, lambda: forget(spark), clock)
    spark.stop()
    return found


def fresh_and_practised(
    task: Task, work: Callable[[Path, Path], dict[str, Any]], tidy: Callable[[], None], clock: "RunningTime"
) -> dict[str, list[dict[str, Any]]]:
    """Return what ``work`` tells of the data of a task, in a folder of its own each time.

    Between the fresh run and the practised ones the same query runs until ``warm_up`` seconds have passed in
    all, again and again over the micro-batches of ``practice``, so that the virtual machine has compiled
    what it will, for the fast systems and the slow ones alike.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    numbers = itertools.count()

    def once(data: str) -> dict[str, Any]:
        folder = Path(task.scratch) / "run" / str(next(numbers))
        folder.mkdir(parents=True)
        done = work(Path(data), folder)
        # Spark may still be writing its state there, as it does now and then in the background.
        shutil.rmtree(folder, ignore_errors=True)
        return done

    if task.fresh:
        found["fresh"] = [once(task.data)]
    while clock.seconds < task.warm_up:
        once(task.practice)
    practised, began = found.setdefault("practised", []), clock.seconds
    while not practised or clock.seconds - began < task.measured:
        tidy()
        practised.append(once(task.data))
    return found


class RunningTime(threading.Thread):
    """Counts the ``seconds`` in which this process runs: it may be stopped for a while, and go on."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seconds = 0.0

    def run(self) -> None:
        """Count until the process ends."""
        last = time.monotonic()
        while True:
            time.sleep(_TICK)
            now = time.monotonic()
            self.seconds += min(now - last, 2 * _TICK)
            last = now


def work_off(spark: SparkSession, rows: DataFrame, sink: str, folder: Path) -> dict[str, Any]:
    """Run a query over what there is; return its results and Spark's progress of every micro-batch."""
    writer = rows.writeStream.format(sink).option("checkpointLocation", str(folder / "checkpoint"))
    if sink == "parquet":
        writer = writer.option("path", str(folder / "out"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [json.loads(each.json) for each in query.recentProgress]
    if sink == "parquet":
        results = spark.read.parquet(str(folder / "out")).count()
    else:
        results = sum(max(0, each["sink"]["numOutputRows"]) for each in progress)
    return {"results": results, "progress": progress}


def forget(spark: SparkSession) -> None:
    """Free the memory that state of earlier runs still holds."""
    # Spark offers no other way, and keeps the state of an ended query for up to a minute.
    java: Any = spark._jvm
    java.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    java.System.gc()


def common(scratch: Path, memory: str) -> dict[str, str]:
    """Return the settings of all sessions."""
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
    given = Task(**json.loads(sys.argv[1]))
    Path(given.report).write_text(json.dumps(run(given)))
