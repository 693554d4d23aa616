"""Rows of standard input: a JSON object on each line."""

import queue
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from wjoin.sites.log import Position
from wjoin.sites.records import json_lines
from wjoin.sites.sources import Taken

_LINES = 16_384
_WAIT = 0.05
"""Seconds after which lines are taken in, however few."""


@dataclass(frozen=True)
class LineSource:
    """JSON lines of a pipe. What a pipe has given it does not give again: the position counts lines only."""

    schema: pa.Schema
    epoch: str

    def fold(self, position: Position, step: Position) -> Position:
        """Return the position after a step."""
        return {**position, **step}

    def batches(self, position: Position, stop: threading.Event) -> Iterator[Taken | None]:
        """Yield rows as lines come, until the pipe is closed."""
        lines: queue.Queue[bytes] = queue.Queue(4 * _LINES)
        reader = threading.Thread(
            target=_pump, args=(sys.stdin.buffer, lines), name="site-lines", daemon=True
        )
        reader.start()
        count = int(position.get("lines", 0))
        while not stop.is_set():
            some = _some(lines)
            if not some:
                yield None
                continue
            ended = some[-1] == b""
            kept = some[:-1] if ended else some
            count += len(kept)
            yield Taken(json_lines(kept, self.schema, self.epoch), {"lines": count})
            if ended:
                return


def _pump(pipe: BinaryIO, lines: "queue.Queue[bytes]") -> None:
    for line in pipe:
        lines.put(line)
    lines.put(b"")


def _some(lines: "queue.Queue[bytes]") -> list[bytes]:
    """Return the lines that are there; waits a little for the first one. The last is empty at the end."""
    found: list[bytes] = []
    try:
        found.append(lines.get(timeout=_WAIT))
        while len(found) < _LINES and found[-1]:
            found.append(lines.get_nowait())
    except queue.Empty:
        return found
    return found
