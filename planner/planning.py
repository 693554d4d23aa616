"""A SELECT block with a window clause to its plan, and to the edits that let Spark run the rest."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from wjoin.grammar.canonical import canonical
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.syntax import SelectBlock
from wjoin.planner.bind.binding import BoundSelect, TimeReading, bind, static_relations
from wjoin.planner.bind.in_row import end_comparison
from wjoin.planner.bind.match_condition import match_bounds
from wjoin.planner.bind.outer_joins import about_exists
from wjoin.planner.bind.select_list import ResultColumn
from wjoin.planner.bind.written import Written, numbered
from wjoin.planner.catalog import WHOLE, Relation, Types
from wjoin.planner.choose.approximate import approximated, asks_approximately
from wjoin.planner.choose.layouts import Layout
from wjoin.planner.choose.plan_candidates import Candidate
from wjoin.planner.choose.travel import travel
from wjoin.planner.choose.weighing import choose, weigh
from wjoin.planner.conditions.column_bands import ColumnBand, merged_band
from wjoin.planner.conditions.conjuncts import ColumnComparison, Equality, Filter, PredicateCall, Residual
from wjoin.planner.conditions.predicate_calls import tried
from wjoin.planner.cost.semijoin import Shipments
from wjoin.planner.cost.stream_statistics import StreamStatistics, band_share
from wjoin.planner.plan.physical import Method, Output, PhysicalPlan
from wjoin.planner.plan.stage_kinds import Join
from wjoin.planner.plan.validate import validate
from wjoin.planner.request import NoWindows, Planning, Request
from wjoin.planner.shape.arranged import arranged_tree
from wjoin.planner.shape.counted import refuse_uncounted
from wjoin.planner.shape.join_keys import EqualityClass, can_be_key, equality_classes, typed
from wjoin.planner.shape.later_joins import before_join, graph_of, unmatched
from wjoin.planner.shape.said_windows import refuse_unbounded, said_choices, said_edges
from wjoin.planner.shape.sequences import sequences
from wjoin.planner.shape.shape import LaterCondition
from wjoin.planner.shape.shapes import shapes, with_hops
from wjoin.planner.shape.stages_of_joins import Index
from wjoin.planner.shape.tree_windows import TreeWindows
from wjoin.planner.text.edits import Edit, apply_edits
from wjoin.planner.windows.bounds import Clock
from wjoin.planner.windows.window_graph import WindowGraph, given_windows, told_by, window_graph

__all__ = ["Edit", "PlannedSelect", "apply_edits", "plan_select", "statement_meaning"]

RULES: tuple[Callable[[Planning], Planning], ...] = (
    approximated,
    sequences,
    shapes,
    with_hops,
    weigh,
    choose,
    travel,
)
"""The steps from a bound block to its plan, in order. What plans a step makes is checked after it."""

_NAME = re.compile(r"\w+|`.*`", re.DOTALL)

_UNCARRIED = re.compile(r"^interval$|[<:,]interval(?! (day|hour|minute|second))")
"""Types that Arrow has no form of in Spark: intervals of several kinds, and others inside of a type."""


@dataclass(frozen=True)
class PlannedSelect:
    """The plan of a block.

    ``graph`` are its windows, ``relations`` its FROM items as written, ``classes`` the values that are equal
    in all results, ``stage_classes`` the numbers of those in the key of each stage; ``residual`` are the
    conditions that Spark evaluates on the joined rows, ``laterals`` the LATERAL VIEWs of these.
    ``candidates`` are all plans that were weighed, ``physical`` the first of them, ``shipments`` how its
    streams at sites may travel, the way that it takes first. ``edits`` turn the block into a SELECT over the
    joined rows; they index the original text, are sorted and do not overlap. ``layout`` is that of the
    state. Rows of the streams ``undeclared`` can be late, and nobody has told how far they may be out of
    order. ``outputs`` are the columns of the block, ``written`` the order in which its parts were read,
    ``sink`` the name by which it reads the joined rows, ``bound`` the block with the columns of its names.
    ``exact_anyway``: whether it asks for an approximate join, and tables have an exact one.
    """

    bound: BoundSelect
    graph: WindowGraph
    relations: tuple[str, ...]
    classes: tuple[EqualityClass, ...]
    stage_classes: tuple[tuple[int, ...], ...]
    residual: tuple[LaterCondition, ...]
    laterals: tuple[str, ...]
    physical: PhysicalPlan
    edits: tuple[Edit, ...]
    statistics: tuple[StreamStatistics, ...]
    candidates: tuple[Candidate, ...]
    layout: Layout
    written: Written
    sink: str
    undeclared: tuple[int, ...] = ()
    outputs: tuple[ResultColumn, ...] = ()
    shipments: tuple[Shipments, ...] = ()
    exact_anyway: bool = False

    @property
    def output(self) -> Output:
        """The output of the plan that the block reads; other statements may read others of the same plan."""
        return next(each for each in self.physical.outputs if each.sink == self.sink)


def plan_select(request: Request) -> PlannedSelect:
    """Plan one block.

    Blocks inside this one must have been planned and spliced before. Raises WJoinError placed in its text,
    and NoWindows for one without a window clause whose conditions say nothing of event times.
    """
    try:
        planning = _bound(request)
        for rule in RULES:
            before = tuple(planning.plans())
            planning = rule(planning)
            for each in planning.plans():
                if not any(each is other for other in before):
                    validate(each)
        return _planned(request, planning)
    except WJoinError as error:
        if error.text is not None:
            raise
        raise about_exists(error, request.block).within(request.text) from None


def has_windows(request: Request) -> bool:
    """Return whether the conditions of a block without a window clause are windows.

    Raises as plan_select where they leave two streams unbounded, or where nothing can meet.
    """
    try:
        _bound(request)
    except NoWindows:
        return False
    except WJoinError as error:
        raise error if error.text is not None else error.within(request.text) from None
    return True


def _bound(request: Request) -> Planning:
    """Return a block with the columns of its names, the window graph, and what its conditions mean."""
    block, relations = request.block, request.relations
    types = request.types
    reading = (
        TimeReading(types.time_zone(), not types.fails_on_overflow(), request.dated)
        if request.from_where
        else None
    )
    bound = bind(
        request.text,
        block,
        relations,
        request.parameters,
        request.predicates,
        request.layouts.written,
        reading,
    )
    timeless = frozenset(number for number, time in enumerate(bound.times) if time is None)
    static = static_relations(bound.sources, bound.times)
    names = [source.name for source in bound.sources]
    kind = next(time.kind for time in bound.times if time is not None)
    if request.dated is not None and not bound.said:
        raise NoWindows
    if bound.tree.joins:
        given = given_windows(block.window, names, kind, request.parameters, timeless)
        given = replace(given, bounds=(*given.bounds, *match_bounds(bound.tree, block.items)))
        said = said_edges(bound)
        windows = TreeWindows(replace(given, bounds=(*given.bounds, *said)), tuple(names), kind)
        tree, graph = windows.resolved(arranged_tree(bound, windows, block))
        bound, graph = (
            replace(bound, tree=tree),
            replace(graph_of(graph, tree), said=(*said, *told_by(given.bounds))),
        )
    else:
        graph = window_graph(
            block.window,
            names,
            kind,
            request.parameters,
            must_connect=any(each.streaming for each in relations),
            timeless=timeless,
            static=sorted(static - timeless),
            said=said_choices(bound),
        )
    if request.dated is not None:
        refuse_unbounded(bound, graph, block.source)
    ends = [end_comparison(each, bound.sources, bound.times, bound.tree, types) for each in bound.row_ends]
    bound = replace(bound, conjuncts=(*bound.conjuncts, *ends))
    asked = [each.read for each in bound.conjuncts if isinstance(each, PredicateCall)]
    calls = tuple(tried(each, request.trials) for each in asked)
    equalities = tuple(typed(each, request.types) for each in bound.conjuncts if isinstance(each, Equality))
    classes: list[EqualityClass] = []
    own = [each for each in bound.conjuncts if isinstance(each, Filter) and each.text.upper() != "TRUE"]
    own += unmatched(bound.tree)
    for number in range(bound.tree.first, len(bound.tree.staged.joins)):
        keys = (
            each
            for each in equalities
            if can_be_key(each.common) and not before_join(each.equality, bound.tree)
        )
        found, implied = equality_classes(each for each in keys if bound.join_of(each.equality) == number)
        classes += found
        # What the keys imply of a row is a condition of ON, too.
        own += (each if number < 0 else replace(each, on=bound.tree.joins[number].on) for each in implied)
    planning = Planning(
        request,
        bound,
        graph,
        static,
        calls,
        equalities,
        tuple(classes),
        filters=tuple(own),
        indexes=tuple(_indexes(bound, static, relations, request.types)),
    )
    refuse_uncounted(planning)
    return planning


def _planned(request: Request, planning: Planning) -> PlannedSelect:
    """Return what the steps have found out of a request, as it was before they took hints out of it."""
    bound, graph = planning.bound, planning.graph
    taken = planning.candidates[0]
    plan, weighing = taken.plan, planning.weighings[taken.shape]
    shape = weighing.shape
    if plan.stages and plan.method is Method.MULTIWAY:
        _require_carried(bound, plan)
    return PlannedSelect(
        bound=bound,
        graph=graph,
        relations=tuple(source.item.relation.of(request.text) for source in bound.sources),
        classes=planning.classes,
        stage_classes=shape.classes,
        residual=shape.residual,
        laterals=bound.laterals,
        physical=plan,
        edits=edits_of(request.block, bound, shape.residual, request.placeholder),
        statistics=weighing.model.statistics,
        candidates=planning.candidates,
        layout=Layout.of(weighing.name, plan),
        written=Written.of(graph.names, request.relations, bound.conjuncts),
        sink=request.placeholder,
        undeclared=_undeclared(bound, plan),
        outputs=bound.outputs,
        shipments=planning.shipments,
        exact_anyway=not planning.streaming and asks_approximately(request.block, request.settings),
    )


def _indexes(
    bound: BoundSelect, static: Collection[int], relations: Sequence[Relation], types: Types
) -> list[Index]:
    """Return the bands of the streams' columns, one for each pair of columns."""
    found: dict[tuple[tuple[int, str], tuple[int, str]], tuple[ColumnBand, bool]] = {}
    for each in bound.conjuncts:
        if not isinstance(each, ColumnComparison | Residual) or each.band is None:
            continue
        if before_join(each, bound.tree):
            continue
        band, checked = each.band, isinstance(each, ColumnComparison)
        if not band.streams.isdisjoint(static):
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


