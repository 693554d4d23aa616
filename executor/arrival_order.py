"""How far rows are out of order in order of arrival, whoever reads them, and in what pieces."""

import itertools
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import Int64Array

Place = tuple[str, int, str, int]
"""Where a piece comes among the others: its sequence, the major number and name in it, and its first row."""

_TWO_DIGITS = np.uint64(100)


@dataclass
class ReadPart:
    """Rows that one reader finds one after the other: of a split of a file, of a range of a log.

    Pieces of one ``sequence`` come in the order of ``major``, ``name`` and ``first``; those of the
    same name lie from ``first`` to ``last``. Event times: the ``least``, the ``greatest``, and how
    far a row lay behind one before it (``within``).
    """

    sequence: str
    major: int
    name: str
    first: int
    last: int
    least: int
    greatest: int
    within: int = 0

    @property
    def place(self) -> Place:
        """Where it comes among the pieces."""
        return self.sequence, self.major, self.name, self.first

    def note(self, times: Int64Array) -> npt.NDArray[np.uint64]:
        """Take the event times of more rows, in order; return how far each lies behind one before it."""
        latest = np.maximum.accumulate(np.maximum(times, self.greatest))
        # As numbers without a sign: the ends of int64 are further apart than int64 reaches.
        behind = latest.view(np.uint64) - times.view(np.uint64)
        self.within = max(self.within, int(behind.max()))
        self.least = min(self.least, int(times.min()))
        self.greatest = int(latest[-1])
        return behind


class ReadParts:
    """The pieces in which a reader finds its rows.

    ``log``: rows have a number each (``starts``) that grows within a piece, and the rows of one
    name are a sequence of their own. Otherwise they have the start of their part of a file. ``seen`` are the
    greatest event times before pieces that are known already (``seen_before``): then ``late`` counts how far
    rows lie behind, rounded up to two digits, but not past ``delay``.
    """

    def __init__(
        self, *, log: bool, seen: Sequence[tuple[Place, int]] = (), delay: int | None = None
    ) -> None:
        self._log = log
        self._delay = delay
        self._seen = seen
        self._found: list[ReadPart] = []
        self.late: Counter[int] = Counter()

    def note(
        self,
        times: Int64Array,
        names: Sequence[str],
        name_of: Int64Array,
        majors: Int64Array,
        starts: Int64Array,
    ) -> None:
        """Take rows, all with an event time; ``name_of`` is the place of each one's name in ``names``."""
        if not len(times):
            return
        turned = starts[1:] <= starts[:-1] if self._log else starts[1:] != starts[:-1]
        changed = (name_of[1:] != name_of[:-1]) | (majors[1:] != majors[:-1]) | turned
        ends = [0, *(np.flatnonzero(changed) + 1).tolist(), len(times)]
        for begin, end in itertools.pairwise(ends):
            name, start = names[int(name_of[begin])], int(starts[begin])
            piece = self._piece(name, int(majors[begin]), start, int(times[begin]))
            piece.last = int(starts[end - 1])
            behind = piece.note(times[begin:end])
            if self._seen:
                values, counts = np.unique(rounded_up(behind, self._delay), return_counts=True)
                self.late.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    def _piece(self, name: str, major: int, start: int, time: int) -> ReadPart:
        """Return the piece that a row goes on with, or a new one."""
        sequence = name if self._log else ""
        if self._found:
            last = self._found[-1]
            follows = start > last.last if self._log else start == last.last
            if follows and (last.sequence, last.major, last.name) == (sequence, major, name):
                return last
        made = ReadPart(sequence, major, name, start, start, time, time)
        at = bisect_right(self._seen, made.place, key=lambda each: each[0]) - 1
        if at >= 0 and self._seen[at][0][0] == sequence:
            made.greatest = max(time, self._seen[at][1])
        self._found.append(made)
        return made

    def __iter__(self) -> Iterator[ReadPart]:
        return iter(self._found)


def rounded_up(values: npt.NDArray[np.uint64], most: int | None = None) -> npt.NDArray[np.uint64]:
    """Return numbers rounded up to two digits, those up to ``most`` not past it."""
    step = np.ones_like(values)
    while (large := values // step >= _TWO_DIGITS).any():
        step[large] *= np.uint64(10)
    rounded = values // step * step + np.where(values % step > 0, step, np.uint64(0))
    if most is None:
        return rounded
    return np.where(values <= np.uint64(most), np.minimum(rounded, np.uint64(most)), rounded)


def seen_before(pieces: Iterable[ReadPart]) -> list[tuple[Place, int]]:
    """Return for each piece, in their order, the greatest event time in it and those of its sequence before.

    That of a piece comes right after its place.
    """
    found: list[tuple[Place, int]] = []
    for each in sorted(pieces, key=lambda each: each.place):
        goes_on = bool(found) and found[-1][0][0] == each.sequence
        sequence, major, name, _ = each.place
        behind = (sequence, major, name, each.last + 1)
        found.append((behind, max(each.greatest, found[-1][1]) if goes_on else each.greatest))
    return found


def disorder(pieces: Iterable[ReadPart]) -> int | None:
    """Return how far a row lies behind the greatest event time before it in its sequence.

    None where pieces overlap: then rows have been moved since they were read, and nobody knows their order.

    >>> disorder([ReadPart("", 2, "b", 0, 0, 4, 9, 1), ReadPart("", 1, "a", 0, 0, 1, 7)])
    3
    """
    behind = 0
    ordered = sorted(pieces, key=lambda each: each.place)
    for _, group in itertools.groupby(ordered, key=lambda each: each.sequence):
        latest: ReadPart | None = None
        seen = 0
        for each in group:
            if latest is not None:
                if (each.major, each.name) == (latest.major, latest.name) and each.first <= latest.last:
                    return None
                behind = max(behind, seen - each.least)
            behind = max(behind, each.within)
            seen = each.greatest if latest is None else max(seen, each.greatest)
            latest = each
    return behind
