"""The plans that a W-join could run by, what each would cost, and which is taken."""

import itertools
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from wjoin.planner.catalog import Origin
from wjoin.planner.choose.choice import Alternatives
from wjoin.planner.choose.layouts import Layout, LayoutRule
from wjoin.planner.cost.approximate import BASE, DIGEST, SIZES
from wjoin.planner.cost.model import CostModel, Estimated
from wjoin.planner.figures import figure
from wjoin.planner.plan.approximation import SIZE
from wjoin.planner.plan.physical import Method, Passes, PhysicalPlan
from wjoin.planner.plan.probes import Orders, arranged_stage
from wjoin.planner.plan.stage_kinds import Bounds, Stage
from wjoin.planner.shape.shape import Shape

MAXIMUM_MIXES = 27
"""Combinations of kernels of several stages up to which all are tried; beyond, all stages have one kernel."""

MAXIMUM_PLACEMENTS = 9
"""Combinations of where the rows of several stages lie up to which all are tried; beyond, all lie alike."""

Value = TypeVar("Value")

PAID_BY_ALL = ("rows", "micro-batches", "results", "idle")
"""Terms of a cost of which every plan pays as much as the one that pays least."""

SAME = 1e-6
"""Terms that differ by less, as a share, are the same."""

WORTH_A_CHANGE = 0.05
"""By how much, as a share, a plan must be cheaper than one that comes before it to be taken instead."""

LESS_STATE = 0.5
"""The share of another plan's state that one has to keep at the most, to be taken where it costs as much."""


TOO_LARGE = "state exceeds wjoin.memory"
BY_HINT = (
    "not ranked: Spark has one watermark for all streams, so other rows may be late; PLAN(NATIVE) chooses it"
)
UNKNOWN_SIZES = "not ranked: the sizes of the tables are unknown; PLAN(NATIVE) chooses it"


@dataclass(frozen=True)
class Weighing:
    """A sequence of stages to weigh, the values that the parts of its plan may take, and its costs."""

    name: str
    shape: Shape
    options: Alternatives
    model: CostModel


@dataclass(frozen=True)
class Candidate:
    """A plan and its estimate.

    ``shape`` is the number of its sequence of stages, ``layout`` that of its state; ``lost`` says why it was
    not taken, empty for the one that was. ``unbound`` is the one that would be taken where there is no state
    yet.
    """

    plan: PhysicalPlan
    shape: int
    layout: Layout
    estimated: Estimated
    lost: str
    unbound: bool = False

    @property
    def ranked(self) -> bool:
        """Whether the plan could be taken by its cost; others are taken by a hint only."""
        return self.lost not in (BY_HINT, UNKNOWN_SIZES)


def shared_terms(found: Sequence[Candidate]) -> dict[str, float]:
    """Return what all ranked plans pay alike, in seconds by term; nothing where there is one only."""
    terms = [each.estimated.cost.terms for each in found if each.ranked]
    least = {name: min(each.get(name, 0.0) for each in terms) for name in terms[0]}
    alike = {
        name
        for name in terms[0]
        if name in PAID_BY_ALL or max(each.get(name, 0.0) for each in terms) <= least[name] * (1 + SAME)
    }
    return {name: value for name, value in least.items() if name in alike and value > 0 and len(terms) > 1}


def candidates(
    weighings: Sequence[Weighing], memory: int | None, layouts: LayoutRule
) -> tuple[Candidate, ...]:
    """Return every plan that was weighed, the cheapest first, but for those that need too much memory.

    ``memory`` is what the state may take, in bytes, None for no limit, ``layouts`` says which of them there
    may be. The first of the result is the plan to run. Plans come in the order of preference: one is taken in
    place of an earlier one only where it is cheaper by a share of WORTH_A_CHANGE, or is no dearer by that and
    keeps far less (LESS_STATE).
    """
    plans = [
        (number, plan)
        for number, each in enumerate(weighings)
        for plan in _variants(each.shape.physical, each.options, _orders(each.shape.physical, each.model))
    ]
    lain = [Layout.of(weighings[number].name, plan) for number, plan in plans]
    refusals = layouts.refusals(lain)
    weighed = [
        _weighed(plan, number, weighings[number], layout, refusal, memory)
        for (number, plan), layout, refusal in zip(plans, lain, refusals, strict=True)
    ]
    fitting = [each for each in weighed if not each.lost]
    large = [each for each in weighed if each.lost == TOO_LARGE]
    best = _cheapest(fitting) if fitting else min(large, key=_state_bytes)
    possible = [each for each in weighed if each.ranked and not _too_large(each, memory)]
    unbound = _cheapest(possible) if possible else best
    others = [each for each in weighed if each is not best]
    others.sort(key=lambda each: (not each.ranked, bool(each.lost), each.estimated.cost.seconds))
    return tuple(
        replace(each, lost="" if each is best else each.lost or _reason(each, best), unbound=each is unbound)
        for each in (best, *others)
    )


def _weighed(
    plan: PhysicalPlan, number: int, weighing: Weighing, layout: Layout, lost: str, memory: int | None
) -> Candidate:
    estimated = weighing.model.estimate(plan)
    if plan.method in weighing.options.by_hint:
        lost = BY_HINT if plan.streaming else UNKNOWN_SIZES
    candidate = Candidate(plan, number, layout, estimated, lost)
    return replace(candidate, lost=TOO_LARGE) if not lost and _too_large(candidate, memory) else candidate


def _too_large(each: Candidate, memory: int | None) -> bool:
    return memory is not None and _state_bytes(each) > memory


