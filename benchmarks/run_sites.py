"""Run one system over packets, of which a stream is at a site, to its end; write what it measured as JSON.

A process of its own, as in run_system.py.
"""

import json
import sys
from pathlib import Path
from typing import Any

from run_system import RunningTime, Task, common, forget, fresh_and_practised, work_off
from sites_loads import PacketLoad
from sites_systems import SYSTEMS


def run(task: Task) -> dict[str, list[dict[str, Any]]]:
    """Work off the data of a task; return what the practised runs gave."""
    clock = RunningTime()
    clock.start()
    system, load, scratch = SYSTEMS[task.system], PacketLoad(**task.load), Path(task.scratch)
    spark = system.start({**common(scratch, task.memory), **task.settings})
    spark.sparkContext.setLogLevel("ERROR")

    def work(data: Path, folder: Path) -> dict[str, Any]:
        return work_off(spark, system.query(spark, data, load), task.sink, folder)

    found = fresh_and_practised(task, work, lambda: forget(spark), clock)
    spark.stop()
    return found


if __name__ == "__main__":
    given = Task(**json.loads(sys.argv[1]))
    Path(given.report).write_text(json.dumps(run(given)))
