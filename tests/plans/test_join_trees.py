"""What the stages of a tree of joins know of their windows, and of what is not there."""

import pytest

from tests.kit.planned import plan_over, stream_of
from wjoin.grammar.errors import WJoinError
from wjoin.planner.plan.edges import may_lack
from wjoin.planner.plan.physical import PhysicalPlan, decides_at_once
from wjoin.planner.plan.stage_kinds import Join

SECOND = 1_000_000


def plan(text: str, streams: int = 3) -> PhysicalPlan:
    return plan_over(text, [stream_of({"k": "bigint", "v": "bigint"})] * streams).physical


def joins(physical: PhysicalPlan) -> list[Join]:
    return [each for each in physical.stages if isinstance(each, Join)]


def test_nothing_is_derived_through_a_stream_that_may_be_missing() -> None:
    """B is near A and C, where it has a row; that says nothing of A and C."""
    found = plan(
        """SELECT A.v FROM a A JOIN c C ON A.k = C.k LEFT JOIN b B ON A.k = B.k AND C.k = B.k
           WINDOW (A, C) = 5 SECONDS AND WINDOW (A, B) = 1 SECOND AND WINDOW (C, B) = 1 SECOND"""
    )
    first, second = joins(found)
    assert first.windows is not None and second.windows is not None
    assert found.windows.between(0, 1) == first.windows.between(0, 1) == 5 * SECOND
    # Where all three meet it does.
    assert second.windows.between(0, 1) == 2 * SECOND


def test_a_join_that_does_not_ask_for_a_stream_has_no_bound_of_it() -> None:
    found = plan(
        """SELECT A.v FROM a A LEFT JOIN b B ON A.k = B.k LEFT JOIN c C ON A.k = C.k
           WINDOW (A, B) = 1 SECOND AND WINDOW (A, C) = 2 SECONDS"""
    )
    _, second = joins(found)
    assert second.windows is not None
    assert second.asked == {0, 2}
    assert second.windows.between(1, 2) is None
    assert found.windows.between(1, 2) == 3 * SECOND
    assert may_lack(found, second.inputs[0]) == (1,)
    # Of C rows are kept for A alone, and for what waits for B as long as that may come.
    assert [each.stream for each in second.inputs[1].retention] == [0]
    (lag,) = joins(found)[0].lags
    assert (lag.stream, lag.distances) == (1, ((0, SECOND),))


def test_an_alternative_that_all_earlier_ones_together_rule_out_has_no_windows() -> None:
    """B is 0 or 10 s after A, and with C 10 s: 4 s are too few, though no bound by itself says so."""
    found = plan(
        """SELECT A.v FROM a A LEFT JOIN b B ON A.k = B.k LEFT JOIN c C ON A.k = C.k
           LEFT JOIN d D ON A.k = D.k
           WINDOW (A, C) BETWEEN 8 s AND 12 s AND WINDOW (A, D) = 2 s
           AND (WINDOW (A, B) BETWEEN 0 s AND 0 s OR WINDOW (A, B) BETWEEN 10 s AND 10 s)
           AND (WINDOW (B, C) BETWEEN 0 s AND 1 s OR WINDOW (B, C) BETWEEN 3 s AND 4 s)
           AND (WINDOW (A, B) BETWEEN 4 s AND 5 s AND WINDOW (A, C) = 1 MINUTE
                AND WINDOW (A, D) BETWEEN 1 s AND 2 s OR WINDOW (A, D) BETWEEN 0 s AND 0 s)""",
        4,
    )
    last = joins(found)[-1]
    assert last.windows is not None
    assert (last.windows.between(0, 3), last.windows.between(3, 0)) == (0, 0)


def test_what_a_path_names_with_not_is_the_same_in_parentheses() -> None:
    path = "PATH (A, NOT C, B) WITHIN (1 MINUTE)"
    inside = f"SELECT A.v FROM a A LEFT JOIN (b B JOIN c C ON B.k = C.k) ON A.k = B.k {path}"
    listed = f"SELECT A.v FROM a A LEFT JOIN b B ON A.k = B.k, c C {path} WHERE B.k = C.k"
    assert joins(plan(inside)) == joins(plan(listed))


