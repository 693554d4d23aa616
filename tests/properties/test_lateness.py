"""How far rows lie behind those before them, counted in pieces, against comparing all rows."""

from collections import Counter

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from wjoin.executor.arrival_order import ReadParts, disorder, seen_before
from wjoin.executor.spark.disorder import Lateness
from wjoin.statements.explain_delay import delays_of

files = st.lists(
    st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 500), min_size=1), min_size=1, max_size=5
)


def read(parts: ReadParts, name: str, major: int, times: list[int], *, log: bool) -> None:
    starts = np.arange(len(times)) if log else np.zeros(len(times), np.int64)
    one = np.zeros(len(times), np.int64)
    parts.note(np.array(times, np.int64), [name], one, one + major, starts.astype(np.int64))


@given(files, st.integers(1, 3), st.booleans(), st.integers(0, 2**62) | st.integers(0, 600))
def test_rows_are_counted_by_how_far_they_lie_behind(
    found: list[list[int]], readers: int, log: bool, declared: int
) -> None:
    def parts_of(**more: object) -> list[ReadParts]:
        made = [ReadParts(log=log, **more) for _ in range(readers)]
        for number, times in enumerate(found):
            # A log has one file, whose rows several readers have.
            start = sum(map(len, found[:number]))
            parts = made[number % readers]
            if log:
                starts = np.arange(start, start + len(times), dtype=np.int64)
                zero = np.zeros(len(times), np.int64)
                parts.note(np.array(times, np.int64), ["log"], zero, zero, starts)
            else:
                read(parts, f"f{number}", number, times, log=log)
        return made

    pieces = [each for parts in parts_of() for each in parts]
    # Where pieces overlap nobody knows the order of rows.
    assume(disorder(pieces) is not None)
    seen = seen_before(pieces)
    late = sum((parts.late for parts in parts_of(seen=seen, delay=declared)), Counter[int]())
    every = [time for times in found for time in times]
    behind = [max(every[: place + 1]) - time for place, time in enumerate(every)]
    told = Lateness(late, min(every), max(every))
    assert told.rows == len(every)
    for delay in (*delays_of(told), declared):
        assert told.beyond(delay) == sum(each > delay for each in behind)
    greatest = max(delays_of(told))
    assert told.beyond(greatest) == 0 and greatest <= max(behind) * 1.1 + 1
