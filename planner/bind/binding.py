"""A SELECT block and the schemas of its relations to a bound block: every name has its column."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.join_tree import JoinTree
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import FromItem, LateralView, SelectBlock
from wjoin.grammar.tokens import Kind, scan
from wjoin.planner.bind.event_time import EventTimes, event_times
from wjoin.planner.bind.in_row import RowEnd, row_ends
from wjoin.planner.bind.landmarks import bound_landmarks
from wjoin.planner.bind.match_condition import with_nearest
from wjoin.planner.bind.outer_joins import (
    about_absent,
    absent_items,
    refuse_merged,
    refuse_undecided,
    refuse_windowless,
    tree_of,
)
from wjoin.planner.bind.select_list import Reads, ResultColumn, bind_select_list, bind_tail
from wjoin.planner.bind.written import Written
from wjoin.planner.catalog import Relation
from wjoin.planner.conditions.conjuncts import (
    Conjunct,
    Equality,
    Residual,
    Surroundings,
    bind_conjunct,
    column_of,
    streams_of,
    using_equality,
)
from wjoin.planner.conditions.time_bounds import TimeBound, TimeBounds
from wjoin.planner.conditions.time_values import EventClock
from wjoin.planner.plan.block_columns import MATCH_COLUMNS
from wjoin.planner.text.edits import Edit, apply_edits
from wjoin.planner.text.joined_columns import UsingPair, visible_columns
from wjoin.planner.text.pieces import read_condition
from wjoin.planner.text.scope import Scope, ScopeItem, StreamColumn
from wjoin.udfs.predicate import Predicate


@dataclass(frozen=True)
class TimeReading:
    """How conditions between event times are read: what their arithmetic depends on (see ``EventClock``).

    ``dated`` are the relations that have an event time, None where the windows tell.
    """

    zone: str
    wraps: bool
    dated: frozenset[int] | None = None

    def clock(self, times: EventTimes) -> EventClock:
        """Return the event times of a block's relations."""
        columns = [None if time is None else StreamColumn(n, time.column) for n, time in enumerate(times)]
        kind = next(time.kind for time in times if time is not None)
        return EventClock(columns, kind, self.zone, self.wraps)


@dataclass(frozen=True)
class BoundSelect:
    """A bound block.

    ``reads`` are the columns that the rest of the statement takes from the join, ``outputs`` the columns of
    its result, ``laterals`` the texts of the LATERAL VIEWs over the joined rows; ``tree`` are the joins, and
    ``natural`` what NATURAL makes equal in them. ``said`` are the conditions between event times; those that
    are windows and nothing else are not among the ``conjuncts``. ``landmarks`` are the conditions of WINDOW …
    SINCE by their places, each over the alias of its stream. ``collapsed``: whether results are grouped or
    aggregated. ``row_ends``: what rows say themselves of how near others are.
    """

    sources: tuple[ScopeItem, ...]
    times: EventTimes
    conjuncts: tuple[Conjunct, ...]
    reads: tuple[StreamColumn, ...]
    matches: frozenset[str]
    edits: tuple[Edit, ...]
    outputs: tuple[ResultColumn, ...]
    tree: JoinTree
    laterals: tuple[str, ...] = ()
    natural: tuple[UsingPair, ...] = ()
    landmarks: Mapping[Span, str] = field(default_factory=dict)
    said: tuple[Conjunct, ...] = ()
    collapsed: bool = False
    row_ends: tuple[RowEnd, ...] = ()

    def join_of(self, conjunct: Conjunct) -> int:
        """Return the number of the join that a condition belongs to, -1 for those of the base."""
        return self.tree.join_of(streams_of(conjunct), conjunct.on)


