"""Work that a user waits for: done by a thread, so that Ctrl-C ends it and not the shell."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Generic, TypeVar

T = TypeVar("T")
_POLL_SECONDS = 0.05


class Left(Exception):  # noqa: N818 (nothing went wrong)
    """Work was left behind, as it did not end when it was cancelled."""


class Interrupts:
    """Counts Ctrl-C, and notes that the process shall end; raises nothing."""

    def __init__(self, end: Callable[[], None]) -> None:
        self.count = 0
        self.ended = False
        self._end = end

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take SIGINT, SIGTERM and SIGHUP inside."""
        handled = {signal.SIGINT: self._interrupt, signal.SIGTERM: self._stop, signal.SIGHUP: self._stop}
        before = {number: signal.signal(number, handler) for number, handler in handled.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.count += 1

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.ended = True
        self._end()


class Work(Generic[T]):
    """A call in a thread of its own; its thread does not keep the process alive."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._done = threading.Event()
        self.began = time.monotonic()
        threading.Thread(target=self._run, name="wjoin-statement", daemon=True).start()

    def _run(self) -> None:
        try:
            self._results.append(self._call())
        except BaseException as error:  # noqa: BLE001 (it is raised where the result is asked for)
            self._error = error
        finally:
            self._done.set()

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._done.is_set()

    @property
    def failed(self) -> bool:
        """Whether it has raised something."""
        return self._error is not None

    def wait(self, seconds: float) -> bool:
        """Wait so long at most; return whether it has ended."""
        return self._done.wait(seconds)

    def result(self) -> T:
        """Return what the call returned, once it has; or raise what it raised."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._results[0]

    def attend(
        self, interrupts: Interrupts, cancel: Callable[[], None], tick: Callable[[float, bool], None]
    ) -> bool:
        """Wait until it has ended; return whether it was cancelled.

        ``cancel`` is called, in another thread, at the first Ctrl-C; at the second Left is raised, and at
        once where the process shall end. ``tick`` is told the seconds, and whether it was cancelled.
        """
        interrupts.count = 0
        cancelled = False
        while not self.wait(_POLL_SECONDS):
            tick(time.monotonic() - self.began, cancelled)
            if interrupts.ended or interrupts.count > 1:
                raise Left
            if interrupts.count and not cancelled:
                cancelled = True
                threading.Thread(target=cancel, name="wjoin-cancel", daemon=True).start()
        return cancelled or interrupts.count > 0
