"""A stream of a site, and what its source is: batches of rows, each with where it stands after them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol

from wjoin.sites.log import Position
from wjoin.sites.records import Read
from wjoin.sites.retention import StoreRetention

STANDARD_INPUT = "-"
KAFKA = "kafka://"


@dataclass(frozen=True)
class StreamConfig:
    """One stream: where its rows come from, which columns they have, and what is kept of them.

    ``schema``: Arrow's, None where the first file tells it. ``options`` are librdkafka's, such as
    'security.protocol'; ``start`` is "earliest" or "latest", for what of a topic is not known yet.
    """

    name: str
    source: str
    schema: Any
    time: str
    keys: tuple[str, ...]
    retention: StoreRetention
    format: str = "parquet"
    epoch: str = "seconds"
    header: bool = True
    delimiter: str = ","
    poll: float = 1.0
    start: str = "earliest"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


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
