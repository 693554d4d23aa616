"""Run one system over one load without a key to its end, and write what it measured as JSON.

A process of its own, as in run_system.py.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_system import RunningTime, Task, fresh_and_practised
from theta_loads import ThetaLoad
from theta_systems import ON_STREAMS, ON_TABLES

BEGUN = "begun"
"""The file that tells that a process has worked off tables once."""


@dataclass(frozen=True)
class ThetaTask(Task):
    """What one process does, with streams, or with the same files as ``tables``."""

    tables: bool = False


def run(task: ThetaTask) -> dict[str, list[dict[str, Any]]]:
    """Work off the data of a task; return what the fresh and the practised runs gave."""
    clock = RunningTime()
    clock.start()
    scratch = Path(task.scratch)
    system = (ON_TABLES if task.tables else ON_STREAMS)[task.system]
    started = system.start(ThetaLoad(**task.load), scratch, task.memory)

    def work(data: Path, folder: Path) -> dict[str, Any]:
        done = started.work(data, folder)
        (scratch / BEGUN).touch()
        return done

    found = fresh_and_practised(task, work, started.forget, clock)
    started.stop()
    return found


if __name__ == "__main__":
    given = ThetaTask(**json.loads(sys.argv[1]))
    Path(given.report).write_text(json.dumps(run(given)))
