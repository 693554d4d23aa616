"""A SELECT block with a window clause to its plan, and to the edits that let Spark run the rest."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from wjoin.grammar.canonical import canonical
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.syntax import SelectBlock
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.bind.binding import BoundSelect, bind, static_relations
from wjoin.planner.bind.event_time import undated
from wjoin.planner.bind.select_list import Output as OutputColumn
from wjoin.planner.bind.written import Written, numbered, written
from wjoin.planner.catalog import WHOLE, Estimate, Relation, Types
from wjoin.planner.choose.choice import options, wished_route
from wjoin.planner.choose.layouts import (
    FREE,
    UNKNOWN,
    Layout,
    LayoutRule,
    hops_name,
    sequence_name,
)
from wjoin.planner.choose.placements import Room
from wjoin.planner.choose.plan_candidates import Candidate, Weighing, candidates
from wjoin.planner.choose.travel import travelling
from wjoin.planner.conditions.column_bands import ColumnBand, merged_band
from wjoin.planner.conditions.conjuncts import (
    ColumnComparison,
    Equality,
    Filter,
    PredicateCall,
    Residual,
    Side,
    comparable,
)
from wjoin.planner.conditions.predicate_calls import ReadCall, Trials, tried
from wjoin.planner.conditions.readable import ReadCondition, Unread
from wjoin.planner.cost.estimates import Arrival
from wjoin.planner.cost.model import CostModel, CostSettings
from wjoin.planner.cost.psp import heaviest, heaviest_bucket
from wjoin.planner.cost.semijoin import Shipments
from wjoin.planner.cost.stream_statistics import (
    UNIT_INTERVAL,
    StreamStatistics,
    band_share,
    stream_statistics,
    units_per_second,
)
from wjoin.planner.plan.edges import with_columns
from wjoin.planner.plan.physical import (
    Band,
    Method,
    Output,
    Passes,
    PhysicalPlan,
    Shipping,
    StaticJoin,
    TimeKind,
    UpperBounds,
)
from wjoin.planner.shape.at_once import at_once, can_meet_at_once
from wjoin.planner.shape.decompose import Decomposition, decompose, in_pairs
from wjoin.planner.shape.hops import can_hop, in_hops
from wjoin.planner.shape.join_keys import (
    EqualityClass,
    KeyPart,
    TypedEquality,
    can_be_key,
    equality_classes,
    typed,
)
from wjoin.planner.shape.logical import LaterCondition, LogicalPlan
from wjoin.planner.shape.lookups import DraftLookup, lookups
from wjoin.planner.shape.scans import ScanBuilder
from wjoin.planner.shape.shipping import shipped, with_sites
from wjoin.planner.shape.stages import ColumnCheck, Index, stages
from wjoin.planner.text.columns import StreamColumn
from wjoin.planner.text.edits import Edit, apply_edits
from wjoin.planner.windows.window_graph import WindowGraph, window_graph
from wjoin.udfs.predicate import Predicate

__all__ = ["Edit", "PlannedSelect", "apply_edits", "plan_select", "statement_meaning"]

_NAME = re.compile(r"\w+|`.*`", re.DOTALL)

_UNCARRIED = re.compile(r"^interval$|[<:,]interval(?! (day|hour|minute|second))")
"""Types that Arrow has no form of in Spark: intervals of several kinds, and others inside of a type."""


@dataclass(frozen=True)
class PlannedSelect:
    """The plan of a block.

    ``candidates`` are all plans that were weighed, ``physical`` the first of them, and ``shipments`` how its
    streams at sites may travel, the way that it takes first; ``shares`` are what
    its bands keep of all pairs of rows. ``edits`` turn
    the block into a SELECT over the joined rows. They index the original text, are sorted and do
    not overlap. ``layout`` is that of the state. Rows of the
    streams ``undeclared`` can be late, and nobody has told how far they may be out of order. ``outputs``
    are the columns of the block, ``written`` the order in which its parts were read, ``sink`` the name by
    which it reads the joined rows.
    """

    logical: LogicalPlan
    physical: PhysicalPlan
    edits: tuple[Edit, ...]
    statistics: tuple[StreamStatistics, ...]
    candidates: tuple[Candidate, ...]
    shares: Mapping[Band, Estimate]
    layout: Layout
    written: Written
    sink: str
    undeclared: tuple[int, ...] = ()
    outputs: tuple[OutputColumn, ...] = ()
    shipments: tuple[Shipments, ...] = ()

    @property
    def output(self) -> Output:
        """The output of the plan that the block reads; other statements may read others of the same plan."""
        return next(each for each in self.physical.outputs if each.sink == self.sink)


def plan_select(
    text: str,
    block: SelectBlock,
    relations: Sequence[Relation],
    types: Types,
    parameters: Mapping[str, object],
    placeholder: str,
    settings: Mapping[str, str] | None = None,
    costs: CostSettings | None = None,
    layouts: LayoutRule = UNKNOWN,
    predicates: Mapping[str, Predicate] | None = None,
    trials: Trials | None = None,
) -> PlannedSelect:
    """Plan one block.

    ``relations`` are the FROM items' in order, ``parameters`` the values of named parameters,
    ``placeholder`` what stands after FROM in the edited text, ``settings`` session defaults by
    the name of the hint that overrides them, ``costs`` what plans are weighed with, ``layouts``
    which layouts of state a join of streams may have, ``predicates`` those that the statement may call,
    by their names in lower case, ``trials`` what can try those that do not declare what they cost. Blocks
    inside this one must have been
    planned and spliced before. Raises WJoinError placed in ``text``.
    """
    try:
        return _plan(
            text,
            block,
            relations,
            types,
            parameters,
            placeholder,
            settings or {},
            costs or CostSettings(),
            layouts,
            predicates or {},
            trials,
        )
    except WJoinError as error:
        if error.text is not None:
            raise
        raise error.within(text) from None


def _plan(
    text: str,
    block: SelectBlock,
    relations: Sequence[Relation],
    types: Types,
    parameters: Mapping[str, object],
    placeholder: str,
    settings: Mapping[str, str],
    costs: CostSettings,
    layouts: LayoutRule,
    predicates: Mapping[str, Predicate],
    trials: Trials | None,
) -> PlannedSelect:
    # 1. Names and event times, then the window graph over them.
    bound = bind(text, block, relations, parameters, predicates, layouts.written)
    names = [source.name for source in bound.sources]
    streaming = any(source.relation.streaming for source in bound.sources)
    timeless = frozenset(number for number, time in enumerate(bound.times) if time is None)
    static = static_relations(bound.sources, bound.times)
    kind = next(time.kind for time in bound.times if time is not None)
    graph = window_graph(
        block.window,
        names,
        kind,
        parameters,
        must_connect=streaming,
        timeless=timeless,
        static=sorted(static - timeless),
    )

    calls = [tried(each.read, trials) for each in bound.conjuncts if isinstance(each, PredicateCall)]

    # 2. Equality classes, and the sequences of stages that can use them.
    equalities = [typed(each, types) for each in bound.conjuncts if isinstance(each, Equality)]
    classes, implied = equality_classes([each for each in equalities if can_be_key(each.common)])
    filters = _distinct([*(each for each in bound.conjuncts if isinstance(each, Filter)), *implied])
    # Which of the classes that link the same streams begins makes no difference.
    firsts = (None, *{each.streams: number for number, each in reversed([*enumerate(classes)])}.values())
    whole = list(dict.fromkeys(decompose(len(names), classes, static, first=each) for each in firsts))
    wished = wished_route(block, settings)
    chains = wished is not None and ROUTES[wished].pairs
    # A checkpoint goes on with the stages that it has, also on one core.
    kept = layouts.stages if streaming else None
    several = costs.workers > 1 or (kept is not None and kept not in _names(whole, names, layouts))
    hops = several if wished is None else ROUTES[wished].hops
    drafts = [] if chains else whole
    if chains or (wished is None and several):
        links = tuple(_links(bound))
        paired = (pairs for draft in whole for pairs in in_pairs(draft, links))
        drafts = list(dict.fromkeys([*drafts, *paired]))

    # 3. A plan of every shape, weighed in all its variants.
    indexes = _indexes(bound, static, relations, types)

    @cache
    def shape_of(draft: Decomposition) -> _Shape:
        return _shape(bound, graph, draft, classes, filters, equalities, static, calls, indexes, placeholder)

    shapes = [shape_of(draft) for draft in drafts]
    if hops:
        for can, form in ((can_hop, in_hops), (can_meet_at_once, at_once)):
            shapes += [_hopping(each, form) for each in map(shape_of, whole) if can(each.physical)]
    staged = shapes[0].physical.staged
    unit = units_per_second(kind)
    weighing = []
    weighed: list[_Shape] = []
    for shape in shapes:
        statistics = tuple(
            stream_statistics(source.relation, scan, keys, kind)
            for source, scan, keys in zip(bound.sources, shape.physical.streams, shape.keys, strict=True)
        )
        duration = max(statistics[stream].duration.value for stream in staged)
        interval = UNIT_INTERVAL if kind is TimeKind.INTEGRAL else costs.expected_interval * unit
        arrival = Arrival(interval, duration, streaming, costs.stretch, costs.partitions or costs.workers)
        model = CostModel(statistics, arrival, costs, unit, shape.shares)
        span = interval if streaming else duration
        inputs = [each.inputs for each in model.stages(shape.physical)]
        room = Room(
            costs.workers,
            span,
            tuple(max(heaviest(each)) for each in inputs),
            tuple(map(heaviest_bucket, inputs)),
            chained=shape.draft not in whole,
            shares=model.shares,
        )
        if shape.hops:
            name = hops_name(shape.physical, layouts.named(names))
        else:
            name = sequence_name(shape.draft, names, layouts.written)
        allowed = options(
            block,
            settings,
            shape.draft,
            graph,
            shape.physical,
            relations=relations,
            room=room,
            kept=layouts.placements(name) if streaming else None,
        )
        if shape.hops:
            if Passes.HULL not in allowed.passes:
                continue
            allowed = replace(allowed, passes=(Passes.HULL,))
        weighing.append(Weighing(name, shape.physical, allowed, model))
        weighed.append(shape)
    found = candidates(weighing, costs.memory, layouts if streaming else FREE)
    shape, model = weighed[found[0].shape], weighing[found[0].shape].model
    plan, ways = travelling(block, settings, found[0].plan, relations, model, layouts)
    if plan.stages and plan.method is Method.MULTIWAY:
        _require_carried(bound, plan)
    if any(each.chosen is Shipping.HELD for each in ways):
        taken = {each.stream: each.chosen for each in ways}
        found = tuple(
            replace(each, estimated=weighing[each.shape].model.estimate(shipped(each.plan, taken)))
            if each.layout == found[0].layout
            else each
            for each in found
        )
    logical = LogicalPlan(
        names=tuple(names),
        relations=tuple(source.item.relation.of(text) for source in bound.sources),
        event_times=tuple("" if time is None else time.column.name for time in bound.times),
        graph=graph,
        classes=classes,
        filters=filters,
        residual=shape.residual,
        stage_classes=shape.classes,
        laterals=bound.laterals,
    )
    return PlannedSelect(
        logical,
        plan,
        _edits(block, bound, shape.residual, placeholder),
        model.statistics,
        found,
        shape.shares,
        Layout.of(weighing[found[0].shape].name, plan, layouts),
        written(names, relations, bound.conjuncts, layouts.written),
        placeholder,
        _undeclared(bound, plan),
        bound.outputs,
        ways,
    )


def _require_carried(bound: BoundSelect, plan: PhysicalPlan) -> None:
    """Raise WJoinError WJ218 where a column of a stream has a type that Spark does not give to Python."""
    for stream in plan.staged:
        for each in plan.streams[stream].columns:
            if _UNCARRIED.search(each.type.lower()):
                source = bound.sources[stream]
                shown = each.output or each.expression
                raise WJoinError(
                    "WJ218",
                    f"column {shown} of {source.name} is {each.type}, which Spark cannot pass to Python",
                    span=source.item.span,
                )


def _names(drafts: Sequence[Decomposition], streams: Sequence[str], layouts: LayoutRule) -> set[str]:
    return {sequence_name(draft, streams, layouts.written) for draft in drafts}


def _links(bound: BoundSelect) -> Iterator[Collection[int]]:
    """Yield the streams of each condition that a stage can check of several, besides equalities."""
    for each in bound.conjuncts:
        if isinstance(each, ColumnComparison):
            yield {each.left.stream, each.right.stream}
        elif isinstance(each, PredicateCall | Residual) and not isinstance(each.read, Unread):
            yield each.read.streams
        elif isinstance(each, Residual) and each.band is not None:
            yield {each.band.left.stream, each.band.right.stream}


def statement_meaning(
    text: str, joins: Sequence[PlannedSelect], relations: Sequence[Sequence[str]]
) -> dict[str, str]:
    """Return what the parts of a statement mean besides the stages of its joins, whatever their spelling.

    ``text`` is the statement with all edits, ``relations`` are the FROM items of each join as they are
    written. Where an alias stood there stands its join and place.
    """
    aliases: dict[str, str] = {}
    for number, each in enumerate(joins):
        for alias, place in numbered(each.logical.names, f"{number}.").items():
            # An alias of several joins is that of all of them.
            aliases[alias] = f"{aliases[alias]}|{place}" if alias in aliases else place
    parts = {"statement": canonical(text, aliases)}
    for number, (each, items) in enumerate(zip(joins, relations, strict=True)):
        parts[f"FROM {number}"] = ", ".join(canonical(item, aliases) for item in items)
        parts[f"WHERE {number}"] = each.written.meaning.replace("$", f"${number}.")
        parts[f"WINDOW {number}"] = " OR ".join(sorted(map(str, each.physical.branches)))
        parts[f"SELECT {number}"] = ", ".join(str(output.name) for output in each.outputs)
    return parts


def _undeclared(bound: BoundSelect, plan: PhysicalPlan) -> tuple[int, ...]:
    if not plan.stages:
        return ()
    told = [time is None or time.declared for time in bound.times]
    return tuple(n for n in plan.staged if plan.streams[n].streaming and not told[n])


@dataclass(frozen=True)
class _Shape:
    """A sequence of stages: its plan, whose parts are still to be chosen, and what it leaves to Spark.

    ``keys`` are, for each stream, the parts of the key that each of its codes stands for, ``shares``
    the shares of pairs that the bands of the stages keep. ``hops``: whether hops stand in the place of the
    one stage of the draft.
    """

    draft: Decomposition
    physical: PhysicalPlan
    residual: tuple[LaterCondition, ...]
    keys: tuple[tuple[tuple[KeyPart, ...], ...], ...]
    shares: Mapping[Band, Estimate]
    hops: bool = False

    @property
    def classes(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the equality classes of each stage's key."""
        if self.hops:
            return ((),) * len(self.physical.stages)
        return tuple(stage.classes for stage in self.draft.stages)


