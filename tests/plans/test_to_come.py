"""How far the streams must come before a group by MATCH_TIME() closes, and which of them holds it open."""

import pytest

from tests.plans.catalogue import plan
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.text import explain_text
from wjoin.planner.plan.to_come import holding, is_dated, lags, least_to_come

SECOND = 1_000_000
PAIR = "FROM camera1 A, camera2 B {window} WHERE A.obj_id = B.obj_id"
"""A is up to 2 s late and B up to 5 s."""


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("WINDOW = 5 s", (2, 5)),
        ("DWINDOW (A, B) = 5 s", (2, 5)),
        # With each row of A comes one of B that is 30 s later, at the least; A is never the later one.
        ("WINDOW (A, B) BETWEEN 30 s AND 40 s", (2 - 30, 5)),
        ("(WINDOW (A, B) BETWEEN 30 s AND 40 s) OR (WINDOW (A, B) BETWEEN 10 s AND 20 s)", (2 - 10, 5)),
        ("(WINDOW (A, B) BETWEEN 30 s AND 40 s) OR (WINDOW (A, B) BETWEEN -20 s AND -10 s)", (2, 5)),
    ],
)
def test_a_stream_lags_by_its_delay_less_what_a_window_puts_later(
    window: str, expected: tuple[int, int]
) -> None:
    made = plan(f"SELECT A.frame, MATCH_TIME() {PAIR.format(window=window)}").physical
    assert lags(made) == {stream: lag * SECOND for stream, lag in enumerate(expected)}


def test_the_last_stream_holds_groups_open_and_a_silent_one_all() -> None:
    made = plan(f"SELECT A.frame, MATCH_TIME() {PAIR.format(window='WINDOW = 5 s')}").physical
    assert (least_to_come(made, {0: 100 * SECOND}), holding(made, {0: 100 * SECOND})) == (None, (1,))
    assert holding(made, {}) == (0, 1)
    for a, b, least, held in ((100, 120, 98, (0,)), (117, 120, 115, (0, 1)), (130, 120, 115, (1,))):
        seen = {0: a * SECOND, 1: b * SECOND}
        assert (least_to_come(made, seen), holding(made, seen)) == (least * SECOND, held)


def test_explain_says_when_a_group_closes() -> None:
    window = "WINDOW (A, B) BETWEEN 30 s AND 40 s"
    made = plan(f"SELECT A.frame, MATCH_TIME() {PAIR.format(window=window)}")
    words = "has passed its end: A past end - 28 s, B past end + 5 s; an idle stream keeps it open"
    assert words in explain_text(describe(made))
    unused = plan(f"SELECT A.frame {PAIR.format(window=window)}")
    tables = plan("SELECT MATCH_TIME() FROM table1 T, table2 U WINDOW = 5 s WHERE T.obj_id = U.obj_id")
    for each in (unused, tables):
        assert not is_dated(each.physical, each.output)
        assert "a group by MATCH_TIME()" not in explain_text(describe(each))
