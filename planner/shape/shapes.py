"""A plan of every sequence of joins: which conditions are checked where, and what is left to Spark."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from wjoin.planner.bind.binding import BoundSelect
from wjoin.planner.bind.event_time import undated
from wjoin.planner.conditions.conjuncts import (
    ColumnComparison,
    PredicateCall,
    Residual,
    Side,
    comparable,
    streams_of,
)
from wjoin.planner.conditions.readable import ReadCondition
from wjoin.planner.plan.edges import with_columns
from wjoin.planner.plan.physical import Output, PhysicalPlan
from wjoin.planner.plan.to_come import waits_for_ever
from wjoin.planner.request import Planning
from wjoin.planner.shape.at_once import at_once, can_meet_at_once
from wjoin.planner.shape.counted import asked_of, counted_windows
from wjoin.planner.shape.decompose import Decomposition
from wjoin.planner.shape.hops import can_hop, in_hops
from wjoin.planner.shape.join_keys import KeyPart, can_be_key
from wjoin.planner.shape.lacked import lacked_streams
from wjoin.planner.shape.later_joins import (
    before_join,
    is_later,
    later_stages,
    meets_alone,
    takes_part,
)
from wjoin.planner.shape.lookups import Lookup, lookups, tree_lookups
from wjoin.planner.shape.scans import ScanBuilder
from wjoin.planner.shape.shape import LaterCondition, Shape
from wjoin.planner.shape.shipping import with_sites
from wjoin.planner.shape.stages_of_joins import EqualParts, can_decide, stages
from wjoin.planner.text.scope import StreamColumn
from wjoin.planner.windows.bounds import Windows


def shapes(planning: Planning) -> Planning:
    """Add a plan of every sequence that is to be planned."""
    return replace(planning, shapes=tuple(_shape(planning, each) for each in planning.drafts))


def with_hops(planning: Planning) -> Planning:
    """Add plans with hops in the place of the one stage of another, where there may be such."""
    if not planning.hopping:
        return planning
    made = {each.draft: each for each in planning.shapes}
    whole = [made[each] if each in made else _shape(planning, each) for each in planning.whole]
    hops: list[Shape] = []
    for can, form in ((can_hop, in_hops), (can_meet_at_once, at_once)):
        able = (each for each in whole if can(each.physical))
        hops += [replace(each, physical=form(each.physical), hops=True) for each in able]
        if planning.approximate is not None and hops:
            # Rows that visit a node meet one stream there.
            return replace(planning, shapes=tuple(hops))
    return replace(planning, shapes=(*planning.shapes, *hops))


def _shape(planning: Planning, draft: Decomposition) -> Shape:
    bound, graph, static = planning.bound, planning.graph, planning.static
    # Conditions on several streams: in the operator where that is exact, else left to Spark.
    paired = [each for each in bound.conjuncts if not before_join(each, bound.tree)]
    comparisons = [each for each in paired if isinstance(each, ColumnComparison)]
    joins = (
        tree_lookups(planning)
        if bound.tree.static
        else lookups(len(bound.sources), static, planning.classes, comparisons)
    )
    checks: list[ColumnComparison | EqualParts] = [
        each for each in comparisons if static.isdisjoint(each.streams)
    ]
    tree, staged_tree = bound.tree, bound.tree.staged
    compared = [(pair, _comparison(*pair) or _decided(*pair, planning)) for pair in draft.equalities]
    checks += [comparison for _, comparison in compared if comparison is not None]
    late = [pair for pair, comparison in compared if comparison is None]
    unusable = [
        each.equality
        for each in planning.equalities
        if not can_be_key(each.common)
        and bound.join_of(each.equality) < len(staged_tree.joins)
        and not before_join(each.equality, tree)
    ]
    later = [each for each in bound.conjuncts if isinstance(each, Residual)]
    inner = not staged_tree.joins
    residual = (
        *(LaterCondition(each.text, _unread(each, static)) for each in later if is_later(planning, each)),
        *(
            LaterCondition(f"{first.text} = {second.text}", "an equality that is not a join key")
            for first, second in late
            if inner or planning.staged
        ),
        *(
            LaterCondition(f"{each.left.text} = {each.right.text}", "values that cannot be a key")
            for each in unusable
            if inner or planning.staged
        ),
    )
    conditions = [
        each.read
        for each in paired
        if isinstance(each, Residual) and isinstance(each.read, ReadCondition) and not _unread(each, static)
    ]
    late_sides = [part.side for pair in late for part in pair]
    late_sides += [side for each in unusable for side in (each.left, each.right)]
    scans = _scans(bound, late_sides, joins)
    called = [each for each in bound.conjuncts if isinstance(each, PredicateCall)]
    calls = [
        call for each, call in zip(called, planning.calls, strict=True) if not before_join(each, bound.tree)
    ]
    staged = stages(draft, [*planning.indexes, *checks, *conditions, *calls], scans)
    if planning.approximate is not None:
        for each in scans:
            each.home()
    counted, rows = counted_windows(planning, staged, scans)
    undecided = [frozenset(part.stream for part in pair) for pair in late]
    undecided += [frozenset(streams_of(each)) for each in unusable]
    staged = later_stages(planning, staged, scans, undecided, rows)
    streams = tuple(
        scan.scan(
            *(
                tuple(
                    dict.fromkeys(
                        each.text for each in planning.filters if each.stream == stream and what(tree, each)
                    )
                )
                for what in (takes_part, meets_alone)
            )
        )
        for stream, scan in enumerate(scans)
    )
    delays = [None if time is None else time.delay for time in bound.times]
    output = Output(
        sink=planning.request.placeholder,
        columns=tuple(
            (stream, number)
            for stream, scan in enumerate(streams)
            for number, column in enumerate(scan.columns)
            if column.output is not None and stream not in tree.hidden
        ),
        windows=graph.alternatives,
        match=bound.matches,
        match_delay=match_delay(delays, graph.windows, static) if inner else None,
        undated=undated(bound.sources, bound.times),
        optional=staged_tree.optional,
        lacked=lacked_streams(bound),
    )
    plan = PhysicalPlan(
        streams=streams,
        time_kind=graph.kind,
        windows=graph.windows,
        branches=graph.alternatives,
        stages=staged,
        outputs=(output,),
        lookups=tuple(join for join, _ in joins),
        watermarked=tuple(each.number for each in bound.sources if each.relation.watermark),
        counted=counted,
        asked=tuple(asked_of(each.counted, rows) for each in graph.branches) if counted else (),
        approximate=planning.approximate,
    )
    if plan.optional and (why := outer_undated(plan)):
        plan = replace(plan, outputs=(replace(output, undated=output.undated or why),))
    physical = with_columns(with_sites(plan, planning.request.relations))
    return Shape(draft, physical, residual, tuple(scan.keys for scan in scans))


def outer_undated(plan: PhysicalPlan) -> str:
    """Return why MATCH_TIME of joins that are not all inner ones has no watermark, empty where it has one."""
    if plan.watermarked:
        return "a stream comes with a watermark of Spark's, which rows without a partner come later than"
    if waits_for_ever(plan):
        return "a window is open on one side, so it is never known that a row has no partner"
    return ""


def _unread(each: Residual, static: Collection[int]) -> str:
    """Return what keeps the join from testing a condition, empty where it does."""
    if not isinstance(each.read, ReadCondition):
        return each.read.what
    if not any(column.stream in static for column in each.read.columns):
        return ""
    return "a column of a static relation, which is joined later"


def match_delay(delays: Sequence[int | None], windows: Windows, static: Collection[int] = ()) -> int | None:
    """Return how far MATCH_TIME of a result may lie behind one emitted before, None when unbounded.

    The row of stream i that completes a result is at most ``delays[i]`` behind its stream, and
    no result emitted before reaches further beyond that than the widest window from i, to a
    static relation as well. A row of a static relation completes nothing. None for a delay: the
    relation has no event time.
    """
    greatest = 0
    for stream, delay in enumerate(delays):
        if stream in static or delay is None:
            continue
        for other in (number for number, each in enumerate(delays) if each is not None):
            bound = windows.between(stream, other)
            if bound is None:
                return None
            greatest = max(greatest, delay + max(0, bound))
    return greatest


def _comparison(first: KeyPart, second: KeyPart) -> ColumnComparison | None:
    """Return an equality as a comparison of two columns, None where it is of other expressions or types."""
    left, right = first.side.plain, second.side.plain
    if left is None or right is None or not comparable(left, right):
        return None
    return ColumnComparison(left, "=", right, "")


def _decided(first: KeyPart, second: KeyPart, planning: Planning) -> EqualParts | None:
    """Return what a join that tells what has no partner checks of an equality, None of other joins."""
    parts, tree = EqualParts(first, second), planning.bound.tree.staged
    number = tree.join_of(parts.streams, None)
    later = tree.joins[max(0, number) :]
    ours = number >= 0 or tree.is_told(number)
    ours = ours and (planning.streaming or tree.counted or any(each.kind.asof for each in later[:1]))
    return parts if ours and can_decide(parts) else None


def _scans(bound: BoundSelect, sides: Sequence[Side], joins: Sequence[Lookup]) -> list[ScanBuilder]:
    """Start a scan of each stream with its outputs, in the relation's order."""
    read = [*bound.reads, *(column for side in sides for column in side.columns)]
    read += [column for _, columns in joins for column in columns]
    named = {each.identity for each in read}
    builders = []
    for source, time in zip(bound.sources, bound.times, strict=True):
        builder = ScanBuilder(source, time)
        for column in source.relation.columns:
            own = StreamColumn(source.number, column)
            if own.identity in named:
                builder.output(own)
        builders.append(builder)
    return builders
