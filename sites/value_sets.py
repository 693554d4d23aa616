"""Sets of join values that many values are tested against at once: exact ones, and Bloom filters.

Values are compared by what they are and not by their width. There are five kinds: "number" (integers of all
widths), "boolean", "date", "time" (timestamps in microseconds) and "text". The first four are int64 here.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.sites.failures import SiteError
from wjoin.sites.key_index import Hashes, column_hashes

Flags = npt.NDArray[np.bool_]

KINDS = ("number", "boolean", "date", "time", "text")

_GREATEST = (1 << 63) - 1
_HASHES = 7
_BITS = _HASHES / math.log(2)
"""Bits of a Bloom filter for each of its values: with seven hashes about 1 % of other values pass."""

_STEP = np.uint64(0x9E3779B97F4A7C15)


def kind_of(type: pa.DataType) -> str | None:
    """Return the kind of a type's values, None where there are no sets of them."""
    if pa.types.is_dictionary(type):
        return kind_of(type.value_type)
    if pa.types.is_integer(type):
        return "number"
    if pa.types.is_boolean(type):
        return "boolean"
    if pa.types.is_date32(type):
        return "date"
    if pa.types.is_timestamp(type) and type.unit == "us":
        return "time"
    return "text" if pa.types.is_string(type) or pa.types.is_large_string(type) else None


def checked_kind(type: pa.DataType) -> str:
    """Return the kind of a type's values. Raises SiteError "schema" where there are no sets of them."""
    kind = kind_of(type)
    if kind is None:
        help = "there are filters of integers, booleans, dates, timestamps in microseconds and strings"
        raise SiteError("schema", f"there is no filter of values of the type {type}", help=help)
    return kind


def normal(values: pa.Array) -> pa.Array:
    """Return values as int64 or string; unsigned ones that int64 does not have are NULL.

    Raises SiteError "schema".
    """
    kind = checked_kind(values.type)
    if pa.types.is_dictionary(values.type):
        return normal(values.dictionary_decode())
    if kind == "text":
        return values.cast(pa.string())
    if kind == "time":
        return values.view(pa.int64())
    if kind == "date":
        values = values.view(pa.int32())
    if pa.types.is_uint64(values.type):
        small = pc.less_equal(values, pa.scalar(_GREATEST, pa.uint64()))
        values = pc.if_else(small, values, pa.scalar(None, pa.uint64()))
    return values.cast(pa.int64())


def distinct(values: pa.Array) -> pa.Array:
    """Return the normal values, each once and ascending, without NULL."""
    found = pc.unique(values).drop_null()
    return found.take(pc.array_sort_indices(found))


def _integers(values: pa.Array) -> npt.NDArray[np.int64]:
    return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


class ValueSet(Protocol):
    """A set that tells of normal values which are in it; NULL never is."""

    @property
    def size(self) -> int:
        """Bytes that it has in memory."""

    def contains(self, values: pa.Array) -> Flags:
        """Return for each value whether it is in the set."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """Distinct int64 in ascending order."""

    values: npt.NDArray[np.int64]

    @property
    def size(self) -> int:
        """Bytes that it has in memory."""
        return int(self.values.nbytes)

    def contains(self, values: pa.Array) -> Flags:
        """Return for each value whether it is in the set."""
        if len(self.values) == 0:
            return np.zeros(len(values), np.bool_)
        asked = _integers(values)
        at = np.searchsorted(self.values, asked)
        same = self.values[np.minimum(at, len(self.values) - 1)] == asked
        return np.asarray(same & _there(values), np.bool_)


@dataclass(frozen=True, eq=False)
class Texts:
    """Distinct strings in ascending order."""

    values: pa.Array

    @property
    def size(self) -> int:
        """Bytes that it has in memory."""
        return int(self.values.nbytes)

    def contains(self, values: pa.Array) -> Flags:
        """Return for each value whether it is in the set."""
        found = pc.is_in(values, value_set=self.values, skip_nulls=True)
        return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


@dataclass(frozen=True, eq=False)
class Bloom:
    """Bits of which each value that was put in has set seven (Bloom, CACM 1970), eight to a uint8."""

    bits: npt.NDArray[np.uint8]

    @staticmethod
    def bytes_for(count: int) -> int:
        """Return how many bytes the bits of so many distinct values have."""
        return max(1, math.ceil(count * _BITS / 8))

    @classmethod
    def of(cls, values: pa.Array) -> "Bloom":
        """Return the filter of distinct normal values."""
        size = cls.bytes_for(len(values))
        flags = np.zeros(8 * size, np.bool_)
        one, step = _two_hashes(values)
        for _ in range(_HASHES):
            flags[_places(one, size)] = True
            one = one + step
        return cls(np.packbits(flags, bitorder="little"))

    @property
    def size(self) -> int:
        """Bytes that it has in memory."""
        return int(self.bits.nbytes)

    def contains(self, values: pa.Array) -> Flags:
        """Return for each value whether it may be in the set: True for all that are."""
        alive = np.flatnonzero(_there(values))
        one, step = _two_hashes(values)
        one, step = one[alive], step[alive]
        for _ in range(_HASHES):
            places = _places(one, len(self.bits))
            bits = self.bits[(places >> np.uint64(3)).astype(np.intp)] >> (places & np.uint64(7)).astype(
                np.uint8
            )
            set_ = (bits & 1).astype(np.bool_)
            alive, one, step = alive[set_], one[set_], step[set_]
            one = one + step
        found = np.zeros(len(values), np.bool_)
        found[alive] = True
        return found


@dataclass(frozen=True, eq=False)
class Buckets:
    """The values whose hash falls into some of 2**``bits`` buckets (wjoin.sites.key_counts), which ascend."""

    buckets: Hashes
    bits: int

    @property
    def size(self) -> int:
        """Bytes that it has in memory."""
        return int(self.buckets.nbytes)

    def contains(self, values: pa.Array) -> Flags:
        """Return for each value whether it is in one of the buckets."""
        if not len(self.buckets):
            return np.zeros(len(values), np.bool_)
        wanted = column_hashes(values) & np.uint64((1 << self.bits) - 1)
        places = np.minimum(np.searchsorted(self.buckets, wanted), len(self.buckets) - 1)
        found: Flags = (self.buckets[places] == wanted) & _there(values)
        return found


def _two_hashes(values: pa.Array) -> tuple[Hashes, Hashes]:
    """Return two hashes, of which all seven are sums (Kirsch and Mitzenmacher, ESA 2006)."""
    one = column_hashes(values)
    with np.errstate(over="ignore"):
        step = (one ^ (one >> np.uint64(32))) * _STEP
    return one, step | np.uint64(1)


def _places(hashes: Hashes, size: int) -> Hashes:
    return hashes % np.uint64(8 * size)


def _there(values: pa.Array) -> Flags:
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def exact_set(values: pa.Array) -> Numbers | Texts:
    """Return the set of distinct normal values."""
    return Texts(values) if pa.types.is_string(values.type) else Numbers(_integers(values))
