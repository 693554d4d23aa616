"""Statements of a set that share a window join: which do, and in what words the join is planned."""

from dataclasses import replace

import pytest

from tests.plans.catalogue import plan
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.statement_kinds import Query
from wjoin.planner.sets.shared_join import (
    Member,
    apart,
    common_conditions,
    left_of,
    shared_text,
    with_outputs,
)


def member(name: str, text: str) -> Member:
    statement = parse_statement(text)
    assert isinstance(statement, Query)
    return Member(name, text, statement.blocks[0], plan(text))


NEAR = member(
    "near", "SELECT A.obj_id FROM camera1 A, camera2 B WINDOW (A, B) = 5 SECONDS WHERE A.obj_id = B.obj_id"
)
FAR = member(
    "far",
    """SELECT X.frame FROM camera2 X, camera1 Y WINDOW (Y, X) BETWEEN 1 SECOND AND 1 MINUTE
       WHERE X.obj_id = Y.obj_id AND X.speed > 3 AND Y.speed < X.speed""",
)


def test_aliases_and_the_order_of_from_do_not_matter() -> None:
    assert NEAR.key == FAR.key
    assert FAR.aliases == ("Y", "X")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT A.obj_id FROM camera1 A, camera3 B WINDOW = 5 SECONDS WHERE A.obj_id = B.obj_id",
        "SELECT A.obj_id FROM camera1 A, camera2 B WINDOW = 5 SECONDS WHERE A.frame = B.frame",
        """SELECT A.obj_id FROM camera1 A, camera2 B WINDOW = 5 SECONDS
           WHERE A.obj_id = B.obj_id AND A.frame = B.frame""",
        "SELECT A.obj_id FROM camera1 A, camera2 B WINDOW = 5 SECONDS",
        """SELECT /*+ ALGORITHM(MW) */ A.obj_id FROM camera1 A, camera2 B WINDOW = 5 SECONDS
           WHERE A.obj_id = B.obj_id""",
        """SELECT A.obj_id FROM camera1 WATERMARK ts DELAY OF INTERVAL 1 MINUTE AS A, camera2 B
           WINDOW = 5 SECONDS WHERE A.obj_id = B.obj_id""",
    ],
)
def test_other_streams_keys_hints_or_delays_share_nothing(text: str) -> None:
    assert member("other", text).key != NEAR.key


def test_without_a_key_only_statements_with_the_same_conditions_share() -> None:
    words = "SELECT {0}.ts FROM camera1 {0}, camera2 {1} WINDOW = 5 SECONDS WHERE {0}.speed {2} {1}.speed"
    one, other, faster = (
        member(name, words.format(*given))
        for name, given in (("one", "AB<"), ("other", "PQ<"), ("faster", "AB>"))
    )
    filtered = member("filtered", f"{words.format(*'AB<')} AND A.speed > 3")
    assert one.key == other.key == filtered.key
    assert one.key != faster.key


def test_the_shared_join_has_the_windows_of_all_and_the_weakest_filters() -> None:
    text = shared_text([NEAR, FAR])
    assert text == (
        "SELECT A.obj_id, A.speed, B.frame, B.speed FROM camera1 A, camera2 B "
        "(WINDOW (A, B) BETWEEN -5000000 MICROSECONDS AND 5000000 MICROSECONDS) "
        "OR (WINDOW (A, B) BETWEEN 1000000 MICROSECONDS AND 60000000 MICROSECONDS) "
        "WHERE (A.obj_id = B.obj_id)"
    )
    assert left_of(FAR, common_conditions([NEAR, FAR])) == ["X.speed > 3", "Y.speed < X.speed"]


