"""Systems over loads, each in a process of its own that is watched from here."""

import contextlib
import dataclasses
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
from turns import Stops, take_turns
from watched import REPORT, Watched, places

TOGETHER = 3
"""Systems that take turns: all of them are in memory at once."""


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

        def task(folder: Path) -> Task:
            return Task(
                system=system,
                load=dataclasses.asdict(load),
                sink=how.sink,
                memory=how.memory,
                warm_up=how.warm_up,
                fresh=system in section.fresh,
                settings=how.settings,
                **places(data, folder),
            )

        self._watched = Watched("run_system.py", task, COMMITS, how.scratch, stack)
        self.start = self._watched.start

    def outcomes(self, part: str, stops: Stops) -> list[Outcome] | Failure:
        """Return what the process has measured, or its words if it has failed."""
        watched = self._watched
        if watched.words is not None:
            return Failure(f"{part}: {self._system}", watched.words)
        filling = self._section.filling
        found = (watched.scratch / REPORT, watched.usage, stops)
        return outcomes(part, self._system, self._load, filling, *found)
