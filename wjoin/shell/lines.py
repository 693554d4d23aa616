"""Reading statements line by line, at a terminal that cannot draw: no colours, no completion."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TextIO

from wjoin.shell.prompt import MORE, PROMPT, is_complete


class LineReader:
    """Reads statements at a terminal that only shows what is written to it one after the other.

    ``prompted`` is set when the first prompt is there.
    """

    def __init__(self, prompts: TextIO) -> None:
        self.status = ""
        self.prompted = threading.Event()
        self._prompts = prompts
        self._reading = False
        self._left = False

    def read(self) -> str:
        """Return what is typed. Raises KeyboardInterrupt at Ctrl-C, EOFError at the end."""
        text = ""
        while not text or not is_complete(text):
            line = self._line(MORE if text else PROMPT)
            if not line and not text:
                raise EOFError
            text += line
            if not line or not text.strip():
                break
        return text

    def ask(self, question: str) -> bool:
        """Return whether the user says yes."""
        try:
            return self._line(question).strip().lower() in ("", "y", "yes")
        except KeyboardInterrupt:
            return False
        except EOFError:
            return True

    def redraw(self) -> None:
        """Show nothing: what is below a prompt cannot be drawn."""

    @contextlib.contextmanager
    def unseen(self) -> Iterator[None]:
        """Do nothing: what is typed is shown by the terminal."""
        yield

    def leave(self) -> None:
        """End the reading; called by the handler of a signal."""
        self._left = True
        if self._reading:
            raise EOFError

    def _line(self, prompt: str) -> str:
        if self._left:
            raise EOFError
        self._prompts.write(prompt)
        self._prompts.flush()
        self.prompted.set()
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self._reading = True
        try:
            return sys.stdin.readline()
        except KeyboardInterrupt:
            self._prompts.write("\n")
            raise
        finally:
            self._reading = False
            signal.signal(signal.SIGINT, before)
