"""A real terminal for the shell: pexpect types into it, pyte tells what it shows."""

import os
import signal
import sys
import time
from collections.abc import Callable

import pexpect
import pyte

LIMIT = 240.0
"""Seconds within which all that is waited for must be there."""

CTRL_C, CTRL_D, TAB, ENTER = "\x03", "\x04", "\t", "\r"


class Screen:
    """A process at a terminal of so many columns and lines."""

    def __init__(self, *arguments: str, columns: int = 100, lines: int = 40, **environment: str) -> None:
        self._screen = pyte.HistoryScreen(columns, lines, history=10_000, ratio=1)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self.began = time.monotonic()
        self.process = pexpect.spawn(
            sys.executable,
            ["-m", "wjoin.cli", "shell", *arguments],
            dimensions=(lines, columns),
            env={**os.environ, "TERM": "xterm-256color", "PAGER": "cat", **environment},
            timeout=LIMIT,
        )

    def read(self) -> None:
        """Take what has been written since the last time."""
        try:
            piece = self.process.read_nonblocking(65536, timeout=0.05)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return
        self.raw += piece
        self._stream.feed(piece)
        # A terminal answers where its cursor is.
        for _ in range(piece.count(b"\x1b[6n")):
            self.process.send(f"\x1b[{self._screen.cursor.y + 1};{self._screen.cursor.x + 1}R")

    @property
    def text(self) -> str:
        """What is on the screen now."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    @property
    def all(self) -> str:
        """What has left the screen at its top, and what is on it."""
        gone = (
            "".join(line[column].data for column in sorted(line)).rstrip()
            for line in self._screen.history.top
        )
        return "\n".join([*gone, self.text])

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Read until something is so."""
        end = time.monotonic() + LIMIT
        while True:
            self.read()
            if condition():
                return
            assert time.monotonic() < end, f"{what} has not come about:\n{self.all}"
            assert self.process.isalive() or condition(), f"the shell has ended before {what}:\n{self.all}"

    def see(self, *texts: str) -> None:
        """Wait until all the texts have been shown, on the screen or above it."""
        for text in texts:
            self.wait(lambda text=text: text in self.all, repr(text))

    def type(self, text: str) -> None:
        """Type something."""
        self.process.send(text)

    def enter(self, text: str) -> None:
        """Type a line."""
        self.type(text + ENTER)

    def prompt(self) -> None:
        """Wait for an empty prompt at the end of the screen."""
        self.wait(lambda: self.line == "wjoin>", "a prompt")

    @property
    def line(self) -> str:
        """The line with the cursor."""
        return self._screen.display[self._screen.cursor.y].rstrip()

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        self._screen.resize(lines, columns)
        self.process.setwinsize(lines, columns)

    def end(self) -> int:
        """Wait for the end of the process, and return its exit status."""
        self.wait(lambda: not self.process.isalive(), "the end")
        self.read()
        self.process.close()
        return self.process.exitstatus if self.process.exitstatus is not None else -self.process.signalstatus

    def kill(self) -> None:
        """End the process whatever it does."""
        if self.process.closed:
            return
        if self.process.isalive():
            self.process.kill(signal.SIGKILL)
            self.process.wait()
        self.process.close()