def bind(
    text: str,
    block: SelectBlock,
    relations: Sequence[Relation],
    parameters: Mapping[str, object],
    predicates: Mapping[str, Predicate],
    before: Written | None = None,
    reading: TimeReading | None = None,
) -> BoundSelect:
    """Bind a block, its conditions in the order of ``before``; ``reading`` tells what they say of times.

    Raises WJ108, WJ114, WJ201 to WJ210, WJ213, WJ217, WJ221, WJ223 and the errors of durations.
    """
    sources = _sources(text, block.items, relations)
    dated = None if reading is None else reading.dated
    times = event_times(text, sources, parameters, block.window, dated)
    clock = None if reading is None else reading.clock(times)
    written = min((each.item for each in block.exists), default=len(sources))
    steps, pairs = visible_columns(text, sources[:written], block.using)
    static = static_relations(sources, times)
    tree = tree_of(sources, static, block)
    names = [Scope(sources, each.columns, block.laterals, merged=each.merged) for each in steps]
    tree = with_nearest(text, tree, names, times)
    shown = names[-1].without(tree.hidden)
    absent = absent_items(sources, block)
    # What the conditions of each join can name.
    asked = range(written, len(sources))
    joined = [names[-1 if n in absent else n].without(asked) for n in range(written)]
    for each in block.exists:
        stop = each.item + sources[each.item].item.joined
        within, found = visible_columns(text, sources[:stop], block.using, each.item)
        pairs += found
        whole = shown.inside(each.item, within[-1])
        joined += [whole, *(shown.inside(each.item, one) for one in within[1:-1])]
        bind_select_list(text, each.select_list, whole)
    laterals, generators = _laterals(text, block.laterals, replace(shown, laterals=()))
    listed, outputs = bind_select_list(text, block.select_list, shown)
    conjuncts: list[Conjunct] = [using_equality(pair, sources) for pair in pairs]
    conjuncts = [_of_times(each, clock) for each in conjuncts]
    for made, pair in zip(conjuncts, pairs, strict=True):
        refuse_merged(pair, sources, tree)
        refuse_undecided(tree, made, pair.span, sources)
    for condition in block.conjuncts:
        if condition.on not in asked:
            condition = about_absent(text, condition, absent, sources)
        scope = shown if condition.on is None else joined[condition.on]
        around = Surroundings(scope, parameters, predicates, static, tree, clock)
        bound = bind_conjunct(text, condition, around)
        conjuncts.append(_inside_exists(bound, sources) if bound.on in asked else bound)
        if not _is_window(conjuncts[-1], static, tree):
            refuse_undecided(tree, conjuncts[-1], condition.span, sources)
    _refuse_unjoined(sources, times, conjuncts)
    if before is not None:
        conjuncts = before.arranged(conjuncts, [each.name for each in sources])
    said = [each for each in conjuncts if each.times is not None]
    refuse_windowless(sources, tree, block, said)
    conjuncts = [each for each in conjuncts if not _is_window(each, static, tree)]
    after = Reads((), frozenset(), ())
    if block.tail.of(text).strip():
        distinct = _is_distinct(text, block)
        after = bind_tail(text, block.tail, shown, outputs, distinct=distinct)
    residual = [each for each in conjuncts if isinstance(each, Residual)]
    return BoundSelect(
        sources=sources,
        times=times,
        conjuncts=tuple(conjuncts),
        reads=(
            *listed.columns,
            *after.columns,
            *generators.columns,
            *(column for each in residual for column in each.columns),
        ),
        matches=frozenset().union(
            listed.matches, after.matches, generators.matches, *(each.matches for each in residual)
        ),
        edits=(*listed.edits, *after.edits),
        outputs=outputs,
        laterals=laterals,
        tree=tree,
        said=tuple(said),
        natural=tuple(each for each in pairs if each.natural),
        landmarks=dict(bound_landmarks(text, block.window, names[-1], parameters, predicates, tree)),
        collapsed=listed.collapsed or after.collapsed,
        row_ends=tuple(row_ends(text, block.window, names[-1], times, parameters)),
    )


def _of_times(made: Conjunct, clock: EventClock | None) -> Conjunct:
    """Return what USING or NATURAL says, with the bounds that it sets to event times."""
    if clock is None or not isinstance(made, Equality):
        return made
    columns = [side.plain for side in (made.left, made.right)]
    times = [None if each is None else clock.times[each.stream] for each in columns]
    if not all(each and time and each.same(time) for each, time in zip(columns, times, strict=True)):
        return made
    first, second = made.left.stream, made.right.stream
    bounds = (TimeBound(first, second, 0), TimeBound(second, first, 0))
    shown = f"{made.left.text} = {made.right.text}"
    return replace(made, times=TimeBounds((bounds,), exact=True), place=made.span, shown=shown)


def _is_window(made: Conjunct, static: Collection[int], tree: JoinTree) -> bool:
    """Return whether a condition says what the windows of a join of streams do, and nothing else."""
    if made.times is None or not made.times.exact or isinstance(made, Equality):
        return False
    first, *others = made.times.alternatives
    if others or not streams_of(made).isdisjoint(static):
        return False
    return not tree.joins or all(tree.brings((each.source, each.target), made.on) for each in first)


