"""Joins without a key in one hop: a new row meets all other streams at once (PSP 2009, section 4.1).

It makes partial results with the rows of each of them alone. Those that it has begun come together on one
worker, in the same micro-batch, which puts them together and keeps nothing. So every stream is kept once; but
a row brings all its partners along, also those that have none in a third stream. That is for conditions
between every two streams.
"""

import itertools
from dataclasses import replace

from wjoin.parts.kernels.registry import first_usable
from wjoin.parts.routes.registry import plainest
from wjoin.parts.routes.route import Placement
from wjoin.planner.plan.edges import with_columns
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.stage_kinds import Gather, Hop, Pairs, Stage, StageEdge
from wjoin.planner.shape.hops import can_hop

MOST_STREAMS = 5
"""Beyond, a row would have too many kinds of partial results."""


def can_meet_at_once(plan: PhysicalPlan) -> bool:
    """Return whether a plan is one stage without a key, with a condition between every two of its streams."""
    if not can_hop(plan) or len(plan.stages[0].inputs) > MOST_STREAMS:
        return False
    (stage,) = plan.stages
    linked = {each.streams for each in stage.checks}
    return all(frozenset(pair) in linked for pair in itertools.combinations(stage.members, 2))


def at_once(plan: PhysicalPlan) -> PhysicalPlan:
    """Return a plan with such stages in the place of its one, their probes not arranged yet."""
    (stage,) = plan.stages
    return with_columns(replace(plan, stages=(_meeting(stage), _gathering(stage))))


def _meeting(stage: Stage) -> Hop:
    """Return the hop in which new rows meet the others, those of each stream by themselves."""
    numbers = range(len(stage.inputs))
    return Hop(
        inputs=stage.inputs,
        bounds=stage.bounds,
        placement=Placement(plainest(keyed=False, inputs=len(stage.inputs), hop=True)),
        kernels=stage.kernels,
        checks=tuple(each for each in stage.checks if len(each.streams) == 2),
        meets=tuple(tuple(other for other in numbers if other != own) for own in numbers),
    )


def _gathering(stage: Stage) -> Gather:
    """Return the stage that puts pairs together; the first that a row has begun meet the others."""
    inputs = tuple(StageEdge(Pairs(0, *pair)) for pair in itertools.permutations(stage.members, 2))
    return Gather(
        inputs=inputs,
        bounds=stage.bounds,
        placement=Placement(plainest(keyed=True, inputs=len(inputs), hop=True)),
        kernels=first_usable(keyed=True, indexed=False),
        checks=stage.checks,
    )
