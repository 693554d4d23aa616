"""Values gathered as lines of a matrix, from the runs that rows are in: what columns of them have."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wjoin.executor.gathering import GatheredLater, Gathering, Pieces
from wjoin.executor.pair_calls import PairFailedError, holds, scores
from wjoin.parts.kernels.runs import SortedRun
from wjoin.udfs.predicate import Predicate

KINDS = {
    pa.list_(pa.float64()): lambda number, width: [number + 0.5] * width,
    pa.large_list(pa.int16()): lambda number, width: [number] * width,
    pa.binary(): lambda number, width: bytes([number]) * width,
}


def run_of(values: list[Any], kind: pa.DataType) -> SortedRun:
    """Return a run whose column begins behind another value, as the slice of a block does."""
    column = pa.array([None, *values], kind).slice(1)
    zeros = np.zeros(len(values), np.int64)
    return SortedRun(pa.RecordBatch.from_arrays([column], ["value"]), zeros, (zeros,), True)


def later(runs: list[SortedRun], rows: list[int]) -> GatheredLater:
    """Return the values at some rows of all runs."""
    return GatheredLater(Gathering(Pieces(tuple(runs)), np.array(rows, np.int64)), "value", None, len(rows))


@given(st.sampled_from(list(KINDS)), st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_lines_are_the_values(kind: pa.DataType, sizes: list[int], data: st.DataObject) -> None:
    width = data.draw(st.integers(0, 3))
    flat = [KINDS[kind](number, width) for number in range(sum(sizes))]
    ends = np.cumsum(sizes).tolist()
    runs = [run_of(flat[end - size : end], kind) for size, end in zip(sizes, ends, strict=True)]
    rows = data.draw(st.lists(st.integers(0, len(flat) - 1), min_size=1, max_size=12))
    values = later(runs, rows)
    start = data.draw(st.integers(0, len(rows) - 1))
    lines = values.lines(start, len(rows) - start)
    assert lines is not None
    expected = [list(flat[row]) for row in rows[start:]]
    assert lines.tolist() == expected
    assert [list(each) for each in values.slice(start, len(rows) - start).to_pylist()] == expected


@pytest.mark.parametrize("other", [None, [1.0], [1.0, None]])
def test_there_are_none_where_a_run_that_is_used_has_others(other: list[float | None] | None) -> None:
    kind = pa.list_(pa.float64())
    runs = [run_of([[1.0, 2.0], [3.0, 4.0]], kind), run_of([[5.0, 6.0], other], kind)]
    assert later(runs, [1, 2]).lines(0, 2) is None
    used = later(runs, [1, 0]).lines(0, 2)
    assert used is not None
    assert used.tolist() == [[3.0, 4.0], [1.0, 2.0]]


def test_other_types_are_no_lines() -> None:
    assert later([run_of(["a", "b"], pa.string())], [0, 1]).lines(0, 2) is None


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.data())
def test_a_predicate_says_the_same_of_values_gathered_later(sizes: list[int], data: st.DataObject) -> None:
    kind = pa.list_(pa.float64())
    vector = st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=2)
    values = st.lists(st.none() | vector, min_size=sum(sizes), max_size=sum(sizes))
    flat = data.draw(st.one_of(values, st.lists(vector, min_size=sum(sizes), max_size=sum(sizes))))
    ends = np.cumsum(sizes).tolist()
    runs = [run_of(flat[end - size : end], kind) for size, end in zip(sizes, ends, strict=True)]
    rows = data.draw(st.lists(st.integers(0, len(flat) - 1), min_size=1, max_size=12))
    numbers = pa.array([data.draw(st.none() | st.integers(0, 3)) for _ in rows], pa.int64())
    column = pa.array([flat[row] for row in rows], kind)

    def first(vectors: Any, number: Any) -> Any:
        return np.array([each[0] for each in vectors]) + number

    predicate = Predicate("first", first, returns="double")
    gathered, null = scores(predicate, [later(runs, rows), numbers])
    whole, null_of_whole = scores(predicate, [column, numbers])
    assert null.tolist() == null_of_whole.tolist()
    assert gathered.tolist() == whole.tolist()
    asked = [(">", 1.0)]
    assert holds(predicate, [later(runs, rows), numbers], asked).tolist() == [
        flat[row] is not None and number is not None and flat[row][0] + number > 1
        for row, number in zip(rows, numbers.to_pylist(), strict=True)
    ]


def test_a_failure_names_the_pair_of_a_value_gathered_later() -> None:
    runs = [run_of([[1.0], [2.0]], pa.list_(pa.float64())), run_of([[0.0]], pa.list_(pa.float64()))]

    def checked(vectors: Any) -> Any:
        if (vectors == 0).any():
            raise ValueError("nothing")
        return vectors[:, 0]

    with pytest.raises(PairFailedError, match="ValueError: nothing") as raised:
        scores(Predicate("checked", checked, returns="double"), [later(runs, [0, 1, 2, 1])])
    assert raised.value.place == 2
