"""Processes that take turns: what a machine does besides then slows all of them, and not one."""

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import kit_path  # noqa: F401 (finds tests.kit)

from tests.kit.processes import pause, resume

TURN = 3.0
"""Seconds that a process runs, at least, while the others are stopped."""

_TICK = 0.02

Stops = list[tuple[float, float]]
"""Spans of time in which a process was stopped, in seconds since the epoch."""


@dataclass(frozen=True)
class Player:
    """A process that takes turns; ``may_stop`` says whether nothing in it waits with a limit."""

    process: subprocess.Popen[bytes]
    may_stop: Callable[[], bool]


def take_turns(begin: Sequence[Callable[[], Player]], turn: float = TURN) -> list[Stops]:
    """Start processes and run them to their end, one at a time; return when each was stopped."""
    players: list[Player] = []
    stopped: dict[int, float] = {}
    stops: list[Stops] = [[] for _ in begin]
    for number, start in enumerate(begin):
        players.append(start())
        if not _ends(players[number], 0):
            stopped[number] = time.time()
    while stopped:
        for number in list(stopped):
            stops[number].append((stopped.pop(number), time.time()))
            resume(players[number].process.pid)
            if not _ends(players[number], turn if stopped else None):
                stopped[number] = time.time()
    return stops


def _ends(player: Player, seconds: float | None) -> bool:
    """Let a process run for so long, None for its life; return whether it has ended, else it is stopped."""
    try:
        player.process.wait(seconds)
    except subprocess.TimeoutExpired:
        while player.process.poll() is None:
            if player.may_stop() and _pauses(player):
                return False
            time.sleep(_TICK)
    return True


def _pauses(player: Player) -> bool:
    """Stop a process, unless it has meanwhile gone on to where it may not stop."""
    pause(player.process.pid)
    if player.may_stop():
        return True
    resume(player.process.pid)
    return False


def running(start: float, end: float, stops: Stops) -> float:
    """Return the seconds between two moments in which a process was not stopped."""
    return end - start - sum(max(0.0, min(end, until) - max(start, since)) for since, until in stops)
