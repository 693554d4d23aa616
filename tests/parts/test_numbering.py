"""Numbers of new rows: those of one time have different ones, the same on each worker."""

import random

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from wjoin.executor.blocks import without_times
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


def test_dates_that_python_does_not_have_are_numbered() -> None:
    late = 1 << 60
    kinds = [
        pa.timestamp("us", "UTC"),
        pa.list_(pa.timestamp("us")),
        pa.struct([("a", pa.date32()), ("b", pa.duration("us"))]),
        pa.map_(pa.string(), pa.timestamp("us")),
    ]
    values = [late, [late], {"a": 1 << 30, "b": late}, [("k", late)]]
    columns = {
        f"c0_{n}": pa.array([value, value, None], without_times(pa.array([], kind)).type).cast(kind)
        for n, (value, kind) in enumerate(zip(values, kinds, strict=True))
    }
    rows = pa.RecordBatch.from_pydict({"t0": pa.array([5, 5, 5], pa.int64()), **columns})
    assert len(set(row_numbers(rows, np.array([5, 5, 5])).tolist())) == 3
