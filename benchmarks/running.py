"""Systems over loads, each in a process of its own that is watched from here."""

import contextlib
import dataclasses
import glob
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from outcomes import Outcome, outcomes
from run_system import COMMITS, Task
from sections import Section
from streams import Load, write_streams
from systems import SYSTEMS
from turns import Player, Stops, take_turns

from wjoin.testing.processes import Sampler, kill_tree

TOGETHER = 3
"""Systems that take turns: all of them are in memory at once."""

_WORDS = 4000
"""What is shown of the log of a system that failed: so many letters of its beginning and of its end."""


@dataclass(frozen=True)
class How:
    """What holds for all systems: seconds of practice, sink, heap, Spark settings, and where data lie."""

    warm_up: float
    sink: str
    memory: str
    settings: dict[str, str]
    scratch: str | None


@dataclass(frozen=True)
class Failure:
    """What has failed, and its words: of a system the beginning and the end of what it has logged."""

    what: str
    words: str


def run_section(
    part: str, section: Section, systems: tuple[str, ...], how: How
) -> tuple[list[Outcome], list[Failure]]:
    """Run the systems over the loads of a section, some of them in turns; one that fails hinders no other."""
    found: list[Outcome] = []
    failed: list[Failure] = []
    runs = [(load, system) for load in section.loads for system in systems]
    with tempfile.TemporaryDirectory(prefix="wjoin-data-", dir=how.scratch) as folder:
        data = {load: Path(folder) / str(number) for number, load in enumerate(section.loads)}
        for load, place in data.items():
            write_streams(load, place / "load")
            write_streams(load.practice, place / "practice")
        for start in range(0, len(runs), TOGETHER):
            for each in _run(part, section, runs[start : start + TOGETHER], data, how):
                if isinstance(each, Failure):
                    failed.append(each)
                else:
                    found += each
    return found, failed


def _run(
    part: str, section: Section, runs: Sequence[tuple[Load, str]], data: Mapping[Load, Path], how: How
) -> list[list[Outcome] | Failure]:
    """Run systems in turns."""
    for load, system in runs:
        print(f"  {SYSTEMS[system].title}: {load.title} ...", file=sys.stderr, flush=True)
    with contextlib.ExitStack() as stack:
        prepared = [_Run(section, load, system, data[load], how, stack) for load, system in runs]
        stops = take_turns([each.start for each in prepared])
        return [each.outcomes(part, stopped) for each, stopped in zip(prepared, stops, strict=True)]


class _Run:
    """A system over a load, in a process that writes into a folder of its own; all end with ``stack``."""

    def __init__(
        self, section: Section, load: Load, system: str, data: Path, how: How, stack: contextlib.ExitStack
    ) -> None:
        self._section, self._load, self._system = section, load, system
        self._stack = stack
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="wjoin-bench-", dir=how.scratch))
        self._scratch = Path(folder)
        self._task = Task(
            system=system,
            load=dataclasses.asdict(load),
            sink=how.sink,
            data=str(data / "load"),
            practice=str(data / "practice"),
            scratch=folder,
            report=str(self._scratch / "report"),
            memory=how.memory,
            warm_up=how.warm_up,
            fresh=system in section.fresh,
            settings=how.settings,
        )

    def start(self) -> Player:
        """Start the process, watched from now on."""
        program = str(Path(__file__).with_name("run_system.py"))
        command = [sys.executable, program, json.dumps(dataclasses.asdict(self._task))]
        log = self._stack.enter_context((self._scratch / "log").open("w"))
        environment = os.environ | {"WJOIN_CLOCK": str(self._scratch / "clock")}
        # Where whoever has started the benchmark ends, the system would end what is stopped of its group.
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        self._stack.callback(_end, process)
        self._process = process
        self._usage = self._stack.enter_context(Sampler(process.pid))
        return Player(process, self._may_stop)

    def _may_stop(self) -> bool:
        """Return whether a query has begun its work: what starts it may take ten seconds at the most."""
        # Unlike Path.glob it does not mind that folders vanish meanwhile.
        return bool(glob.glob(COMMITS, root_dir=self._scratch))  # noqa: PTH207

    def outcomes(self, part: str, stops: Stops) -> list[Outcome] | Failure:
        """Return what the process has measured, or its words if it has failed."""
        if self._process.returncode:
            words = (self._scratch / "log").read_text()
            # The plan of a query that failed follows after what has happened, and is long.
            shown = f"{words[:_WORDS]}\n...\n{words[_WORDS:][-_WORDS:]}"
            return Failure(f"{part}: {self._system}", shown)
        report, clock = self._scratch / "report", self._scratch / "clock"
        filling = self._section.filling
        return outcomes(part, self._system, self._load, filling, report, self._usage, clock, stops)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that an error has left behind, with all that it has started."""
    if process.poll() is None:
        kill_tree(process.pid)
        process.wait()
