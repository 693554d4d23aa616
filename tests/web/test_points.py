"""The last hour in bounded memory: nothing is lost of the sums, and points follow each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.web.shown import BEGAN, report
from wjoin.measured.totals import KEPT_SECONDS, MOST_POINTS, Totals


@given(
    st.lists(
        st.tuples(
            st.floats(0.05, 400),
            st.floats(0.01, 100),
            st.one_of(st.none(), st.dictionaries(st.sampled_from("ABC"), st.integers(0, 9), min_size=1)),
        ),
        max_size=60,
    )
)
def test_points_follow_each_other_and_lose_nothing(steps):
    totals, started, rows = Totals(), BEGAN, {}
    for batch, (pause, seconds, read) in enumerate(steps):
        started += pause
        totals.add(report(batch, started, read, seconds=seconds))
        started += seconds
        for name, count in (read or {}).items():
            rows[name] = rows.get(name, 0) + count
    hour = totals.hour()
    assert hour.total.rows_in == rows
    assert hour.total.batches == sum(read is not None for _, _, read in steps)
    assert [each.begins for each in hour.points[1:]] == [each.ends for each in hour.points[:-1]]
    assert all(each.begins <= each.ends for each in hour.points)
    assert not hour.points or hour.points[-1].ends == hour.total.ends
    assert all(each.ends >= hour.total.ends - KEPT_SECONDS for each in hour.points)


@pytest.mark.long
def test_an_hour_of_a_busy_query_is_in_few_points():
    totals = Totals()
    for batch in range(20_000):
        totals.add(report(batch, BEGAN + batch * 0.25, {"A": 1}, seconds=0.25))
    hour = totals.hour()
    assert hour.total.rows_in == {"A": 20_000}
    assert hour.width == 4
    assert len(hour.points) <= MOST_POINTS
    assert hour.points[-1].ends - hour.points[0].ends > KEPT_SECONDS - 10
    assert {each.rows_in["A"] for each in hour.points[1:-1]} == {16}


def test_what_stands_still_goes_on_in_idle_times_and_the_lag_grows():
    totals = Totals()
    totals.add(report(0, BEGAN + 1, {"A": 10}))
    totals.add(report(1, BEGAN + 11))
    before, idle = totals.hour().points
    assert (before.batches, idle.batches, idle.rows_in) == (1, 0, {})
    assert (idle.state_rows, idle.state_bytes, idle.seen) == (
        before.state_rows,
        before.state_bytes,
        before.seen,
    )
    assert before.lag == {"A": 1.5}
    assert idle.lag == {"A": 11.5}
    assert (idle.begins, idle.ends) == (before.ends, BEGAN + 11.5)


def test_a_clock_that_is_set_back_moves_no_point_back():
    totals = Totals()
    totals.add(report(0, BEGAN + 100, {"A": 10}))
    totals.add(report(1, BEGAN + 50, {"A": 10}))
    (only,) = totals.hour().points
    assert (only.rows_in, only.ends) == ({"A": 20}, BEGAN + 100.5)


def test_what_is_done_at_present_is_that_of_the_last_seconds():
    totals = Totals()
    for batch, second in enumerate((0, 20, 24)):
        totals.add(report(batch, BEGAN + second, {"A": 10}, seconds=2))
    hour = totals.hour()
    recent = hour.present(BEGAN + 27, rests=True)
    # It has read nothing from second 2 on until 20.
    assert (recent.rows_read, recent.begins - BEGAN, recent.ends - BEGAN) == (20, 2, 26)
    assert hour.present(BEGAN + 40, rests=False).rows_read == 20
    assert hour.present(BEGAN + 40, rests=True).rows_read == 0


def test_a_first_micro_batch_that_has_been_sooner_than_its_reader_has_its_length():
    totals = Totals()
    totals.add(report(0, BEGAN, {"A": 10}, seconds=2))
    total = totals.hour().total
    assert (total.begins, total.ends) == (BEGAN, BEGAN + 2)
    assert total.rate(total.rows_read) == 5