def test_windows_of_rows_joined_by_or_belong_to_later_joins_of_all_their_streams() -> None:
    """The inner join stays where it is: what it brings may be the latest row."""
    text = """SELECT A.v FROM a A LEFT JOIN b B ON A.k = B.k {} c C ON A.k = C.k
              WINDOW (A, B) = 9 SECONDS AND WINDOW (A, C) = 2 SECONDS
              AND (WINDOW (A, B) = 1 SECOND OR WINDOW A = 2 ROWS)"""
    for kind in ("LEFT JOIN", "JOIN"):
        first, last = joins(plan(text.format(kind)))
        assert (first.members, last.members) == ((0, 1), (0, 1, 2))
        assert first.counted == last.counted == ((), (0,))
        assert last.asked == {0, 2}
    first, last = joins(plan(text.format("LEFT JOIN").replace("LEFT JOIN b", "SEMI JOIN b")))
    assert (first.counted, last.counted) == (((), (0,)), ())


def test_inner_joins_come_first_where_that_makes_no_difference() -> None:
    linked = """SELECT A.v FROM a A LEFT JOIN b B ON A.k = B.k JOIN c C ON {}.k = C.k
                WINDOW (A, B) = 1 SECOND AND WINDOW ({}, C) = 2 SECONDS"""
    first, last = joins(plan(linked.format("A", "A")))
    assert (first.members, last.members) == ((0, 2), (0, 2, 1))
    first, last = joins(plan(linked.format("B", "B")))
    assert (first.members, last.members) == ((0, 1), (0, 1, 2))
    assert may_lack(plan(linked.format("B", "B")), last.inputs[0]) == (1,)


@pytest.mark.parametrize(
    ("condition", "asked"),
    [
        ("B.v <= C.v", {0, 1, 2}),
        ("B.v + A.v < C.v AND B.v IN (A.v, C.v)", {0, 1, 2}),
        ("coalesce(B.v, 0) <= C.v", {0, 2}),
        ("(B.v IS NULL OR B.v <= C.v)", {0, 2}),
        ("NOT (B.v BETWEEN C.v AND 5)", {0, 1, 2}),
        ("B.v <=> C.v", {0, 2}),
    ],
)
def test_a_join_asks_for_what_its_conditions_are_not_true_without(condition: str, asked: set[int]) -> None:
    found = plan(
        f"""SELECT A.v FROM a A LEFT JOIN b B ON A.k = B.k LEFT JOIN c C ON A.k = C.k AND {condition}
            WINDOW (A, B) = 1 SECOND AND WINDOW (A, C) = 2 SECONDS"""
    )
    assert joins(found)[1].asked == asked


def test_an_inner_join_stays_after_what_its_conditions_read() -> None:
    text = """SELECT A.v FROM a A LEFT JOIN b B ON A.k = B.k JOIN c C ON A.k = C.k AND {}
              WINDOW (A, B) = 1 SECOND AND WINDOW (A, C) = 2 SECONDS"""
    for condition in ("B.v IS NULL", "A.v < B.v", "A.v = B.v"):
        _, last = joins(plan(text.format(condition)))
        assert last.inputs[1].members == (2,)
        assert [gate.text for gate in last.gates] == [condition]


def test_an_inner_join_decides_before_a_full_one() -> None:
    """Spark cannot test its condition at the end: it would leave out what has no partner in the full join."""
    text = """SELECT A.v FROM a A JOIN b B ON A.k = B.k AND A.v + B.v > 3 {} JOIN c C ON A.k = C.k
              WINDOW (A, B) = 1 SECOND AND WINDOW (A, C) = 2 SECONDS"""
    streams = [stream_of({"k": "bigint", "v": "bigint"})] * 3
    assert [each.condition for each in plan_over(text.format("LEFT"), streams).residual] == ["A.v + B.v > 3"]
    found = plan_over(text.format("FULL"), streams)
    assert not found.residual
    assert decides_at_once(found.physical, 0)


def test_the_nearest_row_goes_by_the_stream_that_a_window_links() -> None:
    """Whatever the conditions compare."""
    found = plan(
        """SELECT A.v FROM a A JOIN b B ON A.k = B.k ASOF JOIN c C MATCH_CONDITION (NEAREST) ON A.k = C.k
           WINDOW (A, B) = 1 SECOND AND WINDOW (B, C) = 2 SECONDS"""
    )
    assert joins(found)[-1].timed_by == 1


