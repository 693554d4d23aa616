"""Joins over values at the ends of their types and odd keys, by every route and by choice, with restarts.

Planned from their text and run in this process, over streams and over tables: each micro-batch has what brute
force finds for it, by any number of workers, in any stretch, and also where a restart takes another hint.
"""

import os
import random
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.kit.oracle import brute_force
from tests.properties.theta import (
    WORDS,
    Theta,
    any_cut,
    any_kinds,
    arriving,
    assert_as_duckdb,
    changed,
    hinted,
    planned,
    seeds,
    thetas,
    with_slices,
)
from tests.tiers import tiers
from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.plan.physical import PhysicalPlan

WORKERS = (1, 2, 7)
STRETCHES = (*(STRETCH_BYTES,) * 18, 300, 1)
CASES_OF_A_PLAN = 20
ROWS = {2: 12, 3: 7, 4: 5}
CHOICE = "choice"
WAYS = (CHOICE, *WORDS)
STREAMS = (2, 2, 2, 3, 3, 4)
SEED = int(os.environ.get("WJOIN_SEED", random.randrange(1 << 32)))
"""What all cases are drawn from: printed, so that they can be drawn again with WJOIN_SEED."""

MANY = int(os.environ.get("WJOIN_CASES", "10000"))
LENGTHS = (1, 3, 20)


@pytest.mark.parametrize("way", tiers(WAYS, long=WAYS[1:]))
def test_values_at_their_ends(way: str) -> None:
    assert_found(way, 20)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.thorough
def test_many_values_at_their_ends(way: str) -> None:
    """All ways together have ten thousand cases."""
    assert_found(way, -(-MANY // len(WAYS)))


def assert_found(way: str, count: int) -> None:
    """Check so many random cases; a third of them have results."""
    print(f"WJOIN_SEED={SEED}: {count} cases by {way}")
    sizes: list[int] = []

    @seed(SEED)
    @settings(
        max_examples=-(-count // CASES_OF_A_PLAN),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=PHASES,
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        sizes.extend(case(way, data))

    check()
    print(f"{len(sizes)} cases, {sum(size > 0 for size in sizes)} with results")
    assert len(sizes) >= count
    assert sum(size > 0 for size in sizes) >= len(sizes) / 4


PHASES: Sequence[Phase] = (Phase.generate, *([Phase.shrink] if "WJOIN_SHRINK" in os.environ else []))


def case(way: str, data: st.DataObject) -> list[int]:
    """Check a plan over the rows of several cases; return how many results each has."""
    route = "single" if way == CHOICE else way
    count = data.draw(st.sampled_from(STREAMS))
    keyed = ROUTES[route].heaviest or data.draw(st.booleans())
    kinds = data.draw(any_kinds(near=ROUTES[route].values, plain=ROUTES[route].heaviest))
    theta = data.draw(thetas(count, keyed=keyed, route=route, kinds=kinds))
    partitions, streaming = (
        data.draw(st.sampled_from(WORKERS)),
        data.draw(st.sampled_from([True, True, False])),
    )
    plan = planned_by(way, theta, partitions, data, streaming=streaming)
    others = [data.draw(changed(plan)) for _ in range(2)]
    chance = data.draw(seeds())
    sizes = []
    for number in range(CASES_OF_A_PLAN):
        tables = arriving(chance, theta.statement, kinds, ROWS)
        batches = any_cut(chance, tables, most=3) if streaming else [tables]
        stretch = chance.choice(STRETCHES)
        crashes = [number % 3] if number < 2 else []
        restarts = {n: chance.choice(others) for n in range(1, len(batches)) if chance.random() < 0.3}
        sizes.append(
            assert_as_duckdb(
                theta.statement, plan, batches, partitions, stretch, crashes, restarts, brute_force
            )
        )
    return sizes


def planned_by(
    way: str, theta: Theta, partitions: int, data: st.DataObject, *, streaming: bool
) -> PhysicalPlan:
    """Return the plan of a case, by a hint or by choice; by a hint with slices of any length."""
    schemas = {alias: table.schema for alias, table in theta.tables.items()}
    costs = CostSettings(cores=data.draw(st.sampled_from([1, 2, 7])), partitions=partitions)
    hints = () if way == CHOICE else data.draw(hinted(way, WORKERS))
    plan = planned(theta.statement, hints, schemas, costs, streaming=streaming)
    length = data.draw(st.none() | st.sampled_from(LENGTHS)) if way != CHOICE else None
    unit = 1 if theta.statement.integral else 1_000_000
    return plan if length is None else with_slices(plan, length, unit)
