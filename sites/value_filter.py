"""Filters of join values that are pushed to a site: of the rows there only those that pass are sent.

A filter is the smaller one of an exact set, packed, and a Bloom filter, which about 1 % of other values pass;
exact where there are few values, so that an index finds them. Or it has buckets of hashes, for any values.
"""

import hashlib
import struct
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pyarrow as pa

from wjoin.sites.failures import SiteError
from wjoin.sites.key_index import Hashes, column_hashes
from wjoin.sites.packed_numbers import LEAST_BITS, MOST_BITS, Integers, packed_numbers, unpacked_numbers
from wjoin.sites.value_sets import (
    KINDS,
    Bloom,
    Buckets,
    Flags,
    Numbers,
    Texts,
    ValueSet,
    checked_kind,
    distinct,
    exact_set,
    normal,
)

# Magic, kind, form, hash of a known text, number of values, bytes of the values before compression.
_HEAD = struct.Struct("<4sBcQQQ")
_MAGIC = b"WJF1"
_EXACT, _BLOOM, _BUCKETS = b"e", b"b", b"h"
_WIDTHS = (1, 2, 4, 8)
_ANY = 1 << 62
_MOST_EXACT = 16_000_000
"""Bytes that an exact set may have unpacked; what stands for more on the way is a Bloom filter."""

_MOST_LETTERS = 1_000_000
"""Bytes that an exact set of texts has at the most: a site with little memory takes it in a request, too."""

_FEW, _SMALL = 256, 16_000
"""Values, and bytes on the way, up to which a set is exact whatever a Bloom filter would have."""


@dataclass(frozen=True, eq=False)
class ValueFilter:
    """A set of join values of one ``kind`` (wjoin.sites.value_sets); ``digest`` names it.

    All of its ``count`` distinct values, or all of so many buckets of hashes, pass; NULL never does. Where it
    is not ``exact``, other values pass, too: of a Bloom filter about 1 %.
    """

    kind: str
    count: int
    digest: str
    _set: ValueSet = field(repr=False)
    _encoded: bytes = field(repr=False)

    @classmethod
    def of(cls, values: pa.Array | pa.ChunkedArray, kind: str | None = None) -> "ValueFilter":
        """Return the filter of values: NULL is left out, and what stands there twice counts once.

        ``kind``: of which kind normal values (``wjoin.sites.value_sets.normal``) are, None for their own.
        Integers of all widths, booleans, date32, timestamp[us] and strings, also dictionaries of these;
        of others, and of unsigned integers from 2**63 on, it raises SiteError "schema".
        """
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        kind, plain = kind or checked_kind(values.type), normal(values)
        if plain.null_count > values.null_count:
            raise SiteError("schema", "there is no filter of unsigned integers from 2**63 on")
        single = distinct(plain)
        exact = exact_set(single)
        data = _packed(exact)
        body = pa.compress(data, codec="zstd", asbytes=True)
        fits = max(len(data), 8 * len(single)) <= (_MOST_LETTERS if kind == "text" else _MOST_EXACT)
        small = _SMALL if len(single) <= _FEW else Bloom.bytes_for(len(single))
        if fits and len(body) <= small:
            head = _head(kind, _EXACT, len(single), len(data))
            return cls._made(kind, len(single), exact, head + body)
        bloom = Bloom.of(single)
        head = _head(kind, _BLOOM, len(single), bloom.size)
        return cls._made(kind, len(single), bloom, head + bloom.bits.tobytes())

    @classmethod
    def of_buckets(cls, buckets: Integers, bits: int, kind: str) -> "ValueFilter":
        """Return the filter of all values of a kind whose hashes are in some of 2**``bits`` buckets.

        The buckets ascend (int64).
        """
        body = bytes((bits,)) + packed_numbers([np.diff(buckets, prepend=-1)])
        head = _head(kind, _BUCKETS, len(buckets), 1 << bits)
        return cls._made(kind, len(buckets), Buckets(buckets.astype(np.uint64), bits), head + body)

    @classmethod
    def _made(cls, kind: str, count: int, found: ValueSet, encoded: bytes) -> "ValueFilter":
        digest = hashlib.blake2b(encoded, digest_size=16).hexdigest()
        return cls(kind, count, digest, found, encoded)

    @classmethod
    def decode(
        cls, data: bytes, *, most_bytes: int | None = None, limit: str = "max_filter_bytes"
    ) -> "ValueFilter":
        """Return the filter of ``encode``.

        Raises SiteError "broken" where the bytes are none, and "limit" where it would have more than
        ``most_bytes`` in memory; ``limit`` names that.
        """
        kind, form, count, size = _read_head(data)
        most_bytes = min(_ANY if most_bytes is None else most_bytes, _MOST_EXACT if form == _EXACT else _ANY)
        if _unpacked(form, count, size) > most_bytes:
            message = f"a filter of {count} values is larger than {most_bytes} bytes"
            raise SiteError("limit", message, help=f"raise {limit} in [site.limits]")
        body = data[_HEAD.size :]
        found = (
            _bloom(body, count, size)
            if form == _BLOOM
            else _buckets(body, count, size)
            if form == _BUCKETS
            else _exact(kind, body, count, size)
        )
        return cls._made(kind, count, found, bytes(data))

    def encode(self) -> bytes:
        """Return the filter as bytes; the same for the same values in any order."""
        return self._encoded

    @property
    def exact(self) -> bool:
        """Whether no other values pass."""
        return not isinstance(self._set, Bloom | Buckets)

    @property
    def size(self) -> int:
        """Bytes that it has in memory."""
        return self._set.size + len(self._encoded)

    @property
    def hashes(self) -> Hashes | None:
        """The hashes of its values, each once, None where it is not exact."""
        if not isinstance(self._set, Numbers | Texts):
            return None
        return np.unique(column_hashes(pa.array(self._set.values)))

    def contains(self, values: pa.Array) -> Flags:
        """Return for each value whether it passes.

        Raises SiteError "schema" where values of that type are of another kind than those of the filter.
        """
        kind = checked_kind(values.type)
        if kind != self.kind:
            raise SiteError(
                "schema", f"a filter of the kind {self.kind} is asked for values of {values.type}"
            )
        return self.has(normal(values))

    def has(self, values: pa.Array) -> Flags:
        """Return for each normal value whether it passes."""
        return self._set.contains(values)