def _hopping(shape: _Shape, hopping: Callable[[PhysicalPlan], PhysicalPlan]) -> _Shape:
    """Return a shape with hops in the place of its one stage."""
    return replace(shape, physical=hopping(shape.physical), hops=True)


def _shape(
    bound: BoundSelect,
    graph: WindowGraph,
    draft: Decomposition,
    classes: Sequence[EqualityClass],
    filters: Sequence[Filter],
    equalities: Sequence[TypedEquality],
    static: frozenset[int],
    calls: Sequence[ReadCall],
    indexes: Sequence[Index],
    placeholder: str,
) -> _Shape:
    # Conditions on several streams: in the operator where that is exact, else left to Spark.
    comparisons = [each for each in bound.conjuncts if isinstance(each, ColumnComparison)]
    joins = lookups(len(bound.sources), static, classes, comparisons)
    checks = [
        ColumnCheck(each.left, each.operator, each.right)
        for each in comparisons
        if static.isdisjoint((each.left.stream, each.right.stream))
    ]
    checks += [_check(*pair) for pair in draft.equalities if _is_check(*pair)]
    late = [pair for pair in draft.equalities if not _is_check(*pair)]
    unusable = [each.equality for each in equalities if not can_be_key(each.common)]
    later = [each for each in bound.conjuncts if isinstance(each, Residual)]
    residual = (
        *(LaterCondition(each.text, _unread(each, static)) for each in later),
        *(
            LaterCondition(f"{first.text} = {second.text}", "an equality that is not a join key")
            for first, second in late
        ),
        *(
            LaterCondition(f"{each.left.text} = {each.right.text}", "values that cannot be a key")
            for each in unusable
        ),
    )
    conditions = [
        each.read for each in later if isinstance(each.read, ReadCondition) and not _unread(each, static)
    ]
    late_sides = [part.side for pair in late for part in pair]
    late_sides += [side for each in unusable for side in (each.left, each.right)]
    scans = _scans(bound, late_sides, joins)
    staged, shares = stages(draft, checks, conditions, calls, indexes, scans)
    own_filters = [
        tuple(each.text for each in filters if each.stream == stream) for stream in range(len(scans))
    ]
    streams = tuple(scan.scan(own) for scan, own in zip(scans, own_filters, strict=True))
    output = Output(
        sink=placeholder,
        columns=tuple(
            (stream, number)
            for stream, scan in enumerate(streams)
            for number, column in enumerate(scan.columns)
            if column.output is not None
        ),
        windows=tuple(branch.upper for branch in graph.branches) if len(graph.branches) > 1 else (),
        match=bound.matches,
        match_delay=match_delay(
            [None if time is None else time.delay for time in bound.times], graph.upper, static
        ),
        undated=undated(bound.sources, bound.times),
    )
    plan = PhysicalPlan(
        streams=streams,
        time_kind=graph.kind,
        upper=graph.upper,
        branches=output.windows,
        stages=staged,
        outputs=(output,),
        lookups=tuple(StaticJoin(each.stream, each.equalities, each.comparisons) for each in joins),
        watermarked=tuple(each.number for each in bound.sources if each.relation.watermark),
    )
    physical = with_columns(with_sites(plan, [source.relation for source in bound.sources]))
    return _Shape(draft, physical, residual, tuple(scan.keys for scan in scans), shares)


