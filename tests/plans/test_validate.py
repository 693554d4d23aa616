"""A plan that names what it does not have, or leaves out what a result needs, is no plan."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.plans.catalogue import plan
from tests.plans.test_edges import TWO_STAGES
from wjoin.parts.routes.route import Placement
from wjoin.planner import planning
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.stage_kinds import Joined, Stage, StageEdge
from wjoin.planner.plan.validate import validate
from wjoin.planner.request import Planning
from wjoin.planner.windows.bounds import Windows


def _second(change: Callable[[Stage], Stage]) -> Callable[[PhysicalPlan], PhysicalPlan]:
    return lambda whole: whole.with_stage(1, change(whole.stages[1]))


def _inputs(change: Callable[[StageEdge], StageEdge]) -> Callable[[PhysicalPlan], PhysicalPlan]:
    return _second(lambda stage: replace(stage, inputs=tuple(map(change, stage.inputs))))


def _checks(whole: PhysicalPlan, keep: bool) -> PhysicalPlan:
    """Return a plan whose first stage, or whose probes there, lack its checks."""
    stage = whole.stages[0]
    if not keep:
        return whole.with_stage(0, replace(stage, checks=stage.bands))
    probes = (
        replace(each, steps=tuple(replace(step, checks=()) for step in each.steps)) for each in stage.probes
    )
    return whole.with_stage(0, replace(stage, probes=tuple(probes)))


BROKEN: dict[str, tuple[Callable[[PhysicalPlan], PhysicalPlan], str]] = {
    "windows of others": (lambda whole: replace(whole, windows=Windows.of([[0]])), "windows of 1 streams"),
    "a hull too small": (
        lambda whole: replace(whole, branches=(Windows.of([[None] * 3] * 3),)),
        "outside their hull",
    ),
    "a column of an output": (
        lambda whole: replace(whole, outputs=(replace(whole.outputs[0], columns=((0, 99),)),)),
        "an output reads column 99 of stream 0",
    ),
    "a stream of an output": (
        lambda whole: replace(whole, outputs=(replace(whole.outputs[0], columns=((3, 0),)),)),
        "an output reads column 0 of stream 3",
    ),
    "a kernel": (_second(lambda stage: replace(stage, kernels=("none",))), "no such route and kernels"),
    "a route": (
        _second(lambda stage: replace(stage, placement=Placement("none"))),
        "no such route and kernels",
    ),
    "a later stage": (
        _inputs(lambda each: replace(each, source=Joined(1, each.members))),
        "an input is the result of stage 2",
    ),
    "a key": (_inputs(lambda each: replace(each, key=(each.members[0], 9))), "no key code 9"),
    "a column of an edge": (_inputs(lambda each: replace(each, columns=("c0_77",))), "no columns c0_77"),
    "a stage that nothing reads": (
        lambda whole: replace(whole, stages=(whole.stages[0], whole.stages[0])),
        "the stages do not have all streams",
    ),
    "a probe": (
        _second(lambda stage: replace(stage, probes=stage.probes[:1])),
        r"stage 2: new rows of inputs \[0\] begin results",
    ),
    "a step": (
        _second(lambda stage: replace(stage, probes=tuple(replace(each, steps=()) for each in stage.probes))),
        r"meet inputs \[\]",
    ),
    "retention": (_inputs(lambda each: replace(each, retention=())), "not kept for all that can meet them"),
    "a check that is not made": (lambda whole: _checks(whole, keep=True), "not decided as the stage asks"),
    "a check too many": (lambda whole: _checks(whole, keep=False), "not checked as the stage asks"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_no_plan_may_be_is_found(name: str) -> None:
    change, problem = BROKEN[name]
    whole = plan(TWO_STAGES).physical
    validate(whole)
    with pytest.raises(ValueError, match=problem):
        validate(change(whole))


def test_a_step_of_planning_that_breaks_a_plan_is_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(state: Planning) -> Planning:
        shapes = (
            replace(each, physical=replace(each.physical, windows=Windows.of([[0]]))) for each in state.shapes
        )
        return replace(state, shapes=tuple(shapes))

    place = planning.RULES.index(planning.shapes) + 1
    rules = (*planning.RULES[:place], broken, *planning.RULES[place:])
    monkeypatch.setattr(planning, "RULES", rules)
    with pytest.raises(ValueError, match="windows of 1 streams"):
        plan(TWO_STAGES)