def test_each_side_of_a_join_is_a_part_of_many() -> None:
    found = plan(
        """SELECT A.v FROM (a A JOIN b B ON A.k = B.k) LEFT JOIN
           (c C JOIN d D ON C.k = D.k JOIN e E ON D.k = E.k) ON A.k = C.k AND C.v > D.v AND E.v > B.v
           WINDOW (A, B) = 1 SECOND AND WINDOW (C, D) = 1 SECOND AND WINDOW (D, E) = 2 SECONDS
           AND DWINDOW (A, C) = 5 SECONDS""",
        5,
    )
    first, second, last = joins(found)
    assert (first.members, second.members, last.members) == ((0, 1), (2, 3, 4), (0, 1, 2, 3, 4))
    assert [each.stage for each in last.inputs] == [0, 1]
    assert [gate.text for gate in last.gates] == ["C.v > D.v"]
    # Of the right side all is known before anything is padded.
    assert [decides_at_once(found, number) for number in range(3)] == [False, True, True]
    ends = {each.stream: dict(each.distances)[0] for each in last.inputs[0].retention}
    assert ends == {2: 5 * SECOND, 3: 6 * SECOND, 4: 8 * SECOND}


def test_an_exists_may_join_several_streams() -> None:
    found = plan(
        """SELECT A.v FROM a A WHERE NOT EXISTS (SELECT * FROM b B, c C
           WINDOW (A, B) = 5 SECONDS AND WINDOW (B, C) = 1 SECOND
           WHERE A.k = B.k AND B.k = C.k AND C.v > 1)"""
    )
    first, last = joins(found)
    assert (first.members, last.kind.value, last.inputs[1].stage) == ((1, 2), "LEFT ANTI", 0)
    assert found.streams[2].filters == ("C.v > 1",)


def test_more_streams_than_bits_may_not_be_missing() -> None:
    items = " ".join(f"LEFT JOIN s s{n} ON A.k = s{n}.k" for n in range(63))
    with pytest.raises(WJoinError, match="63 items of FROM may have no row in a result; at most 62 may"):
        plan(f"SELECT A.v FROM a A {items} WINDOW = 1 SECOND", 64)


def test_a_kernel_that_the_session_prefers_is_for_joins_that_can_have_it() -> None:
    streams = [stream_of({"k": "bigint", "v": "bigint"})] * 2
    text = "SELECT A.v FROM a A LEFT JOIN b B ON A.v < B.v WINDOW (A, B) = 1 SECOND"
    assert plan_over(text, streams, {"ALGORITHM": "HW"}).physical == plan_over(text, streams).physical
    with pytest.raises(WJoinError, match="cannot apply"):
        plan_over(text.replace("SELECT", "SELECT /*+ ALGORITHM(HW) */"), streams)


@pytest.mark.parametrize(
    "text",
    [
        """SELECT A.k, B.k, C.k, D.k FROM a A FULL JOIN b B ON A.k = B.k JOIN c C ON A.k = C.k
           FULL JOIN d D ON A.k = D.k WINDOW (A, B) = 5 SECONDS
           AND (WINDOW (A, C) = 3 SECONDS OR WINDOW (B, C) = 3 SECONDS) AND WINDOW (A, D) = 4 SECONDS""",
        """SELECT A.k, B.k, C.k, D.k FROM a A JOIN b B ON A.k = B.k JOIN c C ON A.k = C.k
           FULL JOIN d D ON A.k = D.k WINDOW (A, B) = 5 SECONDS
           AND (WINDOW (B, C) = 3 SECONDS OR WINDOW (A, C) = 3 SECONDS) AND WINDOW (A, D) = 4 SECONDS""",
    ],
)
def test_what_each_alternative_bounds_follows_from_the_other_joins(text: str) -> None:
    """No alternative alone bounds C by A, or else D would wait for a row of C for ever."""
    *_, last = joins(plan(text, 4))
    ends = {each.stream: each.distances for each in last.inputs[1].retention}
    assert ends[2] == ((3, (4 + 5 + 3) * SECOND),)