def _unread(each: Residual, static: Collection[int]) -> str:
    """Return what keeps the join from testing a condition, empty where it does."""
    if not isinstance(each.read, ReadCondition):
        return each.read.what
    if not any(column.stream in static for column in each.read.columns):
        return ""
    return "a column of a static relation, which is joined later"


def _indexes(
    bound: BoundSelect, static: Collection[int], relations: Sequence[Relation], types: Types
) -> list[Index]:
    """Return the bands of the streams' columns, one for each pair of columns."""
    found: dict[tuple[tuple[int, str], tuple[int, str]], tuple[ColumnBand, bool]] = {}
    for each in bound.conjuncts:
        if not isinstance(each, ColumnComparison | Residual) or each.band is None:
            continue
        band, checked = each.band, isinstance(each, ColumnComparison)
        if {band.left.stream, band.right.stream} & set(static):
            continue
        whole = any(each.column.type.lower() in WHOLE for each in (band.left, band.right))
        if not checked and whole and not types.fails_on_overflow():
            # A sum that Spark wraps around may be near where the values are not.
            continue
        columns = (band.left.identity, band.right.identity)
        if columns in found:
            other, both_checked = found[columns]
            band, checked = merged_band(other, band), checked and both_checked
        found[columns] = (band, checked)
    return [Index(band, checked, band_share(band, relations)) for band, checked in found.values()]


