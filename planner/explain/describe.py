"""A plan to the document of EXPLAIN: the one place there that reads plans, with words for their parts."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.join_tree import JoinTree
from wjoin.parts.kernels.registry import name_of
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.catalog import Origin
from wjoin.planner.choose.layouts import OTHER_CHECKPOINT
from wjoin.planner.choose.native_method import pair_joins
from wjoin.planner.choose.plan_candidates import WORTH_A_CHANGE, Candidate, shared_terms
from wjoin.planner.cost.semijoin import Shipments
from wjoin.planner.cost.stream_statistics import DEFAULT_DISTINCT, StreamStatistics, units_per_second
from wjoin.planner.explain import document as doc
from wjoin.planner.explain.plan_words import alias_names, column_words, plain_words, plan_words
from wjoin.planner.explain.stage_description import (
    estimate_entry,
    join_entry,
    join_orders,
    later_rows,
    stage_entry,
)
from wjoin.planner.figures import figure
from wjoin.planner.plan.physical import Method, Output, PhysicalPlan, Shipping, StreamScan
from wjoin.planner.plan.probes import row_ends
from wjoin.planner.plan.reach import Reach, reach
from wjoin.planner.plan.stage_kinds import Bounds, Join
from wjoin.planner.plan.to_come import is_dated, lags
from wjoin.planner.planning import PlannedSelect
from wjoin.planner.text.scope import quoted_if_needed
from wjoin.planner.windows.bounds import Windows
from wjoin.planner.windows.closure import Branch
from wjoin.planner.windows.lengths import human
from wjoin.planner.windows.window_graph import WindowGraph

WORTH_TELLING = 1.25
"""How many times as fast as the chosen plan one must be, to be told of though it cannot be taken."""


def describe(planned: PlannedSelect, overload: doc.OverloadEntry | None = None) -> doc.Document:
    """Return the plan of a block as a document, with what is done when it is too much."""
    graph, plan = planned.graph, planned.physical
    found = tuple(_candidate(each) for each in planned.candidates)
    unit = units_per_second(graph.kind)
    streams = tuple(_streams(planned))
    known = zip(plan.streams, planned.statistics, strict=True)
    statistics = tuple(_statistics(scan, each, unit) for scan, each in known)
    unknown = [
        stream
        for stream, each in zip(streams, statistics, strict=True)
        if stream.event_time and not each.known
    ]
    native = plan.method is Method.NATIVE
    output = planned.output
    return doc.Document(
        format=doc.FORMAT,
        time=graph.kind.value,
        streams=streams,
        constraints=_constraints(
            graph, [n for n, scan in enumerate(plan.streams) if scan.dated], planned.bound.tree
        ),
        equality_classes=tuple(
            doc.ClassEntry(each.type, tuple(part.text for part in each.parts)) for each in planned.classes
        ),
        residual=tuple(each.condition for each in planned.residual),
        later=tuple(doc.LaterEntry(each.condition, each.unread) for each in planned.residual),
        statistics=statistics,
        chosen=found[0],
        candidates=found,
        faster=_faster(planned.candidates),
        shared=shared_terms(planned.candidates),
        unknown=tuple(dict.fromkeys(map(_relation, unknown))),
        assumptions=tuple(_assumptions(planned)),
        stages=tuple(stage_entry(planned, number) for number in range(len(plan.stages))),
        match_delay=output.match_delay,
        joins=tuple(join_entry(plan, each) for each in pair_joins(plan)) if native else (),
        lookups=tuple(
            doc.LookupEntry(
                plan.streams[each.stream].alias,
                each.equalities,
                each.comparisons,
                "" if each.kind is JoinKind.INNER else each.kind.value,
            )
            for each in plan.lookups
        ),
        laterals=planned.laterals,
        undated=output.undated if "time" in output.match else "",
        closing=tuple(_closing(plan, output)),
        network=planned.candidates[0].estimated.cost.network,
        default_distinct=DEFAULT_DISTINCT,
        worth_a_change=WORTH_A_CHANGE,
        shipments=tuple(_shipment(planned, each) for each in planned.shipments),
        overload=overload,
    )


def _closing(plan: PhysicalPlan, output: Output) -> Iterator[doc.ClosingEntry]:
    if is_dated(plan, output):
        yield from (doc.ClosingEntry(plan.streams[each].alias, lag) for each, lag in lags(plan).items())


def _faster(found: Sequence[Candidate]) -> doc.FasterEntry | None:
    """Return which plan would be faster by far, where only the state of a query may forbid it."""
    chosen, best = found[0], next(each for each in found if each.unbound)
    times = chosen.estimated.cost.seconds / best.estimated.cost.seconds
    words = plain_words(best.plan)
    if times < WORTH_TELLING or words == plain_words(chosen.plan):
        return None
    routes = {stage.placement.route for stage in best.plan.stages}
    sliced = len(routes) == 1 and best.shape == chosen.shape and any(ROUTES[each].slices for each in routes)
    hint = f"PLAN({routes.pop().upper()})" if sliced else ""
    return doc.FasterEntry(words, times, hint, best.lost == OTHER_CHECKPOINT)


def _shipment(planned: PlannedSelect, each: Shipments) -> doc.ShipmentEntry:
    scan = planned.physical.streams[each.stream]
    early, numbers = ((), ()) if scan.site is None else (scan.site.early, scan.site.late)
    late = tuple(str(scan.columns[number].output) for number in numbers)
    words = {
        Shipping.FULL: "whole rows" if late else f"{', '.join(early)} of every row",
        Shipping.PARTIAL: f"{', '.join(early)} of every row, {', '.join(late)} only of rows in results",
        Shipping.LIKELY: "whole rows, only those that probably match; others wait at the site",
        Shipping.HELD: "whole rows, only those whose key is in the other windows; not stored in the state",
    }
    return doc.ShipmentEntry(
        alias=scan.alias,
        ways=tuple(
            doc.WayEntry(way.shipping.value, words[way.shipping], way.size, way.messages, way.seconds)
            for way in each.ways
        ),
        matched=estimate_entry(each.matched),
        latency=estimate_entry(each.latency),
        bandwidth=estimate_entry(each.bandwidth),
        early=early,
        late=late,
    )


def _streams(planned: PlannedSelect) -> Iterator[doc.StreamEntry]:
    plan = planned.physical
    windows = plan.windows
    distances = reach(plan.stages[0].bounds if plan.stages else Bounds.EXACT, windows, plan.staged)
    for stream, (scan, relation) in enumerate(zip(plan.streams, planned.relations, strict=True)):
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
            kept_for=_kept_for(plan, stream, distances, others),
            unbounded=alias_names(plan, [each for each in others if windows.between(stream, each) is None]),
            joined_by=_joined_by(scan) if plan.stages else (),
            idle_after=scan.idle_after,
            late_into=scan.late_into if plan.stages else "",
            kept_rows=later_rows(plan, stream),
            ends=_ends(plan, stream, others),
        )


def _ends(plan: PhysicalPlan, stream: int, others: Sequence[int]) -> dict[str, tuple[str, ...]]:
    """Return what a row of a stream says itself of how long it is kept for others."""
    stages = [each for each in plan.stages if stream in each.members and isinstance(each, Join)]
    found = {}
    for other in others:
        told = [each for stage in stages for each in row_ends(plan, stage, (stream,), other)]
        if told and not plan.asof:
            found[plan.streams[other].alias] = tuple(dict.fromkeys(column_words(plan, each) for each in told))
    return found


def _kept_for(
    plan: PhysicalPlan, stream: int, distances: Reach, others: Sequence[int]
) -> dict[str, int | None]:
    """Return how much later than a row the watermarks of streams must be for it to be forgotten."""
    if plan.asof and len(plan.stages) == 1 and others:
        rules = plan.stages[0].inputs[stream].retention
        return {plan.streams[rule.stream].alias: rule.distances[0][1] for rule in rules}
    return {plan.streams[other].alias: distances.ahead(stream, other) for other in others}


_NEVER = "(false)"
"""The condition of ON of a join in which nothing can match; its stage tells that."""


def _joined_by(scan: StreamScan) -> tuple[str, ...]:
    """Return what only the join reads of a stream, besides its event time and its key."""
    keys = {expression for code in scan.codes for expression in code.expressions}
    number = None if scan.site is None else scan.columns[scan.site.number]
    read = [
        each.expression
        for each in scan.columns
        if each.output is None and each.expression not in (*keys, _NEVER) and each is not number
    ]
    names = (each.removeprefix(f"{quoted_if_needed(scan.alias)}.") for each in read)
    return tuple(name for name in names if name != quoted_if_needed(scan.event_time))


def _relation(each: doc.StreamEntry) -> str:
    return each.relation if each.relation.isidentifier() else each.alias


def _statistics(scan: StreamScan, known: StreamStatistics, unit: int) -> doc.StatisticsEntry:
    # Where a row lives is no key.
    every = enumerate(zip(scan.codes, known.keys, strict=True))
    keys = [each for place, each in every if place != scan.home]
    facts = [each for key in known.keys for each in (key.distinct, key.heaviest)]
    facts += [key.local for key in known.keys if key.local is not None]
    facts += [known.rate, known.width, known.disorder, known.selectivity, known.duration]
    return doc.StatisticsEntry(
        alias=scan.alias,
        rate=doc.EstimateEntry(known.rate.value * unit, known.rate.origin.value),
        width=estimate_entry(known.width),
        disorder=estimate_entry(known.disorder),
        selectivity=estimate_entry(known.selectivity),
        keys=tuple(
            doc.KeyEntry(
                code.expressions,
                estimate_entry(key.distinct),
                estimate_entry(key.heaviest),
                None if key.local is None else estimate_entry(key.local),
            )
            for code, key in keys
        ),
        known=any(each.origin is not Origin.DEFAULT for each in facts),
    )


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
        often = f"{figure(each.agreement)} times as often as if independent of time"
        yield f"{', '.join(alias_names(planned.physical, stage.members))}: keys agree {often} (measured)"
    if assumed:
        yield "result estimate: assumes that keys and times are independent"


def _constraints(graph: WindowGraph, dated: Sequence[int], tree: JoinTree) -> doc.ConstraintsEntry:
    branches = list(enumerate(graph.branches, start=1))
    # Those of a join in which nothing can match are told with its stage.
    empty = {stream for each in tree.joins if each.empty for stream in each.right}
    pairs = list(combinations([each for each in dated if each not in empty], 2))
    given = [_window(graph, branch.given, *pair, number) for number, branch in branches for pair in pairs]
    completed = [_completed(graph, branch, *pair, number) for number, branch in branches for pair in pairs]
    return doc.ConstraintsEntry(
        given=tuple(each for each in given if each.lo is not None or each.hi is not None),
        completed=tuple(completed),
        contradictory_alternatives=graph.contradictory,
        hull=tuple(_window(graph, graph.windows, *pair, 0) for pair in pairs if len(branches) > 1),
    )


def _window(graph: WindowGraph, windows: Windows, first: int, second: int, number: int) -> doc.WindowEntry:
    """Return the bounds of t_second - t_first in an alternative."""
    low, high = windows.between(second, first), windows.between(first, second)
    ends = graph.names[first], graph.names[second]
    return doc.WindowEntry(*ends, None if low is None else -low, high, number)


def _completed(
    graph: WindowGraph, branch: Branch, first: int, second: int, number: int
) -> doc.CompletedEntry:
    window = _window(graph, branch.windows, first, second, number)
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
    bound, given = branch.windows.between(source, target), branch.given.between(source, target)
    if bound is None:
        return ""
    if given == bound:
        said = (
            each for each in graph.said if (each.source, each.target, each.bound) == (source, target, bound)
        )
        found = next(said, None)
        return f"given by {found.condition}" if found is not None else "given"
    path = branch.paths[source][target]
    via = " -> ".join(graph.names[stream] for stream in (reversed(path) if turned else path))
    return f"derived via {via}" if given is None else f"tightened from {human(given, graph.kind)} via {via}"


def _candidate(each: Candidate) -> doc.CandidateEntry:
    plan, cost = each.plan, each.estimated.cost
    return doc.CandidateEntry(
        plan=plan_words(plan),
        words=plain_words(plan),
        ranked=each.ranked,
        method=plan.method.value,
        bounds=_of_stages([stage.bounds.value for stage in plan.stages]),
        route=_of_stages([stage.placement.route for stage in plan.stages]),
        kernel=_of_stages([name_of(stage.kernels) for stage in plan.stages]),
        passes=plan.passes.value,
        order=tuple(join_orders(plan, stage) for stage in plan.stages),
        cost=cost.seconds,
        terms=cost.terms,
        comparisons=cost.comparisons,
        results=cost.results,
        shuffled_bytes=cost.shuffled_bytes,
        state_rows=cost.state_rows,
        state_bytes=cost.state_bytes,
        lost=each.lost,
        visits=cost.visits,
        missing=cost.missing,
    )


def _of_stages(values: Sequence[str]) -> doc.Choice:
    if len(set(values)) > 1:
        return tuple(values)
    return values[0] if values else None
