"""Lists of numbers gathered as lines of a matrix: what Arrow's own take gives, of every kind of list."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from wjoin.executor.blocks import taken

KINDS = (
    pa.list_(pa.float64()),
    pa.large_list(pa.float32()),
    pa.list_(pa.field("element", pa.int16(), nullable=False)),
    pa.list_(pa.string()),
    pa.list_(pa.bool_()),
    pa.list_(pa.list_(pa.int32())),
    pa.float64(),
)


def value(kind: pa.DataType, number: int) -> Any:
    """Return a value of a type that tells the number."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [value(kind.value_type, number), value(kind.value_type, number + 1)]
    return (
        str(number) if pa.types.is_string(kind) else number % 2 == 0 if pa.types.is_boolean(kind) else number
    )


@given(st.sampled_from(KINDS), st.integers(1, 9), st.data())
def test_lists_of_one_length(kind: pa.DataType, rows: int, data: st.DataObject) -> None:
    whole = pa.array([value(kind, 10 * row) for row in range(rows + 3)], kind)
    column = whole.slice(data.draw(st.integers(0, 3)), rows)
    same(column, data.draw(st.lists(st.integers(0, rows - 1), max_size=12)))


@given(
    st.lists(st.none() | st.lists(st.none() | st.integers(-5, 5), max_size=3), min_size=1, max_size=8),
    st.data(),
)
def test_lists_of_any_length_and_null(values: list[Any], data: st.DataObject) -> None:
    column = pa.array(values, pa.list_(pa.int64()))
    places = st.integers(0, len(values) - 1)
    same(column, data.draw(st.lists(st.none() | places, max_size=12)))
    same(column, data.draw(st.lists(places, max_size=12)))


def same(column: pa.Array, rows: list[int | None]) -> None:
    places = pa.array(rows, pa.int64())
    found = taken(column, places)
    found.validate(full=True)
    assert found.type == column.type
    assert found.to_pylist() == column.take(places).to_pylist()
