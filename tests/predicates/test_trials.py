"""Trials of predicates: what a pair takes, and how many pairs are kept, seen on a sample of rows."""

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.plans.catalogue import plan
from wjoin.executor.pair_calls import PairFailedError
from wjoin.executor.predicate_trials import PAIRS, SampleColumn, trial
from wjoin.grammar.errors import WJoinError
from wjoin.planner.catalog import Estimate, Origin
from wjoin.planner.conditions.predicate_calls import ReadCall, Trial, cost_of, share_of, tried
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.text import explain_text
from wjoin.udfs.predicate import Predicate

NUMBERS = pa.array(range(64))


def near(left: Any, right: Any) -> Any:
    return abs(left - right) <= 2


def both(values: pa.Array = NUMBERS, other: pa.Array = NUMBERS) -> list[Any]:
    return [SampleColumn(0, values), SampleColumn(2, other)]


def test_the_share_is_that_of_all_pairs_where_these_are_few() -> None:
    found = trial(Predicate("near", near), both(), True, seconds=60)
    assert found is not None
    assert found.pairs == PAIRS == 64 * 64
    # 64 pairs of the same number, 2 * 63 of neighbours, 2 * 62 of the next.
    assert found.share == (64 + 2 * 63 + 2 * 62) / 4096
    opposite = trial(Predicate("near", near), both(), False, seconds=60)
    assert opposite is not None
    assert opposite.share == 1 - found.share


def test_no_row_is_paired_with_itself() -> None:
    same = Predicate("same", lambda left, right: left == right)
    found = trial(same, both(), True, [(0, 2)], seconds=60)
    assert found is not None
    assert found.pairs == 64 * 63
    # None is kept, which is no reason to expect that none ever will be.
    assert 0 < found.share < 1 / found.pairs


def test_three_streams_and_constants_are_tried() -> None:
    seen: list[tuple[Any, ...]] = []

    def between(low: Any, value: Any, high: Any, most: Any) -> Any:
        seen.append((low, value, high, most))
        return (low <= value) & (value <= high)

    arguments = [SampleColumn(0, NUMBERS), SampleColumn(1, NUMBERS), SampleColumn(2, NUMBERS), 7]
    found = trial(Predicate("between", between), arguments, True, seconds=60)
    assert found is not None
    assert found.share == pytest.approx(1 / 6, abs=0.05)
    assert all(len(set(map(len, each))) == 1 and (each[3] == 7).all() for each in seen)
    # No stream's rows go with the same rows of another.
    low, value = (np.concatenate([each[n] for each in seen]) for n in (0, 1))
    assert len({*zip(low.tolist(), value.tolist(), strict=True)}) > 1000


def test_a_pair_takes_what_it_takes_in_blocks() -> None:
    def slow(left: Any, right: Any) -> Any:
        time.sleep(2e-4 * len(left))
        return left < right

    found = trial(Predicate("slow", slow), both(), True, seconds=0.3)
    assert found is not None
    assert 200 <= found.cost_us < 600
    assert 100 < found.pairs < PAIRS
    assert found.share == pytest.approx(0.5, abs=0.2)


def test_the_first_call_is_not_timed() -> None:
    calls: list[int] = []

    def loading(left: Any, right: Any) -> Any:
        if not calls:
            time.sleep(0.3)
        calls.append(len(left))
        return left < right

    found = trial(Predicate("loading", loading), both(), True, seconds=0.2)
    assert found is not None
    assert calls == [1, 1]
    assert found.cost_us < 100_000


def test_pairs_with_null_are_not_kept() -> None:
    values = pa.array([None, *range(1, 64)])
    ever = Predicate("ever", lambda left, right: left == left)
    found = trial(ever, both(values, values), True, seconds=60)
    assert found is not None
    assert found.share == (63 / 64) ** 2


def test_without_a_pair_nothing_is_tried() -> None:
    ever = Predicate("ever", near)
    assert trial(ever, both(NUMBERS.slice(0, 0)), True) is None
    one = NUMBERS.slice(0, 1)
    assert trial(ever, both(one, one), True, [(0, 2)]) is None


def test_what_fails_in_a_trial_is_raised() -> None:
    def ratio(left: Any, right: Any) -> Any:
        if (right == 0).any():
            raise ZeroDivisionError("no such ratio")
        return left / right

    with pytest.raises(PairFailedError, match="no such ratio"):
        trial(Predicate("ratio", ratio, "double"), both(), ((">", 1.0),), seconds=60)
    with pytest.raises(WJoinError, match="WJ707"):
        trial(Predicate("few", lambda left, right: left[:0] > 0), both(), True)


class Once:
    """Trials that say one thing."""

    def of(self, call: ReadCall) -> Trial | None:
        return Trial(3.5, 0.02, "tried on much")


def test_a_plan_goes_by_what_was_tried_and_explain_tells() -> None:
    text = (
        "SELECT 1 FROM camera1 A, camera2 B WINDOW = 5 s "
        "WHERE linked(A.speed, B.speed) AND similar(A.frame, B.frame) > 0.9 AND same_set(A.box, B.box)"
    )
    before, after = (explain_text(describe(plan(text, trials=trials))) for trials in (None, Once()))
    calls = [line.strip() for line in after.splitlines() if "call" in line or "tried" in line]
    assert calls == [
        "call same_set(A.box, B.box)  [2 us per pair (given), selectivity 2 % (measured)]",
        "tried on much",
        "call linked(A.speed, B.speed)  [3.5 us per pair, selectivity 2 % (measured)]",
        "tried on much",
        "call similar(A.frame, B.frame) > 0.9  [1 ms per pair, selectivity 1 % (given)]",
    ]
    assert "(default)" in before
    assert "tried" not in before


def test_what_is_declared_is_not_tried() -> None:
    def told(**declared: float) -> tuple[Estimate, Estimate]:
        known: Any = declared
        call = tried(ReadCall(Predicate("near", near, **known), (), True), Once())
        return call.cost_us, call.share

    measured = Estimate(3.5, Origin.MEASURED), Estimate(0.02, Origin.MEASURED)
    given = Estimate(7, Origin.GIVEN), Estimate(0.5, Origin.GIVEN)
    assert told() == measured
    assert told(cost_us=7) == (given[0], measured[1])
    assert told(selectivity=0.5) == (measured[0], given[1])
    assert told(cost_us=7, selectivity=0.5) == given
    assert tried(ReadCall(Predicate("near", near), (), True), None).trial is None
    plain = Predicate("near", near)
    assert cost_of(plain).origin is share_of(plain, Trial(None, None, "not")).origin is Origin.DEFAULT
