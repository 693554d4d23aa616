"""What is being waited for, said on standard error."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.status import Status

_TICK_SECONDS = 0.5


class Waiting:
    """Says on standard error what is being waited for, and how long: redrawn on a terminal, else once.

    ``tells`` says on a terminal what of it is happening.
    """

    def __init__(self, what: str, tells: Callable[[], str] = str) -> None:
        self._what = what
        self._tells = tells
        self._began = time.monotonic()
        self._terminal: TextIO | None = None
        self._status: Status | None = None
        if Console(stderr=True).is_terminal:
            # While Java starts, standard error is its log: the terminal stays this one.
            self._terminal = os.fdopen(os.dup(sys.stderr.fileno()), "w")
            self._status = Status("", console=Console(file=self._terminal, force_terminal=True, markup=False))

    def __enter__(self) -> "Waiting":
        if self._status is None:
            print(f"{self._what} ...", file=sys.stderr, flush=True)
        else:
            self._status.start()
            self.tick()
        return self

    @contextlib.contextmanager
    def ticking(self) -> Iterator[None]:
        """Show it while something else runs that does not tick."""
        ended = threading.Event()

        def tick() -> None:
            while not ended.wait(_TICK_SECONDS):
                self.tick()

        clock = threading.Thread(target=tick, daemon=True)
        with self:
            clock.start()
            try:
                yield
            finally:
                ended.set()
                clock.join()

    def tick(self) -> None:
        """Show how long it has taken so far, on a terminal."""
        if self._status is not None:
            now = "".join(f", {told}" for told in [self._tells()] if told)
            self._status.update(f"{self._what}{now} ... {time.monotonic() - self._began:.0f} s")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None and self._terminal is not None:
            self._status.stop()
            self._terminal.close()
