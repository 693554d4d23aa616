"""Predicates in the join, and by Spark where it cannot be the join: DuckDB's functions have the say."""

import itertools
import random
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import wjoin
from tests.kit.check import assert_batch, assert_stream
from tests.kit.expressions import Call, Compare, Expression, Field, Literal, equal
from tests.kit.statement import Both, Pair, Statement, Style
from tests.kit.tables import SECOND, events, statement
from tests.tiers import tiers
from wjoin.udfs.built_in import known_predicates
from wjoin.udfs.predicate import PREDICATES, Predicate, predicate

pytestmark = pytest.mark.thorough

VECTOR = pa.list_(pa.float64())


@pytest.fixture(autouse=True)
def named_as_in_duckdb() -> Iterator[None]:
    """Give predicates the names under which DuckDB has functions of its own."""
    known = known_predicates()
    of = {"editdist3": known["edit_distance"], "list_distance": known["euclidean_distance"]}
    named = {
        name: Predicate(name, each.function, each.returns, each.arrays, cost_us)
        for (name, each), cost_us in zip(of.items(), (5, 2), strict=True)
    }
    with patch.dict(PREDICATES, named):
        yield


def rows(seed: int, first: int, seconds: int) -> pa.Table:
    """Thirty rows out of order, with NULLs: a key, a text and a vector."""
    chance = random.Random(seed)
    texts = ["", "abc", "abd", "bcd", "xyz", None]
    made = [
        (
            first + n,
            chance.randrange(seconds * SECOND),
            chance.randrange(3),
            chance.choice(texts),
            chance.choice([None, [chance.random(), chance.random()], [0.5, 0.5]]),
        )
        for n in range(30)
    ]
    return events(made, "k", "s", "v", types=(pa.int64(), pa.string(), VECTOR))


def alike(first: str, second: str, limit: int = 1) -> Compare:
    return Compare(Call("editdist3", (Field(first, "s"), Field(second, "s"))), "<=", Literal(limit))


def near(first: str, second: str) -> Compare:
    distance = Call("list_distance", (Field(first, "v"), Field(second, "v")))
    return Compare(Literal(1), ">", Call("*", (Literal(1), distance)))


CASES: dict[str, tuple[str, tuple[Expression, ...]]] = {
    "two": ("AB", (alike("A", "B"),)),
    "two with more": (
        "AB",
        (alike("A", "B"), near("A", "B"), Compare(Field("A", "k"), "<=", Field("B", "k"))),
    ),
    "three": ("ABC", (alike("A", "B"), alike("A", "C", 2), equal(Field("B", "k"), Field("C", "k")))),
    "three without a key": ("ABC", (alike("A", "B", 0), alike("C", "B"))),
    "two stages": (
        "ABC",
        (
            equal(Field("A", "k"), Field("B", "k")),
            equal(Field("B", "s"), Field("C", "s")),
            alike("A", "C", 2),
        ),
    ),
}
HINTS = [
    *itertools.product(["ALGORITHM(MW)", "ALGORITHM(NLW)"], ["BOUNDS(EXACT)", "BOUNDS(GCA)"]),
    ("PLAN(PSP)",),
    ("PLAN(CTR)",),
    ("PLAN(ATR)",),
]


def made(case: str, delay: int = 0) -> Statement:
    aliases, where = CASES[case]
    window = Both(tuple(Pair("A", each, 4 * SECOND) for each in aliases[1:]))
    return statement(aliases, window, *where, delay=delay)


def applicable(case: str) -> list[tuple[str, ...]]:
    """The hints that a case can have: slices where some stage has no key."""
    return HINTS[:4] if case == "two stages" else HINTS


@pytest.mark.parametrize("case", CASES)
def test_in_batch(session: Any, case: str) -> None:
    whole = made(case)
    tables = {alias: rows(n, 100 * n, 10) for n, alias in enumerate(whole.aliases)}
    for hints in applicable(case):
        assert assert_batch(session, whole, tables, Style(hints=hints)).total() > 20, hints


@pytest.mark.parametrize("case", tiers(CASES, long=["two stages"]))
def test_on_a_stream(session: Any, case: str) -> None:
    whole = made(case, delay=10 * SECOND)
    batches = [
        {alias: rows(10 * batch + n, 1000 * batch + 100 * n, 10) for n, alias in enumerate(whole.aliases)}
        for batch in range(3)
    ]
    for hints in applicable(case)[:: 3 if case == "two" else 2]:
        run = assert_stream(session, whole, batches, Style(hints=hints), restarts=(1,))
        assert run.bag.total() > 20, hints


