"""A plan to the document of EXPLAIN: the one place there that reads plans, with words for their parts."""

import sys
from collections.abc import Iterator, Sequence
from itertools import combinations

from wjoin.parts.kernels.registry import KERNELS, meaning_of, name_of, words_of
from wjoin.parts.kernels.runs import Order
from wjoin.parts.routes.registry import ROUTES, plainest
from wjoin.parts.routes.route import Role
from wjoin.planner.candidates import WORTH_A_CHANGE, Candidate, shared_terms
from wjoin.planner.catalog import Estimate, Origin
from wjoin.planner.cost.psp import reached
from wjoin.planner.cost.semijoin import Shipments
from wjoin.planner.durations import human
from wjoin.planner.edges import destination
from wjoin.planner.explain import document as doc
from wjoin.planner.explain.words import Lying
from wjoin.planner.figures import figure
from wjoin.planner.layouts import OTHER_CHECKPOINT
from wjoin.planner.names import quoted_if_needed
from wjoin.planner.native import PairJoin, latest_bound, pair_joins, whole_seconds
from wjoin.planner.physical import (
    Band,
    Bounds,
    Comparison,
    Method,
    PhysicalPlan,
    PredicateCheck,
    Shipping,
    Stage,
    StreamScan,
    UpperBounds,
)
from wjoin.planner.plan import PlannedSelect
from wjoin.planner.probes import chosen_orders, kept_for
from wjoin.planner.reach import reach
from wjoin.planner.slices import SLICES_OF_A_WINDOW, cut_by, kept_anywhere, roles, slice_length, slicing
from wjoin.planner.statistics import DEFAULT_DISTINCT, StreamStatistics, units_per_second
from wjoin.planner.window_graph import Branch, WindowGraph

BOUNDS_WORDS = {
    Bounds.EXACT: "",
    Bounds.LCA: ", each stream's widest window",
    Bounds.GCA: ", the widest window of all",
}

MEANINGS = {
    ("bounds", "exact"): "what all the joined rows allow together",
    ("bounds", "lca"): "the widest window of each stream, refined later",
    ("bounds", "gca"): "the widest window of all, refined later",
    ("shipping", "blocks"): "whole rows travel, in blocks",
    ("passes", "hull"): "one pass over all alternatives",
    ("passes", "union"): "one pass for each alternative",
}
"""What the parts of a plan mean, by part and value; routes and kernels say it themselves."""


LYING = {
    Role.BOTH: Lying.KEEPS,
    Role.STORE: Lying.COPIES,
    Role.COPY: Lying.COPIES,
    Role.PROBE: Lying.MEETS,
    Role.VISIT: Lying.MEETS,
}

MOST_WORKERS = 8
"""Workers, and slices, that are drawn at the most."""

WORTH_TELLING = 1.25
"""How many times as fast as the chosen plan one must be, to be told of though it cannot be taken."""

SOME_WORKERS = 4
"""Workers that are drawn where a stage may have all that there are."""


def describe(planned: PlannedSelect) -> doc.Document:
    """Return the plan of a block as a document."""
    logical, plan = planned.logical, planned.physical
    found = tuple(_candidate(each) for each in planned.candidates)
    unit = units_per_second(logical.graph.kind)
    streams = tuple(_streams(planned))
    known = zip(plan.streams, planned.statistics, strict=True)
    statistics = tuple(_statistics(scan, each, unit) for scan, each in known)
    unknown = [stream for stream, each in zip(streams, statistics, strict=True) if not each.known]
    native = plan.method is Method.NATIVE
    (output,) = plan.outputs
    return doc.Document(
        format=doc.FORMAT,
        time=logical.graph.kind.value,
        streams=streams,
        constraints=_constraints(logical.graph),
        equality_classes=tuple(
            doc.ClassEntry(each.type, tuple(part.text for part in each.parts)) for each in logical.classes
        ),
        residual=tuple(each.text for each in logical.residual),
        later=tuple(doc.LaterEntry(each.text, each.unread) for each in logical.residual),
        statistics=statistics,
        chosen=found[0],
        candidates=found,
        faster=_faster(planned.candidates),
        shared=shared_terms(planned.candidates),
        unknown=tuple(dict.fromkeys(map(_relation, unknown))),
        assumptions=tuple(_assumptions(planned)),
        stages=tuple(_stage(planned, number) for number in range(len(plan.stages))),
        match_delay=output.match_delay,
        joins=tuple(_join(plan, each) for each in pair_joins(plan)) if native else (),
        lookups=tuple(
            doc.LookupEntry(plan.streams[each.stream].alias, each.equalities, each.comparisons)
            for each in plan.lookups
        ),
        undated=output.undated if "time" in output.match else "",
        network=planned.candidates[0].estimated.cost.network,
        default_distinct=DEFAULT_DISTINCT,
        worth_a_change=WORTH_A_CHANGE,
        shipments=tuple(_shipment(planned, each) for each in planned.shipments),
    )


