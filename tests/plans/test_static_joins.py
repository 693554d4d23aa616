"""Static tables in blocks whose joins are not all inner ones: joined after the streams, in which order."""

from dataclasses import replace

import pytest

from tests.kit.planned import plan_over, stream_of
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import JoinKind
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.stage_kinds import Join
from wjoin.planner.plan.to_come import lags
from wjoin.udfs.predicate import Predicate

SECOND = 1_000_000
STREAM = stream_of({"k": "bigint", "v": "bigint"})
DATED = replace(STREAM, streaming=False)
TABLE = replace(DATED, columns=DATED.columns[1:], event_time=None, delays={})
RELATIONS = {"s": STREAM, "v": DATED, "d": TABLE}


def plan(text: str, kinds: str) -> PhysicalPlan:
    """Plan a block over streams ``s``, tables with a time ``v`` and tables without one ``d``, as in FROM."""
    return plan_over(text, [RELATIONS[each] for each in kinds]).physical


def order(physical: PhysicalPlan) -> list[tuple[int, JoinKind]]:
    return [(each.stream, each.kind) for each in physical.lookups]


def test_tables_are_joined_after_the_streams_in_order() -> None:
    found = plan(
        """SELECT A.v FROM a A LEFT JOIN d D ON A.v = D.v JOIN e E ON E.v = D.v LEFT JOIN b B ON A.k = B.k
           ANTI JOIN f F ON F.v = B.v WINDOW (A, B) = 1 SECOND""",
        "sddsd",
    )
    assert order(found) == [(1, JoinKind.LEFT), (2, JoinKind.INNER), (4, JoinKind.ANTI)]
    assert found.optional == {3}
    assert found.staged == (0, 3)
    assert {stream for stream, _ in found.outputs[0].columns} == {0, 1, 2, 3}


def test_only_inner_joins_with_tables_leave_the_plan_of_the_streams() -> None:
    text = "SELECT A.v FROM a A JOIN b B ON A.k = B.k {} WINDOW (A, B) = 1 SECOND"
    plain, left = (
        plan(text.format(""), "ss"),
        plan(text.format("LEFT JOIN d D ON A.v = D.v AND A.k > 3"), "ssd"),
    )
    assert left.optional == plain.optional == frozenset()
    assert left.kind is JoinKind.INNER
    assert len(left.stages) == len(plain.stages)
    assert left.outputs[0].match_delay == plain.outputs[0].match_delay
    # A condition of its ON is no filter of the stream.
    assert left.streams[0].filters == ()
    assert left.lookups[0].comparisons == ("A.k > 3",)


def test_inner_joins_in_a_row_begin_with_what_a_condition_links() -> None:
    found = plan(
        """SELECT A.v FROM a A, d D, e E LEFT JOIN b B ON A.k = B.k WINDOW (A, B) = 1 SECOND
           WHERE A.v = E.v AND E.k = D.k""",
        "sdds",
    )
    assert [each.stream for each in found.lookups] == [2, 1]
    assert all(each.equalities for each in found.lookups)


def test_windows_of_rows_joined_by_or_are_those_of_the_streams_before_a_table() -> None:
    """Also where only one of the alternatives can be."""
    text = """SELECT A.v FROM a A JOIN b B ON A.k = B.k LEFT JOIN d D ON A.v = D.v WINDOW (A, B) = 5 s
              AND (WINDOW (A, B) BETWEEN {} AND 9 s OR WINDOW (A, B) = 2 s AND WINDOW A = 2 ROWS)"""
    assert plan(text.format("4 s"), "ssd").asked == ((), (0,))
    assert plan(text.format("6 s"), "ssd").asked == ((0,),)
    (stage,) = plan(text.format("4 s").replace("JOIN b", "LEFT JOIN b", 1), "ssd").stages
    assert isinstance(stage, Join)
    assert stage.counted == ((), (0,))


