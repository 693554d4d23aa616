"""Joins of two to five streams without a key, and with a hot one, by every route on 1 to 16 workers.

Planned from their text, and run in this process: each micro-batch has what DuckDB finds for it, however the
rows are cut, however far out of order they are, and where attempts die.
"""

from collections.abc import Callable, Sequence
from itertools import product

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.properties.test_step import STRETCHES
from tests.properties.theta import (
    WORDS,
    WORKERS,
    Theta,
    assert_as_duckdb,
    cuts,
    hinted,
    hopped,
    planned,
    thetas,
    with_slices,
)
from tests.tiers import tiers
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.stage_kinds import Gather, Hop
from wjoin.planner.shape.at_once import at_once

pytestmark = pytest.mark.thorough

EXAMPLES = {2: 12, 3: 10, 4: 6, 5: 5}
SLICES = (1, 3, 20, 200)
CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def sliced(theta: Theta, plan: PhysicalPlan, data: st.DataObject) -> PhysicalPlan:
    """Return a plan with slices of any length."""
    length = data.draw(st.none() | st.sampled_from(SLICES))
    unit = 1 if theta.statement.integral else 1_000_000
    return plan if length is None else with_slices(plan, length, unit)


def by_hops(theta: Theta, data: st.DataObject) -> PhysicalPlan:
    """Return a plan in hops, with slices of any length."""
    plan = hopped(theta.statement, data.draw(hinted("single")))
    assert [isinstance(stage, Hop) for stage in plan.stages] == [True] * (len(theta.tables) - 1)
    return sliced(theta, plan, data)


def by_one_hop(theta: Theta, data: st.DataObject) -> PhysicalPlan:
    """Return a plan in which new rows meet all streams at once, with slices of any length."""
    plan = hopped(theta.statement, data.draw(hinted("single")), at_once)
    assert [isinstance(stage, Gather) for stage in plan.stages] == [False, True]
    return sliced(theta, plan, data)


@pytest.mark.parametrize(
    ("route", "count"),
    tiers(
        product(["single", *(name for name in WORDS if not ROUTES[name].heaviest)], EXAMPLES),
        long=product(["psp", "atr", "range"], [3]),
    ),
)
def test_without_a_key(route: str, count: int) -> None:
    sizes = found(route, count, keyed=False)
    assert sum(size > 0 for size in sizes) >= len(sizes) / max(3, count)


@pytest.mark.parametrize(
    ("form", "count"), tiers(product([by_hops, by_one_hop], [3, 4, 5]), long=[(by_hops, 3)])
)
def test_in_hops(form: Callable[[Theta, st.DataObject], PhysicalPlan], count: int) -> None:
    sizes = checked(form, count, keyed=False, route="psp")
    assert sum(size > 0 for size in sizes) >= len(sizes) / max(3, count)


@pytest.mark.parametrize(
    ("route", "count"),
    tiers(product(["hash", *WORDS], [2, 3]), long=product(["hash", "psp", "skew"], [2])),
)
def test_with_a_hot_key(route: str, count: int) -> None:
    sizes = found(route, count, keyed=True)
    assert sum(size > 0 for size in sizes) >= len(sizes) / max(3, count)


def found(route: str, count: int, *, keyed: bool) -> Sequence[int]:
    """Check random joins by a route; return how many results they have."""

    def plan(theta: Theta, data: st.DataObject) -> PhysicalPlan:
        return by_route(theta, route, data)

    return checked(plan, count, keyed=keyed, route=route)


def checked(
    plan: Callable[[Theta, st.DataObject], PhysicalPlan], count: int, *, keyed: bool, route: str
) -> Sequence[int]:
    """Check the plans of random joins; return how many results they have."""
    sizes: list[int] = []

    @settings(max_examples=EXAMPLES[count], deadline=None, suppress_health_check=CHECKS)
    @given(thetas(count, keyed=keyed, route=route), st.data())
    def check(theta: Theta, data: st.DataObject) -> None:
        made = plan(theta, data)
        for _ in range(2 if count < 4 else 1):
            batches = data.draw(cuts(theta))
            workers, stretch = data.draw(st.sampled_from(WORKERS)), data.draw(STRETCHES)
            crashes = data.draw(st.lists(st.integers(0, 4), max_size=2))
            sizes.append(assert_as_duckdb(theta.statement, made, batches, workers, stretch, crashes))

    check()
    return sizes


def by_route(theta: Theta, route: str, data: st.DataObject) -> PhysicalPlan:
    """Return a plan all of whose stages have a route, with slices of any length."""
    plan = planned(theta.statement, data.draw(hinted(route)))
    assume(all(stage.placement.route == route for stage in plan.stages))
    return sliced(theta, plan, data)
