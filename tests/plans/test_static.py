"""Static relations beside streams: the stages without them, the order of their joins, and the delays."""

from tests.plans.catalogue import plan
from wjoin.joins.delays import output_delay
from wjoin.planner.plan.physical import StaticJoin

SECOND = 1_000_000


def test_stages_join_the_streams_only() -> None:
    made = plan(
        """SELECT A.frame FROM camera1 A, table1 T, camera2 B WINDOW = 5 s
           WHERE A.obj_id = T.obj_id AND T.obj_id = B.obj_id AND A.frame = T.frame"""
    ).physical
    assert [stage.members for stage in made.stages] == [(0, 2)]
    assert [code.expressions for code in made.streams[0].codes] == [("A.obj_id",)]
    assert made.lookups == (StaticJoin(1, ("A.obj_id = T.obj_id", "A.frame = T.frame"), ()),)
    assert made.staged == (0, 2)


def test_every_comparison_is_checked_once_all_its_relations_are_there() -> None:
    made = plan(
        """SELECT A.frame FROM table1 T, table2 U, camera1 A WINDOW = 5 s
           WHERE A.obj_id = U.obj_id AND T.ts < U.ts AND T.ts <> A.ts AND A.ts < U.ts"""
    ).physical
    assert not made.stages and made.staged == (2,)
    assert made.lookups == (
        StaticJoin(1, ("A.obj_id = U.obj_id",), ("A.ts < U.ts",)),
        StaticJoin(0, (), ("T.ts < U.ts", "T.ts <> A.ts")),
    )


def test_static_relations_only_have_stages() -> None:
    made = plan("SELECT T.frame FROM table1 T, table2 U WINDOW = 5 s WHERE T.obj_id = U.obj_id").physical
    assert len(made.stages) == 1 and not made.lookups and made.staged == (0, 1)


def test_delays_count_what_streams_complete() -> None:
    """A is up to 2 s late and B up to 5 s; a static row completes nothing, but may be the latest."""
    made = plan(
        """SELECT A.frame, MATCH_TIME() FROM camera1 A, table1 T, camera2 B
           WINDOW (A, B) = 1 s AND WINDOW (A, T) BETWEEN -100 s AND 10 s"""
    )
    assert made.output.match_delay == (5 + 1 + 10) * SECOND
    assert output_delay(made) == (5 + 1 + 10 + 100 + 1) * SECOND


def test_delays_have_no_bound_where_a_window_has_none() -> None:
    made = plan("SELECT A.frame, MATCH_TIME() FROM camera1 A, table1 T WINDOW T = 1 s")
    assert made.output.match_delay is None
    assert output_delay(made) is None
