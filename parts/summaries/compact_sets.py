"""Sets of whole numbers below a limit, in few bits: bitmaps, or Elias–Fano codes of what is rare."""

import struct

import numpy as np

from wjoin.parts.kernels.runs import Int64Array

_HEAD = struct.Struct("<BBI")
"""Which of the three ways, how many low bits, how many members."""

_BITMAP, _MEMBERS, _OTHERS = range(3)


def size_of(many: int, limit: int) -> int:
    """Return the bytes of a set of ``many`` numbers below ``limit``."""
    rare = min(many, limit - many)
    return _HEAD.size + min(-(-limit // 8), _sparse_size(rare, limit, _low_bits(rare, limit)))


def packed(members: Int64Array, limit: int) -> bytes:
    """Return a set; ``members`` (int64[n]) ascend, each below ``limit``.

    >>> unpacked(packed(np.array([3, 70]), 100), 100)[0].tolist()
    [3, 70]
    """
    rare = min(len(members), limit - len(members))
    low = _low_bits(rare, limit)
    if -(-limit // 8) <= _sparse_size(rare, limit, low):
        return _HEAD.pack(_BITMAP, 0, len(members)) + _bitmap(members, limit)
    if rare == len(members):
        return _HEAD.pack(_MEMBERS, low, rare) + _sparse(members, limit, low)
    return _HEAD.pack(_OTHERS, low, rare) + _sparse(_others(members, limit), limit, low)


def unpacked(content: bytes, limit: int) -> tuple[Int64Array, bytes]:
    """Return the members of a set, ascending (int64[n]), and the bytes after it."""
    way, low, many = _HEAD.unpack_from(content)
    rest = content[_HEAD.size :]
    if way == _BITMAP:
        size = -(-limit // 8)
        bits = np.unpackbits(np.frombuffer(rest, np.uint8, size), count=limit, bitorder="little")
        return np.flatnonzero(bits), rest[size:]
    size = _sparse_size(many, limit, low)
    members = _members(rest[:size], many, limit, low)
    return (members if way == _MEMBERS else _others(members, limit)), rest[size:]


def _bitmap(members: Int64Array, limit: int) -> bytes:
    bits = np.zeros(limit, np.uint8)
    bits[members] = 1
    return np.packbits(bits, bitorder="little").tobytes()


def _others(members: Int64Array, limit: int) -> Int64Array:
    kept = np.ones(limit, np.bool_)
    kept[members] = False
    return np.flatnonzero(kept)


def _low_bits(many: int, limit: int) -> int:
    """Return how many bits of each member are told as they are."""
    return max(limit // max(many, 1), 1).bit_length() - 1


def _high_size(many: int, limit: int, low: int) -> int:
    return -(-(many + (limit >> low) + 1) // 8)


def _sparse_size(many: int, limit: int, low: int) -> int:
    return _high_size(many, limit, low) + -(-many * low // 8)


def _sparse(members: Int64Array, limit: int, low: int) -> bytes:
    # The high bits of the n-th member, plus n: ascending numbers, of which a bitmap tells each.
    high = np.zeros(8 * _high_size(len(members), limit, low), np.uint8)
    high[(members >> low) + np.arange(len(members))] = 1
    bits = (members[:, None] >> np.arange(low) & 1).astype(np.uint8)
    return np.packbits(high, bitorder="little").tobytes() + np.packbits(bits, bitorder="little").tobytes()


def _members(content: bytes, many: int, limit: int, low: int) -> Int64Array:
    size = _high_size(many, limit, low)
    bits = np.unpackbits(np.frombuffer(content, np.uint8, size), bitorder="little")
    high = np.flatnonzero(bits)[:many] - np.arange(many)
    rest = np.unpackbits(np.frombuffer(content, np.uint8, offset=size), count=many * low, bitorder="little")
    lows = rest.reshape(many, low).astype(np.int64) @ (1 << np.arange(low, dtype=np.int64))
    return (high << low) + lows
