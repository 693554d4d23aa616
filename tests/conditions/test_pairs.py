"""Conditions tested on pairs: what they keep, in blocks and one by one, and where numbers end."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conditions.reading import TYPES, read
from wjoin.executor import sifting
from wjoin.executor.conditions import prepared
from wjoin.executor.sifting import Sieve, sifted, worth_sifting
from wjoin.parts.kernels.candidates import Candidates
from wjoin.planner.conditions.expressions import is_exact
from wjoin.planner.conditions.readable import ReadCondition, Unread

ARROW = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "decimal(20,6)": pa.decimal128(20, 6),
    "decimal(38,0)": pa.decimal128(38, 0),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
CONDITIONS = (
    "a.i > b.i AND a.d < b.d - 0.95",
    "a.i + b.l * 1000 > 1900",
    "a.d * b.d > 0.5 OR a.s = b.s",
    "NOT (a.i = b.i) AND (a.b OR b.s < 'm')",
    "a.s <=> b.s OR a.l BETWEEN b.i - 3 AND b.i + 3",
    "greatest(a.i, b.i) - least(a.i, b.i) < 4",
    "coalesce(a.d, b.d) IN (0.5, 1.5, b.d)",
    "startswith(a.s, 'a') AND b.d IS NOT NULL",
)


def columns(condition: ReadCondition, tables: dict[str, dict[str, list[Any]]]) -> list[pa.Array]:
    return [
        pa.array(tables["ab"[each.stream]][each.column.name], ARROW[each.column.type])
        for each in condition.columns
    ]


def known(text: str) -> ReadCondition:
    found = read(text)
    assert isinstance(found, ReadCondition), found
    return found


SMALL = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-4, 4),
        "l": st.none() | st.integers(-4, 4),
        "d": st.none() | st.sampled_from([-1.5, 0.0, 0.5, 1.5, float("nan"), float("inf")]),
        "s": st.none() | st.text("abmz", max_size=2),
        "b": st.none() | st.booleans(),
    }
)


@given(
    st.sampled_from(CONDITIONS),
    st.lists(SMALL, min_size=1, max_size=9),
    st.lists(SMALL, min_size=1, max_size=9),
    st.data(),
)
def test_blocks_keep_what_single_pairs_keep(
    text: str, left: list[dict[str, Any]], right: list[dict[str, Any]], data: st.DataObject
) -> None:
    condition = known(text)
    tables = {
        name: {column: [row[column] for row in rows] for column in SMALL_COLUMNS}
        for name, rows in (("a", left), ("b", right))
    }
    own = columns(condition, tables)
    of_rows = tuple(each.stream == 1 for each in condition.columns)
    ranges = [sorted(data.draw(st.tuples(*[st.integers(0, len(right))] * 2))) for _ in left]
    given_ranges = [(n, first, last) for n, (first, last) in enumerate(ranges) if first < last]
    if not given_ranges:
        return
    found = Candidates(*(np.array(each, np.int64) for each in zip(*given_ranges, strict=True)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sifting, "TUPLES", data.draw(st.integers(1, 4)))
        patch.setattr(sifting, "ROWS", data.draw(st.integers(1, 4)))
        kept = sifted([Sieve(prepared(condition.expression, own), of_rows)], found)
    tuples, rows = found.expand()
    pairs = [each.take(pa.array(rows if row else tuples)) for each, row in zip(own, of_rows, strict=True)]
    test = prepared(condition.expression, pairs)
    mask = np.broadcast_to(test.at(test.inputs), len(tuples))
    wanted = sorted(zip(tuples[mask].tolist(), rows[mask].tolist(), strict=True))
    assert list(zip(kept.tuples.tolist(), kept.first.tolist(), strict=True)) == wanted
    assert (kept.last == kept.first + 1).all()


SMALL_COLUMNS = ("i", "l", "d", "s", "b")


@pytest.mark.parametrize(
    ("text", "a", "b", "kept"),
    [
        # Where Spark fails or begins anew, Spark shall say it.
        ("a.l + b.l > 0", [2**63 - 1, 1, -1], [1, 1, -1], [True, True, False]),
        ("a.l * b.l < 0", [2**62, 3, 3], [4, 4, -4], [True, False, True]),
        ("a.i + b.i < 0", [2**31 - 1, 1, -2], [1, 1, 1], [True, False, True]),
        ("a.y - b.y > 0", [-128, 1, 0], [127, 0, 1], [True, True, False]),
        ("abs(a.l) + b.l < 0", [-(2**63), 1, 1], [0, 1, -5], [True, False, True]),
        ("a.i / b.i > 1", [1, 3, 1], [0, 2, 2], [True, True, False]),
        ("a.i % b.i = 1", [1, 3, -3], [0, 2, 2], [True, True, False]),
        # NaN is above all numbers, and equal to itself.
        ("a.d > b.d", [float("nan"), 1.0, 1.0], [1.0, float("nan"), 0.5], [True, False, True]),
        ("sqrt(a.d) < b.d", [-1.0, 4.0, 4.0], [1.0, 1.0, 3.0], [False, False, True]),
        # NULL is not true, nor is its opposite.
        ("NOT (a.i = b.i)", [None, 1, 1], [1, 1, 2], [False, False, True]),
        ("a.i = b.i OR a.i IS NULL", [None, 1, 1], [1, 1, 2], [True, True, False]),
        ("a.i <=> b.i", [None, None, 1], [None, 1, 1], [True, False, True]),
        ("NOT (a.i <=> b.i)", [None, None, 1], [None, 1, 1], [False, True, False]),
        ("'x' IS NULL OR a.i > b.i", [None, 2, 1], [1, 1, 2], [False, True, False]),
        # As FLOAT, which Spark may make of it, the first whole number is the other side.
        (
            "abs(a.i - b.f) < 0.5",
            [1_700_000_001, 1_700_000_000, 5],
            [1.7e9, 1.7e9, 1.7e9],
            [True, True, False],
        ),
        # The sign is a part of the number: an INT, which the sum may leave.
        ("a.i + -2147483648 > b.i", [-1, 0, 0], [0, 0, 0], [True, False, False]),
        ("sqrt(abs(a.d)) > b.d", [float("nan"), 4.0, 4.0], [5.0, 1.0, 3.0], [True, True, False]),
        # What does not fit its type, Spark shall say; what is not evaluated, it does not say.
        ("CAST(a.l AS INT) > b.i", [2**31, 2, 1], [5, 1, 1], [True, True, False]),
        ("CAST(a.d AS BIGINT) = b.l", [1.9, -1.9, 1e300, float("nan")], [1, -1, 0, 0], [True] * 4),
        ("CAST(a.d AS BIGINT) = b.l", [1.9, -1.9, 2.0, None], [2, -2, 1, 0], [False] * 4),
        (
            "CASE WHEN b.l <> 0 THEN a.l / b.l > 1 ELSE b.l > 5 END",
            [1, 3, 1, 9],
            [0, 2, 2, None],
            [False, True, False, False],
        ),
        (
            "CASE WHEN a.l + b.l > 0 THEN a.l ELSE -1 END = -1",
            [2**63 - 1, 1, -1],
            [1, 1, 0],
            [True, False, True],
        ),
        ("nullif(a.i, b.i) IS NULL", [1, 2, None], [1, 1, 1], [True, False, True]),
        (
            "if(a.b, b.b, b.b IS NULL)",
            [True, None, False, None],
            [None, None, True, False],
            [False, True, False, False],
        ),
        ("a.t + b.i > DATE '2024-01-01'", [19000, 20000, 20000], [2**31 - 1, 1, -5000], [True, True, False]),
    ],
)
def test_what_cannot_be_known_is_kept(text: str, a: list[Any], b: list[Any], kept: list[bool]) -> None:
    condition = known(text)
    tables = {"a": dict.fromkeys(TYPES, a), "b": dict.fromkeys(TYPES, b)}
    test = prepared(condition.expression, columns(condition, tables))
    assert test.at(test.inputs).tolist() == kept


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("upper(a.s) = b.s", "upper(string)"),
        ("a.i = b.s", "int = string"),
        ("a.t > b.ts", "date > timestamp"),
        ("CASE WHEN a.b THEN b.i ELSE a.s END > 1", "CASE with several types"),
        ("CAST(a.s AS INT) > b.i", "CAST of string to int"),
        ("CAST(a.t AS TIMESTAMP) > b.ts", "CAST of date to timestamp"),
        ("CAST(a.ts AS TIMESTAMP) > b.ts", "CAST of timestamp to timestamp"),
        ("a.ts - b.ts < INTERVAL 3 SECONDS", "timestamp - timestamp"),
        ("a.ts + INTERVAL 1 DAY > b.ts", "timestamp + interval day to second"),
        ("a.ts + INTERVAL '1:30' HOUR TO MINUTE > b.ts", "an INTERVAL of another unit, or of several"),
        ("a.t + INTERVAL 24 HOURS > b.t", "date + interval day to second"),
        ("datediff(a.ts, b.ts) > 1", "DATEDIFF of other types than two dates"),
        ("a.s LIKE 'a_' OR b.b", "LIKE other than a column and a constant pattern of % only"),
        ("a.s LIKE b.s", "LIKE other than a column and a constant pattern of % only"),
        ("a.ts > TIMESTAMP '2024-01-01 00:00:00' AND b.b", "CAST to timestamp"),
        ("a.n > TIMESTAMP_NTZ '2024-01-01 00:00:00Z' AND b.b", "CAST to timestamp_ntz"),
        ("a.u > b.w", "decimal(38,0) > decimal(20,6)"),
        ("a.m / b.m > 1", "decimal(10,2) / decimal(10,2)"),
        ("(a.i > b.i) IS NULL", "IS NULL of a condition"),
        ("(a.i > b.i) = a.b", "= of conditions"),
        ("a.l IN (b.l, 0.5D)", "IN with several types"),
        ("a.f + 0.1F > b.f", "CAST to float"),
        ("a.i + b.i < 99999999999999999999", "a number outside BIGINT"),
        ("a.d > b.d * 1e3", "a number with an exponent"),
        ("a.t > b.t AND a.t > CAST('20240101' AS DATE)", "CAST to date"),
    ],
)
def test_what_spark_alone_evaluates_is_told(text: str, what: str) -> None:
    assert read(text) == Unread(what)


def test_many_values_and_terms_are_no_deeper_than_few() -> None:
    many = ", ".join(map(str, range(1000)))
    terms = " OR ".join(f"a.i = b.i + {number}" for number in range(400))
    for text in (f"a.i + b.i IN ({many})", terms):
        condition = known(text)
        test = prepared(condition.expression, [pa.array([5, -5]), pa.array([1, 1])])
        assert test.at(test.inputs).tolist() == [True, False]
    assert read("(" * 30 + "a.i" + " + 1)" * 30 + " > b.i") == Unread("a very deep expression")


def test_only_dense_candidates_are_worth_blocks() -> None:
    count = 1000
    tuples = np.arange(count)
    everything = Candidates(tuples, np.zeros(count, np.int64), np.full(count, 500))
    assert worth_sifting(everything)
    apart = Candidates(tuples, tuples * 1000, tuples * 1000 + 5)
    assert not worth_sifting(apart)
    before = Candidates(tuples, np.zeros(count, np.int64), np.random.default_rng(1).permutation(count) + 1)
    assert worth_sifting(before)


def test_all_pairs_of_edges_keep_their_order() -> None:
    """What is kept is in the order of tuples, then of rows, whatever the order of the blocks."""
    condition = known("a.i <> b.i")
    left, right = [3, 1, 2, 0] * 40, list(range(4)) * 40
    own = [pa.array(left, pa.int32()), pa.array(right, pa.int32())]
    found = Candidates(np.arange(160), np.arange(160) // 2, np.arange(160) // 2 + 70)
    kept = sifted([Sieve(prepared(condition.expression, own), (False, True))], found)
    expected = [
        (n, row)
        for n, row in itertools.product(range(160), range(160))
        if n // 2 <= row < n // 2 + 70 and left[n] != right[row]
    ]
    assert list(zip(kept.tuples.tolist(), kept.first.tolist(), strict=True)) == expected


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("a.d > b.d", True),
        ("abs(a.d - b.d) < 2.5", True),
        ("a.s < b.s OR a.i IS NULL", True),
        ("a.i IN (b.i, 3)", True),
        ("a.m > b.m", True),
        ("a.f > b.d AND a.f < 2 * b.d", True),
        ("a.f + 1.5 > b.f", True),
        ("NOT (a.i = b.i + 0.5 AND a.m = 1)", True),
        ("a.f = b.y OR a.f IN (b.f, 7)", True),
        ("a.f > b.i", False),
        ("a.f * 2 > b.f", False),
        ("NOT (a.i = b.i AND a.f <> 16777217)", False),
    ],
)
def test_what_can_be_decided_is_told(text: str, exact: bool) -> None:
    assert is_exact(known(text).expression) is exact


def test_only_what_spark_alone_knows_is_undecided() -> None:
    condition = known("a.l + b.l > 0 AND a.d >= b.d")
    tables = {
        "a": {**dict.fromkeys(TYPES, [None] * 4), "l": [2**63 - 1, 1, -5, None], "d": [float("nan")] * 4},
        "b": {**dict.fromkeys(TYPES, [None] * 4), "l": [1, 1, 1, 1], "d": [float("nan"), 1.0, 1.0, 1.0]},
    }
    test = prepared(condition.expression, columns(condition, tables))
    assert test.undecided().tolist() == [True, False, False, False]
    assert test.at(test.inputs).tolist() == [True, True, False, False]
