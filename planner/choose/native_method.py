"""The method NATIVE: when Spark's own joins of two can do a W-join, and in which order they do it."""

from collections.abc import Sequence
from dataclasses import dataclass

from wjoin.planner.catalog import Relation
from wjoin.planner.plan.checks import Comparison, PredicateCheck, of_kind
from wjoin.planner.plan.physical import PhysicalPlan, TimeKind
from wjoin.planner.plan.probes import chosen_orders
from wjoin.planner.plan.stage_kinds import Stage
from wjoin.planner.shape.decompose import Decomposition
from wjoin.planner.windows.bounds import Windows
from wjoin.planner.windows.window_graph import WindowGraph


def native_refusal(
    plan: PhysicalPlan, draft: Decomposition, graph: WindowGraph, relations: Sequence[Relation]
) -> tuple[str, str] | None:
    """Return why Spark's own joins cannot do the stages of ``draft``, and the remedy; None where they can.

    Over tables, and of one stream, they always can, unless a predicate is called. ``plan`` has these stages.
    """
    if any(of_kind(stage.checks, PredicateCheck) for stage in plan.stages):
        return "only wjoin's own stages can call a predicate of several streams", "use PLAN(MULTIWAY)"
    if plan.asof:
        return "only wjoin's own stages run an ASOF JOIN", "use PLAN(MULTIWAY)"
    if plan.counted:
        return "only wjoin's own stages count the rows of a window", "use PLAN(MULTIWAY)"
    if plan.optional and any(each.streaming for each in relations):
        reason = "Spark waits for one watermark of all streams, and gives rows without a partner later"
        return reason, "use PLAN(MULTIWAY)"
    if not draft.stages or not any(each.streaming for each in relations):
        return None
    for scan in plan.streams:
        if scan.idle_after is not None:
            return f"Spark's own joins wait for {scan.alias}, which has IDLE AFTER", "use PLAN(MULTIWAY)"
    if graph.kind is not TimeKind.TIMESTAMP:
        shown = _SHOWN[graph.kind]
        reason = f"Spark's stream joins need a TIMESTAMP event time, and this one is {shown}"
        return reason, "use PLAN(MULTIWAY)"
    for name, each in zip(graph.names, relations, strict=True):
        if each.watermark:
            reason = f"{name} already has a Spark watermark; Spark allows only one"
            return reason, "use PLAN(MULTIWAY)"
    for stage in draft.stages:
        if not stage.classes:
            first, second = (
                " and ".join(graph.names[stream] for stream in each.members) for each in stage.inputs[:2]
            )
            reason = f"no equality links {first} to {second}, and Spark joins two streams only on an equality"
            return reason, "add one to WHERE, or use PLAN(MULTIWAY)"
    return None


_SHOWN = {TimeKind.TIMESTAMP_NTZ: "TIMESTAMP_NTZ", TimeKind.INTEGRAL: "a whole number"}


@dataclass(frozen=True)
class PairJoin:
    """A join of two: rows or combinations of the streams ``left`` with those of the streams ``right``.

    ``keys`` are the key of either side, as (stream, number of its code); None where there is no
    equality. ``comparisons`` are those that both sides are needed for.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    keys: tuple[tuple[int, int], tuple[int, int]] | None
    comparisons: tuple[Comparison, ...]


def pair_joins(plan: PhysicalPlan) -> tuple[PairJoin, ...]:
    """Return the joins of two that do what the stages do: inside a stage, input by input.

    Over tables in the order of its last input's probe, as wjoin's own stages join them. On streams a
    checkpoint holds the state of one order, that of the statement.
    """
    return tuple(join for stage in plan.stages for join in _chain(stage, reordered=not plan.streaming))


def _chain(stage: Stage, *, reordered: bool) -> list[PairJoin]:
    inputs = list(stage.inputs)
    if reordered and (orders := chosen_orders(stage)) is not None:
        origin, order = next(iter(orders.items()))
        inputs = [inputs[origin], *(inputs[number] for number in order)]
    first, *others = inputs
    joins = []
    left = first.members
    for each in others:
        keys = None if first.key is None or each.key is None else (first.key, each.key)
        compared = of_kind(stage.checks, Comparison)
        comparisons = tuple(pair for pair in compared if _spans(pair, left, each.members))
        joins.append(PairJoin(left, each.members, keys, comparisons))
        left += each.members
    return joins


def _spans(pair: Comparison, left: Sequence[int], right: Sequence[int]) -> bool:
    streams = (pair.left[0], pair.right[0])
    return any(each in left for each in streams) and any(each in right for each in streams)


def latest_bound(windows: Windows, first: Sequence[int], second: Sequence[int]) -> int | None:
    """Return how much later the latest row of ``second`` can be than that of ``first``; None for no limit.

    >>> latest_bound(Windows.of([[0, 5], [3, 0]]), [0], [1])
    5
    """
    bounds = []
    for stream in second:
        known = [bound for other in first if (bound := windows.between(other, stream)) is not None]
        if not known:
            return None
        bounds.append(min(known))
    return max(bounds)


def whole_seconds(bound: int) -> int:
    """Return a bound in microseconds as seconds, rounded up.

    >>> whole_seconds(5_000_001), whole_seconds(-1)
    (6, 0)
    """
    return -(-bound // 1_000_000)