def _state_bytes(each: Candidate) -> float:
    return each.estimated.cost.state_bytes


def _cheapest(fitting: Sequence[Candidate]) -> Candidate:
    best = fitting[0]
    asked = best.plan.approximate
    if asked is not None and asked.error is None:
        # As many visits are made by each: what counts is what they find.
        least = min(each.estimated.cost.missing for each in fitting)
        fitting = [
            each for each in fitting if each.estimated.cost.missing <= least + WORTH_A_CHANGE * (1 - least)
        ]
    if asked is not None:
        # What counts is what travels.
        return min(
            fitting, key=lambda each: (each.estimated.cost.shuffled_bytes, each.estimated.cost.seconds)
        )
    for each in fitting[1:]:
        seconds, least = each.estimated.cost.seconds, best.estimated.cost.seconds
        alike = seconds <= (1 + WORTH_A_CHANGE) * least
        if seconds < (1 - WORTH_A_CHANGE) * least or (alike and _keeps_less(each, best)):
            best = each
    return best


def _keeps_less(each: Candidate, other: Candidate) -> bool:
    """Return whether a plan has far less state than another one."""
    return 0 < _state_bytes(each) <= LESS_STATE * _state_bytes(other)


def _reason(each: Candidate, best: Candidate) -> str:
    if best.plan.approximate is not None:
        sent, least = (one.estimated.cost.shuffled_bytes for one in (each, best))
        if each.estimated.cost.missing > best.estimated.cost.missing + WORTH_A_CHANGE:
            return "loses more"
        return f"{figure(sent / least)} times the bytes" if sent > least else "costs more"
    ratio = each.estimated.cost.seconds / best.estimated.cost.seconds
    gain = f"less than {WORTH_A_CHANGE:.0%} cheaper" if ratio < 1 else "no cheaper"
    if ratio <= 1 + WORTH_A_CHANGE and _keeps_less(best, each):
        more = figure(_state_bytes(each) / _state_bytes(best))
        return f"{gain}, with {more} times the state"
    if ratio <= 1 / (1 - WORTH_A_CHANGE):
        return f"{gain}, and more complex"
    return f"{figure(ratio)} times the cost"


def _orders(plan: PhysicalPlan, model: CostModel) -> list[Orders | None]:
    """Return for each stage the orders that make the fewest tuples; None where nothing is known of rates."""
    known = any(
        each.rate.origin is not Origin.DEFAULT
        for stream, each in enumerate(model.statistics)
        if stream in plan.staged
    )
    if not known:
        return [None] * len(plan.stages)
    return [{probe.origin: probe.order for probe in each.probes} for each in model.stages(plan)]


def _variants(
    plan: PhysicalPlan, options: Alternatives, orders: Sequence[Orders | None]
) -> Iterator[PhysicalPlan]:
    if not plan.stages:
        yield plan
        return
    known: dict[Hashable, Stage] = {}
    for method in (*options.methods, *options.by_hint):
        if method is Method.NATIVE:
            native = _variant(plan, Bounds.EXACT, Passes.HULL, plan.stages, orders, known)
            yield replace(native, method=method)
            continue
        mixes = _mixed_stages(plan, options)
        for bounds, passes, stages in itertools.product(options.bounds, options.passes, mixes):
            yield from sized(_variant(plan, bounds, passes, stages, orders, known))


def sized(plan: PhysicalPlan) -> Iterator[PhysicalPlan]:
    """Yield a plan with the sizes that its summaries may have; an exact one has none."""
    routes = {each.placement.route for each in plan.stages}
    if plan.approximate is None or routes == {BASE}:
        yield plan
        return
    # The others are there to compare, and as large as each other.
    for size in SIZES if routes == {DIGEST} else (SIZE,):
        yield replace(plan, approximate=replace(plan.approximate, size=size))


def _mixed_stages(plan: PhysicalPlan, options: Alternatives) -> list[tuple[Stage, ...]]:
    """Return the stages of a plan with every mix of the placements and kernels that they may have."""
    return [
        tuple(
            replace(stage, placement=where, kernels=kernels)
            for stage, where, kernels in zip(plan.stages, placed, mix, strict=True)
        )
        for placed in _mixes(options.placements, MAXIMUM_PLACEMENTS)
        for mix in _mixes(options.kernels, MAXIMUM_MIXES)
    ]


def _mixes(choices: Sequence[Sequence[Value]], most: int) -> list[tuple[Value, ...]]:
    """Return the combinations of what stages may have; where they are more than that, those of one for all.

    A stage that cannot have it has its first then.
    """
    mixes = list(itertools.islice(itertools.product(*choices), most + 1))
    if len(mixes) <= most:
        return mixes
    found = [
        tuple(value if value in each else each[0] for each in choices)
        for value in dict.fromkeys(value for each in choices for value in each)
    ]
    return list(dict.fromkeys(found))


def _variant(
    plan: PhysicalPlan,
    bounds: Bounds,
    passes: Passes,
    stages: Sequence[Stage],
    orders: Sequence[Orders | None],
    known: dict[Hashable, Stage],
) -> PhysicalPlan:
    """Return a plan with these stages; what follows for one is the same whatever the others have."""
    plan = replace(plan, passes=passes)
    arranged = []
    for number, (stage, order) in enumerate(zip(stages, orders, strict=True)):
        key = (number, bounds, passes, stage.placement, stage.kernels)
        if key not in known:
            known[key] = arranged_stage(plan, replace(stage, bounds=bounds), order)
        arranged.append(known[key])
    return replace(plan, stages=tuple(arranged))
