"""Work that a user waits for: done by a thread, so that Ctrl-C ends it and not the shell."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

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


class Work(Future[T]):
    """A call in a thread of its own; its thread does not keep the process alive."""

    def __init__(self, call: Callable[[], T]) -> None:
        super().__init__()
        self.began = time.monotonic()
        threading.Thread(target=self._run, args=(call,), name="wjoin-statement", daemon=True).start()

    def _run(self, call: Callable[[], T]) -> None:
        try:
            self.set_result(call())
        except BaseException as error:  # noqa: BLE001 (it is raised where the result is asked for)
            self.set_exception(error)

    @property
    def failed(self) -> bool:
        """Whether it has raised something."""
        return self.done() and self.exception() is not None

    @property
    def good(self) -> bool:
        """Whether it has ended, and its result is there."""
        return self.done() and not self.failed

    def wait(self, seconds: float) -> bool:
        """Wait so long at most; return whether it has ended."""
        return bool(wait([self], seconds).done)

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