def _faster(found: Sequence[Candidate]) -> doc.FasterEntry | None:
    """Return which plan would be faster by far, where only the state of a query may forbid it."""
    chosen, best = found[0], next(each for each in found if each.unbound)
    times = chosen.estimated.cost.seconds / best.estimated.cost.seconds
    words = _plain_words(best.plan)
    if times < WORTH_TELLING or words == _plain_words(chosen.plan):
        return None
    routes = {stage.route for stage in best.plan.stages}
    sliced = len(routes) == 1 and best.shape == chosen.shape and any(ROUTES[each].slices for each in routes)
    hint = f"PLAN({routes.pop().upper()})" if sliced else ""
    return doc.FasterEntry(words, times, hint, best.lost == OTHER_CHECKPOINT)


def _shipment(planned: PlannedSelect, each: Shipments) -> doc.ShipmentEntry:
    scan = planned.physical.streams[each.stream]
    early, numbers = ((), ()) if scan.site is None else (scan.site.early, scan.site.late)
    late = tuple(str(scan.columns[number].output) for number in numbers)
    words = {
        Shipping.FULL: "whole rows",
        Shipping.PARTIAL: f"{', '.join(early)} of every row, {', '.join(late)} of those in results",
        Shipping.HELD: "whole rows, of those whose key is in the other windows; none is kept in the state",
    }
    return doc.ShipmentEntry(
        alias=scan.alias,
        ways=tuple(
            doc.WayEntry(way.shipping.value, words[way.shipping], way.size, way.messages, way.seconds)
            for way in each.ways
        ),
        matched=_estimate(each.matched),
        latency=_estimate(each.latency),
        bandwidth=_estimate(each.bandwidth),
        early=early,
        late=late,
    )


def _streams(planned: PlannedSelect) -> Iterator[doc.StreamEntry]:
    plan = planned.physical
    ahead = _ahead(plan, plan.stages[0]) if plan.stages else plan.upper
    for stream, (scan, relation) in enumerate(zip(plan.streams, planned.logical.relations, strict=True)):
        others = [each for each in plan.staged if each != stream] if stream in plan.staged else []
        yield doc.StreamEntry(
            alias=scan.alias,
            relation=relation,
            event_time=scan.event_time,
            delay=scan.delay,
            streaming=scan.streaming,
            columns=tuple(column.output for column in scan.columns if column.output is not None),
            filters=scan.filters,
            undeclared=stream in planned.undeclared,
            kept_for={plan.streams[other].alias: ahead[stream][other] for other in others},
            unbounded=_names(plan, [other for other in others if plan.upper[stream][other] is None]),
            joined_by=_joined_by(scan) if plan.stages else (),
        )


def _joined_by(scan: StreamScan) -> tuple[str, ...]:
    """Return what only the join reads of a stream, besides its event time and its key."""
    keys = {expression for code in scan.codes for expression in code.expressions}
    number = None if scan.site is None else scan.columns[scan.site.number]
    read = [
        each.expression
        for each in scan.columns
        if each.output is None and each.expression not in keys and each is not number
    ]
    names = (each.removeprefix(f"{quoted_if_needed(scan.alias)}.") for each in read)
    return tuple(name for name in names if name != quoted_if_needed(scan.event_time))


def _relation(each: doc.StreamEntry) -> str:
    return each.relation if each.relation.isidentifier() else each.alias


def _names(plan: PhysicalPlan, streams: Sequence[int]) -> tuple[str, ...]:
    return tuple(plan.streams[stream].alias for stream in streams)


def _ahead(plan: PhysicalPlan, stage: Stage) -> UpperBounds:
    """Return how much later than a row of one stream those of another may be, under the bounds of a stage."""
    return reach(stage.bounds, plan.upper, plan.staged).ahead


