"""One system over one load, in a process of its own that is watched from here."""

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from outcomes import Outcome, outcomes
from run_system import Task
from sections import Section
from streams import Load, write_streams
from systems import SYSTEMS

from wjoin.testing.processes import Sampler


@dataclass(frozen=True)
class How:
    """What holds for all systems: seconds of practice, sink, heap, Spark settings, and where data lie."""

    warm_up: float
    sink: str
    memory: str
    settings: dict[str, str]
    scratch: str | None


def run_section(part: str, section: Section, systems: tuple[str, ...], how: How) -> list[Outcome]:
    """Run the systems over the loads of a section, one after the other."""
    found = []
    for load in section.loads:
        with tempfile.TemporaryDirectory(prefix="wjoin-data-", dir=how.scratch) as folder:
            data = Path(folder)
            write_streams(load, data / "load")
            write_streams(load.practice, data / "practice")
            for system in systems:
                found += _run(part, section, system, load, data, how)
    return found


def _run(part: str, section: Section, system: str, load: Load, data: Path, how: How) -> list[Outcome]:
    """Run a system; raise RuntimeError with its last words if it fails."""
    print(f"  {SYSTEMS[system].title}: {load.title} ...", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="wjoin-bench-", dir=how.scratch) as folder:
        scratch = Path(folder)
        clock, report = scratch / "clock", scratch / "report"
        task = Task(
            system=system,
            load=dataclasses.asdict(load),
            sink=how.sink,
            data=str(data / "load"),
            practice=str(data / "practice"),
            scratch=folder,
            report=str(report),
            memory=how.memory,
            warm_up=how.warm_up,
            fresh=system in section.fresh,
            settings=how.settings,
        )
        command = [
            sys.executable,
            str(Path(__file__).with_name("run_system.py")),
            json.dumps(dataclasses.asdict(task)),
        ]
        with (scratch / "log").open("w") as log:
            process = subprocess.Popen(
                command, env=os.environ | {"WJOIN_CLOCK": str(clock)}, stdout=log, stderr=log
            )
            with Sampler(process.pid) as usage:
                status = process.wait()
        if status:
            raise RuntimeError(f"{system} failed:\n{(scratch / 'log').read_text()[-4000:]}")
        return outcomes(part, system, load, section.filling, report, usage, clock)