def _require_carried(bound: BoundSelect, plan: PhysicalPlan) -> None:
    """Raise WJoinError WJ218 where a column of a stream has a type that Spark does not give to Python."""
    for stream in plan.staged:
        scan = plan.streams[stream]
        for each in (*scan.columns, *scan.late):
            if _UNCARRIED.search(each.type.lower()):
                source = bound.sources[stream]
                shown = each.output or each.expression
                raise WJoinError(
                    "WJ218",
                    f"column {shown} of {source.name} is {each.type}, which Spark cannot pass to Python",
                    span=source.item.span,
                )


def statement_meaning(
    text: str, joins: Sequence[PlannedSelect], relations: Sequence[Sequence[str]], first: int = 0
) -> dict[str, str]:
    """Return what the parts of a statement mean besides the stages of its joins, whatever their spelling.

    ``text`` is the statement with all edits, ``relations`` are the FROM items of each join as they are
    written. Where an alias stood there stands the number of its join, of the first one ``first``, and place.
    """
    aliases: dict[str, str] = {}
    for number, each in enumerate(joins, first):
        for alias, place in numbered(each.graph.names, f"{number}.").items():
            # An alias of several joins is that of all of them.
            aliases[alias] = f"{aliases[alias]}|{place}" if alias in aliases else place
    parts = {"statement": canonical(text, aliases)}
    for number, (each, items) in enumerate(zip(joins, relations, strict=True), first):
        parts[f"FROM {number}"] = ", ".join(canonical(item, aliases) for item in items)
        parts[f"WHERE {number}"] = " AND ".join(sorted(each.written.conditions)).replace("$", f"${number}.")
        parts[f"WINDOW {number}"] = " OR ".join(
            sorted(str(branch.tables[Clock.TIME]) for branch in each.physical.branches)
        )
        if each.physical.counted:
            parts[f"ROWS {number}"] = _rows_meaning(each.physical, aliases)
        parts[f"SELECT {number}"] = ", ".join(str(output.name) for output in each.outputs)
    return parts