def match_delay(delays: Sequence[int | None], upper: UpperBounds, static: Collection[int] = ()) -> int | None:
    """Return how far MATCH_TIME of a result may lie behind one emitted before, None when unbounded.

    The row of stream i that completes a result is at most ``delays[i]`` behind its stream, and
    no result emitted before reaches further beyond that than the widest window from i, to a
    static relation as well. A row of a static relation completes nothing. None for a delay: the
    relation has no event time.
    """
    greatest = 0
    for stream, (delay, row) in enumerate(zip(delays, upper, strict=True)):
        if stream in static or delay is None:
            continue
        for other, bound in zip(delays, row, strict=True):
            if other is None:
                continue
            if bound is None:
                return None
            greatest = max(greatest, delay + max(0, bound))
    return greatest


def _distinct(filters: Sequence[Filter]) -> tuple[Filter, ...]:
    return tuple(dict.fromkeys(filters))


def _is_check(first: KeyPart, second: KeyPart) -> bool:
    left, right = first.side.plain, second.side.plain
    return left is not None and right is not None and comparable(left, right)


def _check(first: KeyPart, second: KeyPart) -> ColumnCheck:
    left, right = first.side.plain, second.side.plain
    if left is None or right is None:
        raise AssertionError("an equality of expressions is not a check of columns")
    return ColumnCheck(left, "=", right)


def _scans(bound: BoundSelect, sides: Sequence[Side], joins: Sequence[DraftLookup]) -> list[ScanBuilder]:
    """Start a scan of each stream with its outputs, in the relation's order."""
    read = [*bound.reads, *(column for side in sides for column in side.columns)]
    read += [column for join in joins for column in join.columns]
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


def _edits(
    block: SelectBlock, bound: BoundSelect, residual: Sequence[LaterCondition], placeholder: str
) -> tuple[Edit, ...]:
    conditions = " AND ".join(f"({each.text})" for each in residual)
    # WHERE (name) would be the columns of a relation with the alias WHERE; a lone NULL is no condition.
    lone = len(residual) > 0 and _NAME.fullmatch(residual[0].text.strip()) is not None
    where = f" WHERE {'true AND ' if lone else ''}{conditions}" if residual else ""
    rows = " ".join((placeholder, *bound.laterals))
    source = Edit(block.source.start, block.source.end, f"FROM {rows}{where}")
    hints = [Edit(hint.span.start, hint.span.end, "") for hint in block.hints]
    return tuple(sorted([*bound.edits, *hints, source]))
