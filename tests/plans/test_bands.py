"""Which conditions bound the difference of two streams' columns, and by how much."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from tests.plans.catalogue import FakeTypes, plan
from wjoin.executor.bands import inside, moved
from wjoin.grammar.errors import WJoinError
from wjoin.planner.plan.checks import Band

ITEMS = {
    "ticks": "ticks A, ticks B WINDOW = 5",
    "camera": "camera1 A, camera2 B WINDOW = 5 s",
    "plant": "plant A, plant B WINDOW = 5 s",
    "badge": "badge A, badge B WINDOW = 5 s",
}


def bands(items: str, condition: str, parameters: dict[str, Any] | None = None) -> tuple[Band, ...]:
    planned = plan(f"SELECT A.* FROM {ITEMS[items]} WHERE {condition}", parameters)
    return planned.physical.stages[0].bands


@pytest.mark.parametrize(
    ("condition", "low", "high"),
    [
        ("A.v < B.v", None, -1),
        ("A.v <= B.v", None, 0),
        ("A.v > B.v", 1, None),
        ("B.v >= A.v", None, 0),
        ("A.v - B.v <= 5", None, 5),
        ("5 > A.v - B.v", None, 4),
        ("A.v >= B.v - 3", -3, None),
        ("(A.v + 1) < (B.v - (-2))", None, 0),
        ("abs(A.v - B.v) <= 5", -5, 5),
        ("ABS(B.v - A.v) < 5", -4, 4),
        ("2.5 >= abs(A.v - B.v)", -2, 2),
        ("abs(A.v - B.v - 10) <= 1", 9, 11),
        ("A.v BETWEEN B.v - 1 AND B.v + 2", -1, 2),
        ("B.v BETWEEN A.v - 1 AND A.v + 2", -2, 1),
        ("A.v - B.v BETWEEN -7 AND :c", -7, 3),
        ("A.v >= B.v - 2 AND A.v < B.v + 3", -2, 2),
        ("-A.v <= -B.v", 0, None),
        ("A.v <= B.v AND A.v <= B.v + 4 AND B.v <= A.v + 9", -9, 0),
    ],
)
def test_whole_numbers_have_exact_bounds(condition: str, low: int | None, high: int | None) -> None:
    (band,) = bands("ticks", condition, {"c": 3})
    assert (band.low, band.high, band.slack) == (low, high, 0)
    assert isinstance(band.low, int | None)
    assert isinstance(band.high, int | None)


@pytest.mark.parametrize(
    ("condition", "low", "high"),
    [
        ("abs(A.speed - B.speed) <= 0.5", -0.5, 0.5),
        ("A.speed BETWEEN B.speed - 1.5 AND B.speed + 2", -1.5, 2),
        ("A.speed < B.speed", None, 0),
        ("A.speed - B.speed < :c", None, 0.25),
        ("A.speed - B.speed >= -1 AND A.speed - B.speed <= 1", None, 1),
    ],
)
def test_bounds_of_fractions_are_a_little_wider(
    condition: str, low: float | None, high: float | None
) -> None:
    (band,) = bands("camera", condition, {"c": 0.25})
    assert band.slack > 0
    assert not band.checked
    for bound, exact in ((band.low, low), (band.high, high)):
        assert (bound is None) == (exact is None)
    assert high is None or high <= band.high <= high + 1e-12
    assert low is None or low - 1e-12 <= band.low <= low


@pytest.mark.parametrize(
    ("items", "condition"),
    [
        ("ticks", "A.v <> B.v"),
        ("ticks", "A.v + B.v <= 5"),
        ("ticks", "A.v * 2 <= B.v"),
        ("ticks", "abs(A.v - B.v) >= 5"),
        ("ticks", "NOT A.v <= B.v"),
        ("ticks", "A.v <= B.v OR A.w <= B.w"),
        ("ticks", "cbs(A.v - B.v) <= 5"),
        ("ticks", "A.name < B.name"),
        ("ticks", "A.v NOT BETWEEN B.v AND B.v + 1"),
        ("ticks", "A.v <= B.v + rand()"),
        # NaN - x is NaN, which is above all numbers: that is true for NaN on either side.
        ("camera", "A.speed - B.speed >= 1"),
        # A sum that is too large is infinite, and as large as all that is infinite.
        ("camera", "A.speed - 1.5e308 <= B.speed"),
        ("plant", "A.reading <= B.reading + 1e31"),
        ("camera", "A.speed <= B.speed + 1e400"),
        # Sums of dates and times have rules of their own.
        ("plant", "A.day <= B.day + 1"),
        ("camera", "A.ts <= B.ts + INTERVAL 1 SECOND"),
    ],
)
def test_other_conditions_have_no_band(items: str, condition: str) -> None:
    assert bands(items, condition) == ()


def test_dates_fractions_and_decimals_are_searched_in_their_own_way() -> None:
    (band,) = bands("plant", "A.day < B.day")
    assert (band.high, band.slack, band.checked) == (-1, 0, True)
    (of_float,) = bands("plant", "A.reading < B.reading")
    (of_double,) = bands("camera", "A.speed < B.speed")
    assert of_float.slack > of_double.slack > 0
    planned = plan("SELECT A.code FROM badge A, badge B WINDOW = 5 s WHERE A.level < B.level")
    (of_decimal,) = planned.physical.stages[0].bands
    stream, column = of_decimal.left
    assert planned.physical.streams[stream].columns[column].expression == "CAST(A.level AS DOUBLE)"


def test_long_sums_of_decimals_have_no_band() -> None:
    """Each sum makes them a digit longer; with more than 38 Spark rounds."""
    for terms, found in ((1, 1), (30, 0)):
        sum_ = " + 0.01" * terms
        assert len(bands("badge", f"A.level{sum_} <= B.level")) == found


def test_sums_of_whole_numbers_have_no_band_where_they_may_begin_anew() -> None:
    """As Spark's without its ANSI mode, also where they are compared with fractions."""
    with patch.object(FakeTypes, "fails_on_overflow", lambda types: False):
        for condition in ("A.v + 1 <= B.w", "A.v + 1 <= B.w + 5e-1"):
            assert bands("ticks", condition) == ()
        assert len(bands("ticks", "A.v <= B.v")) == 1


