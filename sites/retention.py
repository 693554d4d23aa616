"""Which rows a site keeps: its window, and what consumers may still ask for."""

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wjoin.grammar.plain import typed
from wjoin.sites.segments import Piece

_LOG = logging.getLogger("wjoin.sites")


@dataclass(frozen=True)
class StoreRetention:
    """What a stream keeps: event time behind the latest (``window``) or a number of rows (``rows``).

    ``most_bytes`` of disk bound everything; ``lease`` is how many seconds a consumer is remembered.
    """

    window: int | None
    rows: int | None
    most_bytes: int | None
    lease: float


@dataclass(frozen=True)
class Consumer:
    """A query that reads the stream: it has read all rows below ``read``.

    Of those it may still ask for the ones with an event time of ``floor`` or later: microseconds, or the unit
    of an integral event time; None for all. ``seen`` is when it last told so, in seconds since 1970.
    """

    name: str
    read: int
    floor: int | None
    seen: float


def is_of(consumer: str, name: str) -> bool:
    """Return whether a consumer has a name, or is one of the query whose id that is.

    >>> is_of("4711/A/2", "4711"), is_of("4711/A", "4711/A"), is_of("4711/A/2", "4711/A")
    (True, True, False)
    """
    return consumer == name or consumer.partition("/")[0] == name


def expired(
    sealed: Sequence[Piece],
    latest: int | None,
    next: int,
    kept: StoreRetention,
    consumers: Iterable[Consumer],
) -> int:
    """Return how many of the oldest segments nobody needs, ``latest`` being the stream's latest event time.

    Rows later than any clock shows keep no segment.
    """
    count = 0
    needed = [*consumers]
    for each in sealed:
        if not _outside(each, latest, next, kept) or any(_needs(one, each) for one in needed):
            break
        count += 1
    return count


def _outside(segment: Piece, latest: int | None, next: int, kept: StoreRetention) -> bool:
    if kept.rows is not None:
        return segment.stop <= next - kept.rows
    return kept.window is not None and latest is not None and _before(segment, latest - kept.window)


def _needs(consumer: Consumer, segment: Piece) -> bool:
    return segment.stop > consumer.read or consumer.floor is None or not _before(segment, consumer.floor)


def _before(segment: Piece, time: int) -> bool:
    return segment.latest is None or segment.latest < time


def above(sizes: Sequence[int], most: int | None) -> int:
    """Return how many of the oldest segments are too many for the disk that a stream may take."""
    count, total = 0, sum(sizes)
    while most is not None and total > most and count < len(sizes) - 1:
        total -= sizes[count]
        count += 1
    return count


def load_consumers(path: Path) -> list[Consumer]:
    """Return the consumers of a file, none where it is not there or cannot be read."""
    if not path.exists():
        return []
    try:
        found = [typed(Consumer, each) for each in json.loads(path.read_text("utf-8"))]
        return [each for each in found if each.name.isprintable()]
    except (ValueError, TypeError) as error:
        _LOG.warning("%s cannot be read; its consumers will report their needs again: %r", path, error)
        return []
