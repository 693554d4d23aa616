"""Memory and processor time of a process and everything it starts, sampled from /proc (Linux).

*Resident* memory counts every page in each process that has it, also pages of files, which the
system takes back when it needs them. *Anonymous* memory belongs to no file: the machine can only give
it while it has some, so limits are on this one. *Proportional* memory counts a page that n
processes share as 1/n in each.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROPORTIONAL_EVERY = 2.0
_STOPPING = 5.0


@dataclass(frozen=True)
class Memory:
    """Bytes of memory of some processes: all that is resident, and what of it is anonymous."""

    resident: int = 0
    anonymous: int = 0

    def __add__(self, other: "Memory") -> "Memory":
        return Memory(self.resident + other.resident, self.anonymous + other.anonymous)


@dataclass(frozen=True)
class Sample:
    """One moment (seconds since the epoch): memory of the JVMs and of all others, processor seconds so far.

    ``proportional`` is in bytes, of all; None where it was not looked at.
    """

    moment: float
    processor: float
    java: Memory
    python: Memory
    proportional: int | None = None

    @property
    def memory(self) -> Memory:
        """The memory of all processes."""
        return self.java + self.python


@dataclass
class Usage:
    """What was sampled; ``killed`` tells that the processes passed their limit and were killed."""

    samples: list[Sample] = field(default_factory=list)
    killed: bool = False

    @property
    def peak(self) -> Memory:
        """The most memory that was resident at once, and the most that was anonymous."""
        return Memory(
            max((each.memory.resident for each in self.samples), default=0),
            max((each.memory.anonymous for each in self.samples), default=0),
        )

    @property
    def peak_proportional(self) -> int:
        """The most proportional memory, in bytes; 0 where it was not looked at."""
        return max((each.proportional or 0 for each in self.samples), default=0)

    def processor_between(self, start: float, end: float) -> float:
        """Return the processor seconds spent between two moments, to the nearest sample."""
        first, last = (
            min(self.samples, key=lambda sample: abs(sample.moment - moment)) for moment in (start, end)
        )
        return last.processor - first.processor


class Sampler:
    """Samples a process tree in the background, from ``with`` to its end.

    Where ``limit`` bytes of anonymous memory are passed, all its processes are killed. ``proportional``
    memory costs a walk through the pages of every process, which then waits: every two seconds.
    """

    def __init__(
        self, root: int, *, interval: float = 0.25, limit: int | None = None, proportional: bool = False
    ) -> None:
        self.usage = Usage()
        self._root = root
        self._interval = interval
        self._limit = limit
        self._proportional = proportional
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Usage:
        self._thread.start()
        return self.usage

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        ended = walked = 0.0
        last: dict[int, float] = {}
        while not self._stop.wait(self._interval):
            alive = _tree(self._root)
            # The time of a process that has ended still counts.
            ended += sum(seconds for process, seconds in last.items() if process not in alive)
            # A process that is just being started still shows the memory of the one that starts it.
            settled = [process for process in alive if process in last]
            last = {process: each.processor for process, each in alive.items()}
            walk = self._proportional and time.monotonic() - walked >= _PROPORTIONAL_EVERY
            if walk:
                walked = time.monotonic()
            sample = Sample(
                time.time(),
                ended + sum(last.values()),
                _total(alive, settled, lambda name: name == "java"),
                _total(alive, settled, lambda name: name != "java"),
                sum(map(_proportional, settled)) if walk else None,
            )
            self.usage.samples.append(sample)
            if self._limit is not None and sample.memory.anonymous > self._limit:
                self.usage.killed = True
                kill_tree(self._root)


@dataclass(frozen=True)
class _Process:
    name: str
    processor: float
    memory: Memory


def pause(root: int) -> None:
    """Stop a process and everything it has started, until ``resume``; return when they stand still."""
    told, until = _signal(root, signal.SIGSTOP), time.monotonic() + _STOPPING
    # Signals arrive a moment later.
    while any(map(_moves, told)) and time.monotonic() < until:
        time.sleep(0.001)


def resume(root: int) -> None:
    """Have a process and everything it has started go on."""
    _signal(root, signal.SIGCONT)


def kill_tree(root: int) -> None:
    """Kill a process and everything it has started."""
    _signal(root, signal.SIGKILL)


def _moves(process: int) -> bool:
    """Return whether a process is neither stopped nor gone."""
    found = _stat(process)
    return found is not None and found[1] not in ("T", "Z", "X")


def _stat(process: int) -> list[str] | None:
    """Return the name of a process, its state and what else the system tells; None where it is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    return [name, *rest.split()]


def _signal(root: int, number: signal.Signals) -> set[int]:
    """Send a signal to a process and everything it has started; return whom."""
    told: set[int] = set()
    # What is started while others are told is found the next time.
    while new := set(_tree(root)) - told:
        told |= new
        for process in new:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
    return told


def _total(processes: Mapping[int, _Process], which: list[int], wanted: Callable[[str], bool]) -> Memory:
    found = (processes[number] for number in which)
    return sum((each.memory for each in found if wanted(each.name)), Memory())


def _tree(root: int) -> dict[int, _Process]:
    """Return ``root`` and its descendants by process number, and what else lives in its session."""
    children: dict[int, list[int]] = {}
    found: dict[int, list[str]] = {}
    sessions: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _stat(number := int(entry.name))) is not None:
            children.setdefault(int(stat[2]), []).append(number)
            sessions.setdefault(int(stat[4]), []).append(number)
            found[number] = stat
    # Where the root leads a session, processes whose parents have died are still known by it.
    members: dict[int, _Process] = {}
    waiting = [root, *sessions.get(root, [])]
    while waiting:
        process = waiting.pop()
        if process in found and process not in members:
            name, *fields = found[process]
            seconds = (int(fields[11]) + int(fields[12])) / _TICK
            resident = int(fields[21]) * _PAGE
            members[process] = _Process(name, seconds, Memory(resident, _anonymous(process)))
            waiting += children.get(process, [])
    return members


def _anonymous(process: int) -> int:
    """Return the anonymous memory of a process, shared memory included; 0 where it has ended."""
    return _kilobytes(Path(f"/proc/{process}/status"), ("RssAnon:", "RssShmem:"))


def _proportional(process: int) -> int:
    return _kilobytes(Path(f"/proc/{process}/smaps_rollup"), ("Pss:",))


def _kilobytes(path: Path, names: tuple[str, ...]) -> int:
    try:
        lines = path.read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(names))