@pytest.mark.parametrize("slack", [2.0**-48, 2.0**-19])
def test_what_is_infinite_is_near_its_like(slack: float) -> None:
    values = np.array([-np.inf, -1.0, 0.0, 1.7e308, np.inf])
    left, right = (each.reshape(-1) for each in np.meshgrid(values, values, indexing="ij"))
    kept = inside(Band((0, 0), (1, 0), -1, 1, slack, checked=False), left, right).reshape(5, 5)
    wanted = np.eye(5, dtype=bool)
    wanted[1, 2] = wanted[2, 1] = True
    assert (kept == wanted).all()
    for distance in (-1, 1):
        assert (np.isinf(moved(values, distance, np.copysign(slack, distance))) == np.isinf(values)).all()


def test_the_band_that_keeps_least_orders_an_input() -> None:
    sql = "SELECT A.v FROM ticks A, ticks B WINDOW = 5 WHERE A.v <= B.v AND abs(A.w - B.w) <= 1"
    stage = plan(sql).physical.stages[0]
    assert [each.index and each.index.high for each in stage.inputs] == [1, 1]


def test_a_hint_for_an_ordered_index_needs_a_band() -> None:
    sql = "SELECT /*+ ALGORITHM(ORDERED) */ A.v FROM ticks A, ticks B WINDOW = 5 WHERE "
    planned = plan(sql + "A.v < B.v")
    assert planned.physical.stages[0].kernels == ("ordered",)
    with pytest.raises(WJoinError, match="no condition bounds the difference") as caught:
        plan(sql + "A.v <> B.v")
    assert caught.value.code == "WJ504"
