"""Predicates called for pairs: what they are given, what they may return, and how failures are told."""

import datetime
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle

from wjoin.executor import pair_calls
from wjoin.executor.pair_calls import CALL_PAIRS, PairFailedError, holds, scores
from wjoin.grammar.errors import WJoinError
from wjoin.joins.predicates import load
from wjoin.udfs.built_in import known_predicates
from wjoin.udfs.predicate import PREDICATES, Predicate, predicate

ANYTHING = (("<>", -1.0),)


def recorded(returned: Any, **options: Any) -> tuple[Predicate, list[tuple[Any, ...]]]:
    """Return a predicate that returns one thing, and the list of what it is called with."""
    calls: list[tuple[Any, ...]] = []

    def function(*arguments: Any) -> Any:
        calls.append(arguments)
        return returned(*arguments) if callable(returned) else returned

    return Predicate("recorded", function, **options), calls


def test_a_pair_with_null_is_held_back() -> None:
    near, calls = recorded(lambda left, right: abs(left - right) <= 1)
    left, right = pa.array([1, None, 5, 7]), pa.array([2, 2, None, 3])
    assert holds(near, [left, right], True).tolist() == [True, False, False, False]
    assert holds(near, [left, right], False).tolist() == [False, False, False, True]
    assert [each.tolist() for each in calls[0]] == [[1, 7], [2, 3]]


def test_nothing_is_called_where_all_pairs_have_null() -> None:
    never, calls = recorded(True)
    assert holds(never, [pa.array([None, None], pa.int64()), pa.array([1, 2])], ANYTHING).tolist() == [
        False,
        False,
    ]
    assert calls == []


@pytest.mark.parametrize(
    ("column", "shape", "dtype"),
    [
        (pa.array([1, 2], pa.int32()), (2,), "int32"),
        (pa.array([True, False]), (2,), "bool"),
        (pa.array([1.5, 2.5], pa.float32()), (2,), "float32"),
        (pa.array(["a", "bcd"]), (2,), "object"),
        (pa.array([b"abc", b"def"]), (2, 3), "uint8"),
        (pa.array([b"xx", b"abc", b"def"]).slice(1), (2, 3), "uint8"),
        (pa.array([b"", b""]), (2, 0), "uint8"),
        (pa.array([b"abc", b"d"]), (2,), "object"),
        (pa.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), (2, 3), "float64"),
        (pa.array([[9], [1, 2], [3, 4]], pa.list_(pa.int16())).slice(1), (2, 2), "int16"),
        (pa.array([[1.0], [2.0, 3.0]]), (2,), "object"),
        (pa.array([["a"], ["b"]]), (2,), "object"),
        (pa.array([datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]), (2,), "datetime64[D]"),
    ],
)
def test_numpy_arrays_of_every_kind(column: pa.Array, shape: tuple[int, ...], dtype: str) -> None:
    given, calls = recorded(np.array([True, True]))
    scores(given, [column, column])
    assert calls[0][0].shape == shape
    assert calls[0][0].dtype == dtype
    if len(shape) == 2:
        assert [bytes(each) if dtype == "uint8" else list(each) for each in calls[0][0]] == column.to_pylist()


def test_arrow_arrays_and_constants() -> None:
    given, calls = recorded(lambda *_: pa.array([0.5, None]), returns="double", arrays="arrow")
    values, null = scores(given, [pa.array(["a", "b"]), 3, "x"])
    assert [each.to_pylist() for each in calls[0]] == [["a", "b"], [3, 3], ["x", "x"]]
    assert values.tolist() == [0.5, 0.0]
    assert null.tolist() == [False, True]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (">", [False, False, True, True]),
        (">=", [False, True, True, True]),
        ("<", [True, False, False, False]),
        ("<=", [True, True, False, False]),
        ("=", [False, True, False, False]),
        ("<>", [True, False, True, True]),
    ],
)
def test_a_score_that_is_no_number_is_above_all_others(operator: str, expected: list[bool]) -> None:
    """As Spark compares DOUBLE."""
    given, _ = recorded(np.array([0.25, 0.5, 0.75, np.nan]), returns="double")
    assert holds(given, [pa.array(range(4))], ((operator, 0.5),)).tolist() == expected


@pytest.mark.parametrize(
    ("returned", "returns", "words"),
    [
        (np.array([True]), "boolean", "returned 1 value for 2 pairs"),
        (np.zeros((2, 2)), "double", "not a column"),
        (True, "boolean", "not a column"),
        (
            np.array([0.5, 1.0]),
            "boolean",
            "returned values of type double, but is declared to return boolean",
        ),
        (np.array([True, False]), "double", "returned values of type bool, but is declared to return double"),
        (np.array(["a", "b"]), "double", "returned values of type string, but is declared to return double"),
    ],
)
def test_what_is_no_answer_is_refused(returned: Any, returns: Any, words: str) -> None:
    given, _ = recorded(returned, returns=returns)
    with pytest.raises(WJoinError) as raised:
        holds(given, [pa.array([1, 2])], ANYTHING)
    assert raised.value.code == "WJ707"
    assert "the predicate recorded" in raised.value.message
    assert words in raised.value.message


@pytest.mark.parametrize("returned", [[True, None], pa.chunked_array([[True], [None]]), (True, None)])
def test_lists_and_chunks_are_answers(returned: Any) -> None:
    given, _ = recorded(returned)
    assert holds(given, [pa.array([1, 2])], True).tolist() == [True, False]


