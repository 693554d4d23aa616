"""What the cost model expects of a plan, beside what the plan does."""

import pytest
from choices import Measured, Workload, measure, micro_batches, of_our_own, planned

from tests.tiers import tiers
from wjoin.planner.choose.plan_candidates import Candidate
from wjoin.planner.cost.model import CostSettings

WORKLOADS = [
    Workload("one window", "WINDOW = 1 SECOND", (300, 300, 300), 50, 0.0, 1.0),
    Workload("skew", "WINDOW = 1 SECOND", (300, 300), 500, 0.3, 1.0),
    Workload(
        "derived",
        "WINDOW (A, B) = 300 MILLISECONDS AND WINDOW (B, C) = 1 SECOND",
        (500, 100, 100),
        50,
        0.0,
        1.3,
    ),
    Workload(
        "directed", "DWINDOW (A, B) = 1 SECOND AND DWINDOW (B, C) = 1 SECOND", (300, 300, 300), 50, 0.0, 2.0
    ),
    Workload("lopsided", "WINDOW (A, B) BETWEEN 1 SECOND AND 2 SECONDS", (500, 500), 100, 0.0, 2.0),
    Workload(
        "both ways", "PATH (A, B, C) WITHIN (1 SECOND, 1 SECOND) BIDIRECTIONAL", (200, 200, 200), 50, 0.0, 2.0
    ),
    Workload("no key", "WINDOW = 100 MILLISECONDS", (300, 300), 1, 1.0, 0.1, "none"),
    Workload("near", "WINDOW = 1 SECOND", (300, 300), 1, 1.0, 1.0, "none", 500),
    Workload("near of a key", "WINDOW = 1 SECOND", (500, 500, 100), 5, 0.2, 1.0, "all", 2000),
]

JOINS = {
    "left": ("LEFT JOIN", (300, 300), 500),
    "left with many partners": ("LEFT JOIN", (300, 300), 50),
    "right": ("RIGHT JOIN", (100, 500), 500),
    "full": ("FULL JOIN", (300, 100), 500),
    "semi": ("LEFT SEMI JOIN", (300, 300), 500),
    "anti": ("LEFT ANTI JOIN", (300, 300), 500),
    "asof": ("ASOF JOIN", (300, 100), 500),
    "left asof": ("LEFT ASOF JOIN", (300, 100), 500),
    "two left": ("LEFT JOIN", (300, 100, 100), 200),
}


def runs(load: Workload) -> list[tuple[Candidate, Measured]]:
    """Return every candidate of a workload that is not too slow for a test, and what it did."""
    plan = planned(load, CostSettings())
    batches = micro_batches(load, plan.physical)
    fast = [each for each in of_our_own(plan) if each.estimated.cost.comparisons < 3e6]
    return [(each, measure(each.plan, batches)) for each in fast]


@pytest.mark.parametrize(
    "load",
    tiers(
        WORKLOADS,
        long=[
            load
            for load in WORKLOADS
            if load.name in ("one window", "both ways", "directed", "near", "lopsided")
        ],
        thorough=[load for load in WORKLOADS if load.name == "near of a key"],
    ),
    ids=lambda load: load.name,
)
def test_results_comparisons_and_state_are_as_expected(load):
    found = runs(load)
    assert len(found) >= 3
    assert len({measured.results for _, measured in found}) == 1
    for candidate, measured in found:
        cost = candidate.estimated.cost
        assert measured.results == pytest.approx(cost.results, rel=0.3)
        assert measured.comparisons == pytest.approx(cost.comparisons, rel=0.35)
        assert measured.state_rows == pytest.approx(cost.state_rows, rel=0.2)


@pytest.mark.parametrize("name", tiers(JOINS, long=set(JOINS) - {"left", "anti", "asof"}))
def test_rows_without_a_partner_are_results_as_expected(name):
    """Also with one key in three rows: its rows have partners, and the others fewer."""
    join, rates, values = JOINS[name]
    windows = " AND ".join(f"WINDOW (A, {alias}) = 1 SECOND" for alias in "BC"[: len(rates) - 1])
    # Of two joins the second one meets the frequent key more often: it is that of most results.
    for heaviest in (0.0, 0.3):
        load = Workload(name, windows, rates, values, heaviest, 2.0, join=join)
        for candidate, measured in runs(load):
            cost = candidate.estimated.cost
            assert measured.results == pytest.approx(cost.results, rel=0.2)
            assert measured.state_rows == pytest.approx(cost.state_rows, rel=0.25)


def test_more_bounds_kernels_and_passes_are_more_work_in_the_order_of_the_paper():
    """Within a kernel GCA compares most and EXACT least; within bounds NLW most and HW least."""
    plan = planned(WORKLOADS[2], CostSettings())
    work = {
        (each.plan.stages[0].bounds.value, each.plan.stages[0].kernels[0]): each.estimated.cost.comparisons
        for each in of_our_own(plan)
    }
    for kernel in ("hw", "mw", "nlw"):
        assert work["exact", kernel] < work["lca", kernel] < work["gca", kernel]
    for bounds in ("exact", "lca", "gca"):
        assert work[bounds, "hw"] < work[bounds, "mw"] < work[bounds, "nlw"]


def test_a_narrow_band_in_a_long_window_asks_for_an_ordered_index():
    narrow = Workload("narrow", "WINDOW = 3 SECONDS", (1000, 1000), 1, 1.0, 3.0, "none", 10)
    wide = Workload("wide", "WINDOW = 20 MILLISECONDS", (300, 300), 1, 1.0, 0.02, "none", 9000)
    assert planned(narrow, CostSettings()).physical.stages[0].kernels == ("ordered",)
    assert planned(wide, CostSettings()).physical.stages[0].kernels == ("mw",)