def _inside_exists(conjunct: Conjunct, sources: Sequence[ScopeItem]) -> Conjunct:
    """Return a condition of an EXISTS on its own streams as one of the inner joins that link these."""
    own = sources[conjunct.on or 0]
    inside = range(own.number, own.number + own.item.joined)
    inner = all(sources[each].item.kind is JoinKind.INNER for each in inside[1:])
    if len(inside) > 1 and inner and streams_of(conjunct) <= {*inside}:
        return replace(conjunct, on=inside[1])
    return conjunct


def _laterals(text: str, views: Sequence[LateralView], scope: Scope) -> tuple[tuple[str, ...], Reads]:
    """Return LATERAL VIEWs over the joined rows, each over those before it, and what they read.

    Raises WJ204 for a name that FROM has already.
    """
    shown: list[str] = []
    columns: list[StreamColumn] = []
    matches: set[str] = set()
    for number, view in enumerate(views):
        names = [*(each.name for each in scope.named), *(each.name.name for each in views[:number])]
        if not view.name.matches("AS") and any(view.name.matches(name) for name in names):
            message = f"two items of FROM are named {view.name.name}"
            raise WJoinError("WJ204", message, span=view.name.span, help="give each its own name")
        piece = read_condition(text, view.generator)
        seen = replace(scope, laterals=tuple(views[:number]))
        found = [each for name in piece.columns if (each := column_of(seen, name)) is not None]
        edits = [each.edit for each in found if each.edit is not None]
        edits += [Edit(call.span.start, call.span.end, MATCH_COLUMNS[call.what]) for call in piece.matches]
        shown.append(apply_edits(text, edits, view.span))
        columns += [column for each in found for column in each.columns]
        matches |= {call.what for call in piece.matches}
    return tuple(shown), Reads(tuple(columns), frozenset(matches), ())


def static_relations(sources: Sequence[ScopeItem], times: EventTimes) -> frozenset[int]:
    """Return the relations that Spark joins after the others: tables beside streams or without event time."""
    streaming = any(each.relation.streaming for each in sources)
    return frozenset(
        each.number
        for each, time in zip(sources, times, strict=True)
        if time is None or (streaming and not each.relation.streaming)
    )


def _refuse_unjoined(sources: Sequence[ScopeItem], times: EventTimes, conjuncts: Sequence[Conjunct]) -> None:
    """Raise WJ221 where every row of a table without event time would meet every combination, unsaid."""
    linked = [streams_of(each) for each in conjuncts]
    # A LEFT JOIN leaves no combination out, whatever its ON is about.
    said = {each.on for each in conjuncts if each.on is not None}
    left = {each.number for each in sources if each.item.kind is JoinKind.LEFT and each.number in said}
    for source, time in zip(sources, times, strict=True):
        if time is not None or source.item.crossed or source.number in left:
            continue
        if not any(source.number in each and len(each) > 1 for each in linked):
            other = next(each for each, dated in zip(sources, times, strict=True) if dated is not None)
            remedy = f"add one, such as {other.name}.id = {source.name}.id"
            if source.item.kind is JoinKind.INNER:
                remedy += "; or write CROSS JOIN to have each of its rows with every combination"
            message = f"no condition joins {source.name}, a table without event time, to the streams"
            raise WJoinError("WJ221", message, span=source.item.span, help=remedy)


def _sources(text: str, items: Sequence[FromItem], relations: Sequence[Relation]) -> tuple[ScopeItem, ...]:
    if len(items) < 2:
        span = items[0].span if items else Span(0, 0)
        raise WJoinError("WJ209", "a window clause needs two or more streams", span=span)
    sources: list[ScopeItem] = []
    for number, (item, relation) in enumerate(zip(items, relations, strict=True)):
        if item.alias is None and not item.parts:
            remedy = "write AS name after it"
            raise WJoinError("WJ108", "a subquery in FROM has no alias", span=item.span, help=remedy)
        name = item.alias or item.parts[-1]
        for other in sources:
            if name.matches(other.name):
                shown = item.relation.of(text) if item.parts else "(…)"
                message = f"two items of FROM are named {other.name}"
                help = f"give each its own alias, for example {shown} AS {name.name}_{number + 1}"
                raise WJoinError("WJ204", message, span=name.span, help=help)
        sources.append(ScopeItem(number, name.name, item, relation))
    return tuple(sources)


def _is_distinct(text: str, block: SelectBlock) -> bool:
    tokens = scan(Span(block.span.start, block.select_list.end).of(text))
    words = [token.word for token in tokens if token.kind is not Kind.HINT][:2]
    return "DISTINCT" in words
