"""Static relations beside streams: in which order they are joined to the result, and on what."""

from collections.abc import Collection, Sequence

from wjoin.grammar.join_tree import JoinTree
from wjoin.planner.conditions.conjuncts import ColumnComparison, Equality, Residual
from wjoin.planner.plan.physical import StaticJoin
from wjoin.planner.request import Planning
from wjoin.planner.shape.join_keys import EqualityClass, KeyPart
from wjoin.planner.shape.later_joins import chosen_windows, with_values
from wjoin.planner.text.scope import StreamColumn
from wjoin.planner.windows.bounds import Windows, hull
from wjoin.planner.windows.window_graph import WindowGraph

Lookup = tuple[StaticJoin, tuple[StreamColumn, ...]]
"""The join of a static relation, and all columns that its conditions read."""


def lookups(
    size: int,
    static: Collection[int],
    classes: Sequence[EqualityClass],
    comparisons: Sequence[ColumnComparison],
) -> tuple[Lookup, ...]:
    """Return the joins of the static ones of ``size`` streams, in order.

    Next comes the relation that most equality classes link to what is joined already, and of
    such the first of FROM.
    """
    joined = [stream for stream in range(size) if stream not in static]
    waiting = sorted(static)
    found: list[Lookup] = []
    while waiting:
        stream = max(waiting, key=lambda each: len(_links(each, joined, classes)))
        links = _links(stream, joined, classes)
        waiting.remove(stream)
        joined.append(stream)
        ready = [each for each in comparisons if stream in each.streams and each.streams <= set(joined)]
        columns = [column for pair in links for part in pair for column in part.side.columns]
        columns += [column for each in ready for side in (each.left, each.right) for column in side.read]
        equalities = tuple(f"{known.text} = {own.text}" for known, own in links)
        join = StaticJoin(stream, equalities, tuple(each.text for each in ready))
        found.append((join, tuple(columns)))
    return tuple(found)


def tree_lookups(planning: Planning) -> tuple[Lookup, ...]:
    """Return the joins of static relations among joins not all of which are inner ones.

    Each decides its own conditions, and the windows between it and what is there before, as they are given.
    """
    bound, tree = planning.bound, planning.bound.tree
    found: list[Lookup] = []
    for number, join in enumerate(tree.joins):
        if join.item not in tree.static:
            continue
        own = [each for each in bound.conjuncts if bound.join_of(each) == number]
        sides = [each for each in own if isinstance(each, Equality)]
        compared = [each for each in own if isinstance(each, ColumnComparison)]
        others = [each for each in own if isinstance(each, Residual) and each.on is not None]
        columns = [column for each in sides for side in (each.left, each.right) for column in side.columns]
        columns += [column for each in compared for side in (each.left, each.right) for column in side.read]
        made = StaticJoin(
            join.item,
            tuple(f"{each.left.text} = {each.right.text}" for each in sides),
            (
                *(each.text for each in compared),
                *(with_values(each.text, planning.request.parameters) for each in others),
            ),
            join.kind,
            _given_windows(planning.graph, tree, number),
            chosen_windows(planning.graph, tree, number),
        )
        found.append((made, tuple(columns)))
    return tuple(found)


def _given_windows(graph: WindowGraph, tree: JoinTree, number: int) -> Windows | None:
    """Return the windows that are conditions of a join; None for all of the alternatives of two streams."""
    if graph.alternatives and not graph.joins:
        return None
    numbers, join = range(len(graph.names)), tree.joins[number]
    given = hull(graph.joins[number - tree.first]) if graph.joins else graph.branches[0].given

    def bound(first: int, second: int) -> int | None:
        pair = {first, second}
        known = join.item in pair and pair <= {*join.left, join.item}
        return given.between(first, second) if known or first == second else None

    return Windows.of([[bound(first, second) for second in numbers] for first in numbers])


def _links(
    stream: int, joined: Sequence[int], classes: Sequence[EqualityClass]
) -> list[tuple[KeyPart, KeyPart]]:
    """Return for each class that links a relation to joined ones the part of one of them and its own."""
    links = []
    for each in classes:
        own = each.part(stream)
        known = next((part for part in each.parts if part.stream in joined), None)
        if own is not None and known is not None:
            links.append((known, own))
    return links
