"""Conditions between event times as windows: which go into the window graph, and whether they suffice."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_tree import JoinTree
from wjoin.grammar.spans import Span
from wjoin.planner.bind.binding import BoundSelect
from wjoin.planner.conditions.conjuncts import Conjunct
from wjoin.planner.conditions.time_bounds import TimeBound
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.windows.bounds import Windows
from wjoin.planner.windows.closure import Edge
from wjoin.planner.windows.window_graph import WindowGraph

UNBOUNDED = "WJ308"
"""The code of the error that conditions leave two streams unbounded."""


def said_choices(bound: BoundSelect) -> list[list[list[Edge]]]:
    """Return the alternatives of each condition between event times of a block of inner joins."""
    return [
        [[_edge(each, bounds) for bounds in own] for own in each.times.alternatives]
        for each in bound.said
        if each.times is not None
    ]


def said_edges(bound: BoundSelect) -> list[Edge]:
    """Return what conditions between event times say in a tree of joins, of alternatives what all imply.

    A bound counts where the join that has the condition is that which brings the two streams together: of
    ON that of its item; of WHERE only where no result is without one of them.
    """
    return [
        _edge(each, found)
        for each in bound.said
        if each.times is not None
        for found in each.times.hull
        if bound.tree.brings((found.source, found.target), each.on)
    ]


def _edge(conjunct: Conjunct, found: TimeBound) -> Edge:
    return Edge(found.source, found.target, found.bound, conjunct.place, conjunct.shown)


# What is left unbounded ---------------------------------------------------------


def refuse_unbounded(bound: BoundSelect, graph: WindowGraph, span: Span) -> None:
    """Raise WJ308 where conditions alone do not hold the times of two streams near each other."""
    dated = [number for number, time in enumerate(bound.times) if time is not None]
    for first, second in _together(bound.tree, dated):
        found = next((w for w in _windows(graph) if not _is_bounded(w, first, second)), None)
        if found is None:
            continue
        names = graph.names
        low, high = found.between(second, first), found.between(first, second)
        one, other = (names[first], names[second])
        if low is None and high is None:
            message = f"no condition bounds how far the times of {one} and {other} are apart"
        else:
            late, early = (other, one) if high is None else (one, other)
            message = f"{late} can be any time after {early}: its rows would be kept forever"
        columns = [f"{names[n]}.{time.column.name}" for n in (first, second) if (time := bound.times[n])]
        remedy = _remedy(graph.kind, columns, low, high, (one, other))
        raise WJoinError(UNBOUNDED, message, span=span, help=remedy)


def _remedy(
    kind: TimeKind, columns: Sequence[str], low: int | None, high: int | None, names: tuple[str, str]
) -> str:
    length, window = ("10", "10") if kind is TimeKind.INTEGRAL else ("INTERVAL 10 MINUTES", "10 MINUTES")
    first, second = columns
    if low is None and high is None:
        line = f"{second} BETWEEN {first} - {length} AND {first} + {length}"
    elif high is None:
        line = f"{second} <= {first} + {length}"
    else:
        line = f"{first} <= {second} + {length}"
    window = f"WINDOW ({names[0]}, {names[1]}) = {window}"
    return f"add AND {line}, or {window}; SET wjoin.windows_from_where = off leaves the join to Spark"


def _windows(graph: WindowGraph) -> Iterator[Windows]:
    return (branch.windows for branch in graph.branches)


def _is_bounded(windows: Windows, first: int, second: int) -> bool:
    return windows.between(first, second) is not None and windows.between(second, first) is not None


def _together(tree: JoinTree, dated: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the streams of which rows meet, in pairs."""
    yield from combinations([each for each in tree.base if each in dated], 2)
    for join in tree.joins:
        if join.item in dated and not join.empty:
            yield from ((min(each, join.item), max(each, join.item)) for each in join.left if each in dated)
