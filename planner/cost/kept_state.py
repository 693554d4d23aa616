"""What the inputs of a join keep: how much of the state each is, which window decides how long, and what a
longer one would add.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from wjoin.grammar.spans import Span
from wjoin.planner.choose.held_streams import is_held
from wjoin.planner.cost.stage_estimates import ROW_BYTES
from wjoin.planner.plan.physical import PhysicalPlan, TimeKind
from wjoin.planner.plan.stage_kinds import StageEdge
from wjoin.planner.planning import PlannedSelect
from wjoin.planner.windows.bounds import Windows, hull
from wjoin.planner.windows.closure import Branch, Edge, close

Pair = tuple[int, int]

_Far = tuple[int, int, int]
"""A span, the stream of an input that it begins with, and the one that ends it."""

_NOWHERE = Span(0, 0)

SECOND = 1_000_000


@dataclass(frozen=True)
class KeptFor:
    """Until the watermark of which stream the rows of an input stay, and how far beyond their own time.

    ``span`` is the event time that their newest rows are ahead of the oldest ones: that of the windows, and
    the delay of the stream. ``windows`` are those as written whose widths add up to it. All are None, or
    empty, where nothing ends it.
    """

    span: int | None
    awaited: int | None = None
    windows: tuple[Pair, ...] = ()


@dataclass(frozen=True)
class InputState:
    """The state of an input of a stage: its streams, and its bytes as they were estimated."""

    members: tuple[int, ...]
    size: float
    kept: KeptFor


def input_states(planned: PlannedSelect) -> list[InputState]:
    """Return the inputs of all stages that keep rows, once the watermarks have travelled the windows."""
    best = planned.candidates[0]
    found = [
        (each, source.kept_rows * (source.width + ROW_BYTES))
        for stage, estimate in zip(best.plan.stages, best.estimated.stages, strict=True)
        for each, source in zip(stage.inputs, estimate.inputs, strict=True)
        if each.stored and not is_held(best.plan, each)
    ]
    # Some rows are kept by several workers; all of them together are what the plan keeps.
    whole = sum(size for _, size in found)
    scale = best.estimated.cost.state_bytes / whole if whole else 0.0
    return [InputState(each.members, scale * size, kept_for(planned, each)) for each, size in found]


def kept_for(planned: PlannedSelect, edge: StageEdge) -> KeptFor:
    """Return how long the rows of an input stay, and what decides it."""
    plan = planned.physical
    far = _far(edge, plan, {})
    if far is None:
        return KeptFor(None)
    span, member, stream = far
    branches = planned.graph.branches
    longest = max(branches, key=lambda each: each.windows.between(member, stream) or 0, default=None)
    path = () if longest is None else longest.paths[member][stream]
    return KeptFor(span, stream, tuple(pairwise(path)))


def _far(edge: StageEdge, plan: PhysicalPlan, longer: Mapping[Pair, int]) -> _Far | None:
    """Return the span for which rows of an input stay, by which member and stream; None if for ever.

    ``longer``: by how much windows between a member and a stream are longer than in the plan.
    """
    ends = []
    for rule in edge.retention:
        known = [
            (far + longer.get((member, rule.stream), 0), member)
            for member, far in rule.distances
            if far is not None
        ]
        if not known:
            return None
        far, member = min(known)
        ends.append((far + plan.streams[rule.stream].delay, member, rule.stream))
    return max(ends, default=None)


def slopes(planned: PlannedSelect, sizes: Mapping[tuple[int, ...], float]) -> list[tuple[Pair, float]]:
    """Return by how many bytes the state grows if a window as written is one second (one unit) longer.

    By the streams of the window, the steepest first; windows that add nothing are left out, and all where
    joins of a tree have windows of their own. ``sizes`` are the bytes of the inputs by their streams.
    """
    plan, graph = planned.physical, planned.graph
    if plan.tree or graph.joins or any(each.counted for each in graph.branches):
        return []
    unit = 1 if plan.time_kind is TimeKind.INTEGRAL else SECOND
    found = []
    for pair in dict.fromkeys(pair for branch in graph.branches for pair in _given(branch.given)):
        wider = hull([_longer(branch, pair, unit).windows for branch in graph.branches])
        longer = {
            (i, j): most - before
            for i in range(wider.size)
            for j in range(wider.size)
            if (most := wider.between(i, j)) is not None
            and (before := graph.windows.between(i, j)) is not None
            and most != before
        }
        added = sum(
            _added(each, sizes, _far(each, plan, {}), _far(each, plan, longer))
            for stage in plan.stages
            for each in stage.inputs
        )
        if added > 0:
            found.append((pair, added))
    return sorted(found, key=lambda each: -each[1])


def size_by_delay(
    plan: PhysicalPlan, streams: Collection[int], delay: int, sizes: Mapping[tuple[int, ...], float]
) -> float:
    """Return the bytes that the state of a join would have if some streams had another delay.

    That is in microseconds, or the unit of an integral event time. ``sizes`` are the bytes of the inputs by
    their streams, as they are. A stream's delay keeps the rows of those that wait for it.
    """
    scans = (replace(each, delay=delay) if n in streams else each for n, each in enumerate(plan.streams))
    other = replace(plan, streams=tuple(scans))
    edges = (each for stage in plan.stages for each in stage.inputs)
    added = (_added(each, sizes, _far(each, plan, {}), _far(each, other, {})) for each in edges)
    return sum(sizes.values()) + sum(added)


def _added(
    edge: StageEdge, sizes: Mapping[tuple[int, ...], float], now: _Far | None, then: _Far | None
) -> float:
    """Return the bytes that an input keeps more where its rows stay as long as ``then`` says."""
    if not edge.stored or now is None or then is None or now[0] <= 0:
        return 0.0
    return sizes.get(edge.members, 0.0) * (then[0] - now[0]) / now[0]


def _given(windows: Windows) -> Iterator[Pair]:
    for first in range(windows.size):
        for second in range(first + 1, windows.size):
            if windows.between(first, second) is not None or windows.between(second, first) is not None:
                yield first, second


def _longer(branch: Branch, pair: Pair, unit: int) -> Branch:
    """Return a conjunction with one of its windows longer; a side that ends at the same time stays."""
    given, edges = branch.given, []
    for i in range(given.size):
        for j in range(given.size):
            most = given.between(i, j)
            if i != j and most is not None:
                edges.append(Edge(i, j, most, _NOWHERE))
    if any(each.bound > 0 for each in edges if {each.source, each.target} == {*pair}):
        edges = [
            replace(each, bound=each.bound + unit)
            if {each.source, each.target} == {*pair} and each.bound > 0
            else each
            for each in edges
        ]
    return close(edges, given.size)
