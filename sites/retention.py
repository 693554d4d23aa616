"""Which rows a site keeps: its window, and what consumers may still ask for."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from wjoin.sites.segments import Piece


@dataclass(frozen=True)
class Retention:
    """What a stream keeps: event time behind the greatest (``window``) or a number of rows (``rows``).

    ``most_bytes`` of disk bound everything; ``lease`` is how many seconds a consumer is remembered.
    """

    window: int | None
    rows: int | None
    most_bytes: int | None
    lease: float


@dataclass(frozen=True)
class Consumer:
    """A query that reads the stream: all rows below ``read`` are done with.

    It may ask for full rows down to ``floor``, an event time: None for no row below ``read``. ``seen`` is
    when it last told so, in seconds since 1970.
    """

    name: str
    read: int
    floor: int | None
    seen: float


def floor_of(pieces: Iterable[Piece], read: int, keep: int) -> int | None:
    """Return the event time ``keep`` behind the greatest one among rows below ``read``.

    Rows in a piece that is read in part do not count: the floor may be too low, never too high.
    """
    greatest = [each.greatest for each in pieces if each.stop <= read]
    return max(greatest) - keep if greatest else None


def expired(
    sealed: Sequence[Piece],
    latest: int | None,
    next: int,
    kept: Retention,
    consumers: Iterable[Consumer],
) -> int:
    """Return how many of the oldest segments nobody needs."""
    count = 0
    needed = [*consumers]
    for each in sealed:
        if not _outside(each, latest, next, kept) or any(_needs(one, each) for one in needed):
            break
        count += 1
    return count


def _outside(segment: Piece, latest: int | None, next: int, kept: Retention) -> bool:
    if kept.rows is not None:
        return segment.stop <= next - kept.rows
    return kept.window is not None and latest is not None and segment.greatest < latest - kept.window


def _needs(consumer: Consumer, segment: Piece) -> bool:
    return segment.stop > consumer.read or consumer.floor is None or segment.greatest >= consumer.floor


def above(sizes: Sequence[int], most: int | None) -> int:
    """Return how many of the oldest segments are too many for the disk that a stream may take."""
    count, total = 0, sum(sizes)
    while most is not None and total > most and count < len(sizes) - 1:
        total -= sizes[count]
        count += 1
    return count


def save_consumers(path: Path, consumers: Iterable[Consumer]) -> None:
    """Write consumers to a file, whole or not at all."""
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps([asdict(each) for each in consumers]), "utf-8")
    unfinished.rename(path)


def load_consumers(path: Path) -> list[Consumer]:
    """Return the consumers of a file, none where it is not there."""
    if not path.exists():
        return []
    return [Consumer(**each) for each in json.loads(path.read_text("utf-8"))]
