"""Rows out of the pieces of a stream: a range of them, or some by number."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from wjoin.sites.failures import SiteError
from wjoin.sites.key_index import Positions
from wjoin.sites.protocol import ROW, Numbers
from wjoin.sites.segments import Piece

Settle = Callable[[], None]
"""Called between pieces of work on mapped rows (wjoin.sites.memory)."""


@dataclass(frozen=True)
class Part:
    """Rows ``begin`` to before ``end`` of a piece."""

    piece: Piece
    begin: int
    end: int


def parts_of(pieces: Sequence[Piece], next: int, start: int, stop: int, stream: str) -> list[Part]:
    """Return the parts with rows start..stop-1; ``next`` is the stream's next number.

    Raises SiteError "gone" or "broken".
    """
    first, end = (pieces[0].start, pieces[-1].stop) if pieces else (next, next)
    if not 0 <= start <= stop:
        raise SiteError("broken", f"rows {start} to {stop} are no range")
    if start < first and start < stop:
        raise gone(stream, start, min(stop, first) - 1, first)
    if stop > end:
        raise SiteError("broken", f"row {stop - 1} of {stream} does not exist yet; the next one is {end}")
    return [
        Part(each, max(start - each.start, 0), min(stop, each.stop) - each.start)
        for each in pieces
        if each.start < stop and each.stop > start
    ]


def gone(stream: str, start: int, last: int, first: int) -> SiteError:
    """Return the error of rows that have left the window."""
    numbers = f"row {start}" if start == last else f"rows {start} to {last}"
    message = f"{numbers} of stream {stream} have left the site's window, which starts at row {first}"
    help = (
        f"set a longer window (or window_rows), consumer_lease or max_bytes in [streams.{stream}] of the "
        "site: it must cover the query's retention and the longest pause of the query"
    )
    return SiteError("gone", message, help=help)


def rows_at(
    found: Iterable[tuple[Piece, Positions]], columns: Sequence[str], block: int, settle: Settle
) -> Iterator[pa.RecordBatch]:
    """Yield the rows at ascending positions of pieces, in batches of ``block`` rows, the last with less.

    ROW comes first, then the columns.
    """

    def some() -> Iterator[pa.RecordBatch]:
        for piece, positions in found:
            rows = piece.rows.select([*columns])
            for low in range(0, len(positions), block):
                own = positions[low : low + block]
                yield numbered(taken(rows, own), own + piece.start)
                settle()

    return blocks(some(), block)


def in_order(
    parts: Iterable[Part], columns: Sequence[str], block: int, settle: Settle
) -> Iterator[pa.RecordBatch]:
    """Yield all rows of parts as ``rows_at`` does."""

    def some() -> Iterator[pa.RecordBatch]:
        for part in parts:
            rows, start = part.piece.rows.select([*columns]), part.piece.start
            for low in range(part.begin, part.end, block):
                high = min(low + block, part.end)
                yield numbered(rows.slice(low, high - low), np.arange(start + low, start + high))
                settle()

    return blocks(some(), block)


def taken(rows: Any, positions: Positions) -> Any:
    """Return values or rows by ascending position; where all are neighbours, without copying them."""
    count = len(positions)
    if count and int(positions[-1]) - int(positions[0]) == count - 1:
        return rows.slice(int(positions[0]), count)
    return rows.take(pa.array(positions, pa.int64()))


def blocks(found: Iterable[pa.RecordBatch], block: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches in batches of ``block`` rows, the last with less."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for rows in found:
        at = 0
        while at < rows.num_rows:
            some = rows.slice(at, block - held)
            waiting.append(some)
            at, held = at + some.num_rows, held + some.num_rows
            if held == block:
                yield _one(waiting)
                waiting, held = [], 0
    if waiting:
        yield _one(waiting)


def by_number(
    parts: Sequence[Part], numbers: Numbers, columns: Sequence[str], settle: Settle
) -> pa.RecordBatch:
    """Return rows in the order of their numbers; there is one, and all are in the parts."""
    order = None if bool((np.diff(numbers) >= 0).all()) else np.argsort(numbers, kind="stable")
    ascending = numbers if order is None else numbers[order]
    cuts = [*np.searchsorted(ascending, [each.piece.start for each in parts]), len(numbers)]
    found = []
    for part, (low, high) in zip(parts, pairwise(cuts), strict=True):
        if low < high:
            some = pa.array(ascending[low:high] - part.piece.start)
            found.append(part.piece.rows.select([*columns]).take(some))
            settle()
    rows = _one(found)
    if order is None:
        return rows
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return rows.take(pa.array(back))


def numbered(rows: pa.RecordBatch, numbers: Numbers) -> pa.RecordBatch:
    """Return rows with their numbers as the first column."""
    schema = pa.schema([pa.field(ROW, pa.int64(), nullable=False), *rows.schema])
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64()), *rows.columns], schema=schema)


def _one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches(batches) if len(batches) > 1 else batches[0]