def _rows_meaning(plan: PhysicalPlan, aliases: Mapping[str, str]) -> str:
    """Return what the windows of rows of a plan mean, whatever their spelling."""
    windows = []
    for each in plan.counted:
        windows.append(f"{each.stream} {each.rows}{each.per.clause} {canonical(each.condition, aliases)}")
    chosen = (stage.counted for stage in plan.stages if isinstance(stage, Join) and stage.counted)
    return "; ".join(
        " OR ".join(sorted(" AND ".join(sorted(windows[number] for number in own)) for own in each))
        for each in (plan.asked, *chosen)
    )


def _undeclared(bound: BoundSelect, plan: PhysicalPlan) -> tuple[int, ...]:
    if not plan.stages:
        return ()
    told = [time is None or time.declared for time in bound.times]
    return tuple(n for n in plan.staged if plan.streams[n].streaming and not told[n])


def edits_of(
    block: SelectBlock, bound: BoundSelect, residual: Sequence[LaterCondition], placeholder: str
) -> tuple[Edit, ...]:
    """Return the edits that make of a block a SELECT over joined rows, where conditions are left."""
    conditions = " AND ".join(f"({each.condition})" for each in residual)
    # WHERE (name) would be the columns of a relation with the alias WHERE; a lone NULL is no condition.
    lone = len(residual) > 0 and _NAME.fullmatch(residual[0].condition.strip()) is not None
    where = f" WHERE {'true AND ' if lone else ''}{conditions}" if residual else ""
    rows = " ".join((placeholder, *bound.laterals))
    source = Edit(block.source.start, block.source.end, f"FROM {rows}{where}")
    hints = [Edit(hint.span.start, hint.span.end, "") for hint in block.hints]
    return tuple(sorted([*bound.edits, *hints, source]))