@pytest.fixture
def pictures(session: Any) -> Any:
    """Two tables of pictures of three bytes, which a statement may call A and B."""
    for name, values in (("lefts", [b"\0\0\0", b"\xff\0\0", None]), ("rights", [b"\0\0\1", b"\xff\xff\xff"])):
        made = ((n, n * SECOND, each) for n, each in enumerate(values))
        session.stream(name, session.spark.createDataFrame(events(made, "p", types=(pa.binary(),))), "ts")
    return session


WINDOW = "FROM lefts A, rights B WINDOW = 1 MINUTE WHERE"


def found(session: Any, text: str, **parameters: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in session.sql(text, **parameters).collect())


@pytest.mark.long
def test_a_predicate_of_ones_own_is_called_once_for_a_pair(pictures: Any, tmp_path: Any) -> None:
    calls = tmp_path / "calls"

    @predicate(cost_us=100, selectivity=0.5)
    def darker(left: Any, right: Any) -> Any:
        with calls.open("a") as file:
            file.write(f"{len(left)} {left.shape}\n")
        return left.sum(axis=1) < right.sum(axis=1)

    try:
        text = f"SELECT A.id, B.id {WINDOW} darker(A.p, B.p) AND A.id >= B.id"
        assert found(pictures, text) == [(0, 0), (1, 1)]
    finally:
        del PREDICATES["darker"]
    assert sum(int(line.split()[0]) for line in calls.read_text().splitlines()) == 3


def test_event_times_are_times(pictures: Any) -> None:
    @predicate
    def a_second_later(left: Any, right: Any, most: Any) -> Any:
        return (right - left == np.timedelta64(1, "s")) & (most == 7)

    try:
        text = f"SELECT A.id, B.id {WINDOW} a_second_later(A.ts, B.ts, 7)"
        assert found(pictures, text) == [(0, 1)]
    finally:
        del PREDICATES["a_second_later"]


def test_spark_calls_what_a_join_does_not_decide(pictures: Any) -> None:
    similar = "rgb_similarity(A.p, B.p)"
    listed = f"SELECT A.id, B.id, round({similar}, 2) AS s {WINDOW} A.id >= 0 AND B.id >= 0"
    assert found(pictures, f"{listed} AND ({similar} > 0.5 OR A.id = B.id)") == [
        (0, 0, 1.0),
        (1, 0, 0.67),
        (1, 1, 0.33),
    ]
    assert found(pictures, "SELECT id FROM lefts WHERE rgb_similarity(p, p) = 1") == [(0,), (1,)]
    assert found(pictures, f"SELECT A.id, B.id {WINDOW} {similar} BETWEEN :low AND 0.9", low=0.5) == [(1, 0)]
    assert found(pictures, "SELECT same_set(array(1, 2), array(2, 1, 1)) AS s") == [(True,)]


@pytest.mark.long
def test_what_fails_is_told_with_its_rows(pictures: Any) -> None:
    @predicate
    def brittle(left: Any, right: Any) -> Any:
        if (left[:, 0] == 255).any():
            raise ArithmeticError("too bright")
        return left[:, 0] == right[:, 0]

    text = f"SELECT A.id {WINDOW} brittle(A.p, B.p)"
    try:
        with pytest.raises(PySparkException, match="WJ706") as raised:
            pictures.sql(text).collect()
    finally:
        del PREDICATES["brittle"]
    told = str(raised.value)
    assert (
        "the predicate brittle failed for the rows of A at 2026-01-01 00:00:01.000000 UTC and B at " in told
    )
    assert f" in {text}: ArithmeticError: too bright" in told


def test_predicates_are_listed(session: Any) -> None:
    listed = {row["name"]: row for row in session.sql("SHOW PREDICATES").collect()}
    assert {"rgb_similarity", "haversine_km", "token_ratio"} <= listed.keys()
    own = listed["same_set"]
    assert (own["arguments"], own["returns"], own["cost_us"]) == ("left, right", "BOOLEAN", 2.0)


def test_a_function_of_sparks_keeps_its_name(session: Any) -> None:
    text = "SELECT editdist3('a', 'b') AS d"
    session.spark.udf.register("token_ratio", lambda left, right: 7, "int")
    try:
        assert found(session, "SELECT token_ratio('a', 'b') AS r") == [(7,)]
    finally:
        session.spark.sql("DROP TEMPORARY FUNCTION token_ratio")
    assert found(session, text) == [(1.0,)]
    with patch.dict(PREDICATES, {"abs": Predicate("abs", np.abs)}):
        with pytest.raises(wjoin.WJoinError, match="a Spark function is already named") as raised:
            session.sql("SELECT abs(1)")
        assert raised.value.code == "WJ606"
