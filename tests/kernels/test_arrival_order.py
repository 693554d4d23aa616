"""Disorder from pieces equals that of the rows one by one."""

import random

import numpy as np
import pytest

from wjoin.executor.arrival_order import ReadParts, disorder

Row = tuple[str, int, int, int]
"""Name, major place, start, event time."""


def behind(times: list[int]) -> int:
    """Return how far a row lies behind the greatest one before it, at the most."""
    latest, most = times[0], 0
    for time in times:
        latest = max(latest, time)
        most = max(most, latest - time)
    return most


def pieces(partitions: list[list[Row]], size: int, *, log: bool) -> list:
    """Return the pieces that readers of some partitions find, who get their rows in batches."""
    found = []
    for partition in partitions:
        reader = ReadParts(log=log)
        for start in range(0, len(partition), size):
            names, majors, starts, times = zip(*partition[start : start + size], strict=True)
            known = sorted(set(names))
            of = np.array([known.index(each) for each in names], np.int64)
            columns = [np.array(each, np.int64) for each in (times, majors, starts)]
            reader.note(columns[0], known, of, columns[1], columns[2])
        found += reader
    return found


def test_the_ends_of_64_bits_are_further_apart_than_64_bits_tell() -> None:
    times = [(1 << 63) - 1, 0, -(1 << 63)]
    rows = [("a", 0, 0, time) for time in times]
    assert disorder(pieces([rows], 2, log=False)) == behind(times) == (1 << 64) - 1


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_splits_of_files_in_any_partitions(size: int, seed: int) -> None:
    chance = random.Random(seed)
    parts: list[list[Row]] = []
    rows: list[int] = []
    for number in range(12):
        for split in range(chance.randrange(1, 4)):
            times = [int(1000 * number + 300 * split + i - chance.random() * 900) for i in range(40)]
            parts.append([(f"{97 - number}", 5 * (number // 2), 100 * split, time) for time in times])
    for part in sorted(parts, key=lambda each: (each[0][1], each[0][0], each[0][2])):
        rows += [time for *_, time in part]
    chance.shuffle(parts)
    partitions = [[row for part in parts[n::3] for row in part] for n in range(3)]
    assert disorder(pieces(partitions, size, log=False)) == behind(rows)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_partitions_of_a_log_are_each_in_the_order_of_their_offsets(size: int) -> None:
    chance = random.Random(size)
    logs = {
        name: [(name, 0, offset, int(offset * 10 + shift - chance.random() * 500)) for offset in range(300)]
        for name, shift in (("0", 0), ("1", 90_000))
    }
    # Two readers, and the second half of a log before its first.
    partitions = [logs["0"][150:] + logs["1"][:100], logs["0"][:150] + logs["1"][100:]]
    expected = max(behind([time for *_, time in rows]) for rows in logs.values())
    assert disorder(pieces(partitions, size, log=True)) == expected


def test_moved_rows_have_no_order() -> None:
    rows: list[Row] = [("f", 0, 0, time) for time in range(10)]
    assert disorder(pieces([rows[::2], rows[1::2]], 100, log=False)) is None
    offsets: list[Row] = [("0", 0, offset, offset) for offset in range(10)]
    assert disorder(pieces([offsets[::2], offsets[1::2]], 100, log=True)) is None
    assert disorder(pieces([offsets[::-1]], 100, log=True)) == 0