def test_per_key_counts_by_what_tables_are_joined_by_too() -> None:
    """Of all inner joins, and of a LEFT JOIN with the table, by the columns of A alone."""
    text = "SELECT A.v FROM a A JOIN b B ON A.k = B.k {} d D ON {}.v = D.v WINDOW (A, B) = 1 SECOND {}"
    rows = "AND WINDOW A = 2 ROWS PER KEY"
    for kind, left, keys in [
        ("JOIN", "A", {"k", "v"}),
        ("LEFT JOIN", "A", {"k", "v"}),
        ("LEFT JOIN", "B", {"k"}),
    ]:
        found = plan(text.format(kind, left, rows), "ssd")
        codes = [found.streams[0].codes[key] for key in found.counted[0].keys]
        assert {each.expressions[0].rpartition(".")[2] for each in codes} == keys


@pytest.mark.parametrize(("kind", "between"), [("JOIN", 2 * SECOND), ("LEFT JOIN", 3 * SECOND)])
def test_nothing_is_derived_through_a_table_that_may_have_no_row(kind: str, between: int) -> None:
    found = plan(
        f"""SELECT MATCH_TIME() FROM a A JOIN b B ON A.k = B.k {kind} v V ON A.k = V.k
            WINDOW (A, B) = 3 SECONDS AND WINDOW (A, V) = 1 SECOND AND WINDOW (V, B) = 1 SECOND""",
        "ssv",
    )
    assert found.windows.between(0, 1) == between


@pytest.mark.parametrize(("kind", "lag"), [("JOIN", -5 * SECOND), ("LEFT JOIN", 0)])
def test_match_time_is_later_only_by_rows_that_are_there(kind: str, lag: int) -> None:
    found = plan(
        f"""SELECT MATCH_TIME() FROM a A {kind} v V ON A.k = V.k
            WINDOW (A, V) BETWEEN 5 SECONDS AND 9 SECONDS""",
        "sv",
    )
    assert lags(found) == {0: lag}
    assert found.outputs[0].match_delay == 9 * SECOND


def test_a_table_read_in_where_is_tested_after_all_joins() -> None:
    planned = plan_over(
        """SELECT A.v FROM a A LEFT JOIN d D ON A.v = D.v JOIN b B ON A.k = B.k AND B.v = D.v
           WINDOW (A, B) = 1 SECOND WHERE D.k > 3""",
        [STREAM, TABLE, STREAM],
    )
    assert [each.condition for each in planned.residual] == ["B.v = D.v", "D.k > 3"]
    assert planned.physical.streams[1].filters == ()


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a A RIGHT JOIN d D ON A.v = D.v JOIN b B ON A.k = B.k", "sds"),
        ("d D LEFT JOIN a A ON A.v = D.v JOIN b B ON A.k = B.k", "dss"),
        ("d D RIGHT JOIN a A ON A.v = D.v JOIN b B ON A.k = B.k", "dss"),
        ("d D SEMI JOIN a A ON A.v = D.v JOIN b B ON A.k = B.k", "dss"),
        ("a A JOIN d D ON A.v = D.v RIGHT JOIN b B ON A.k = B.k", "sds"),
        ("a A JOIN d D ON A.v = D.v SEMI JOIN b B ON A.k = B.k AND B.v < D.v", "sds"),
        ("a A SEMI JOIN d D ON A.v = D.v JOIN b B ON A.k = B.k AND B.v < D.v", "sds"),
    ],
)
def test_what_cannot_be_joined_after_the_streams(text: str, kinds: str) -> None:
    with pytest.raises(WJoinError) as raised:
        plan(f"SELECT A.v FROM {text} WINDOW (A, B) = 1 SECOND", kinds)
    assert raised.value.code == "WJ107"


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("D.k IN (SELECT 1)", "a subquery"),
        ("rand() > D.k", "a nondeterministic function"),
        ("MATCH_SPAN() < D.v", "a match function"),
        ("near(A.v, D.v)", "a predicate"),
        ("x > D.k", "a column of a LATERAL VIEW"),
    ],
)
def test_what_spark_cannot_decide_in_on(condition: str, why: str) -> None:
    near = Predicate("near", lambda first, second: first == second)
    with pytest.raises(WJoinError, match=f"cannot decide this condition of ON: {why}"):
        plan_over(
            f"""SELECT A.v FROM a A JOIN b B ON A.k = B.k LEFT JOIN d D ON A.v = D.v AND {condition}
                LATERAL VIEW explode(array(1)) t AS x WINDOW (A, B) = 1 SECOND""",
            [STREAM, STREAM, TABLE],
            predicates={"near": near},
        )
