"""Rows out of the pieces of a stream that meet event times and join values, and the extent of ranges."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wjoin.sites.dropped import Dropped
from wjoin.sites.failures import SiteError
from wjoin.sites.held import NOTHING, Extent, HeldRange
from wjoin.sites.key_index import Hashes, Positions
from wjoin.sites.reading import Part, Settle, gone, taken
from wjoin.sites.segments import Piece, times
from wjoin.sites.value_filter import ValueFilter
from wjoin.sites.value_sets import Flags

CHUNK = 262_144
"""Rows that are looked through at once: what is computed of them takes some megabytes."""

_INDEX_PAYS = 16
"""A key that is looked up in the index takes about as long as so many rows that are looked through."""

_LEAST = np.iinfo(np.int64).min


def extent_of(parts: Sequence[Part], time: str, ceiling: int, mark: int | None, settle: Settle) -> Extent:
    """Return the extent of parts with event times in the column ``time``."""
    found = NOTHING
    for part in parts:
        if _is_told(part, ceiling, mark):
            found += _told_extent(part.piece, ceiling, mark)
            continue
        for low in range(part.begin, part.end, CHUNK):
            some = part.piece.rows.slice(low, min(CHUNK, part.end - low))
            found += read_extent(some, times(some, time), ceiling, mark)
        settle()
    return found


def _is_told(part: Part, ceiling: int, mark: int | None) -> bool:
    """Return whether least and greatest event time of a part's piece tell its extent."""
    piece = part.piece
    if part.end - part.begin < piece.rows.num_rows or piece.least <= ceiling < piece.greatest:
        return False
    return mark is None or not piece.least < mark <= piece.greatest


def _told_extent(piece: Piece, ceiling: int, mark: int | None) -> Extent:
    rows, least, greatest = piece.rows, piece.least, piece.greatest
    late = rows.num_rows if mark is not None and greatest < mark else 0
    if greatest <= ceiling:
        return Extent(rows.num_rows, rows.nbytes, 0, None, least, greatest, late)
    return Extent(rows.num_rows, rows.nbytes, rows.num_rows, greatest, None, None, late)


def read_extent(rows: pa.RecordBatch, found: npt.NDArray[np.int64], ceiling: int, mark: int | None) -> Extent:
    """Return the extent of rows by their event times, which are ``found``."""
    above = found > ceiling
    ahead, others = found[above], found[~above]
    late = 0 if mark is None else int(np.count_nonzero(found < mark))
    earliest, latest = (int(others.min()), int(others.max())) if len(others) else (None, None)
    furthest = int(ahead.max()) if len(ahead) else None
    return Extent(rows.num_rows, rows.nbytes, len(ahead), furthest, earliest, latest, late)


@dataclass(frozen=True, eq=False)
class Passing:
    """Which values of a column pass: those in one of some ``filters``."""

    column: str
    filters: tuple[ValueFilter, ...]

    def of(self, values: pa.Array) -> Flags:
        """Return for each value whether it passes."""
        found: Flags = np.logical_or.reduce([each.contains(values) for each in self.filters])
        return found

    @cached_property
    def hashes(self) -> Hashes | None:
        """The hashes of all values that pass, None where they cannot be listed."""
        return self.filters[0].hashes if len(self.filters) == 1 else None


