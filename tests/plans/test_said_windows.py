"""Joins without a window clause have the windows that they have with one."""

import itertools

import pytest

from tests.kit.said import plan_said
from tests.results.said import OF_THREE, STATEMENTS, Said
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.statement_kinds import Query, SparkStatement
from wjoin.planner.catalog import Column, Delay, Relation
from wjoin.planner.conditions.conjuncts import Residual
from wjoin.planner.request import NoWindows
from wjoin.planner.windows.closure import Branch


def stream(time: str, kind: str) -> Relation:
    columns = (Column("id", "int"), Column(time, kind), Column("n", "int"))
    return Relation(columns, time, {time: Delay(0)}, True)


STREAMS = {
    **{name: stream("ts", "timestamp") for name in ("imp", "clk", "buy")},
    **{f"{name}_n": stream("ts", "timestamp_ntz") for name in ("imp", "clk")},
    **{name: stream("t", "bigint") for name in ("ta", "tb")},
}
PLAIN = [each for each in STATEMENTS if "FROM (" not in each.words and "WITH " not in each.words]
JOIN = "SELECT I.n, C.n FROM imp I JOIN clk C ON I.id = C.id"


@pytest.mark.parametrize("said", PLAIN, ids=lambda said: said.name)
def test_windows(said: Said) -> None:
    words, form = plan_said(said.words, STREAMS), plan_said(said.form, STREAMS)
    assert words.graph.windows == form.graph.windows
    assert words.physical.kind is form.physical.kind
    kept = [each.text for each in form.bound.conjuncts if isinstance(each, Residual)]
    if not words.bound.tree.joins:
        assert [each.text for each in words.bound.conjuncts if isinstance(each, Residual)] == kept


def of(branch: Branch, first: int, second: int) -> int:
    """The bound between two streams; all have one here."""
    found = branch.windows.between(first, second)
    assert found is not None
    return found


def test_a_window_of_three_goes_by_the_later_time_of_the_first_two() -> None:
    words, form = (plan_said(each, STREAMS).graph for each in (OF_THREE.words, OF_THREE.form))
    assert words.windows == form.windows
    second = 1_000_000
    for times in itertools.product(range(-6, 7), repeat=2):
        first, click, buy = 0, *(each * second for each in times)
        inside = abs(click) <= 2 * second and -second <= buy - max(first, click) <= 3 * second
        apart = [*enumerate((first, click, buy))]
        found = any(
            all(later - time <= of(each, i, j) for i, time in apart for j, later in apart)
            for each in words.branches
        )
        assert found == inside


UNBOUNDED = {
    f"{JOIN} AND C.ts >= I.ts": "C can be any time after I",
    f"{JOIN} AND C.ts <= I.ts": "I can be any time after C",
    f"{JOIN} AND C.ts = I.ts JOIN buy P ON P.id = C.id": "the times of I and P are apart",
    f"{JOIN} AND C.ts = I.ts LEFT JOIN buy P ON P.id = C.id AND P.ts > C.ts": "P can be any time after I",
}


@pytest.mark.parametrize("sql", UNBOUNDED)
def test_what_is_left_unbounded_is_named_with_the_line_to_write(sql: str) -> None:
    with pytest.raises(WJoinError, match=UNBOUNDED[sql]) as refused:
        plan_said(sql, STREAMS)
    assert refused.value.code == "WJ308"
    line = refused.value.help.removeprefix("add AND ").split(", or ")[0]
    if "LEFT" not in sql:
        plan_said(f"{sql} AND {line}", STREAMS)


def test_a_join_without_a_condition_on_times_is_no_window_join() -> None:
    with pytest.raises(NoWindows):
        plan_said(JOIN, STREAMS)


def test_only_joins_of_streams_are_looked_for() -> None:
    names = frozenset(STREAMS)
    assert isinstance(parse_statement("SELECT * FROM a, b WHERE a.ts = b.ts", names), SparkStatement)
    assert isinstance(parse_statement("SELECT * FROM imp, b WHERE imp.ts = b.ts"), SparkStatement)
    assert isinstance(parse_statement("SELECT * FROM imp WHERE ts > 'a, b'", names), SparkStatement)
    found = parse_statement("SELECT * FROM `imp`, (SELECT * FROM clk, buy) AS b WHERE imp.ts = b.ts", names)
    assert isinstance(found, Query)
    assert [each.implicit for each in (*found.blocks, *found.blocks[0].nested)] == [True, True]


def test_a_condition_of_an_outer_join_is_a_window_of_that_join_only() -> None:
    left = f"{JOIN.replace('JOIN', 'LEFT JOIN')} AND C.ts BETWEEN I.ts AND I.ts + INTERVAL 5 SECONDS"
    plain = plan_said(left, STREAMS)
    # WHERE decides after the join, where one side may be missing.
    assert plan_said(f"{left} WHERE C.ts > I.ts", STREAMS).graph.windows == plain.graph.windows
    three = f"{JOIN} AND C.ts = I.ts LEFT JOIN buy P ON P.ts = C.ts AND I.ts < C.ts WINDOW = 1 MINUTE"
    assert plan_said(three, STREAMS).graph.windows.between(0, 1) == 0
