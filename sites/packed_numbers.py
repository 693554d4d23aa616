"""Numbers on the way: their lowest bytes first, then the next ones, packed; and of what width buckets are."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wjoin.sites.failures import SiteError

Integers = npt.NDArray[np.int64]

LEAST_BITS, MOST_BITS = 6, 24
"""Bits of the number of a bucket of hashes at the least and at the most."""

_BYTES = 8


def packed_numbers(arrays: Sequence[Integers]) -> bytes:
    """Return arrays of int64 as bytes: of all values the lowest byte first, then the next ones, packed."""
    planes = [each.astype("<i8").view(np.uint8).reshape(-1, _BYTES).T.tobytes() for each in arrays]
    return bytes(pa.compress(b"".join(planes), codec="zstd", asbytes=True))


def unpacked_numbers(data: bytes | memoryview, lengths: Sequence[int]) -> Iterator[Integers]:
    """Yield arrays of ``packed_numbers``, whose lengths are known. Raises SiteError "broken"."""
    size = _BYTES * sum(lengths)
    try:
        unpacked = pa.decompress(bytes(data), decompressed_size=size, codec="zstd", asbytes=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SiteError("broken", f"packed numbers cannot be unpacked: {error}") from error
    if len(unpacked) != size:
        raise SiteError("broken", "there are fewer packed numbers than the head says")
    planes, at = np.frombuffer(unpacked, np.uint8), 0
    for length in lengths:
        some = planes[at : at + _BYTES * length].reshape(_BYTES, length)
        yield np.ascontiguousarray(some.T).view("<i8").reshape(length).astype(np.int64)
        at += _BYTES * length
