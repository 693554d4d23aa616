"""A process of a test's own, that can be stopped or killed and started again."""

import subprocess
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

PATIENCE_SECONDS = 120.0
"""How long such a process is waited for, on a busy machine."""


class OwnProcess(ABC):
    """A process that ``start`` starts; as a context manager it runs inside of the block."""

    _process: "subprocess.Popen[bytes] | None" = None

    @abstractmethod
    def start(self) -> None:
        """Start it, and wait until it can be used."""

    def stop(self) -> None:
        """Let it end in order."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(PATIENCE_SECONDS)
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
