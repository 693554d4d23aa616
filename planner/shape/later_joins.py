"""The joins after the inner ones: how each becomes a stage of two inputs, and what that knows of its rows."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.join_tree import BASE, JoinTree
from wjoin.grammar.spans import Span
from wjoin.grammar.tokens import scan
from wjoin.planner.conditions.conjuncts import (
    ColumnComparison,
    Conjunct,
    Equality,
    Filter,
    PredicateCall,
    Residual,
    streams_of,
)
from wjoin.planner.conditions.expressions import Input
from wjoin.planner.conditions.readable import ReadCondition
from wjoin.planner.plan.checks import Condition, PredicateCheck
from wjoin.planner.plan.stage_kinds import Gate, Join, Retention, Stage
from wjoin.planner.request import Planning
from wjoin.planner.shape.arranged import is_decided
from wjoin.planner.shape.counted import asked_of
from wjoin.planner.shape.decompose import Component, Decomposition, decompose, followed, joined_with
from wjoin.planner.shape.join_keys import EqualityClass
from wjoin.planner.shape.scans import ScanBuilder
from wjoin.planner.shape.stages_of_joins import (
    CheckedLink,
    call_of,
    can_decide,
    check_of,
    equal_parts,
    in_calling_order,
)
from wjoin.planner.shape.tree_windows import bounds_between, closed, named_in, together
from wjoin.planner.text.edits import Edit, apply_edits
from wjoin.planner.text.literals import literal
from wjoin.planner.windows.bounds import Windows, hull
from wjoin.planner.windows.closure import Edge, RowsTerm, close, negative_cycle
from wjoin.planner.windows.window_graph import MAXIMUM_BRANCHES, WindowGraph


def graph_of(graph: WindowGraph, tree: JoinTree) -> WindowGraph:
    """Return a window graph whose bounds between two streams hold where both have a row.

    So nothing is derived through a stream that is joined later, which may be missing.
    """
    if not graph.joins:
        return graph
    first, *others = graph.joins
    if not tree.staged.joins and (len(first) > 1 or (graph.rows and any(graph.rows[0]))):
        # The stages are those of the inner joins, and the alternatives theirs.
        parts = [graph_of(replace(graph, joins=((each,), *others), rows=()), tree) for each in first]
        branches = tuple(
            replace(each.branches[0], counted=(*each.branches[0].counted, *rows))
            for each, rows in zip(parts, graph.rows[0], strict=True)
        )
        return replace(graph, branches=branches, windows=hull([each.windows for each in branches]))
    numbers = range(len(graph.names))
    (branch,) = graph.branches
    found = {}
    for pair in product(numbers, numbers):
        joins = 1 + max(BASE, tree.meeting(pair))
        found[pair] = closed(_edges(graph, tree, pair, joins), len(numbers))
    bounds = Windows.of([[found[i, j].windows.between(i, j) for j in numbers] for i in numbers])
    paths = tuple(tuple(found[i, j].paths[i][j] for j in numbers) for i in numbers)
    branch = replace(branch, given=together(graph.joins), windows=bounds, paths=paths)
    return replace(graph, branches=(branch,), windows=bounds)


def _edges(graph: WindowGraph, tree: JoinTree, streams: Collection[int], number: int) -> tuple[Edge, ...]:
    """Return the bounds between all that have a row where some streams have one, before a join.

    Those are what the joins that have matched then ask for.
    """
    there, matched = tree.there(streams, number)
    own = [graph.joins[each - tree.first] for each in sorted(matched)]
    if 1 < prod(map(len, own)) <= MAXIMUM_BRANCHES:
        # What each alternative bounds follows from those of other joins.
        size = len(graph.names)
        ways = (edges for edges in _ways(graph, tree, streams, number, {}) if not negative_cycle(edges, size))
        own = [found] if (found := tuple(close(edges, size).windows for edges in ways)) else own
    return tuple(edge for each in own for edge in bounds_between(hull(each), there))


def _ways(
    graph: WindowGraph,
    tree: JoinTree,
    streams: Collection[int],
    number: int,
    chosen: Mapping[int, tuple[Edge, ...]],
) -> Iterator[tuple[Edge, ...]]:
    """Yield the bounds by each choice of the alternatives of the joins that have matched before a join.

    The streams that a chosen alternative names have a row. ``chosen`` are the bounds of joins already.
    """
    there, matched = tree.there(streams, number)
    left = next((each for each in sorted(matched) if each not in chosen), None)
    if left is None:
        yield tuple(edge for edges in chosen.values() for edge in edges)
        return
    for each in graph.joins[left - tree.first]:
        edges = tuple(bounds_between(each, range(len(graph.names))))
        yield from _ways(graph, tree, there | named_in([edges]), number, {**chosen, left: edges})


# Drafts ----------------------------------------------------------------------


def of_part(
    tree: JoinTree, classes: Sequence[EqualityClass], number: int = BASE
) -> tuple[EqualityClass, ...]:
    """Return equality classes, without the parts of those that belong elsewhere than to a part."""
    return tuple(
        each if tree.join_of(each.streams, None) == number else EqualityClass(each.type, ())
        for each in classes
    )


def with_later_joins(draft: Decomposition, tree: JoinTree, classes: Sequence[EqualityClass]) -> Decomposition:
    """Return a sequence of stages of the base with those of the other parts, and one for each later join."""
    made = {frozenset(tree.base): len(draft.stages) - 1 if draft.stages else None}
    streams = {stream for number in range(tree.first, len(tree.joins)) for stream in tree.known(number)}
    for number in range(BASE - 1, tree.first - 1, -1):
        part = tree.part(number)
        alone = decompose(1 + max(streams), of_part(tree, classes, number), streams.difference(part))
        draft = followed(draft, alone)
        made[frozenset(part)] = len(draft.stages) - 1
    for number, join in enumerate(tree.staged.joins):
        asked = tree.there(join.asked, number)[0]
        # What has a row in all that meets orders the rows; of an ASOF JOIN what it goes by.
        left, right = (
            Component(tuple(sorted(side, key=_order(first, asked))), made.get(frozenset(side)))
            for side, first in zip(join.sides, (join.timed_by, join.timed_to), strict=True)
        )
        own = {n: each for n, each in enumerate(classes) if tree.join_of(each.streams, None) == number}
        draft = joined_with(draft, left, right, own)
        made[frozenset(join.shown)] = len(draft.stages) - 1
    return draft


def _order(first: int | None, asked: Collection[int]) -> Callable[[int], tuple[bool, bool, int]]:
    return lambda each: (each != first, each not in asked, each)


# Stages ----------------------------------------------------------------------


def later_stages(
    planning: Planning,
    stages: Sequence[Stage],
    scans: Sequence[ScanBuilder],
    late: Collection[frozenset[int]],
    rows: Mapping[RowsTerm, int],
) -> tuple[Stage, ...]:
    """Return stages with what a tree of joins says of them; the last ones are those of the later joins.

    ``late``: the streams of equalities that no stage can check. ``rows``: the numbers of windows of rows.
    Raises WJoinError WJ107 for what only joins of tables can do.
    """
    tree = planning.bound.tree.staged
    if not tree.joins:
        return tuple(stages)
    several = _several(tree)
    first = len(stages) - len(tree.joins)
    graph = planning.graph
    made: list[Stage] = []
    for number, stage in enumerate(stages, -first):
        if not isinstance(stage, Join):
            raise AssertionError("the stages of a tree are joins")
        if number < 0:
            part = tree.place(stage.members[0])
            whole = {*stage.members} == {*tree.part(part)}
            own = tuple(_on(planning, part)) if whole else ()
            chosen = chosen_windows(graph, tree, part) if whole else ()
            counted = _chosen_rows(graph, tree, part, rows) if whole else ()
            windows = _windows(graph, tree, part) if several else None
            made.append(replace(stage, windows=windows, on=own, alternatives=chosen, counted=counted))
            continue
        join = tree.joins[number]
        if planning.staged:
            _refuse_undecided(planning, number, late)
        if join.kind.asof:
            stage = _nearest(planning, number, stage, scans)
        else:
            stage = replace(stage, kind=join.kind, on=tuple(_on(planning, number)))
        if several:
            stage = replace(
                stage,
                windows=_windows(graph, tree, number),
                asked=tree.there(join.asked, number)[0],
                gates=tuple(_gates(planning, number, scans)),
                checks=in_calling_order((*stage.checks, *_called_before(planning, number, scans))),
            )
        made.append(
            replace(
                stage,
                lags=tuple(_lags(graph, tree, number)),
                alternatives=chosen_windows(graph, tree, number),
                counted=_chosen_rows(graph, tree, number, rows),
            )
        )
    return tuple(made)


def chosen_windows(graph: WindowGraph, tree: JoinTree, number: int) -> tuple[Windows, ...]:
    """Return the windows of which what a join makes must be inside one; empty where there are no others."""
    found = graph.joins[number - tree.first] if graph.joins else ()
    return found if len(found) > 1 or _counts(graph, tree, number) else ()


def _counts(graph: WindowGraph, tree: JoinTree, number: int) -> bool:
    return bool(graph.rows) and any(graph.rows[number - tree.first])


def _chosen_rows(
    graph: WindowGraph, tree: JoinTree, number: int, rows: Mapping[RowsTerm, int]
) -> tuple[tuple[int, ...], ...]:
    """Return the windows of rows of each of the alternatives of a join; empty where none has any."""
    if not _counts(graph, tree, number):
        return ()
    return tuple(asked_of(each, rows) for each in graph.rows[number - tree.first])


def _nearest(planning: Planning, number: int, stage: Join, scans: Sequence[ScanBuilder]) -> Join:
    """Return the stage of an ASOF JOIN. Raises WJ107 where rows of streams would wait for ever."""
    graph, tree = planning.graph, planning.bound.tree
    join = tree.joins[number]
    by, to = join.timed_by or 0, join.item if join.timed_to is None else join.timed_to
    second = planning.bound.sources[to]
    if planning.streaming and _far(graph, tree, number, by, to) is None:
        first = graph.names[by]
        message = (
            f"no window limits how much later {second.name} may be, so rows of {first} would wait forever"
        )
        help = f"add one: WINDOW ({first}, {second.name}) = …"
        raise WJoinError("WJ107", message, span=second.item.span, help=help)
    columns = (column for each in join.right for column in planning.bound.sources[each].columns)
    # Of several rows of an instant the least by all columns is taken.
    tied = tuple((each.stream, scans[each.stream].needed_column(each)) for each in columns)
    return replace(stage, kind=join.kind, nearest=join.nearest, tied=tied, timed_by=by)


def _windows(graph: WindowGraph, tree: JoinTree, number: int, streams: Collection[int] = ()) -> Windows:
    """Return the windows in which a join finds partners, of tuples that have a row of some streams.

    Those are the closure of what it asks for and of what has matched before.
    """
    size = len(graph.names)
    found: list[tuple[Edge, ...]] = []
    for each in graph.joins[number - tree.first]:
        edges = tuple(bounds_between(each, range(size)))
        if number >= 0:
            asked = {*tree.joins[number].asked, *named_in([edges]), *streams}
            edges = (*edges, *_edges(graph, tree, asked, number))
        found.append(edges)
    # What all before it says together may leave nothing for an alternative.
    possible = [edges for edges in found if not negative_cycle(edges, size)]
    if not possible and streams:
        return Windows.of([[None] * size] * size)
    return hull([closed(edges, size).windows for edges in possible or found])


def _lags(graph: WindowGraph, tree: JoinTree, number: int) -> Iterator[Retention]:
    """Yield how far behind the streams that a join waits for a result of it may be, by its streams."""
    join = tree.joins[number]
    asked = tree.there(join.asked, number)[0]
    waiting = {*join.kind.preserved, *((0,) if join.kind.asof else ())}
    for side in sorted(waiting):
        members, others = join.sides[side], join.sides[1 - side]
        for other in others:
            far = tuple((member, _far(graph, tree, number, member, other)) for member in members)
            if len(others) == 1 or (other in asked and side == 0) or any(each is not None for _, each in far):
                yield Retention(other, far)


def _far(graph: WindowGraph, tree: JoinTree, number: int, stream: int, other: int) -> int | None:
    """Return how much later a row of another stream may be than that of one, where both meet in a join."""
    if len(graph.names) == 2:
        return graph.windows.between(stream, other)
    found = _windows(graph, tree, number, {stream}).between(stream, other)
    if found is not None:
        return found
    # Rows of that stream meet none there, and may wait as others do.
    asked, size = tree.joins[number].asked, len(graph.names)
    before = closed(_edges(graph, tree, {stream, *asked}, number), size).windows
    own = _windows(graph, tree, number)
    ways = [(before.between(stream, each), own.between(each, other)) for each in asked if each != other]
    return min((first + then for first, then in ways if first is not None and then is not None), default=None)


def _refuse_undecided(planning: Planning, number: int, late: Collection[frozenset[int]]) -> None:
    """Raise WJ107 for a join of streams whose equalities cannot find all partners. ``late``: as there."""
    bound, join = planning.bound, planning.bound.tree.joins[number]
    places = [bound.tree.join_of(each, None) for each in late]
    # What comes to it must be known before, where it tells what has no partner there.
    asked = [
        place
        for place in places
        if place == number or any(each is join and join.tells(side) for each, side in bound.tree.above(place))
    ]
    if not asked:
        return
    equality = next(each.equality for each in planning.equalities if bound.join_of(each.equality) == asked[0])
    raise _of_these_types(planning, number, equality.span)


def _of_these_types(planning: Planning, number: int, span: Span) -> WJoinError:
    kind = f"{planning.bound.tree.joins[number].kind.words}{' of streams' if planning.streaming else ''}"
    message = f"{kind} cannot decide an equality of these types"
    remedy = "compare columns of one type: whole numbers, strings, dates, timestamps"
    return WJoinError("WJ107", message, span=span, help=remedy)


def is_later(planning: Planning, condition: Residual) -> bool:
    """Return whether Spark evaluates a condition once all is joined."""
    bound, staged = planning.bound, planning.bound.tree.staged
    number = bound.join_of(condition)
    if number >= len(staged.joins):
        return condition.on is None
    if not staged.joins:
        return True
    if not planning.staged:
        return condition.on is None and not is_decided(condition, bound.tree)
    if condition.on is None:
        return True
    # What an inner join asks must be known before a later one tells what has no partner there.
    return (number < 0 or staged.joins[number].kind is JoinKind.INNER) and not staged.is_told(number)


def unmatched(tree: JoinTree) -> Iterator[Filter]:
    """Yield conditions by which no row meets another in joins whose windows let nothing match."""
    for number, each in enumerate(tree.joins):
        if each.empty:
            missing = tree.missing(number)
            for side in sorted(each.kind.preserved):
                sure = [stream for stream in each.sides[side] if stream not in missing]
                yield Filter((sure or each.sides[side])[0], "false", on=each.on)


def takes_part(tree: JoinTree, condition: Filter) -> bool:
    """Return whether a condition says which rows of a stream take part at all."""
    return meets_at(tree, condition) is None


def meets_at(tree: JoinTree, condition: Filter) -> int | None:
    """Return the number of the join of which a condition on a stream says which rows meet; None of others."""
    if condition.on is None or (number := tree.number_of(condition.on)) < 0:
        return None
    join = tree.joins[number]
    side = int(condition.stream in join.right)
    # What is not there may satisfy it, too.
    return number if side in join.kind.preserved or condition.stream in tree.missing(number) else None


def meets_alone(tree: JoinTree, condition: Filter) -> bool:
    """Return whether a condition on which rows of a stream meet says so of all joins: there is only one."""
    return meets_at(tree, condition) is not None and not _several(tree.staged)


def _several(tree: JoinTree) -> bool:
    return bool(tree.joins) and len(tree.base) + len(tree.parts) + len(tree.joins) > 2


def before_join(conjunct: Conjunct, tree: JoinTree) -> bool:
    """Return whether a condition of ON is on several streams before its join alone, which makes it a gate."""
    if conjunct.on is None or isinstance(conjunct, Filter) or conjunct.on in tree.static:
        return False
    number = tree.number_of(conjunct.on)
    return number >= 0 and not tree.joins[number].crossed_by(streams_of(conjunct))


def _gates(planning: Planning, number: int, scans: Sequence[ScanBuilder]) -> Iterator[Gate]:
    """Yield what tells which rows of what is there before a join, and of its item, meet others."""
    tree = planning.bound.tree
    for each in planning.filters:
        if meets_at(tree, each) == number:
            column = each.stream, scans[each.stream].needed(f"({each.text})", "boolean")
            yield Gate(Condition(Input(0, "boolean"), (column,)), each.text)
    for link, text in _links_before(planning, number):
        yield Gate(check_of(link, scans), text)


def _links_before(planning: Planning, number: int) -> Iterator[tuple[CheckedLink, str]]:
    """Yield the conditions of ON on several streams before a join alone. Raises WJoinError WJ107."""
    tree = planning.bound.tree
    types = {each.equality.span: each for each in planning.equalities}
    for conjunct in planning.bound.conjuncts:
        if not before_join(conjunct, tree) or planning.bound.join_of(conjunct) != number:
            continue
        match conjunct:
            case ColumnComparison(text=text):
                yield conjunct, text
            case Residual(text=text, read=ReadCondition() as read):
                yield read, text
            case Equality(left, right, span):
                found = equal_parts(types[span])
                if can_decide(found):
                    yield found, f"{left.text} = {right.text}"
                elif planning.streaming or tree.counted or tree.joins[number].kind.asof:
                    raise _of_these_types(planning, number, span)


def _called_before(planning: Planning, number: int, scans: Sequence[ScanBuilder]) -> Iterator[PredicateCheck]:
    """Yield the predicates in ON on rows of one side alone: they are called for what meets, as others are."""
    called = (each for each in planning.bound.conjuncts if isinstance(each, PredicateCall))
    for conjunct, call in zip(called, planning.calls, strict=True):
        if before_join(conjunct, planning.bound.tree) and planning.bound.join_of(conjunct) == number:
            yield call_of(call, scans)


def _on(planning: Planning, number: int) -> Iterator[str]:
    """Yield the conditions of a join as Spark reads them, with the values of parameters.

    Over tables that is all of ON, and what WHERE asks of streams of which each result has a row.
    """
    bound = planning.bound
    if number >= 0 and bound.tree.joins[number].empty:
        yield "false"
    for each in bound.conjuncts:
        after = each.on is None and (isinstance(each, Filter) or not is_decided(each, bound.tree))
        if not after and bound.join_of(each) == number:
            text = f"{each.left.text} = {each.right.text}" if isinstance(each, Equality) else each.text
            yield with_values(text, planning.request.parameters)


def with_values(text: str, parameters: Mapping[str, object]) -> str:
    """Return a condition with literals in the place of parameters. Raises WJoinError WJ107."""
    edits = []
    for token in scan(text):
        if token.text[:1] == ":" and token.text[1:] in parameters:
            value = literal(parameters[token.text[1:]])
            if value is None:
                message = f"the value of {token.text} cannot be in ON of an outer join of tables"
                raise WJoinError("WJ107", message, help="write it into the statement")
            edits.append(Edit(token.start, token.end, value))
    return apply_edits(text, edits)
