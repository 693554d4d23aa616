"""The plans of all shapes with the values that their parts may take, what they cost, and which is taken."""

import math
from collections.abc import Sequence
from dataclasses import replace

from wjoin.planner.choose.choice import options
from wjoin.planner.choose.layouts import FREE, hops_name, sequence_name
from wjoin.planner.choose.placements import Capacity
from wjoin.planner.choose.plan_candidates import Weighing, candidates
from wjoin.planner.cost.model import CostModel, CostSettings
from wjoin.planner.cost.psp import heaviest, heaviest_bucket
from wjoin.planner.cost.stage_estimates import Arrival, InputEstimate
from wjoin.planner.cost.stream_statistics import UNIT_INTERVAL, stream_statistics, units_per_second
from wjoin.planner.plan.physical import Passes, TimeKind
from wjoin.planner.request import Planning
from wjoin.planner.shape.shape import Shape


def weigh(planning: Planning) -> Planning:
    """Add what every shape may choose from, and its cost model.

    Raises WJoinError WJ504 for a hint or setting that cannot be granted.
    """
    found = [_weighing(planning, shape) for shape in planning.shapes]
    return replace(planning, weighings=tuple(each for each in found if each.options.passes))


def _weighing(planning: Planning, shape: Shape) -> Weighing:
    request, graph = planning.request, planning.graph
    costs, layouts, kind = request.costs, request.layouts, graph.kind
    unit = units_per_second(kind)
    statistics = tuple(
        stream_statistics(source.relation, scan, keys, kind)
        for source, scan, keys in zip(planning.bound.sources, shape.physical.streams, shape.keys, strict=True)
    )
    duration = max(statistics[stream].duration.value for stream in shape.physical.staged)
    interval = UNIT_INTERVAL if kind is TimeKind.INTEGRAL else costs.expected_interval * unit
    streaming = planning.streaming
    arrival = Arrival(interval, duration, streaming, costs.stretch, costs.partitions or costs.workers)
    model = CostModel(statistics, arrival, costs, unit)
    inputs = [each.inputs for each in model.stages(shape.physical)]
    shape = _with_rows(shape, [each for group in inputs for each in group], costs)
    room = Capacity(
        costs.workers,
        interval if streaming else duration,
        tuple(max(heaviest(each)) for each in inputs),
        tuple(map(heaviest_bucket, inputs)),
        chained=shape.draft not in planning.whole,
    )
    name = hops_name(shape.physical) if shape.hops else sequence_name(shape.draft, graph.names)
    allowed = options(
        request.block,
        request.settings,
        shape.draft,
        graph,
        shape.physical,
        relations=request.relations,
        room=room,
        kept=layouts.placements(name) if streaming else None,
    )
    if shape.hops:
        # Hops have one pass over the windows.
        allowed = replace(allowed, passes=tuple(each for each in allowed.passes if each is Passes.HULL))
    return Weighing(name, shape, allowed, model)


def _with_rows(shape: Shape, inputs: Sequence[InputEstimate], costs: CostSettings) -> Shape:
    """Return a shape whose summaries are laid out for the rows that windows have at a node, about."""
    asked = shape.physical.approximate
    if asked is None:
        return shape
    rows = max(each.kept_rows for each in inputs) / (costs.partitions or costs.workers)
    # A power of two: what was told goes on to count while little has changed.
    rounded = 1 << max(4, min(40, round(math.log2(max(rows, 1)))))
    return replace(shape, physical=replace(shape.physical, approximate=replace(asked, rows=rounded)))


def choose(planning: Planning) -> Planning:
    """Add every plan that is weighed, the one to take first."""
    layouts = planning.request.layouts if planning.streaming else FREE
    found = candidates(planning.weighings, planning.request.costs.memory, layouts)
    return replace(planning, candidates=found)