def _statistics(scan: StreamScan, known: StreamStatistics, unit: int) -> doc.StatisticsEntry:
    keys = zip(scan.codes, known.keys, strict=True)
    facts = [each for key in known.keys for each in (key.distinct, key.heaviest)]
    facts += [known.rate, known.width, known.disorder, known.selectivity, known.duration]
    return doc.StatisticsEntry(
        alias=scan.alias,
        rate=doc.EstimateEntry(known.rate.value * unit, known.rate.origin.value),
        width=_estimate(known.width),
        disorder=_estimate(known.disorder),
        selectivity=_estimate(known.selectivity),
        keys=tuple(
            doc.KeyEntry(code.expressions, _estimate(key.distinct), _estimate(key.heaviest))
            for code, key in keys
        ),
        known=any(each.origin is not Origin.DEFAULT for each in facts),
    )


def _estimate(each: Estimate) -> doc.EstimateEntry:
    return doc.EstimateEntry(each.value, each.origin.value)


def _assumptions(planned: PlannedSelect) -> Iterator[str]:
    """Yield for each stage with keys whether its results were measured, or rest on independence."""
    estimates = planned.candidates[0].estimated.stages
    assumed = False
    for stage, each in zip(planned.physical.stages, estimates, strict=True):
        if all(member.key is None for member in stage.inputs):
            continue
        if each.agreement is None:
            assumed = True
            continue
        often = f"{figure(each.agreement)} times as often as independent of time"
        yield f"{', '.join(_names(planned.physical, stage.members))}: keys agree {often} (measured)"
    if assumed:
        yield "results: the estimate assumes that keys and times are independent"


def _constraints(graph: WindowGraph) -> doc.ConstraintsEntry:
    branches = list(enumerate(graph.branches, start=1))
    pairs = list(combinations(range(len(graph.names)), 2))
    given = [_window(graph, branch.given, *pair, number) for number, branch in branches for pair in pairs]
    completed = [_completed(graph, branch, *pair, number) for number, branch in branches for pair in pairs]
    return doc.ConstraintsEntry(
        given=tuple(each for each in given if each.lo is not None or each.hi is not None),
        completed=tuple(completed),
        contradictory_alternatives=graph.contradictory,
        hull=tuple(_window(graph, graph.upper, *pair, 0) for pair in pairs if len(branches) > 1),
    )


def _window(graph: WindowGraph, upper: UpperBounds, first: int, second: int, number: int) -> doc.WindowEntry:
    """Return the bounds of t_second - t_first in an alternative."""
    low, high = upper[second][first], upper[first][second]
    ends = graph.names[first], graph.names[second]
    return doc.WindowEntry(*ends, None if low is None else -low, high, number)


def _completed(
    graph: WindowGraph, branch: Branch, first: int, second: int, number: int
) -> doc.CompletedEntry:
    window = _window(graph, branch.upper, first, second, number)
    upper = _origin(branch, graph, first, second)
    lower = _origin(branch, graph, second, first, turned=True)
    origin = upper or lower or "unbounded"
    if upper and lower and upper != lower:
        origin = f"upper bound {upper}; lower bound {lower}"
    kinds = {each.split()[0] for each in (upper, lower) if each} or {"free"}
    kind = "tightened" if "tightened" in kinds else "partly given" if len(kinds) > 1 else kinds.pop()
    return doc.CompletedEntry(**vars(window), origin=origin, kind=kind)


def _origin(branch: Branch, graph: WindowGraph, source: int, target: int, *, turned: bool = False) -> str:
    """Return where a bound comes from: given, derived or tightened; empty without a bound.

    A lower bound's path is shown in the upper one's direction.
    """
    bound, given = branch.upper[source][target], branch.given[source][target]
    if bound is None:
        return ""
    if given == bound:
        return "given"
    path = branch.paths[source][target]
    via = " -> ".join(graph.names[stream] for stream in (reversed(path) if turned else path))
    return f"derived via {via}" if given is None else f"tightened from {human(given, graph.kind)} via {via}"


