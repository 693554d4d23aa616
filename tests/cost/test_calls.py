"""How often predicates are expected to be called, and how often they are: once for rows that tuples share."""

from dataclasses import replace
from typing import Any

import choices_theta
import pytest

from tests.kit.local import LocalWorkers
from tests.tiers import tiers
from wjoin.executor.counts import Counts
from wjoin.planner.choose.plan_candidates import Candidate

COST_US = 50.0


def calls(load: choices_theta.Workload, candidate: Candidate) -> float:
    """Return the pairs of a micro-batch that a predicate which takes no time is called for."""
    quick, called = replace(load, cost_us=0.0).predicate, [0]

    def counted(left: Any, right: Any) -> Any:
        called[-1] += len(left)
        return quick.function(left, right)

    predicates = {"alike": replace(quick, function=counted)}
    local = LocalWorkers(candidate.plan, load.cores, predicates=predicates)
    for blocks in choices_theta.micro_batches(load, candidate.plan):
        called.append(0)
        list(local.run(blocks, Counts()))
    return sum(called[-choices_theta.MEASURED :]) / choices_theta.MEASURED


@pytest.mark.parametrize(
    ("share", "whole"),
    tiers([(0.5, True), (0.1, True), (0.5, False)], long=[(0.5, True)], thorough=[(0.1, True), (0.5, False)]),
)
def test_calls_are_as_expected_and_the_plan_with_few_is_chosen(share: float, whole: bool) -> None:
    load = choices_theta.Workload((30, 30, 30), 1.0, 2, COST_US, share, whole=whole)
    by_layout = {each.layout: each for each in reversed(choices_theta.planned(load).candidates)}
    ours = [each for each in by_layout.values() if each.plan.stages]
    found = {each.layout: calls(load, each) for each in ours}
    for each in ours:
        expected = each.estimated.cost.terms["predicates"] / COST_US * 1e6
        assert expected == pytest.approx(found[each.layout], rel=0.3), each.layout
    chosen = choices_theta.planned(load).candidates[0]
    assert found[chosen.layout] <= 1.5 * min(found.values())
