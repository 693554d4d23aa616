"""Executors by the utilisation, as in S2J, sections 3.2.3 and 4.4."""

import pytest

from wjoin.planner.cost.scaling import Scale, Scaling
from wjoin.planner.cost.shed_share import Thresholds, came_in, unshed

RULES, LIMITS = Scaling(2, 8), Thresholds()


def run(utilization: float, begin: Scale, seconds: int) -> Scale:
    """Return how many there are after some seconds with the same load for an executor."""
    now = begin
    for time in range(seconds + 1):
        now = now.after(time, utilization, RULES, LIMITS)
        if now.number != begin.number:
            break
    return now


@pytest.mark.parametrize(
    ("utilization", "seconds", "number"),
    [
        (0.9, 29, 4),
        # As many as bring τ from 0.9 to 0.4: 4 · 0.9 / 0.4.
        (0.9, 30, 8),
        (5.0, 30, 8),
        (0.82, 300, 4),
        (0.2, 300, 4),
        (0.19, 299, 4),
        (0.19, 300, 2),
        (0.0, 300, 2),
    ],
)
def test_what_lasts_changes_the_number(utilization: float, seconds: int, number: int) -> None:
    assert run(utilization, Scale(4), seconds).number == number


def test_the_case_study_of_the_paper() -> None:
    found = Scale(4)
    for time in range(0, 40, 10):
        assert found.number == 4
        found = found.after(time, 0.9, RULES, LIMITS)
    assert found.number == 8
    for time in range(40, 350, 10):
        assert found.number == 8
        found = found.after(time, 150 / 800, RULES, LIMITS)
    assert found.number == 4
    assert found.after(400, 150 / 400, RULES, LIMITS).below is None


def test_what_does_not_last_changes_nothing() -> None:
    now = Scale(4)
    for time in range(1000):
        now = now.after(time, 0.9 if time % 20 < 10 else 0.5, RULES, LIMITS)
        now = now.after(time, 0.1 if time % 100 < 90 else 0.5, RULES, LIMITS)
    assert now.number == 4


def test_a_range_has_a_number_in_it() -> None:
    for least, most in ((0, 2), (3, 2)):
        with pytest.raises(ValueError, match="least"):
            Scaling(least, most)


def test_rows_came_in_the_greatest_step_of_the_present() -> None:
    now, second = 1_700_000_000, 1_000_000
    before = {"A": now * second, "B": now * second}
    seen = {"A": (now + 3) * second, "B": now * second, "C": (now + 9) * second}
    assert came_in(seen, before, now + 5) == 3
    assert came_in(before, before, now + 5) is None
    assert came_in(seen, before, now + 90_000) is None
    assert came_in(seen, {}, now) is None


def test_the_load_counts_what_is_shed() -> None:
    assert unshed(0.9, 0.0) == 0.9
    assert unshed(0.9, 0.5) == 1.8
    assert unshed(0.5, 1.0) == pytest.approx(10)
