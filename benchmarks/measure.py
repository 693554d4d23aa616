"""Memory and processor time of a process and everything it starts, sampled from /proc (Linux)."""

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_INTERVAL = 0.25


@dataclass
class Usage:
    """What was sampled: moments (seconds since the epoch), resident bytes, processor seconds."""

    moments: list[float] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    @property
    def peak(self) -> int:
        """The most memory, in bytes, that was resident at once; pages that processes share count in each."""
        return max(self.resident, default=0)

    def processor_between(self, start: float, end: float) -> float:
        """Return the processor seconds spent between two moments, to the nearest sample."""
        values = []
        for moment in (start, end):
            nearest = min(range(len(self.moments)), key=lambda place: abs(self.moments[place] - moment))
            values.append(self.processor[nearest])
        return values[1] - values[0]


class Sampler:
    """Samples a process tree in the background, from ``with`` to its end."""

    def __init__(self, root: int) -> None:
        self.usage = Usage()
        self._root = root
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Usage:
        self._thread.start()
        return self.usage

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        ended = 0.0
        last: dict[int, float] = {}
        while not self._stop.wait(_INTERVAL):
            alive = _tree(self._root)
            # The time of a process that has ended still counts.
            ended += sum(seconds for process, seconds in last.items() if process not in alive)
            self.usage.moments.append(time.time())
            self.usage.processor.append(ended + sum(seconds for seconds, _ in alive.values()))
            # A process that is just being started still shows the memory of the one that starts it.
            self.usage.resident.append(sum(alive[process][1] for process in alive if process in last))
            last = {process: seconds for process, (seconds, _) in alive.items()}


def _tree(root: int) -> dict[int, tuple[float, int]]:
    """Return processor seconds and resident bytes of ``root`` and its descendants, by process number."""
    children: dict[int, list[int]] = {}
    found: dict[int, tuple[float, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            found[int(entry.name)] = ((int(fields[11]) + int(fields[12])) / _TICK, int(fields[21]) * _PAGE)
    members, waiting = {}, [root]
    while waiting:
        process = waiting.pop()
        if process in found:
            members[process] = found[process]
        waiting += children.get(process, [])
    return members
