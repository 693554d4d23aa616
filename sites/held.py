"""What a site and its clients say to each other of rows that are held at the site, and its form in bytes."""

import heapq
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from wjoin.grammar.plain import plain
from wjoin.sites.failures import SiteError
from wjoin.sites.protocol import HEAD_BYTES, read_typed

MOST_RANGES = 10_000
"""Ranges of one request at the most."""

RANGE_BYTES = 86
"""A range in JSON at the most."""

_LENGTH = struct.Struct("<I")
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class Extent:
    """How many rows a range of numbers has, and their event times.

    Times are microseconds, or the unit of an integral event time.
    """

    rows: int
    size: int
    """Bytes of the rows with all columns, before compression."""
    ahead: int
    """Rows with an event time above the ceiling that was asked for."""
    furthest: int | None
    """The greatest event time of those, None where there is none."""
    earliest: int | None
    latest: int | None
    """The least and greatest event time of all others, None where there is none."""
    late: int
    """Rows with an event time below the mark that was asked for."""

    def __add__(self, other: "Extent") -> "Extent":
        """Return the extent of both ranges together."""
        return Extent(
            self.rows + other.rows,
            self.size + other.size,
            self.ahead + other.ahead,
            _either(max, self.furthest, other.furthest),
            _either(min, self.earliest, other.earliest),
            _either(max, self.latest, other.latest),
            self.late + other.late,
        )


NOTHING = Extent(0, 0, 0, None, None, None, 0)
"""The extent of no rows."""


def _either(choose: Any, one: int | None, other: int | None) -> int | None:
    given = [each for each in (one, other) if each is not None]
    return int(choose(given)) if given else None


@dataclass(frozen=True)
class HeldRange:
    """Rows start..stop-1 with an event time of ``low`` or later; of any event time where it is None."""

    start: int
    stop: int
    low: int | None = None


@dataclass(frozen=True)
class Wanted:
    """Which rows of some ranges, disjoint and ascending, are asked for.

    Those with an event time up to ``high`` (None: any) and a value of ``column`` that passes the filter with
    the digest ``filter``, or the one that stands beside it.
    """

    column: str
    ranges: tuple[HeldRange, ...]
    high: int | None = None
    filter: str | None = None


def disjoint(ranges: Sequence[HeldRange]) -> tuple[HeldRange, ...]:
    """Return the same rows as ranges that ascend and share no row: where some overlap, the least low counts.

    >>> disjoint([HeldRange(3, 9, 5), HeldRange(0, 5, 7)])
    (HeldRange(start=0, stop=3, low=7), HeldRange(start=3, stop=9, low=5))
    """
    given = sorted((each for each in ranges if each.start < each.stop), key=lambda each: each.start)
    cuts = sorted({at for each in given for at in (each.start, each.stop)})
    found: list[HeldRange] = []
    there: list[tuple[int, int]] = []
    next = 0
    for begin, end in pairwise(cuts):
        while next < len(given) and given[next].start <= begin:
            low = given[next].low
            heapq.heappush(there, (_LEAST - 1 if low is None else low, given[next].stop))
            next += 1
        while there and there[0][1] <= begin:
            heapq.heappop(there)
        if not there:
            continue
        least = None if there[0][0] < _LEAST else there[0][0]
        if found and found[-1].stop == begin and found[-1].low == least:
            begin = found.pop().start
        found.append(HeldRange(begin, end, least))
    return tuple(found)


def behind(ranges: Sequence[HeldRange], at: int) -> tuple[HeldRange, ...]:
    """Return what of ranges has numbers from ``at`` on."""
    return tuple(HeldRange(max(each.start, at), each.stop, each.low) for each in ranges if each.stop > at)


@dataclass(frozen=True)
class ExtentAsked:
    """A request for the extent of rows start..stop-1 of a stream, by a ceiling and a mark."""

    stream: str
    lineage: str
    start: int
    stop: int
    ceiling: int
    mark: int | None


def encode_wanted(wanted: Wanted, keys: bytes) -> bytes:
    """Return the body of a request for held rows: a length, JSON, and a filter, which may be empty."""
    head = json.dumps(plain(wanted), separators=(",", ":")).encode()
    return b"".join((_LENGTH.pack(len(head)), head, keys))


def parts_of_wanted(body: memoryview) -> tuple[memoryview, memoryview]:
    """Return the JSON of a body, and its filter. Raises SiteError "broken"."""
    if len(body) < _LENGTH.size or _LENGTH.unpack_from(body)[0] > len(body) - _LENGTH.size:
        raise SiteError("broken", "the request for held rows has been cut off")
    end = _LENGTH.size + _LENGTH.unpack_from(body)[0]
    return body[_LENGTH.size : end], body[end:]


def decode_wanted(body: memoryview) -> tuple[Wanted, memoryview]:
    """Return what a body asks for, and its filter. Raises SiteError "broken" or "limit"."""
    head, keys = parts_of_wanted(body)
    wanted = read_typed(Wanted, head, HEAD_BYTES + MOST_RANGES * RANGE_BYTES)
    if not all(0 <= each.start < each.stop for each in wanted.ranges):
        raise SiteError("broken", "the request for held rows has ranges that are none")
    if any(one.stop > other.start for one, other in pairwise(wanted.ranges)):
        raise SiteError("broken", "the ranges of the request do not ascend")
    return wanted, keys