def _candidate(each: Candidate) -> doc.CandidateEntry:
    plan, cost = each.plan, each.estimated.cost
    return doc.CandidateEntry(
        plan=plan_words(plan),
        words=_plain_words(plan),
        ranked=each.ranked,
        method=plan.method.value,
        bounds=_of_stages([stage.bounds.value for stage in plan.stages]),
        route=_of_stages([stage.route for stage in plan.stages]),
        kernel=_of_stages([name_of(stage.kernels) for stage in plan.stages]),
        shipping=_of_stages([stage.shipping.value for stage in plan.stages]),
        passes=plan.passes.value,
        order=tuple(_orders(plan, stage) for stage in plan.stages),
        cost=cost.seconds,
        terms=cost.terms,
        comparisons=cost.comparisons,
        results=cost.results,
        shuffled_bytes=cost.shuffled_bytes,
        state_rows=cost.state_rows,
        state_bytes=cost.state_bytes,
        lost=each.lost,
    )


def plan_words(plan: PhysicalPlan) -> str:
    """Return what tells a candidate from the others, in a few words."""
    if plan.method is Method.NATIVE:
        return "native"
    if not plan.stages:
        return "one relation"
    names = [_route_and_kernel(plan, stage) for stage in plan.stages]
    kernels = names[0] if len(set(names)) == 1 else " ".join(names)
    passes = f" {plan.passes.value}" if plan.branches else ""
    first = " ".join(_names(plan, plan.stages[0].members))
    stages = f" in {len(plan.stages)} stages, {first} first" if len(plan.stages) > 1 else ""
    if plan.stages[0].hop:
        stages = " at once" if plan.stages[-1].gathers else f" in {len(plan.stages)} hops"
    return f"{plan.stages[0].bounds.value} {kernels}{passes}{stages}"


def _route_and_kernel(plan: PhysicalPlan, stage: Stage) -> str:
    """Return the kernel of a stage, after its route where that is not the first that applies."""
    preferred = plainest(keyed=stage.keyed, inputs=len(stage.inputs))
    kernel = name_of(stage.kernels)
    if stage.route == preferred:
        return kernel
    if stage.slice is None:
        return f"{stage.route} {kernel}"
    usual = stage.slice == slice_length(plan, stage, stage.route)
    length = "" if usual else f" by {_length(plan, stage)}"
    return f"{stage.route}({stage.workers or 'all'}{_copies(stage)}{length}) {kernel}"


def _plain_words(plan: PhysicalPlan) -> str:
    """Return how a plan finds the partners of a row, then its name in the words of hints."""
    if plan.method is Method.NATIVE:
        return "Spark's own joins of two, one after the other (native)"
    if not plan.stages:
        return "one relation, nothing to join"
    kernels = dict.fromkeys(_kernel_words(stage) for stage in plan.stages)
    bounds = BOUNDS_WORDS[plan.stages[0].bounds]
    passes = ", alternatives apart" if plan.apart else ""
    return f"{'; '.join(kernels)}{bounds}{passes} ({plan_words(plan)})"


def _kernel_words(stage: Stage) -> str:
    """Return how a stage finds the partners of a row; without a key nothing is found by it."""
    return words_of(stage.kernels, keyed=stage.keyed)


def _of_stages(values: Sequence[str]) -> doc.Choice:
    if len(set(values)) > 1:
        return tuple(values)
    return values[0] if values else None


def _orders(plan: PhysicalPlan, stage: Stage) -> doc.Orders:
    names = ["+".join(_names(plan, each.members)) for each in stage.inputs]
    orders = chosen_orders(stage) or {}
    return tuple((names[first], *(names[n] for n in order)) for first, order in orders.items())


def _stage(planned: PlannedSelect, number: int) -> doc.StageEntry:
    plan = planned.physical
    stage = plan.stages[number]
    kernel = name_of(stage.kernels)
    parts = [
        _part("bounds", stage.bounds.value),
        doc.PartEntry("route", _route(stage), ROUTES[stage.route].meaning),
        doc.PartEntry("kernel", kernel, meaning_of(kernel)),
        _part("shipping", stage.shipping.value),
        *([_part("passes", plan.passes.value)] if plan.branches else []),
    ]
    return doc.StageEntry(
        inputs=tuple(_input(plan, stage, place) for place in range(len(stage.inputs))),
        bounds=stage.bounds.value,
        route=stage.route,
        kernel=kernel,
        shipping=stage.shipping.value,
        order=_orders(plan, stage),
        bands=tuple(_band(plan, each, planned.shares[each]) for each in stage.bands),
        words=_kernel_words(stage),
        classes=tuple(each + 1 for each in planned.logical.stage_classes[number]),
        checks=tuple(_comparison(plan, each) for each in stage.comparisons),
        parts=() if plan.method is Method.NATIVE else tuple(parts),
        warning="" if plan.method is Method.NATIVE else ROUTES[stage.route].warning,
        calls=tuple(_call(plan, each) for each in stage.predicates),
        # Partial results of the same streams lie alike, whatever began them.
        slices=tuple(dict.fromkeys(_slices(plan, stage))),
        dealt=_dealt(plan, stage),
    )