def test_a_failure_names_the_first_pair_that_fails_alone() -> None:
    def ratio(left: Any, right: Any) -> Any:
        if (right == 0).any():
            raise ZeroDivisionError("no such ratio")
        return left / right

    with pytest.raises(PairFailedError, match="ZeroDivisionError: no such ratio") as raised:
        holds(
            Predicate("ratio", ratio, "double"), [pa.array([1, 2, 3]), pa.array([1, None, 0])], ((">", 0.5),)
        )
    assert raised.value.place == 2


def test_a_failure_of_many_pairs_at_once_names_the_first() -> None:
    def few(values: Any) -> Any:
        if len(values) > 1:
            raise MemoryError("too many")
        return values > 0

    with pytest.raises(PairFailedError, match=r"MemoryError: too many .in a call for 2 pairs") as raised:
        holds(Predicate("few", few), [pa.array([None, 1, 2])], True)
    assert raised.value.place == 1


def test_wide_arguments_come_in_several_calls() -> None:
    rows, wide = 1000, 2048
    values = np.arange(rows, dtype=np.float64)
    matrix = np.repeat(values, wide).reshape(rows, wide)
    column = pa.FixedSizeListArray.from_arrays(matrix.ravel(), wide).cast(pa.list_(pa.float64()))
    odd, calls = recorded(lambda left, right: left[:, 0] % 2 == 1)
    assert np.flatnonzero(holds(odd, [column, column], True)).tolist() == list(range(1, rows, 2))
    whole, rest = divmod(rows, CALL_PAIRS)
    assert [left.shape for left, _ in calls] == [(CALL_PAIRS, wide)] * whole + [(rest, wide)]


def test_narrow_arguments_come_in_one_call() -> None:
    odd, calls = recorded(lambda left, _: pa.array([None if one % 3 == 0 else one % 2 == 1 for one in left]))
    values = pa.array(range(10_000))
    expected = [one % 2 == 1 and one % 3 != 0 for one in range(10_000)]
    assert holds(odd, [values, values], True).tolist() == expected
    assert len(calls) == 1


def test_a_failure_in_a_later_call_names_its_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_calls, "CALL_PAIRS", 2)
    monkeypatch.setattr(pair_calls, "CACHED_BYTES", 1)

    def divided(ones: Any, others: Any) -> list[int]:
        return [int(one) // int(other) for one, other in zip(ones, others, strict=True)]

    left = pa.array([1, None, 2, 3, 4, 5])
    right = pa.array([1, 1, 1, 1, 1, 0])
    with pytest.raises(PairFailedError, match="ZeroDivisionError") as caught:
        scores(Predicate("divided", divided, "double"), [left, right])
    assert caught.value.place == 5


def test_a_function_registers_under_its_name_and_stays_callable() -> None:
    @predicate(cost_us=20, selectivity=0.25)
    def same_sign(left: Any, right: Any) -> Any:
        """Whether two numbers have one sign.

        More of it.
        """
        return left * right > 0

    try:
        assert PREDICATES["same_sign"] is same_sign
        assert known_predicates()["same_sign"] is same_sign
        assert same_sign(np.array([1, 2]), np.array([-1, 5])).tolist() == [False, True]
        assert (same_sign.summary, same_sign.arguments) == (
            "Whether two numbers have one sign.",
            "left, right",
        )
        assert [same_sign.takes(count) for count in (1, 2, 3)] == [False, True, False]
    finally:
        del PREDICATES["same_sign"]


def test_a_function_in_c_may_tell_nothing_of_itself() -> None:
    largest = Predicate("largest", max)
    assert (largest.arguments, largest.takes(7), largest.built_in) == ("…", True, False)
    greater = Predicate("greater", np.greater)
    assert (greater.takes(2), greater.takes(1), greater.built_in) == (True, False, False)
    assert holds(greater, [pa.array([1, 3]), pa.array([2, 2])], True).tolist() == [False, True]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "a b"}, "called by its name in SQL"),
        ({"returns": "int"}, "returns boolean or double"),
        ({"arrays": "pandas"}, "takes arrays of numpy or arrow"),
        ({"cost_us": 0}, "cost_us"),
        ({"cost_us": float("nan")}, "cost_us"),
        ({"selectivity": 1.5}, "selectivity"),
        ({"selectivity": 0}, "selectivity"),
    ],
)
def test_what_no_predicate_can_be(options: dict[str, Any], words: str) -> None:
    before = dict(PREDICATES)
    with pytest.raises(ValueError, match=words):
        predicate(**{"name": "never", **options})(lambda left, right: left == right)
    assert before == PREDICATES


def test_those_of_wjoin_travel_by_name() -> None:
    own = known_predicates()["jaccard_similarity"]
    sent = pickle.dumps(own)
    assert pickle.loads(sent) is own
    assert len(sent) < 200


def test_a_file_of_predicates_is_loaded(tmp_path: Path) -> None:
    """A function of the file travels by value: workers need not have the file."""
    file = tmp_path / "own.py"
    file.write_text("import wjoin\n\n@wjoin.predicate\ndef alike(left, right):\n    return left == right\n")
    try:
        load(str(file))
        sent = cloudpickle.dumps(PREDICATES["alike"])
    finally:
        PREDICATES.pop("alike", None)
    sys.modules.pop("wjoin_udf_own")
    assert pickle.loads(sent)(np.array([1, 2]), np.array([1, 3])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("text", "words"), [(None, "is not a readable Python file"), ("1 / 0", "failed: ZeroDivisionError")]
)
def test_a_file_that_cannot_be_loaded(tmp_path: Path, text: str | None, words: str) -> None:
    file = tmp_path / "broken.py"
    if text is not None:
        file.write_text(text)
    with pytest.raises(WJoinError, match=words) as raised:
        load(str(file))
    assert raised.value.code == "WJ608"
    assert str(file) in raised.value.message
