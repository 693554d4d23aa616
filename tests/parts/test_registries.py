"""A kernel or a route more: its file, its line in a registry, and it is weighed, explained and run."""

from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.parts.worked_example import BLOCK, EVERYWHERE
from tests.plans.catalogue import plan
from tests.properties.drawn_plans import plans, with_choice
from tests.properties.test_step import assert_defined_result
from tests.tiers import examples
from wjoin.commands.calibrate import kernel_costs
from wjoin.parts.kernels.registry import KERNELS
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.explain.describe import describe
from wjoin.planner.plan.physical import PhysicalPlan

KERNEL = patch.dict(KERNELS, {BLOCK.name: BLOCK})
ROUTE = patch.dict(ROUTES, {EVERYWHERE.name: EVERYWHERE})
KEYED = "SELECT A.v FROM ticks A, ticks B WINDOW = 5 WHERE A.v = B.v"
KEYLESS = "SELECT A.v FROM ticks A, ticks B WINDOW = 5"


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow])
@given(plans(), st.data())
def test_the_kernel_of_the_docs_gives_the_defined_result(plan: PhysicalPlan, data: st.DataObject) -> None:
    with KERNEL:
        assert_defined_result(with_choice(plan, kernel="block"), data, ["block", "hw"])


def test_a_new_kernel_is_weighed_explained_and_measured() -> None:
    before = {each.kernel for each in describe(plan(KEYED)).candidates}
    with KERNEL:
        found = {each.kernel: each.words for each in describe(plan(KEYED)).candidates}
        costs = kernel_costs(BLOCK, 1e-8)
    assert found.keys() - before == {"block"}
    assert BLOCK.words[0] in found["block"]
    assert costs.keys() == {"probe_block", "pair_block"}


def test_a_new_route_is_weighed_where_it_applies() -> None:
    before = {each.route for each in describe(plan(KEYLESS)).candidates}
    with ROUTE:
        found = {each.route: each.plan for each in describe(plan(KEYLESS)).candidates}
        keyed = {each.route for each in describe(plan(KEYED)).candidates}
    assert found.keys() - before == {"everywhere"}
    assert "everywhere" in found["everywhere"]
    assert "everywhere" not in keyed
