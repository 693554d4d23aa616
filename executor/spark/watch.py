"""Where the time of a micro-batch goes inside Python.

``WJOIN_CLOCK=file`` appends a line of JSON to the file whenever a task has run a phase to its end.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

_FILE = os.environ.get("WJOIN_CLOCK", "")

Given = TypeVar("Given")
Made = TypeVar("Made")


def clocked(
    phase: str, work: Callable[[Iterator[Given]], Iterator[Made]], given: Iterator[Given]
) -> Iterator[Made]:
    """Return ``work(given)``; where asked for, note the seconds that it takes itself.

    The time that it waits for ``given`` does not count, nor the time that its reader takes.
    """
    return _noted(phase, work, given) if _FILE else work(given)


def _noted(
    phase: str, work: Callable[[Iterator[Given]], Iterator[Made]], given: Iterator[Given]
) -> Iterator[Made]:
    waiting, working = Watch(), Watch()
    yield from working.over(work(waiting.over(given)))
    line = json.dumps({"phase": phase, "ended": time.time(), "seconds": working.seconds - waiting.seconds})
    with Path(_FILE).open("a") as file:
        file.write(line + "\n")


class Watch:
    """Adds up time, in seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @property
    def microseconds(self) -> int:
        """The time, as it is counted."""
        return round(self.seconds * 1e6)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Add the time that a block takes."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - started

    def over(self, source: Iterator[Made]) -> Iterator[Made]:
        """Yield what ``source`` does, and add the time that it takes."""
        started = time.perf_counter()
        for each in source:
            self.seconds += time.perf_counter() - started
            yield each
            started = time.perf_counter()
        self.seconds += time.perf_counter() - started