def test_a_filter_that_all_have_in_some_form_stays_before_the_join() -> None:
    slow = member(
        "slow",
        """SELECT Q.obj_id FROM camera1 P, camera2 Q WINDOW (P, Q) = 5 SECONDS
           WHERE P.obj_id = Q.obj_id AND Q.speed < 1 AND q.frame <> 'Q.x'""",
    )
    text = shared_text([slow, FAR])
    assert "((Q.speed < 1) AND (Q.frame <> 'Q.x')) OR ((Q.speed > 3))" in text
    planned = plan(text)
    assert planned.physical.streams[1].filters != ()


def test_conditions_that_all_have_are_tested_by_the_join() -> None:
    words = "WHERE {0}.obj_id = {1}.obj_id AND {0}.speed < {1}.speed"
    one = member("one", f"SELECT A.ts FROM camera1 A, camera2 B WINDOW = 5 SECONDS {words.format('A', 'B')}")
    two = member("two", f"SELECT P.ts FROM camera1 P, camera2 Q WINDOW = 9 SECONDS {words.format('P', 'Q')}")
    common = common_conditions([one, two])
    assert len(common) == 1
    assert left_of(two, common) == []
    assert "(A.speed < B.speed)" in shared_text([one, two])


def test_each_statement_has_an_output_with_its_windows_and_columns() -> None:
    planned, shared = with_outputs(plan(shared_text([NEAR, FAR])), [NEAR, FAR])
    near, far = shared
    assert [each.sink for each in planned.physical.outputs] == ["near", "far"]
    assert far.output.windows[0].between(0, 1) == 60_000_000
    assert far.output.windows[0].between(1, 0) == -1_000_000
    columns = planned.physical.streams
    assert {columns[stream].columns[number].output for stream, number in near.output.columns} == {"obj_id"}
    assert "FROM joined WHERE (X.speed > 3) AND (Y.speed < X.speed)" in far.text
    assert planned.output is near.output


def test_windows_that_all_have_are_asked_once() -> None:
    other = replace(NEAR, name="other")
    _, shared = with_outputs(plan(shared_text([NEAR, other])), [NEAR, other])
    assert [each.output.windows for each in shared] == [(), ()]
    assert " OR " not in shared_text([NEAR, other])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            """SELECT A.obj_id FROM camera1 A, camera2 B, names N WINDOW (A, B) = 5 SECONDS
               WHERE A.obj_id = B.obj_id AND N.id = A.obj_id""",
            "it reads a table beside the streams",
        ),
        (
            """SELECT A.obj_id FROM (SELECT * FROM camera1) A, camera2 B WINDOW (A, B) = 5 SECONDS
               WHERE A.obj_id = B.obj_id""",
            "its FROM has more than names of streams",
        ),
        (
            """SELECT A.obj_id FROM camera1 A, camera2 B WINDOW (A, B) = 5 SECONDS
               WHERE A.obj_id = B.obj_id AND linked(A.frame, B.frame)""",
            "it calls a predicate of several streams",
        ),
    ],
)
def test_what_shares_with_no_other_says_why(text: str, why: str) -> None:
    assert apart(member("lone", text)) == why
    assert apart(NEAR) == ""


def test_a_shared_join_keeps_the_joins_on_both_sides() -> None:
    words = """SELECT {0}.speed FROM (camera1 {0} JOIN camera2 {1} ON {0}.obj_id = {1}.obj_id)
               {3} JOIN (camera3 {2} LEFT JOIN camera1 D ON {2}.obj_id = D.obj_id)
               ON {0}.obj_id = {2}.obj_id
               WINDOW ({0}, {1}) = 5 SECONDS AND WINDOW ({2}, D) = 2 SECONDS
               AND WINDOW ({0}, {2}) = 9 SECONDS"""
    one, other, full = (
        member(name, words.format(*given))
        for name, given in (
            ("one", ("A", "B", "C", "LEFT")),
            ("other", ("P", "Q", "R", "LEFT")),
            ("full", ("A", "B", "C", "FULL")),
        )
    )
    assert one.key == other.key != full.key
    planned, _ = with_outputs(plan(shared_text([one, other])), [one, other])
    assert planned.bound.tree == one.bound.tree
