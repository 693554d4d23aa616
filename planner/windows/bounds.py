"""Bounds on how much later a row of one stream may be than a row of another."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain


@dataclass(frozen=True)
class Windows:
    """The bounds between all streams of a join, numbered in FROM order; ask ``between`` for one.

    ``table[i][j]`` is the greatest t_j - t_i in the plan's unit, None when unbounded.
    """

    table: tuple[tuple[int | None, ...], ...]

    @classmethod
    def of(cls, times: Iterable[Iterable[int | None]]) -> "Windows":
        """Return bounds on event times, by the number of the first stream, then of the second."""
        return cls(tuple(tuple(row) for row in times))

    @property
    def size(self) -> int:
        """How many streams there are."""
        return len(self.table)

    def between(self, first: int, second: int) -> int | None:
        """Return how much later the row of stream ``second`` may be than that of ``first``, None for any.

        The least is ``-between(second, first)``.

        >>> Windows.of([[0, 5], [3, 0]]).between(0, 1)
        5
        """
        return self.table[first][second]

    def widest(self, pairs: Iterable[tuple[int, int]]) -> int | None:
        """Return the greatest of the bounds between some pairs of streams, None where one is unbounded.

        Without pairs it is 0.
        """
        return greatest([self.between(*pair) for pair in pairs])

    def includes(self, narrow: "Windows") -> bool:
        """Return whether every tuple within ``narrow`` is within these."""
        pairs = zip(chain(*self.table), chain(*narrow.table), strict=True)
        return all(wide is None or (own is not None and own <= wide) for wide, own in pairs)


def hull(alternatives: Sequence[Windows]) -> Windows:
    """Return the greatest bound of every pair of streams; of closed windows, the hull is closed, too."""
    rows = zip(*(each.table for each in alternatives), strict=True)
    return Windows.of(map(greatest, zip(*row, strict=True)) for row in rows)


def greatest(bounds: Sequence[int | None]) -> int | None:
    """Return the greatest of some bounds, None where one is open; 0 without any."""
    known = [bound for bound in bounds if bound is not None]
    return max(known, default=0) if len(known) == len(bounds) else None
