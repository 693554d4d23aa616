"""A process of a test's own, that can be stopped or killed and started again."""

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from wjoin.testing.waiting import until

_ENDING_SECONDS = 120.0
"""How long one is waited for that was told to end, on a busy machine."""


class OwnProcess(ABC):
    """A process that ``start`` starts; as a context manager it runs inside of the block.

    ``log`` is the file that takes what it prints.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def command(self) -> Sequence[str]:
        """The program and its arguments."""

    @abstractmethod
    def answers(self) -> bool:
        """Return whether it can be used."""

    @property
    def said(self) -> str:
        """The last of what it has printed."""
        return self._log.read_text(errors="replace")[-4000:] if self._log.exists() else ""

    def start(self) -> None:
        """Start it, and wait until it answers. Raises AssertionError where it ends instead."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.wait_until(self.answers, f"{type(self).__name__.lower()} answers")

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds. Raises AssertionError where the process ends before."""
        try:
            until(condition, what, process=self._process, said=lambda: self.said)
        except AssertionError:
            self.kill()
            raise

    def stop(self) -> None:
        """Let it end in order."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
