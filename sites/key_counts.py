"""How often join values come in a range of rows, by hash: so others know which of their rows have partners.

The values of a column fall into 2**``bits`` buckets by the low bits of their hash (wjoin.sites.key_index),
and the rows of each bucket are counted: a sketch that is linear in its rows (Cormode and Muthukrishnan,
J. Algorithms 2005, with one row). The rows of a share of the buckets are told one by one: what becomes of
these says what a choice by the counts misses.
"""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wjoin.grammar.plain import plain
from wjoin.sites.failures import SiteError
from wjoin.sites.held import NOTHING, Extent
from wjoin.sites.key_index import Hashes, column_hashes
from wjoin.sites.packed_numbers import LEAST_BITS, MOST_BITS, Integers, packed_numbers, unpacked_numbers
from wjoin.sites.protocol import HEAD_BYTES, read_typed
from wjoin.sites.reading import Part, Settle
from wjoin.sites.reduction import CHUNK, read_extent
from wjoin.sites.segments import times
from wjoin.sites.value_sets import Flags, checked_kind, normal

COUNTED_BYTES = 32
"""Bytes that a row takes at the most while rows are counted."""

_SAMPLE_MIX, _SAMPLE_SHIFT = 0x9E3779B1, 8
_SHORT = np.uint64(0xFFFFFFFF)
_HEAD = struct.Struct("<4sIII")
_MAGIC = b"WJC1"
_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True)
class CountsAsked:
    """A request for the counts of ``column`` in rows start..stop-1 of a stream.

    Rows with an event time above ``ceiling``, or below ``low`` (None: none), are not counted. One bucket of
    ``sample`` is told row by row; 0 for none.
    """

    stream: str
    lineage: str
    column: str
    start: int
    stop: int
    ceiling: int
    low: int | None
    bits: int
    sample: int

    def check(self) -> None:
        """Raise SiteError "broken" for buckets or a sample that cannot be."""
        if not LEAST_BITS <= self.bits <= MOST_BITS or not 0 <= self.sample < 1 << 20:
            raise SiteError("broken", f"2**{self.bits} buckets, or one value of {self.sample}, cannot be")


@dataclass(frozen=True, eq=False)
class KeyCounts:
    """``counts`` of rows in ``buckets``, which ascend, and the rows of a sample: all arrays of int64.

    Of a sampled row there are the low 32 bits of its value's hash, and its event time. ``extent`` is of all
    rows of the range; ``size``: bytes that have travelled.
    """

    extent: Extent
    buckets: Integers
    counts: Integers
    sample_hashes: Integers
    sample_times: Integers
    size: int = 0

    @classmethod
    def of(cls, hashes: Hashes, found: Integers, bits: int, sample: int, extent: Extent) -> "KeyCounts":
        """Return the counts of rows with some hashes and event times."""
        buckets, counts = np.unique(bucket_of(hashes, bits), return_counts=True)
        if sample:
            chosen = in_sample(bucket_of(hashes, bits), sample)
            short = (hashes[chosen] & _SHORT).astype(np.int64)
            return cls(extent, buckets, counts.astype(np.int64), short, found[chosen])
        return cls(extent, buckets, counts.astype(np.int64), np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def together(cls, some: "Sequence[KeyCounts]") -> "KeyCounts":
        """Return the counts of several ranges together."""
        buckets, places = np.unique(np.concatenate([each.buckets for each in some]), return_inverse=True)
        counts = np.zeros(len(buckets), np.int64)
        np.add.at(counts, places, np.concatenate([each.counts for each in some]))
        return cls(
            sum((each.extent for each in some), NOTHING),
            buckets,
            counts,
            np.concatenate([each.sample_hashes for each in some]),
            np.concatenate([each.sample_times for each in some]),
            sum(each.size for each in some),
        )

    def encode(self) -> bytes:
        """Return the counts as bytes: a head, the extent as JSON, and packed numbers."""
        extent = json.dumps(plain(self.extent), separators=(",", ":")).encode()
        least = self.sample_times - (self.extent.earliest or 0)
        gaps = np.diff(self.buckets, prepend=-1)
        packed = packed_numbers([gaps, self.counts, self.sample_hashes, least])
        sizes = (len(extent), len(self.buckets), len(self.sample_hashes))
        return _HEAD.pack(_MAGIC, *sizes) + extent + packed

    @classmethod
    def decode(cls, data: bytes, bits: int, most_rows: int) -> "KeyCounts":
        """Return the counts of ``encode``. Raises SiteError "broken" for such as no ``most_rows`` have."""
        if len(data) < _HEAD.size:
            raise SiteError("broken", "the counts are shorter than their head")
        magic, length, count, sampled = _HEAD.unpack_from(data)
        if magic != _MAGIC or length > min(HEAD_BYTES, len(data) - _HEAD.size):
            raise SiteError("broken", "the counts cannot be read")
        if count > min(most_rows, 1 << bits) or sampled > most_rows:
            raise SiteError("broken", "there are more counts than rows")
        body = memoryview(data)[_HEAD.size :]
        extent = read_typed(Extent, body[:length])
        gaps, counts, hashes, ages = unpacked_numbers(body[length:], [count, count, sampled, sampled])
        if not (
            _within(gaps, 1, 1 << bits)
            and _within(counts, 1, most_rows)
            and _within(ages, 0, _GREATEST - (extent.earliest or 0))
            and gaps.sum() <= 1 << bits
            and counts.sum() <= most_rows
        ):
            raise SiteError("broken", "the counts are none of the rows that were asked for")
        found = ages + (extent.earliest or 0)
        return cls(extent, np.cumsum(gaps) - 1, counts, hashes & int(_SHORT), found, len(data))


def in_sample(buckets: Integers, sample: int) -> Flags:
    """Return of which buckets all rows are told: about one of ``sample``."""
    mixed = (buckets * _SAMPLE_MIX & int(_SHORT)) >> _SAMPLE_SHIFT
    found: Flags = mixed % sample == 0
    return found


def _within(values: Integers, least: int, greatest: int) -> bool:
    return bool((values >= least).all() and (values <= greatest).all())


def bucket_of(hashes: Hashes, bits: int) -> Integers:
    """Return the buckets of some hashes."""
    return (hashes & np.uint64((1 << bits) - 1)).astype(np.int64)


def counts_of(parts: Sequence[Part], time: str, asked: CountsAsked, settle: Settle) -> KeyCounts:
    """Return the counts of parts with event times in the column ``time``.

    Raises SiteError "schema" where there are no filters of such values.
    """
    found = [_empty(asked)]
    for part in parts:
        for low in range(part.begin, part.end, CHUNK):
            found.append(_counted(part, low, min(CHUNK, part.end - low), time, asked))
        settle()
        if len(found) > 1:
            found = [KeyCounts.together(found)]
    return found[0]


def _empty(asked: CountsAsked) -> KeyCounts:
    none = np.empty(0, np.int64)
    return KeyCounts.of(none.view(np.uint64), none, asked.bits, asked.sample, NOTHING)


def _counted(part: Part, low: int, rows: int, time: str, asked: CountsAsked) -> KeyCounts:
    some = part.piece.rows.slice(low, rows)
    dated = times(some, time)
    extent = read_extent(some, dated, asked.ceiling, asked.low)
    column = some.column(asked.column)
    chosen = np.asarray(column.is_valid()) & (dated <= asked.ceiling)
    chosen &= dated >= (_LEAST if asked.low is None else asked.low)
    checked_kind(column.type)
    hashes = column_hashes(normal(column))[chosen]
    return KeyCounts.of(hashes, dated[chosen], asked.bits, asked.sample, extent)
