"""Rows of standard input: a JSON object on each line."""

import sys
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from wjoin.sites.log import Position
from wjoin.sites.record_lines import MOST_TAKEN, lines
from wjoin.sites.records import json_lines
from wjoin.sites.sources import StreamConfig, Taken

_LINES = 16_384
_WAIT = 0.05
"""Seconds after which lines are taken in, however few."""


@dataclass(frozen=True)
class LineSource:
    """JSON lines of a pipe. What a pipe has given it does not give again: the position counts lines only."""

    stream: StreamConfig

    def fold(self, position: Position, step: Position) -> Position:
        """Return the position after a step."""
        return {**position, **step}

    def batches(self, position: Position, stop: threading.Event) -> Iterator[Taken | None]:
        """Yield rows as lines come, until the pipe is closed."""
        waiting = _Waiting()
        reader = threading.Thread(
            target=waiting.pump, args=(sys.stdin.buffer,), name="site-lines", daemon=True
        )
        reader.start()
        count = int(position.get("lines", 0))
        while not stop.is_set():
            some = waiting.taken()
            if not some:
                if waiting.ended:
                    return
                yield None
                continue
            count += len(some)
            yield Taken(json_lines(some, self.stream.schema, self.stream.epoch), {"lines": count})


class _Waiting:
    """Lines that have come and are not taken in; a pipe is read no further where they have many bytes."""

    def __init__(self) -> None:
        self.ended = False
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._changed = threading.Condition()

    def pump(self, pipe: BinaryIO) -> None:
        """Read a pipe until it ends."""
        for line in lines(pipe):
            with self._changed:
                self._changed.wait_for(lambda: self._size < MOST_TAKEN and len(self._lines) < 4 * _LINES)
                self._lines.append(line)
                self._size += len(line)
                self._changed.notify_all()
        with self._changed:
            # Behind the last line: what has come before is taken first.
            self._changed.wait_for(lambda: not self._lines)
            self.ended = True

    def taken(self) -> list[bytes]:
        """Return lines that are there; waits a little for the first one."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._lines), _WAIT)
            found = [self._lines.popleft() for _ in range(min(_LINES, len(self._lines)))]
            self._size -= sum(map(len, found))
            self._changed.notify_all()
        return found
