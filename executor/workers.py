"""The workers of a stage: groups that Spark sends to different partitions."""

import functools


@functools.cache
def worker_ids(partitions: int, turn: int = 0) -> tuple[int, ...]:
    """Return grouping keys that Spark's hash partitioning sends to distinct partitions.

    They are the least non-negative integers for each of the partitions, 0 among them; at another ``turn``
    the next ones, so that several joins have workers of their own in the same partitions.
    """
    found: dict[int, list[int]] = {}
    candidate = 0
    while len(found) < partitions or any(len(each) <= turn for each in found.values()):
        found.setdefault(partition_of(candidate, partitions), []).append(candidate)
        candidate += 1
    return tuple(sorted(each[turn] for each in found.values()))


def partition_of(worker: int, partitions: int) -> int:
    """Return to which of so many partitions Spark's hash partitioning sends a grouping key."""
    return _spark_hash(worker) % partitions


def _spark_hash(value: int) -> int:
    """Return Murmur3 (32 bits, seed 42) of an INT, as Spark's hash() gives it."""
    mask = 0xFFFFFFFF
    mixed = (value * 0xCC9E2D51) & mask
    mixed = ((mixed << 15) | (mixed >> 17)) & mask
    mixed = (mixed * 0x1B873593) & mask
    result = 42 ^ mixed
    result = ((result << 13) | (result >> 19)) & mask
    result = (result * 5 + 0xE6546B64) & mask
    result ^= 4
    for shift, multiplier in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        result ^= result >> shift
        result = (result * multiplier) & mask
    result ^= result >> 16
    return result - (1 << 32) if result >= 1 << 31 else result
