"""What follows from the choices for a stage: how long its rows are kept, and the probes that make results."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from wjoin.parts.kernels.registry import KERNELS
from wjoin.parts.kernels.runs import Order
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.conditions.expressions import TURNED
from wjoin.planner.plan.block_columns import stored_column, time_name
from wjoin.planner.plan.checks import Band, Comparison, Kind, Operand, of_kind
from wjoin.planner.plan.physical import PhysicalPlan, windows_of
from wjoin.planner.plan.reach import Reach, reach
from wjoin.planner.plan.slicing import cut
from wjoin.planner.plan.stage_kinds import Bounds, Gather, Join, Pairs, Retention, Stage, StageEdge, meeting
from wjoin.planner.plan.steps import Precedence, Probe, Range, Rows, Step, WindowCheck
from wjoin.planner.windows.bounds import Windows

Orders = Mapping[int, Sequence[int]]
"""For each input whose new rows begin results, the other inputs in the order in which they are met."""


def arranged(plan: PhysicalPlan, orders: Sequence[Orders | None]) -> PhysicalPlan:
    """Return a plan whose stages have what follows from their parts; ``orders`` by stage, None where open."""
    for number, order in enumerate(orders):
        plan = plan.with_stage(number, arranged_stage(plan, plan.stages[number], order))
    return plan


def arranged_stage(plan: PhysicalPlan, stage: Stage, orders: Orders | None) -> Stage:
    """Return a stage with the retention of its inputs, and with its probes."""
    beginning = origins(stage, streaming=plan.streaming)
    inputs = tuple(
        replace(
            each,
            stored=_is_stored(plan, stage, number, beginning),
            retention=retention(plan, stage, each, stage.bounds),
        )
        for number, each in enumerate(stage.inputs)
    )
    stage = replace(stage, inputs=inputs, placement=cut(plan, stage))
    return replace(stage, probes=tuple(_probes(plan, stage, orders, beginning)))


def _is_stored(plan: PhysicalPlan, stage: Stage, number: int, beginning: Collection[int]) -> bool:
    """Return whether rows of an input are kept for those of others that come later."""
    if not isinstance(stage, Join):
        return bool(meeting(stage, number)) and not isinstance(stage, Gather)
    # Of complete inputs, the last one finds all others there, and no row comes later.
    return plan.streaming or number not in beginning


def over_streams(plan: PhysicalPlan, number: int) -> PhysicalPlan:
    """Return a plan over tables as one over streams, with a stage whose inputs come bit by bit."""
    plan = replace(plan, streams=tuple(replace(scan, streaming=True) for scan in plan.streams))
    return plan.with_stage(number, arranged_stage(plan, plan.stages[number], None))


def with_kernel(plan: PhysicalPlan, stage: Stage, kernel: str) -> Stage:
    """Return a stage that finds candidates by one kernel."""
    kept = replace(stage, kernels=(kernel,))
    probes = (_probe(plan, kept, each.order, each) for each in stage.probes)
    return replace(kept, probes=tuple(probes))


def in_order(plan: PhysicalPlan, stage: Stage, probe: Probe, order: Sequence[int]) -> Probe:
    """Return a probe of a stage with its steps in another order."""
    return probe if tuple(order) == probe.order else _probe(plan, stage, order, probe)


def chosen_orders(stage: Stage) -> Orders | None:
    """Return the orders that the plan has chosen for a stage; None where that is left to the rows at hand."""
    return {probe.origin: probe.order for probe in stage.probes if probe.ordered} or None


def origins(stage: Stage, *, streaming: bool) -> Sequence[int]:
    """Return the inputs whose new rows begin results: of complete inputs the last one suffices."""
    size = len(stage.inputs)
    if isinstance(stage, Join) and stage.nearest is None and not streaming:
        return range(size - 1, size)
    return [number for number in range(size) if stage.chains(number)]


def retention(plan: PhysicalPlan, stage: Stage, each: StageEdge, bounds: Bounds) -> tuple[Retention, ...]:
    """Return how long the rows of a stage's input are kept for the streams of its others, by some bounds.

    In a hop, for the new rows whose partial results come to meet them there.
    """
    distances = reach(bounds, windows_of(plan, stage), plan.staged)
    rules = retention_within(stage, stage.inputs.index(each), distances)
    if not isinstance(stage, Join) or stage.nearest is not None:
        return rules
    ends = [(rule, tuple(row_ends(plan, stage, each.members, rule.stream))) for rule in rules]
    return tuple(
        replace(rule, until=tuple(dict.fromkeys(stored_column(plan, *end).name for end in found)))
        for rule, found in ends
    )


def row_ends(plan: PhysicalPlan, stage: Stage, members: Collection[int], other: int) -> Iterator[Operand]:
    """Yield columns with times: no row of another stream that meets rows of them is later than theirs."""
    for each in of_kind(stage.checks, Comparison):
        operator = each.operator
        for own, compared in ((each.right, each.left), (each.left, each.right)):
            time = stored_column(plan, *compared).name == time_name(other)
            if compared[0] == other and own[0] in members and time and operator in ("<", "<="):
                yield own
            operator = TURNED[operator]


def retention_within(stage: Stage, number: int, distances: Reach) -> tuple[Retention, ...]:
    """Return how long the rows of an input are kept, given how far rows look for others."""
    if isinstance(stage, Join) and stage.nearest is not None:
        return _retention_of_asof(stage, number, distances)
    members = stage.inputs[number].members
    return tuple(
        Retention(other, tuple((member, distances.ahead(member, other)) for member in members))
        for other in kept_for(stage, number)
    )


def _retention_of_asof(stage: Join, number: int, distances: Reach) -> tuple[Retention, ...]:
    """Return how long the rows of an input of an ASOF JOIN are kept.

    Those of the first one until they are decided: until the watermarks of the second one are so far ahead of
    them. Those of the second one for rows of the first that may be so far after them: to come, or waiting.
    """
    first, (second, *_) = stage.timed_by, stage.inputs[1].members
    back = distances.ahead(second, first)
    deciding = [other for other in stage.inputs[1].members if other == second or other in stage.asked]
    ends = {other: distances.ahead(first, other) for other in deciding}
    if number == 0:
        return tuple(Retention(other, ((first, ahead),)) for other, ahead in ends.items())
    # Of what comes any row may be the new one.
    coming = (Retention(each, ((second, distances.ahead(second, each)),)) for each in kept_for(stage, 1))
    waits = {other: None if ahead is None or back is None else ahead + back for other, ahead in ends.items()}
    return *coming, *(Retention(other, ((second, far),)) for other, far in waits.items())


def kept_for(stage: Stage, number: int) -> list[int]:
    """Return the streams whose new rows can make results with rows of an input."""
    found = dict.fromkeys(stream for other in meeting(stage, number) for stream in stage.inputs[other].newest)
    asked = stage.asked if isinstance(stage, Join) else None
    # For what the others are without, the streams that are there answer (``Join.lags``).
    return [stream for stream in found if not asked or stream in asked]


def _probes(
    plan: PhysicalPlan, stage: Stage, orders: Orders | None, beginning: Sequence[int]
) -> Iterator[Probe]:
    for origin in beginning:
        chains: Sequence[Sequence[int]] = stage.chains(origin)
        if isinstance(stage, Join) and orders is not None:
            chains = (orders[origin],)
        for order, (windows, excluded) in itertools.product(chains, _passes(plan, stage)):
            begun = Probe(origin, (), orders is not None, windows, excluded)
            for meets in _met_rows(plan, stage):
                yield _probe(plan, stage, order, replace(begun, meets=meets))


def _met_rows(plan: PhysicalPlan, stage: Stage) -> tuple[Rows, ...]:
    """Return what rows new ones meet, one probe for each."""
    if isinstance(stage, Gather):
        return (Rows.NEW,)
    # Workers cut a micro-batch where their own rows say. So which of two new rows finds the other is
    # for their times to say, as no worker has both to keep and to probe.
    if plan.streaming and (ROUTES[stage.placement.route].visits or not isinstance(stage, Join)):
        return Rows.OLD, Rows.NEW
    return (Rows.ALL,)


def _passes(plan: PhysicalPlan, stage: Stage) -> Iterator[tuple[Windows, tuple[Windows, ...]]]:
    """Yield the windows of each pass, and those of the passes before it."""
    if plan.apart:
        for number, windows in enumerate(plan.branches):
            yield windows, plan.branches[:number]
    else:
        yield windows_of(plan, stage), ()


def _probe(plan: PhysicalPlan, stage: Stage, order: Sequence[int], begun: Probe) -> Probe:
    """Return a probe with its steps in an order; all else is as in ``begun``."""
    distances = reach(stage.bounds, begun.windows, plan.staged)
    steps: list[Step] = []
    joined = [begun.origin]
    for target in order:
        step = step_to(plan, stage, joined, target, distances, begun.windows, begun.meets)
        joined.append(target)
        if len(steps) == len(order) - 1 and not _checked_on_the_way(plan, stage):
            members = sorted(member for number in joined for member in stage.inputs[number].members)
            step = replace(step, windows=tuple(window_checks(begun.windows, members, members)))
        steps.append(step)
    return replace(begun, steps=tuple(steps))


def _checked_on_the_way(plan: PhysicalPlan, stage: Stage) -> bool:
    """Return whether every step leaves tuples inside the windows only."""
    # An input that is a result of several passes may be inside the windows of another one.
    return stage.bounds is Bounds.EXACT and not plan.apart


def step_to(
    plan: PhysicalPlan,
    stage: Stage,
    joined: Sequence[int],
    target: int,
    distances: Reach,
    windows: Windows,
    meets: Rows = Rows.ALL,
) -> Step:
    """Return the step from tuples of the inputs ``joined``, the first of them new rows, to one more input."""
    each = stage.inputs[target]
    known = list(dict.fromkeys(stream for number in joined for stream in stage.inputs[number].members))
    anchor, *others = each.members
    new = [stream for stream in each.members if stream not in known]
    kernel = stage.kernels[0]
    exact = stage.bounds is Bounds.EXACT
    both = bool(stage.chains(target))
    order = (
        _precedence(stage, joined, target) if meets is Rows.NEW and not isinstance(stage, Gather) else None
    )
    return Step(
        input=target,
        kernel=kernel,
        # New rows of two inputs meet once: as those of the later input begin results.
        rows=Rows.OLD if both and meets is Rows.ALL and plan.streaming and target > joined[0] else meets,
        ranges=(Range(anchor, 0, 0),)
        if isinstance(each.source, Pairs)
        else tuple(
            Range(
                stream,
                distances.back(stream, anchor),
                _ahead(order, each.members, stream, distances.ahead(stream, anchor)),
            )
            for stream in known
        ),
        index=index_of(each, known) if KERNELS[kernel].order is Order.VALUE else None,
        windows=tuple(window_checks(windows, known, others)) if exact else (),
        keys=tuple(_key_pairs(plan, stage.inputs[joined[0]], each)),
        checks=tuple(each for each in completed(stage.checks, known, new) if each.tested),
        order=order,
    )


def _precedence(stage: Stage, joined: Sequence[int], target: int) -> Precedence:
    """Return which new rows of an input are met: of two new rows, the later one meets the other.

    In a hop that is the newest row of a partial result, whatever that has met before.
    """
    met, first = stage.inputs[target], stage.inputs[joined[0]]
    if not isinstance(stage, Join):
        return Precedence(met.members, first.newest, met.members < first.newest)
    known = tuple(member for number in joined for member in stage.inputs[number].members)
    return Precedence(met.members, known, target < joined[0])


def _ahead(order: Precedence | None, members: Sequence[int], stream: int, bound: int | None) -> int | None:
    """Return how far after a joined stream rows are looked for; an order leaves out the later ones."""
    if order is None or stream not in order.after or len(members) > 1:
        # The first of several members may be later than the earliest, by which rows are in order.
        return bound
    latest = 0 if order.equal else -1
    return latest if bound is None else min(bound, latest)


def linked_first(stage: Stage, joined: Collection[int], others: Sequence[int]) -> tuple[int, ...]:
    """Return inputs in the order in which they are given, but next ever one that a condition links.

    ``joined`` are those that are there before. Where inputs meet on a key, all are linked.
    """
    if stage.keyed:
        return tuple(others)
    order: list[int] = []
    waiting = list(others)
    while waiting:
        known = {member for number in (*joined, *order) for member in stage.inputs[number].members}
        linked = (number for number in waiting if _linked(stage, known, stage.inputs[number].members))
        order.append(next(linked, waiting[0]))
        waiting.remove(order[-1])
    return tuple(order)


def _linked(stage: Stage, known: Collection[int], members: Sequence[int]) -> bool:
    """Return whether something can be checked of more streams that could not be of the known ones."""
    return any(True for _ in completed(stage.checks, known, members))


def index_of(each: StageEdge, known: Collection[int]) -> Band | None:
    """Return the band that orders an input's rows where the streams ``known`` tell its values, else None."""
    if each.index is None or {each.index.left[0], each.index.right[0]}.isdisjoint(known):
        return None
    return each.index


def window_checks(windows: Windows, streams: Iterable[int], others: Collection[int]) -> Iterator[WindowCheck]:
    """Yield the bounds of windows between streams and others, each once."""
    pairs = dict.fromkeys(
        pair for first in streams for second in others for pair in ((first, second), (second, first))
    )
    for first, second in pairs:
        bound = windows.between(first, second)
        if first != second and bound is not None:
            yield WindowCheck(first, second, bound)


def _key_pairs(plan: PhysicalPlan, old: StageEdge, new: StageEdge) -> Iterator[tuple[Operand, Operand]]:
    """Yield pairs of scan columns that hold the real keys of two inputs."""
    if old.key is None or new.key is None:
        return
    sides = [plan.streams[stream].codes[code].verify for stream, code in (new.key, old.key)]
    for left, right in zip(*sides, strict=True):
        yield (new.key[0], left), (old.key[0], right)


def completed(checks: Iterable[Kind], known: Collection[int], new: Sequence[int]) -> Iterator[Kind]:
    """Yield the checks that can be made once new streams join known ones, and could not before."""
    joined = {*known, *new}
    for each in checks:
        if each.streams <= joined and not each.streams.isdisjoint(new):
            yield each
