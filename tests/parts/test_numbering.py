"""Numbers of new rows: those of one time have different ones, the same on each worker."""

import random

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from wjoin.executor.numbering import row_numbers

CONTENTS = st.sampled_from(["", "a", None])
VALUES = st.tuples(st.integers(0, 4), CONTENTS, st.lists(st.sampled_from([0.0, -0.0])))


def batch(rows: list[tuple[int, str | None, list[float]]]) -> pa.RecordBatch:
    times, texts, lists = zip(*rows, strict=True)
    return pa.RecordBatch.from_pydict(
        {"t0": pa.array(times, pa.int64()), "c0_0": pa.array(texts, pa.string()), "c0_1": pa.array(lists)}
    )


def numbers(rows: list[tuple[int, str | None, list[float]]]) -> list[int]:
    found = batch(rows)
    return row_numbers(found, np.array(found.column("t0"))).tolist()


@given(st.lists(VALUES, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_rows_have_the_same_numbers_in_any_order(
    rows: list[tuple[int, str | None, list[float]]], chance: random.Random
) -> None:
    shuffled = list(rows)
    chance.shuffle(shuffled)
    first = sorted(zip(map(repr, rows), numbers(rows), strict=True))
    assert first == sorted(zip(map(repr, shuffled), numbers(shuffled), strict=True))


@given(st.lists(VALUES, min_size=1, max_size=12))
def test_no_two_rows_have_one_number(rows: list[tuple[int, str | None, list[float]]]) -> None:
    assert len(set(numbers(rows))) == len(rows)


def test_times_at_both_ends_have_numbers_of_their_own() -> None:
    least, greatest = -(1 << 63), (1 << 63) - 1
    found = numbers([(time, "a", [0.0]) for time in (least, least, 0, greatest, greatest)])
    assert len(set(found)) == 5
