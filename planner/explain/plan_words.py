"""What tells a plan from others in a few words, and the words of its parts."""

from collections.abc import Sequence

from wjoin.parts.kernels.registry import name_of, words_of
from wjoin.parts.routes.registry import ROUTES, plainest
from wjoin.planner.cost.approximate import BASE
from wjoin.planner.figures import size
from wjoin.planner.plan.physical import Method, PhysicalPlan
from wjoin.planner.plan.slicing import cut_by, slice_length
from wjoin.planner.plan.stage_kinds import Bounds, Gather, Hop, Stage
from wjoin.planner.windows.lengths import human

BOUNDS_WORDS = {
    Bounds.EXACT: "",
    Bounds.LCA: ", each stream's widest window",
    Bounds.GCA: ", the widest window of all",
}


def plan_words(plan: PhysicalPlan) -> str:
    """Return what tells a candidate from the others, in a few words."""
    if plan.method is Method.NATIVE:
        return "native"
    if not plan.stages:
        return "one relation"
    names = [_route_and_kernel(plan, stage) for stage in plan.stages]
    kernels = names[0] if len(set(names)) == 1 else " ".join(names)
    passes = f" {plan.passes.value}" if plan.branches else ""
    first = " ".join(alias_names(plan, plan.stages[0].members))
    stages = f" in {len(plan.stages)} stages, {first} first" if len(plan.stages) > 1 else ""
    if isinstance(plan.stages[0], Hop):
        stages = " at once" if isinstance(plan.stages[-1], Gather) else f" in {len(plan.stages)} hops"
    return f"{plan.stages[0].bounds.value} {kernels}{passes}{stages}"


def _route_and_kernel(plan: PhysicalPlan, stage: Stage) -> str:
    """Return the kernel of a stage, after its route where that is not the first that applies."""
    where = stage.placement
    preferred = plainest(keyed=stage.keyed, inputs=len(stage.inputs))
    kernel = name_of(stage.kernels)
    if where.route == preferred:
        return kernel
    if plan.approximate is not None and ROUTES[where.route].approximate:
        told = "" if where.route == BASE else f", {size(plan.approximate.size)}"
        return f"{where.route}({where.workers or 'all'} nodes{told}) {kernel}"
    if where.length is None:
        return f"{where.route} {kernel}"
    usual = where.length == slice_length(plan, stage, where.route)
    length = "" if usual else f" by {slice_words(plan, stage)}"
    master = f" of {' '.join(alias_names(plan, stage.inputs[where.master].members))}" if where.master else ""
    return f"{where.route}({where.workers or 'all'}{copies_words(stage)}{master}{length}) {kernel}"


def plain_words(plan: PhysicalPlan) -> str:
    """Return how a plan finds the partners of a row, then its name in the words of hints."""
    if plan.method is Method.NATIVE:
        return "Spark's own two-way joins (native)"
    if not plan.stages:
        return "one relation, nothing to join"
    kernels = dict.fromkeys(kernel_words(stage) for stage in plan.stages)
    bounds = BOUNDS_WORDS[plan.stages[0].bounds]
    passes = "; one pass per alternative" if plan.apart else ""
    return f"{'; '.join(kernels)}{bounds}{passes} ({plan_words(plan)})"


def kernel_words(stage: Stage) -> str:
    """Return how a stage finds the partners of a row; without a key nothing is found by it."""
    return words_of(stage.kernels, keyed=stage.keyed)


def copies_words(stage: Stage) -> str:
    """Return on how many workers each row of a stage lies, empty where on one."""
    return f" in {stage.placement.copies} copies" if stage.placement.copies > 1 else ""


def slice_words(plan: PhysicalPlan, stage: Stage) -> str:
    """Return how long the slices of a stage are, in words."""
    where = stage.placement
    if where.length is None:
        return ""
    if not ROUTES[where.route].values:
        return human(int(where.length), plan.time_kind)
    band = cut_by(stage)
    return f"{where.length:g} of {column_words(plan, band.left)} and {column_words(plan, band.right)}"


def column_words(plan: PhysicalPlan, operand: tuple[int, int]) -> str:
    """Return the expression of a column of a stream."""
    stream, number = operand
    return plan.streams[stream].columns[number].expression


def alias_names(plan: PhysicalPlan, streams: Sequence[int]) -> tuple[str, ...]:
    """Return the aliases of streams."""
    return tuple(plan.streams[stream].alias for stream in streams)
