"""Every route, and one of this test's own, over any number of workers: each result is made once."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.kit.local import LocalWorkers
from tests.parts.worked_example import EVERYWHERE
from tests.properties.drawn_plans import PREDICATES, Row, block, combinations, expected, plans
from tests.properties.test_step import STRETCHES
from tests.tiers import examples, tiers
from wjoin.executor import routing
from wjoin.executor.counts import Counts
from wjoin.executor.routing import Router
from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.routes.hash_route import bucket_numbers
from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.routes.route import Placement, Role, Share, Slices
from wjoin.planner.plan.edges import scan_columns
from wjoin.planner.plan.physical import Passes, PhysicalPlan
from wjoin.planner.plan.probes import arranged, chosen_orders
from wjoin.planner.plan.slicing import closed_bands
from wjoin.planner.plan.stage_kinds import Gather
from wjoin.planner.shape.at_once import at_once
from wjoin.planner.shape.hops import can_hop, in_hops


class Visiting(type(EVERYWHERE)):
    """Each row is stored on one worker and visits all: the roles of Everywhere turned round."""

    name = "visiting"
    visits = True

    def shares(
        self, codes: Int64Array | None, times: Int64Array, workers: int, slices: Slices | None
    ) -> Iterator[Share]:
        for share in super().shares(codes, times, workers, slices):
            yield dataclasses.replace(share, role=Role.BOTH if share.role is Role.BOTH else Role.VISIT)


SLICES = st.sampled_from([1, 2, 5, 20, 100])
"""Lengths of slices: far less than a window, and far more."""

FREQUENT = int(bucket_numbers(np.zeros(1, np.int64))[0])
"""The bucket of the key 0."""

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much]
EXACT = [name for name, route in ROUTES.items() if not route.approximate]
OWN = {each.name: each for each in (EVERYWHERE, Visiting())}


def routed(plan: PhysicalPlan, name: str) -> PhysicalPlan:
    """Return a plan by a route; what is put together stays by its rows."""
    stages = tuple(
        each if isinstance(each, Gather) else dataclasses.replace(each, placement=Placement(name))
        for each in plan.stages
    )
    return arranged(dataclasses.replace(plan, stages=stages), [chosen_orders(each) for each in plan.stages])


def with_slices(plan: PhysicalPlan, length: int, copies: int, master: int = 0) -> PhysicalPlan:
    """Return the plan with slices so long and in so many copies, where its route has such.

    Where it has slices for one key only, that is 0. ``master``: the input in slices, where only one is.
    """
    stages = []
    for each in plan.stages:
        route = ROUTES[each.placement.route]
        if route.slices:
            bucket = FREQUENT if route.heaviest else None
            where = dataclasses.replace(
                each.placement,
                length=length,
                copies=copies if route.copies else 1,
                bucket=bucket,
                master=0 if route.visits else master % len(each.inputs),
            )
            each = dataclasses.replace(each, placement=where)
        stages.append(each)
    return dataclasses.replace(plan, stages=tuple(stages))


@pytest.mark.parametrize("route", tiers([*EXACT, *OWN], long=["visiting"]))
@settings(
    max_examples=examples(15), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(st.integers(1, 9), st.data())
def test_every_result_is_made_once(route: str, workers: int, data: st.DataObject) -> None:
    known = {**ROUTES, **OWN}
    plan = data.draw(plans(near=known[route].values))
    applies = known[route].applies
    assume(
        route in OWN
        or all(
            applies(keyed=each.keyed, inputs=len(each.inputs), near=bool(closed_bands(each)))
            for each in plan.stages
        )
    )
    # A partial tuple meets only what its own worker has stored: to visit is enough for joins of two.
    assume(not known[route].visits or all(len(stage.inputs) == 2 for stage in plan.stages))
    with patch.dict(ROUTES, OWN):
        sliced = with_slices(
            routed(plan, route), data.draw(SLICES), data.draw(st.integers(1, 4)), data.draw(st.integers(0, 4))
        )
        assert_made_once(plan, sliced, workers, data)


@pytest.mark.long
@settings(max_examples=examples(8), suppress_health_check=SLOW)
@given(st.integers(1, 9), st.sampled_from([in_hops, at_once]), st.data())
def test_in_hops_every_result_is_made_once(
    workers: int, hopping: Callable[[PhysicalPlan], PhysicalPlan], data: st.DataObject
) -> None:
    plan = data.draw(plans())
    assume(can_hop(plan))
    plan = dataclasses.replace(plan, passes=Passes.HULL)
    hops = hopping(plan)
    route = data.draw(st.sampled_from(["psp", "psp", "psp", "single"]))
    assert_made_once(plan, with_slices(routed(hops, route), data.draw(SLICES), 1), workers, data)


def assert_made_once(plan: PhysicalPlan, sliced: PhysicalPlan, workers: int, data: st.DataObject) -> None:
    """Run a plan on so many workers, and compare its results with what another form of it says."""
    local = LocalWorkers(sliced, workers, data.draw(STRETCHES), PREDICATES)
    rows: list[list[Row]] = [[] for _ in plan.streams]
    found: Counter[tuple[Row, ...]] = Counter()
    late = 0
    counts = Counts()
    seen: dict[int, int] = {}
    for clock in range(0, 5 * data.draw(st.integers(1, 4)), 5):
        row = st.tuples(st.integers(0, 2), st.integers(clock - 4, clock + 5), st.none() | st.integers(0, 3))
        batch = {n: data.draw(st.lists(row, max_size=5)) for n in range(len(plan.streams))}
        for n, new in batch.items():
            mark = seen[n] - plan.streams[n].delay if n in seen else None
            on_time = [each for each in new if mark is None or each[1] >= mark]
            late += len(new) - len(on_time)
            rows[n] += on_time
        for n, new in batch.items():
            seen |= {n: max(*(time for _, time, _ in new), seen.get(n, -99))} if new else {}
        made = local.run({n: block(plan, n, new, scan_columns(plan, n)) for n, new in batch.items()}, counts)
        found.update(each for result in made for each in combinations(plan, result))
    assert found == expected(plan, rows)
    assert sum(report["late"] for report in counts.streams.values()) == late


@pytest.mark.parametrize("together", [1, 200, routing.TOGETHER_BYTES])
@pytest.mark.parametrize("name", ["hash", "single", "everywhere"])
def test_a_router_sends_the_rows_of_each_share(name: str, together: int) -> None:
    """However many shares are taken at once."""
    times = np.arange(50, dtype=np.int64)
    block = pa.RecordBatch.from_pydict({"t0": times, "k0_0": times, "c0_0": [str(n) for n in times]})
    with patch.dict(ROUTES, OWN), patch.object(routing, "TOGETHER_BYTES", together):
        workers = tuple(range(100, 100 + ROUTES[name].workers(5)))
        router = Router(0, 0, "k0_0", name, workers)
        found = [(worker, part.to_pydict(), role) for worker, part, role in router.parts(block)]
        shares = list(ROUTES[name].shares(times, times, len(workers), None))
    rows = [times if share.rows is None else share.rows for share in shares]
    assert found == [
        (workers[share.worker], block.take(pa.array(own)).to_pydict(), share.role)
        for share, own in zip(shares, rows, strict=True)
    ]
    assert len(found) == len(workers) * (2 if name == "everywhere" else 1)


def test_each_worker_of_a_route_gets_a_share_of_the_keys() -> None:
    codes = np.arange(1000, dtype=np.int64)
    shares = list(ROUTES["hash"].shares(codes, codes, 4, None))
    assert [share.worker for share in shares] == [0, 1, 2, 3]
    assert sorted(np.concatenate([share.rows for share in shares])) == codes.tolist()
    assert all(200 < len(share.rows) < 300 and share.role is Role.BOTH for share in shares)
