"""Waiting for what comes about in another thread or process, and ports on which one can be waited for."""

import socket
import time
from collections.abc import Callable
from subprocess import Popen
from typing import Any, TypeVar

PATIENCE_SECONDS = 240.0
"""Much longer than anything takes, for a busy machine."""

Found = TypeVar("Found")


def until(
    condition: Callable[[], Found],
    what: str = "a condition",
    *,
    process: Popen[Any] | None = None,
    said: Callable[[], str] = str,
    patience_seconds: float = PATIENCE_SECONDS,
    every_seconds: float = 0.1,
) -> Found:
    """Ask a condition until it says something true, and return that.

    Raises AssertionError with ``what`` has been waited for, and with what ``said`` returns, when
    ``patience_seconds`` have passed, or where ``process`` ends before.
    """
    ends = time.monotonic() + patience_seconds
    while not (found := condition()):
        ended = process is not None and process.poll() is not None
        # What a process does last may come about between the two questions.
        if ended and (found := condition()):
            break
        if ended or time.monotonic() > ends:
            why = "the process has ended before" if ended else f"in vain for {patience_seconds:g} s"
            raise AssertionError(f"{why}: {what}\n{said()}".rstrip())
        time.sleep(every_seconds)
    return found


def free_ports(number: int) -> list[int]:
    """Return ports of loopback that nobody listens to."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
