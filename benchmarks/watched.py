"""Processes that are watched and take turns, each with a folder of its own."""

import contextlib
import dataclasses
import glob
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import kit_path  # noqa: F401 (finds tests.kit)
from run_system import Task
from turns import Player

from tests.kit.processes import Sampler, Usage, kill_tree

REPORT = "report"
"""The file in the folder of a process that has what it measured."""

_WORDS = 4000
"""What is shown of the log of a process that failed: so many letters of its beginning and of its end."""


class Watched:
    """A program of this folder that does a task; its process and its folder end with ``stack``.

    The process may be stopped once there is a file ``begun``, a pattern below its folder. It is killed where
    it passes ``limit`` bytes of anonymous memory.
    """

    def __init__(
        self,
        program: str,
        task: Callable[[Path], Task],
        begun: str,
        scratch: str | None,
        stack: contextlib.ExitStack,
        limit: int | None = None,
    ) -> None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="wjoin-bench-", dir=scratch))
        self.scratch = Path(folder)
        self.usage = Usage()
        self._program, self._begun, self._limit = program, begun, limit
        self._task, self._stack = task(self.scratch), stack

    def start(self) -> Player:
        """Start the process, watched from now on."""
        program = str(Path(__file__).with_name(self._program))
        command = [sys.executable, program, json.dumps(dataclasses.asdict(self._task))]
        log = self._stack.enter_context((self.scratch / "log").open("w"))
        # Where whoever has started the benchmark ends, the system would end what is stopped of its group.
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self._stack.callback(_end, process)
        self._process = process
        self.usage = self._stack.enter_context(Sampler(process.pid, limit=self._limit))
        return Player(process, self._may_stop)

    def _may_stop(self) -> bool:
        """Return whether its work has begun: what starts a query may take ten seconds at the most."""
        return bool(glob.glob(self._begun, root_dir=self.scratch))  # noqa: PTH207 (folders may vanish)

    @property
    def words(self) -> str | None:
        """The beginning and the end of what a process that failed has logged; None of one that did not."""
        if not self._process.returncode:
            return None
        words = (self.scratch / "log").read_text()
        # The plan of a query that failed follows after what has happened, and is long.
        return f"{words[:_WORDS]}\n...\n{words[_WORDS:][-_WORDS:]}"


def places(data: Path, folder: Path) -> dict[str, str]:
    """Return where a task finds what it works off, in ``data``, and writes what it makes, in ``folder``."""
    return {
        "data": str(data / "load"),
        "practice": str(data / "practice"),
        "scratch": str(folder),
        "report": str(folder / REPORT),
    }


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that an error has left behind, with all that it has started."""
    if process.poll() is None:
        kill_tree(process.pid)
        process.wait()