def _route(stage: Stage) -> str:
    if stage.slice is None:
        return stage.route
    return f"{stage.route} on {'all' if stage.workers is None else stage.workers} workers{_copies(stage)}"


def _slices(plan: PhysicalPlan, stage: Stage) -> Iterator[str]:
    """Yield in words how the rows of a stage lie on several workers, nothing where they do not."""
    if stage.slice is None:
        return
    workers = "all workers" if stage.workers is None else f"{stage.workers} workers"
    copied = f", each to {stage.copies}" if stage.copies > 1 else ""
    cut = _length(plan, stage) if ROUTES[stage.route].values else f"{_length(plan, stage)} of event time"
    if ROUTES[stage.route].heaviest:
        yield f"a key's rows meet on one of {workers}, but for the most frequent key's:"
    yield f"slices of {cut}, dealt out to {workers} in turn{copied}"
    if kept_anywhere(plan, stage, stage.workers or SLICES_OF_A_WINDOW):
        yield "few new rows are dealt out one by one, as those that meet them visit every worker"
    keeper = "those of its slice" if stage.copies > 1 else "the worker of its slice"
    for number, each in enumerate(stage.inputs):
        view = slicing(plan, stage, number)
        name = " ".join(_names(plan, each.members))
        if view is None or (view.sliced and not view.visits):
            yield f"{name}: a row goes to {keeper}"
            continue
        if not view.probes:
            doing = "is kept by" if view.stored else "is passed on by"
            yield f"{name}: a row {doing} {keeper}"
            continue
        visits = reached(view, stage.workers or sys.maxsize)
        if stage.workers is not None:
            found = f"{figure(visits)} of {stage.workers}"
        elif view.back is None or view.ahead is None:
            found = "all" if stage.copies == 1 else f"one in {stage.copies}"
        else:
            found = f"up to {figure(visits)}"
        kept = f"is kept by {keeper}, and meets" if view.sliced and view.stored else "goes to"
        met = "those" if stage.copies == 1 else "the fewest that have all"
        yield f"{name}: a row {kept} {met} that it can reach ({found})"


def _copies(stage: Stage) -> str:
    return f" in {stage.copies} copies" if stage.copies > 1 else ""


def _length(plan: PhysicalPlan, stage: Stage) -> str:
    """Return how long the slices of a stage are, in words."""
    if stage.slice is None:
        return ""
    if not ROUTES[stage.route].values:
        return human(int(stage.slice), plan.time_kind)
    band = cut_by(stage)
    return f"{stage.slice:g} of {_column(plan, band.left)} and {_column(plan, band.right)}"


def _dealt(plan: PhysicalPlan, stage: Stage) -> doc.DealtEntry | None:
    """Return what can be drawn of how the rows of a stage lie on several workers, None where they do not."""
    if stage.slice is None or stage.workers == 1:
        return None
    workers = SOME_WORKERS if stage.workers is None else stage.workers
    drawn = min(workers, MOST_WORKERS)
    keeping = next((number for number, each in enumerate(stage.inputs) if each.stored), 0)
    places = range(min(2 * workers, MOST_WORKERS))
    homes = (roles(plan, stage, keeping, place, workers) for place in places)
    place, rows = 1, []
    for number, each in enumerate(stage.inputs):
        found = roles(plan, stage, number, place, workers)
        if Role.PASSED in found.values():
            continue
        lying = (_lying(stage, found[worker]) if worker in found else "" for worker in range(drawn))
        rows.append(doc.LyingEntry(_names(plan, each.members), tuple(lying)))
    return doc.DealtEntry(
        slices=tuple(
            tuple(worker + 1 for worker, role in sorted(home.items()) if role.stores) for home in homes
        ),
        place=place + 1,
        rows=tuple(dict.fromkeys(rows)),
        more=stage.workers is None or drawn < workers,
    )


