"""Joins of three to five streams without a key, and with a hot one, on Spark: by every route."""

import random
from dataclasses import replace
from itertools import combinations, pairwise, product
from typing import Any

import pyarrow as pa
import pytest

from tests.kit.check import assert_stream
from tests.kit.expressions import AnyOf, Call, Compare, Expression, Field, IsNull, Literal, equal
from tests.kit.lateness import surviving
from tests.kit.statement import Both, Pair, Statement, Style
from tests.kit.tables import SECOND, events, statement
from tests.tiers import tiers
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.choose.choice import PLANS

pytestmark = pytest.mark.thorough

WORDS = [
    word
    for word, parts in PLANS.items()
    if "ROUTE" in parts and not (ROUTES[parts["ROUTE"]].values or ROUTES[parts["ROUTE"]].heaviest)
]
"""The words of the hint PLAN that ask for a route of any condition."""


def hints_of(route: str) -> tuple[str, ...]:
    """Return the hint that asks for a route; none for what the planner takes by itself."""
    return (f"PLAN({route})",) if route in WORDS else ()


def rows(seed: int, first: int, begin: int, count: int) -> pa.Table:
    """Rows over ten seconds, out of order: a key that most of them have, and values with NULLs."""
    chance = random.Random(seed)
    made = [
        (
            first + n,
            (begin + chance.randrange(10)) * SECOND + chance.randrange(SECOND),
            chance.choice([0, 0, 0, 0, 1, 2, 3]),
            chance.randrange(2),
            chance.choice([0, 1, 2, 3, 4, 5, None]),
        )
        for n in range(count)
    ]
    return events(made, "k", "m", "v")


def linked(first: str, second: str, number: int) -> Expression:
    """Return a condition on two streams, each time another one."""
    left, right = Field(first, "v"), Field(second, "v")
    difference = Call("-", (left, right))
    choices: list[Expression] = [
        Compare(Call("abs", (difference,)), "<=", Literal(1)),
        Compare(left, "<", right),
        AnyOf((Compare(left, ">", right), IsNull(right))),
        Compare(Call("+", (left, Call("*", (right, Literal(2))))), "<", Literal(6)),
    ]
    return choices[number % len(choices)]


def chain(aliases: str) -> Statement:
    """Return a join without a key that links each stream with the next one; FROM has another order."""
    where = [linked(*pair, number) for number, pair in enumerate(pairwise(aliases))]
    return joined(aliases, where)


def joined(aliases: str, where: list[Expression]) -> Statement:
    windows = tuple(Pair(*pair, 2 * SECOND) for pair in pairwise(aliases))
    return statement("".join(sorted(aliases)), Both(windows), *where, delay=3 * SECOND)


def batches(whole: Statement, count: int) -> list[dict[str, pa.Table]]:
    """Return three micro-batches that overlap in event time, so that some rows are late."""
    return [
        {
            alias: rows(10 * batch + n, 1000 * batch + 100 * n, 6 * batch, count)
            for n, alias in enumerate(whole.aliases)
        }
        for batch in range(3)
    ]


def assert_all(session: Any, whole: Statement, hints: tuple[str, ...], count: int, least: int) -> None:
    given = batches(whole, count)
    late = sum(sum(left.late) for left in surviving(whole, given).values())
    assert late > 0, "some rows come too late"
    run = assert_stream(session, whole, given, Style(hints=hints), restarts=(1,))
    assert run.bag.total() >= least


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("aliases", "route"),
    tiers(
        product(["BAC", "CADB", "DBEAC"], ["single", *WORDS]), quick=[("BAC", "PSP")], long=[("DBEAC", "ATR")]
    ),
)
def test_without_a_key(session: Any, aliases: str, route: str) -> None:
    count = {3: 20, 4: 12, 5: 9}[len(aliases)]
    assert_all(session, chain(aliases), hints_of(route), count, 20)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("aliases", "workers"), [("BAC", ", 3"), ("CADB", ""), ("DBEAC", ", 3")])
def test_in_hops(session: Any, form: str, aliases: str, workers: str) -> None:
    if workers:
        session.spark.conf.set("spark.sql.shuffle.partitions", "8")
    count = {3: 20, 4: 12, 5: 9}[len(aliases)]
    whole = chain(aliases)
    if form.startswith("at once"):
        # It takes a condition between every two streams.
        apart = [pair for pair in combinations(aliases, 2) if pair not in set(pairwise(aliases))]
        differ = [Compare(Field(one, "id"), "<>", Field(other, "id")) for one, other in apart]
        whole = replace(whole, where=(*whole.where, *differ))
    assert_all(session, whole, (f"PLAN(PSP{workers})",), count, 20)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("route", ["hash", *WORDS])
def test_with_a_hot_key(session: Any, route: str) -> None:
    """Two stages with a key each, most of whose rows would be one worker's."""
    where: list[Expression] = [
        equal(Field("A", "k"), Field("B", "k")),
        equal(Field("B", "m"), Field("C", "m")),
        Compare(Field("A", "v"), "<=", Field("C", "v")),
    ]
    assert_all(session, joined("ABC", where), hints_of(route), 20, 100)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("keyed", [False, True], ids=["without a key", "with a hot key"])
def test_by_ranges_of_values(session: Any, keyed: bool) -> None:
    session.spark.conf.set("spark.sql.shuffle.partitions", "8")
    where = [linked(*pair, 0) for pair in pairwise("CBA")]
    if keyed:
        where += [equal(Field("A", "k"), Field("B", "k")), equal(Field("B", "m"), Field("C", "m"))]
    assert_all(session, joined("CBA", where), ("PLAN(RANGE, 5)",), 20, 20)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("word", WORDS)
def test_on_more_workers_than_cores(session: Any, word: str) -> None:
    session.spark.conf.set("spark.sql.shuffle.partitions", "8")
    assert_all(session, chain("BAC"), (f"PLAN({word}, 3)",), 20, 20)
