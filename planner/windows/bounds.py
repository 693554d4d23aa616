"""Bounds on how much later a row of one stream may be than a row of another."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import product

Table = tuple[tuple[int | None, ...], ...]


class Clock(IntEnum):
    """What bounds are measured by; its number is the place of its table in ``Windows``."""

    TIME = 0


@dataclass(frozen=True)
class Windows:
    """The bounds between all streams of a join, numbered in FROM order; ask ``between`` for one.

    ``tables`` has one table for each clock: ``table[i][j]`` is the greatest clock_j - clock_i, None when
    unbounded. Event times are in the plan's unit.
    """

    tables: tuple[Table, ...]

    @classmethod
    def of(cls, times: Iterable[Iterable[int | None]]) -> "Windows":
        """Return bounds on event times, by the number of the first stream, then of the second."""
        return cls((tuple(tuple(row) for row in times),))

    @property
    def size(self) -> int:
        """How many streams there are."""
        return len(self.tables[Clock.TIME])

    def between(self, first: int, second: int, clock: Clock = Clock.TIME) -> int | None:
        """Return how much later the row of stream ``second`` may be than that of ``first``, None for any.

        The least is ``-between(second, first)``.

        >>> Windows.of([[0, 5], [3, 0]]).between(0, 1)
        5
        """
        return self.tables[clock][first][second]

    @property
    def bounded(self) -> frozenset[int]:
        """The streams that some bound is about."""
        numbers = range(self.size)
        pairs = ((i, j) for i, j in product(numbers, numbers) if i != j and self.between(i, j) is not None)
        return frozenset(stream for pair in pairs for stream in pair)

    def widest(self, pairs: Iterable[tuple[int, int]]) -> int | None:
        """Return the greatest of the bounds between some pairs of streams, None where one is unbounded.

        Without pairs it is 0.
        """
        return greatest([self.between(*pair) for pair in pairs])

    def includes(self, narrow: "Windows") -> bool:
        """Return whether every tuple within ``narrow`` is within these."""
        clocks, numbers = range(len(self.tables)), range(self.size)
        bounds = product(clocks, numbers, numbers)
        pairs = ((self.tables[c][i][j], narrow.tables[c][i][j]) for c, i, j in bounds)
        return all(wide is None or (own is not None and own <= wide) for wide, own in pairs)


def hull(alternatives: Sequence[Windows]) -> Windows:
    """Return the greatest bound of every pair of streams; of closed windows, the hull is closed, too."""
    tables = (zip(*each, strict=True) for each in zip(*(each.tables for each in alternatives), strict=True))
    return Windows(
        tuple(tuple(tuple(map(greatest, zip(*rows, strict=True))) for rows in table) for table in tables)
    )


def greatest(bounds: Sequence[int | None]) -> int | None:
    """Return the greatest of some bounds, None where one is open; 0 without any."""
    known = [bound for bound in bounds if bound is not None]
    return max(known, default=0) if len(known) == len(bounds) else None