def _lying(stage: Stage, role: Role) -> str:
    """Return what a worker does with a row."""
    alone = role is Role.STORE and stage.copies == 1
    return (Lying.KEEPS if alone else LYING[role]).value


def _part(name: str, value: str) -> doc.PartEntry:
    return doc.PartEntry(name, value, MEANINGS.get((name, value), ""))


def _input(plan: PhysicalPlan, stage: Stage, place: int) -> doc.InputEntry:
    each = stage.inputs[place]
    code = None if each.key is None else plan.streams[each.key[0]].codes[each.key[1]]
    return doc.InputEntry(
        members=_names(plan, each.members),
        stage=None if each.stage is None else each.stage + 1,
        key=() if code is None else code.expressions,
        kept_for={plan.streams[kept.stream].alias: kept.distances[0][1] for kept in each.retention}
        if each.stored
        else {},
        hashed=code is not None and not code.exact,
        ordered_by=_ordered_by(plan, stage, place),
        hop=_hop(plan, stage, place) if stage.hop else None,
    )


def _hop(plan: PhysicalPlan, stage: Stage, place: int) -> doc.HopEntry:
    """Return what the rows of an input do in a hop."""
    each, number = stage.inputs[place], plan.stages.index(stage)
    met = [stage.inputs[other].members[-1] for other in each.meets or ()]
    kept_before = (
        number
        for number, earlier in enumerate(plan.stages[:number], start=1)
        for source in earlier.inputs
        if source.members == each.members and source.stored
    )
    alone = len(each.members) == 1
    return doc.HopEntry(
        newest=None if alone else plan.streams[each.newest[0]].alias,
        meets=_names(plan, met),
        kept=_names(plan, kept_for(stage, place)) if each.stored else (),
        before=tuple(kept_before) if each.stored else (),
        passed_on=alone and destination(plan, number, each) is not None,
        gathered=each.gathered,
    )


def _ordered_by(plan: PhysicalPlan, stage: Stage, place: int) -> str | None:
    band = stage.inputs[place].index
    if band is None or KERNELS[stage.kernels[0]].order is not Order.VALUE:
        return None
    return _column(plan, band.left if band.left[0] in stage.inputs[place].members else band.right)


def _column(plan: PhysicalPlan, operand: tuple[int, int]) -> str:
    stream, number = operand
    return plan.streams[stream].columns[number].expression


def _comparison(plan: PhysicalPlan, each: Comparison) -> str:
    return f"{_column(plan, each.left)} {each.operator} {_column(plan, each.right)}"


def _call(plan: PhysicalPlan, check: PredicateCheck) -> doc.CallEntry:
    arguments = ", ".join(
        _column(plan, each) if isinstance(each, tuple) else repr(each) for each in check.arguments
    )
    call = f"{check.predicate}({arguments})"
    if isinstance(check.asked, bool):
        condition = call if check.asked else f"NOT {call}"
    else:
        condition = " AND ".join(f"{call} {operator} {value:g}" for operator, value in check.asked)
    return doc.CallEntry(condition, _estimate(check.cost_us), _estimate(check.share), check.tried)


def _band(plan: PhysicalPlan, band: Band, share: Estimate) -> doc.BandEntry:
    low = "" if band.low is None else f"{band.low:g} <= " if band.slack else f"{band.low} <= "
    high = "" if band.high is None else f" <= {band.high:g}" if band.slack else f" <= {band.high}"
    condition = f"{low}{_column(plan, band.left)} - {_column(plan, band.right)}{high}"
    return doc.BandEntry(condition, band.low, band.high, _estimate(share), band.checked)


def _join(plan: PhysicalPlan, join: PairJoin) -> doc.JoinEntry:
    sides = [plan.streams[stream].codes[number].expressions for stream, number in join.keys or ()]
    return doc.JoinEntry(
        left=_names(plan, join.left),
        right=_names(plan, join.right),
        on=tuple(" = ".join(pair) for pair in zip(*sides, strict=True)),
        checks=tuple(_comparison(plan, each) for each in join.comparisons),
        kept_for=(_kept_for(plan, join.left, join.right), _kept_for(plan, join.right, join.left)),
    )


def _kept_for(plan: PhysicalPlan, own: Sequence[int], other: Sequence[int]) -> int | None:
    bound = latest_bound(plan.upper, own, other)
    return None if bound is None else whole_seconds(bound) * 1_000_000
