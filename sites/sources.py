"""What a source of a stream is: batches of rows, each with where the source stands after them."""

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from wjoin.sites.log import Position
from wjoin.sites.records import Read


@dataclass(frozen=True)
class Taken:
    """Rows of a source, and its step behind them."""

    read: Read
    step: Position


class Source(Protocol):
    """Gives rows from a position on."""

    def fold(self, position: Position, step: Position) -> Position:
        """Return the position after a step; a whole position is a step, too."""
        ...

    def batches(self, position: Position, stop: Event) -> Iterator[Taken | None]:
        """Yield what comes behind a position until ``stop`` is set, or the source has ended.

        None is yielded where nothing has come for a while. Raises OSError, ValueError or an exception of
        Arrow's where the source cannot be read; it is then begun again from the last position kept.
        """
        ...
