"""Ranges of the numbers of rows that are held at sites: those that a stage has been told of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class HeldRows:
    """Rows start..stop-1 of a site that a stage has been told of: those from the event time ``low`` on count.

    The others were late when they came; None where none was. ``latest``: their greatest event time.
    """

    site: int
    start: int
    stop: int
    low: int | None
    latest: int

    def __post_init__(self) -> None:
        if self.site < 0 or not 0 <= self.start <= self.stop:
            raise ValueError("rows of a site that cannot be")


@dataclass(frozen=True)
class Announced:
    """New rows of a site, start..stop-1, and the least and greatest event time of those that count."""

    site: int
    start: int
    stop: int
    earliest: int
    latest: int


def announced_after(
    known: Sequence[HeldRows], announced: Sequence[Announced], mark: int | None, settled: int | None
) -> tuple[HeldRows, ...]:
    """Return what is held after a micro-batch; ``mark``: the watermark by which its rows are judged.

    ``settled``: the event time before which no row can be in a result any more, None where that is not known.
    """
    found: list[HeldRows] = []
    for each in sorted([*known, *(judged(each, mark) for each in announced)], key=_place):
        if settled is not None and each.latest < settled:
            continue
        last = found[-1] if found else None
        follows = last is not None and (last.site, last.stop, last.low) == (each.site, each.start, each.low)
        if last is not None and follows:
            found[-1] = replace(last, stop=each.stop, latest=max(last.latest, each.latest))
        else:
            found.append(each)
    return tuple(found)


def _place(each: HeldRows) -> tuple[int, int]:
    return each.site, each.start


def judged(each: Announced, mark: int | None) -> HeldRows:
    """Return new rows as what is held; ``mark``: their stream's watermark before them."""
    low = None if mark is None or each.earliest >= mark else mark
    return HeldRows(each.site, each.start, each.stop, low, each.latest)