@dataclass(frozen=True, eq=False)
class Ranges:
    """Disjoint ranges of numbers, ascending; ``lows`` has the least int64 where any event time is meant."""

    starts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]
    lows: npt.NDArray[np.int64]

    @classmethod
    def of(cls, ranges: Sequence[HeldRange]) -> "Ranges":
        """Return ranges as arrays."""
        lows = [_LEAST if each.low is None else each.low for each in ranges]
        columns = ([each.start for each in ranges], [each.stop for each in ranges], lows)
        return cls(*(np.array(each, np.int64) for each in columns))

    def within(self, start: int, stop: int) -> "Ranges":
        """Return what of the ranges lies in start..stop-1."""
        low = int(np.searchsorted(self.stops, start, "right"))
        high = int(np.searchsorted(self.starts, stop, "left"))
        starts, stops = self.starts[low:high].clip(start, stop), self.stops[low:high].clip(start, stop)
        return Ranges(starts, stops, self.lows[low:high])

    def numbers(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return all numbers in the ranges, and for each the least event time that is asked for."""
        counts = self.stops - self.starts
        before = np.cumsum(counts) - counts
        numbers = np.arange(int(counts.sum())) + np.repeat(self.starts - before, counts)
        return numbers, np.repeat(self.lows, counts)

    def holding(self, numbers: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return those of some numbers that are in the ranges, and for each the least event time."""
        which = np.searchsorted(self.starts, numbers, "right") - 1
        held = (which >= 0) & (numbers < self.stops[which])
        return numbers[held], self.lows[which[held]]


def kept_ranges(
    pieces: Sequence[Piece], next: int, ranges: Sequence[HeldRange], dropped: Dropped, stream: str
) -> Ranges:
    """Return what of disjoint, ascending ranges is still there.

    Raises SiteError "gone" where a row that has left the window may have had an event time that is asked for,
    and "broken" where a row is not there yet.
    """
    first, end = (pieces[0].start, pieces[-1].stop) if pieces else (next, next)
    for each in ranges:
        if each.start < first and not dropped.only_before(each.start, each.low):
            raise gone(stream, each.start, min(each.stop, first) - 1, first)
    if ranges and ranges[-1].stop > end:
        message = f"row {ranges[-1].stop - 1} of {stream} does not exist yet; the next one is {end}"
        raise SiteError("broken", message)
    return Ranges.of(ranges).within(first, end)


@dataclass(frozen=True, eq=False)
class Reduction:
    """Looks for rows of pieces that pass; event times are in the column ``time``, up to ``high``."""

    ranges: Ranges
    passing: Passing
    time: str
    high: int | None
    indexed: tuple[str, ...]
    """The columns of the pieces' index."""

    def rows(self, pieces: Sequence[Piece]) -> Iterator[tuple[Piece, Positions]]:
        """Yield the pieces, each with the ascending positions of rows that pass."""
        return ((piece, found) for piece in pieces for found in self._positions(piece))

    def _positions(self, piece: Piece) -> Iterator[Positions]:
        """Yield the positions of rows of a piece that pass, ascending."""
        ranges = self.ranges.within(piece.start, piece.stop)
        late = self.high is not None and piece.least > self.high
        if late or len(ranges.starts) == 0 or piece.greatest < int(ranges.lows.min()):
            return
        index, hashes = piece.index, self.passing.hashes
        if index is not None and hashes is not None and self._index_pays(len(hashes), ranges):
            yield self._valued(
                piece, self._in_time(piece, *ranges.holding(index.holding(hashes) + piece.start))
            )
            return
        for begin in range(int(ranges.starts[0]), int(ranges.stops[-1]), CHUNK):
            some = ranges.within(begin, begin + CHUNK)
            if len(some.starts):
                yield self._scanned(piece, some)

    def _index_pays(self, keys: int, ranges: Ranges) -> bool:
        return self.indexed == (self.passing.column,) and _INDEX_PAYS * keys < int(
            (ranges.stops - ranges.starts).sum()
        )

    def _scanned(self, piece: Piece, ranges: Ranges) -> Positions:
        whole = bool((ranges.starts[1:] == ranges.stops[:-1]).all())
        return self._valued(piece, self._in_time(piece, *ranges.numbers(), whole=whole))

    def _valued(self, piece: Piece, positions: Positions) -> Positions:
        """Return the positions of those rows whose value passes."""
        return positions[self.passing.of(taken(piece.rows.column(self.passing.column), positions))]

    def _in_time(
        self,
        piece: Piece,
        numbers: npt.NDArray[np.int64],
        lows: npt.NDArray[np.int64],
        *,
        whole: bool = False,
    ) -> Positions:
        """Return the positions of those rows whose event time is asked for."""
        positions = numbers - piece.start
        high = piece.greatest if self.high is None else self.high
        if len(positions) == 0 or (piece.greatest <= high and piece.least >= int(lows.max())):
            return positions
        column = piece.rows.select([self.time])
        found = times(
            column.slice(int(positions[0]), len(positions)) if whole else column.take(pa.array(positions)),
            self.time,
        )
        return positions[(found >= lows) & (found <= high)]
