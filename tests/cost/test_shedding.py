"""The shedding ratio as in S2J, section 3.2.2, and what is told of the results that are lost."""

import itertools
import math
import random

import pytest

from wjoin.planner.cost.shed_share import (
    LINEAR,
    OFF,
    QUADRATIC,
    Thresholds,
    estimated,
    lost_share,
    settled_ratio,
    shedding_ratio,
    state_utilization,
    time_utilization,
)

CASE = Thresholds(0.2, 0.4, 0.8, 0.82, base=0.1)


@pytest.mark.parametrize(
    ("model", "utilization", "ratio"),
    [
        (LINEAR, 0.8, 0.0),
        (LINEAR, 0.9, 0.1 + 0.9 * 0.5),
        (LINEAR, 1.0, 1.0),
        (LINEAR, 3.0, 1.0),
        (QUADRATIC, 0.8, 0.0),
        (QUADRATIC, 0.9, 0.1 + 0.9 * 0.25),
        (QUADRATIC, 1.0, 1.0),
        (OFF, 3.0, 0.0),
    ],
)
def test_the_ratio_is_that_of_the_paper(model: str, utilization: float, ratio: float) -> None:
    assert shedding_ratio(model, utilization, CASE) == pytest.approx(ratio)


def test_the_base_is_shed_as_soon_as_the_threshold_is_passed() -> None:
    assert shedding_ratio(LINEAR, math.nextafter(0.8, 1), CASE) == pytest.approx(0.1)


@pytest.mark.parametrize("model", [LINEAR, QUADRATIC])
@pytest.mark.parametrize("demand", [0.81, 0.9, 1.0, 1.3, 2.0, 10.0])
def test_a_settled_ratio_gives_the_utilization_that_asks_for_it(model: str, demand: float) -> None:
    limits = Thresholds()
    settled = settled_ratio(model, demand, limits)
    assert shedding_ratio(model, demand * (1 - settled), limits) == pytest.approx(settled, abs=1e-6)
    assert limits.shedding < demand * (1 - settled) < 1


def test_a_base_that_is_more_than_is_needed_leaves_the_threshold() -> None:
    settled = settled_ratio(LINEAR, 0.82, Thresholds(base=0.5))
    assert 0.82 * (1 - settled) == pytest.approx(0.8)
    assert settled_ratio(LINEAR, 0.8, Thresholds(base=0.5)) == 0


def test_utilizations() -> None:
    assert state_utilization(50, None) == 0
    assert state_utilization(50, 200) == 0.25
    # Three of four seconds for the rows of two: twice as fast would be in time.
    assert time_utilization(4.0, 1.0, 2.0, 1.0) == 1.5
    # A short micro-batch is in time.
    assert time_utilization(0.4, 0.1, 0.1, 1.0) == pytest.approx(0.3)
    assert time_utilization(0.1, 0.3, 1.0, 1.0) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        (0.0, 0.4, 0.8, 0.9),
        (0.5, 0.4, 0.8, 0.9),
        (0.2, 0.4, 0.9, 0.8),
        (0.2, 0.4, 1.0, 1.0),
        (0.2, 0.9, 0.8, 0.9),
    ],
)
def test_thresholds_stand_in_their_order(wrong: tuple[float, float, float, float]) -> None:
    with pytest.raises(ValueError, match="τ0"):
        Thresholds(*wrong)
    with pytest.raises(ValueError, match="base"):
        Thresholds(base=1.1)


def test_streams_of_one_key_are_kept_together() -> None:
    assert lost_share([("x", 0.5), ("x", 0.6), ("y", 0.9)]) == pytest.approx(1 - 0.5 * 0.9)
    assert lost_share([("row a", 0.5), ("row b", 0.5)]) == pytest.approx(0.75)
    assert lost_share([]) == 0


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9])
def test_the_interval_has_the_truth_in_most_samples_of_keys(kept: float) -> None:
    chance = random.Random(1)
    keys = [chance.choice((1, 2, 5, 40)) for _ in range(400)]
    inside = 0
    for _ in range(300):
        found = [each for each in keys if chance.random() < kept]
        told = estimated(sum(found), sum(each * each for each in found), 1 - kept, 1 - kept)
        assert told.most is not None
        inside += told.least <= sum(keys) <= told.most
    assert inside >= 0.9 * 300


def test_the_interval_has_the_truth_where_rows_are_shed_by_themselves() -> None:
    chance = random.Random(2)
    pairs = [
        (a, b)
        for a, b in itertools.product(range(150), range(150))
        if (a * 7 + b * 13) % 29 == 0 or a == b % 20
    ]
    inside = 0
    for _ in range(200):
        kept = [{row for row in range(150) if chance.random() < 0.6} for _ in range(2)]
        found = [(a, b) for a, b in pairs if a in kept[0] and b in kept[1]]
        squares = 0
        for place in range(2):
            rows = [pair[place] for pair in found]
            squares += sum(rows.count(each) ** 2 for each in set(rows))
        told = estimated(len(found), squares, 1 - 0.36, 1 - 0.36)
        assert told.most is not None
        inside += told.least <= len(pairs) <= told.most
    assert inside >= 0.95 * 200


def test_what_is_told_where_nothing_or_all_is_shed() -> None:
    assert estimated(7, 0, 0, 0).lost(7) == (0, 0, 0)
    assert estimated(0, 0, 1.0, 1.0).lost(0)[2] == 1.0
    lost, least, most = estimated(30, 30, 0.5, 0.75).lost(30)
    assert least < 0.5 == pytest.approx(lost)
    assert most > 0.75
