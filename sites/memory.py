"""Keeps a site's process within its memory: pages of mapped segments leave it before they are too many.

The kernel counts a file's pages to the process as long as they are mapped, and maps sixteen at once where
one is asked for. They stay in its cache when they leave the process, and come back from there.
"""

import resource
import threading
from collections.abc import Callable
from pathlib import Path

_STATM = Path("/proc/self/statm")
_PAGE = resource.getpagesize()
_LEAST_MAPPED = 64_000_000


class Memory:
    """Asked after each piece of work on mapped rows; ``let_go`` has all of them leave the process."""

    def __init__(self, limit: int, let_go: Callable[[], None]) -> None:
        self._limit = limit
        self._let_go = let_go
        self._lock = threading.Lock()

    def settle(self) -> None:
        """Let mapped pages go where the process has more in RAM than it should."""
        resident, mapped = memory_of_process()
        if resident > self._limit and mapped > _LEAST_MAPPED and self._lock.acquire(blocking=False):
            try:
                self._let_go()
            finally:
                self._lock.release()


def memory_of_process() -> tuple[int, int]:
    """Return the bytes of this process that are in RAM, and those of them mapped from files; 0 if unknown."""
    try:
        words = _STATM.read_bytes().split()
    except OSError:
        return 0, 0
    return int(words[1]) * _PAGE, int(words[2]) * _PAGE
