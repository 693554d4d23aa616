"""Time that is added up inside Python's tasks."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

Made = TypeVar("Made")


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