def _head(kind: str, form: bytes, count: int, size: int) -> bytes:
    return _HEAD.pack(_MAGIC, KINDS.index(kind), form, _hash_of_known_text(), count, size)


def _read_head(data: bytes | memoryview) -> tuple[str, bytes, int, int]:
    """Return the kind of a filter, its form, number of values and bytes. Raises SiteError "broken"."""
    if len(data) < _HEAD.size:
        raise SiteError("broken", "the filter is shorter than its head")
    magic, number, form, check, count, size = _HEAD.unpack_from(data)
    if magic != _MAGIC or number >= len(KINDS) or form not in (_EXACT, _BLOOM, _BUCKETS):
        raise SiteError("broken", f"the filter does not begin as one of {_MAGIC.decode()}")
    if check != _hash_of_known_text():
        raise SiteError("broken", "the filter was made with other hashes: by another version of pandas?")
    return KINDS[number], form, count, size


def unpacked_size(data: bytes | memoryview) -> int:
    """Return how many bytes an encoded filter has once it is unpacked, which its head tells.

    Raises SiteError "broken".
    """
    return _unpacked(*_read_head(data)[1:])


def _unpacked(form: bytes, count: int, size: int) -> int:
    return size if form == _BLOOM else 8 * count if form == _BUCKETS else max(size, 8 * count)


@cache
def _hash_of_known_text() -> int:
    # Both sides must hash alike, or values that are in the filter would not pass.
    return int(column_hashes(pa.array(["wjoin"]))[0])


def _packed(found: Numbers | Texts) -> bytes:
    """Return a set as bytes: of numbers the first and steps, of texts their lengths and letters."""
    if isinstance(found, Numbers):
        if len(found.values) == 0:
            return b""
        steps = np.diff(found.values.view(np.uint64))
        width = next(each for each in _WIDTHS if int(steps.max(initial=0)) < 1 << (8 * each))
        return found.values[:1].astype("<i8").tobytes() + steps.astype(f"<u{width}").tobytes()
    texts = [each.encode() for each in found.values.to_pylist()]
    return np.array([len(each) for each in texts], "<u4").tobytes() + b"".join(texts)


def _bloom(body: bytes, count: int, size: int) -> Bloom:
    if not len(body) == size == Bloom.bytes_for(count):
        raise SiteError("broken", f"{len(body)} bytes are no Bloom filter of {count} values")
    return Bloom(np.frombuffer(body, np.uint8))


def _buckets(body: bytes, count: int, size: int) -> Buckets:
    bits = body[0] if body else 0
    if not LEAST_BITS <= bits <= MOST_BITS or size != 1 << bits or count > size:
        raise SiteError("broken", f"{size} is no number of buckets, or there are more of them")
    (gaps,) = unpacked_numbers(body[1:], [count])
    if not ((gaps > 0).all() and (gaps <= size).all() and gaps.sum() <= size):
        raise SiteError("broken", "the buckets of the filter do not ascend")
    return Buckets((np.cumsum(gaps) - 1).astype(np.uint64), bits)


def _exact(kind: str, body: bytes, count: int, size: int) -> Numbers | Texts:
    try:
        plain = pa.decompress(body, decompressed_size=size, codec="zstd", asbytes=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SiteError("broken", f"the values of the filter cannot be unpacked: {error}") from error
    if len(plain) != size:
        raise SiteError("broken", "the filter has fewer values than its head says")
    return _texts(plain, count) if kind == "text" else _numbers(plain, count)


def _numbers(plain: bytes, count: int) -> Numbers:
    if count == 0 and not plain:
        return Numbers(np.empty(0, np.int64))
    width, rest = divmod(len(plain) - 8, count - 1) if count > 1 else (1, len(plain) - 8)
    if count == 0 or rest or width not in _WIDTHS:
        raise SiteError("broken", f"{len(plain)} bytes are not {count} numbers")
    first = np.frombuffer(plain, "<i8", 1).astype(np.int64)
    steps = np.frombuffer(plain, f"<u{width}", offset=8).astype(np.uint64)
    values = np.cumsum(np.concatenate([first.view(np.uint64), steps]), dtype=np.uint64).view(np.int64)
    if not bool((values[1:] > values[:-1]).all()):
        raise SiteError("broken", "the numbers of the filter do not ascend")
    return Numbers(values)


def _texts(plain: bytes, count: int) -> Texts:
    if len(plain) < 4 * count:
        raise SiteError("broken", f"{len(plain)} bytes are not {count} texts")
    lengths = np.frombuffer(plain, "<u4", count).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    letters = plain[4 * count :]
    if offsets[-1] != len(letters) or len(letters) >= 1 << 31:
        raise SiteError("broken", "the texts of the filter are shorter or longer than its head says")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(letters)]
    values = pa.Array.from_buffers(pa.string(), count, buffers)
    try:
        values.validate(full=True)
    except (pa.ArrowException, ValueError) as error:
        raise SiteError("broken", f"the texts of the filter cannot be read: {error}") from error
    return Texts(values)
