"""Long chains are planned whatever their length; what is really deep is refused, with a code and a place."""

import sys
from collections.abc import Callable
from itertools import repeat

import pytest

from tests.plans.catalogue import plan
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.statement_kinds import SparkStatement
from wjoin.planner.bind.lineage import joined_streams, query_delays
from wjoin.planner.catalog import Delay

JOIN = "FROM ticks A, ticks B WINDOW (A, B) BETWEEN 2 AND 5 WHERE A.w = B.w"

CHAINS = {
    "or": " OR ".join(f"A.v = B.v + {n}" for n in range(1000)),
    "and": " AND ".join(f"A.v <> B.v + {n}" for n in range(1000)) + " OR A.v = B.w",
    "plus": "A.v < " + " + ".join(["B.v"] * 1000),
    "sum of constants": "A.v < B.v" + " + 1" * 1000,
    "concat": "A.name LIKE " + " || ".join(["B.name"] * 1000),
    "in": f"A.v + B.v IN ({', '.join(map(str, range(1000)))})",
    "casts": "A.v < B.v" + "::int" * 1000,
    "is null": "A.v < B.v" + " IS NULL" * 1000,
}
DEEP: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: "(" * n + "A.v < B.v" + ")" * n,
    "case": lambda n: "A.v < " + "CASE WHEN B.v > 1 THEN " * n + "1" + " END" * n,
    "not": lambda n: "NOT " * n + "A.v < B.v",
    "signs": lambda n: "A.v < " + "- " * n + "B.v",
    "calls": lambda n: "A.v < " + "abs(" * n + "B.v" + ")" * n,
}


@pytest.mark.parametrize("chain", tiers(CHAINS, long=["and", "or", "concat", "casts", "is null"]))
def test_a_chain_of_a_thousand_is_planned(chain: str) -> None:
    text = CHAINS[chain]
    planned = plan(f"SELECT {text} AS found {JOIN} AND ({text})")
    assert [each.condition for each in planned.residual] == [text]


@pytest.mark.parametrize("kind", tiers(DEEP, long=["case"]))
def test_what_is_deep_is_read_or_refused_at_its_place(kind: str) -> None:
    statements = (
        f"SELECT A.v {JOIN} AND {{}}",
        f"SELECT {{}} AS found {JOIN}",
        f"SELECT A.v {JOIN} ORDER BY {{}}",
    )
    for statement in statements:
        plan(statement.format(DEEP[kind](99)))
        for depth in (102, 1500):
            deep = DEEP[kind](depth)
            text = statement.format(deep)
            with pytest.raises(WJoinError) as refused:
                plan(text)
            assert refused.value.code == "WJ114"
            assert refused.value.span is not None
            first = text.index(deep)
            assert first <= refused.value.span.start < first + len(deep)
            assert refused.value.span.of(text) in ("(", "CASE", "NOT", "-")


def inside(levels: int, act: Callable[[], object]) -> object:
    """Act inside so many calls."""
    return act() if levels == 0 else inside(levels - 1, act)


def test_a_deep_caller_reads_what_others_read() -> None:
    limit = sys.getrecursionlimit()
    for kind in DEEP.values():
        inside(600, lambda kind=kind: plan(f"SELECT A.v {JOIN} AND {kind(99)}"))
    assert sys.getrecursionlimit() == limit


def test_brackets_that_are_no_parentheses_are_refused_as_well() -> None:
    for deep in ("A.v < " + "{" * 500, "A.v < " + "EXISTS " * 500 + "(SELECT 1)", "A.v < " + "[" * 300):
        with pytest.raises(WJoinError) as refused:
            plan(f"SELECT A.v {JOIN} AND {deep}")
        assert refused.value.code in ("WJ114", "WJ210")
        assert refused.value.span is not None


def test_a_deep_statement_without_a_window_is_spark_s() -> None:
    for depth in (101, 10_000):
        assert isinstance(parse_statement(f"SELECT {'(' * depth}1{')' * depth} AS window"), SparkStatement)


@pytest.mark.parametrize("depth", tiers([99, 2000], long=[2000]))
def test_delays_of_deep_queries(depth: int) -> None:
    declared = {"s": {"ts": Delay(5)}}
    nested = "(SELECT * FROM " * depth + "s" + ")" * depth
    known = query_delays(f"SELECT * FROM {nested}", declared, lambda name: False)
    assert known == ({"ts": Delay(5)} if depth == 99 else {}), "what is too deep has no known delay"
    union = " UNION ALL ".join(repeat("SELECT ts FROM s", depth))
    assert query_delays(union, declared, lambda name: False) == {}


def test_many_joins_without_a_condition_take_no_time() -> None:
    declared = {"s": {"ts": Delay(5)}}
    for join in ("JOIN", "NATURAL JOIN", "LEFT JOIN", "CROSS JOIN", ","):
        joined_streams("SELECT * FROM s" + f" {join} t" * 40, declared)
    on = "SELECT * FROM s" + " JOIN t ON s.a = t.a" * 40
    (joined,) = joined_streams(on + " JOIN s AS other ON s.a = other.a", declared)
    assert joined.names == ("s", "other")


@pytest.mark.parametrize(
    "condition",
    [
        *(f"similar(A.name, B.name) < {number}" for number in ("1e", "1e400", "9" * 400, "9" * 5000, ":big")),
        *(f"A.v < B.v + {number}" for number in ("1e", "1e999999999", "9" * 5000, "9" * 400 + ".5", ":big")),
        "A.v < A.w + CAST('1e' AS DOUBLE) * B.v",
    ],
)
def test_numbers_out_of_reach_are_left_to_spark(condition: str) -> None:
    planned = plan(f"SELECT A.v {JOIN} AND {condition}", {"big": 10**400})
    assert [each.condition for each in planned.residual] == [condition]


@pytest.mark.parametrize(
    "clause", ["GROUP BY (A.v)", "ORDER BY (A.v)", "DISTRIBUTE BY (A.v)", "CLUSTER BY (A.v)"]
)
def test_by_is_no_function(clause: str) -> None:
    plan(f"SELECT A.v {JOIN} {clause}")
