"""Which route and kernel joins without an equality in ON get, and what EXPLAIN says of it."""

import pytest

from tests.kit.planned import plan_over, stream_of
from wjoin.planner.choose.layouts import FREE
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.text import explain_text
from wjoin.planner.planning import PlannedSelect

COLUMNS = stream_of({"n": "bigint", "v": "bigint"}, {"rate": 1000})
SETTINGS = CostSettings(cores=4, partitions=4)


def planned(join: str, on: str = "", hint: str = "") -> PlannedSelect:
    text = f"SELECT {hint} A.n FROM a A {join} b B {on} WINDOW (A, B) = 5 SECONDS"
    return plan_over(text, [COLUMNS] * 2, costs=SETTINGS, layouts=FREE)


@pytest.mark.parametrize(
    ("join", "on", "route", "master"),
    [
        ("LEFT JOIN", "ON A.v < B.v", "atr", 0),
        ("RIGHT JOIN", "ON A.v < B.v", "atr", 1),
        ("SEMI JOIN", "", "atr", 0),
        ("ANTI JOIN", "ON true", "atr", 0),
        ("LEFT ASOF JOIN", "MATCH_CONDITION (A.ts >= B.ts)", "atr", 0),
        ("FULL JOIN", "ON A.v < B.v", "single", 0),
        ("FULL JOIN", "ON A.n = B.n AND A.v < B.v", "hash", 0),
        ("LEFT JOIN", "ON A.n = B.n AND A.v < B.v", "hash", 0),
    ],
)
def test_rows_that_wait_lie_on_one_worker_each(join: str, on: str, route: str, master: int) -> None:
    """What can meet them comes there: those of the other side are copied."""
    (stage,) = planned(join, on).physical.stages
    assert (stage.placement.route, stage.placement.master) == (route, master)


def test_a_hint_says_on_how_many_workers() -> None:
    """With a key, too, for one that most rows have."""
    for on in ("ON A.v < B.v", "ON A.n = B.n"):
        (stage,) = planned("LEFT JOIN", on, "/*+ PLAN(ATR, 3) */").physical.stages
        assert (stage.placement.route, stage.placement.workers) == ("atr", 3)


def test_a_hot_key_is_shared() -> None:
    """By several workers where it has most of the rows, and that is known."""
    hot = stream_of({"n": "bigint", "v": "bigint"}, {"rate": 1000, "heaviest.n": 0.9})
    for join, route in (("LEFT JOIN", "atr"), ("FULL JOIN", "hash")):
        text = f"SELECT A.n FROM a A {join} b B ON A.n = B.n WINDOW (A, B) = 5 SECONDS"
        (stage,) = plan_over(text, [hot] * 2, costs=SETTINGS, layouts=FREE).physical.stages
        assert stage.placement.route == route


def test_a_band_is_searched() -> None:
    """Where that costs less."""
    narrow = "ON abs(A.v - B.v) <= 3"
    (stage,) = planned("LEFT JOIN", narrow).physical.stages
    assert stage.kernels == ("ordered",)
    nearest = f"MATCH_CONDITION (NEAREST) {narrow}"
    (stage,) = planned("ASOF JOIN", nearest).physical.stages
    assert stage.kernels == ("ordered",)
    (stage,) = planned("LEFT JOIN", narrow, "/*+ ALGORITHM(NLW) */").physical.stages
    assert stage.kernels == ("nlw",)


def test_conditions_without_columns() -> None:
    """True says nothing; another one is asked of the rows of the joined stream."""
    first, second = planned("LEFT JOIN", "ON TRUE").physical.streams
    assert not first.filters and not second.filters
    assert planned("LEFT JOIN", "ON 1 = 0").physical.streams[1].filters == ("1 = 0",)
    assert planned("FULL JOIN", "ON false").physical.streams[1].meets == ("false",)


def test_explain_says_who_has_what() -> None:
    shown = explain_text(describe(planned("RIGHT JOIN", "ON A.v < B.v")))
    assert "A x B without a key" in shown
    assert "B: each row goes to the worker of its slice" in shown
    assert "a row of B without a partner is returned when A's watermark passes ts + 5 s" in shown
    whole = explain_text(describe(planned("FULL JOIN", "ON A.v < B.v")))
    assert "one worker has all rows, because rows of both sides wait for partners" in whole
