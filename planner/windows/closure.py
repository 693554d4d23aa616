"""Bounds on differences of event times as a simple temporal network: its closure, and its contradictions."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import Per
from wjoin.planner.windows.bounds import Windows


@dataclass(frozen=True)
class Edge:
    """One directed bound as written: ``t_target - t_source <= bound``; ``condition``: in which, if any."""

    source: int
    target: int
    bound: int
    span: Span
    condition: str = field(default="", compare=False)


@dataclass(frozen=True)
class RowsTerm:
    """A window of rows as written: fewer than ``rows`` rows of a stream are later than that of a tuple, and
    not later than the tuple's latest timestamp.

    ``per`` says which of them count; of those, the ones for which the condition at ``landmark`` is true where
    there is one.
    """

    stream: int
    rows: int
    per: Per
    landmark: Span | None
    span: Span = field(compare=False)


@dataclass(frozen=True)
class Branch:
    """One conjunction, completed.

    ``given`` are the tightest bounds written, ``windows`` the closure and ``paths[i][j]`` the streams
    whose given bounds add up to that between i and j (empty where there is no bound). ``counted`` are its
    windows of rows.
    """

    given: Windows
    windows: Windows
    paths: tuple[tuple[tuple[int, ...], ...], ...]
    counted: tuple[RowsTerm, ...] = ()

    def includes(self, narrow: "Branch") -> bool:
        """Return whether every tuple of another conjunction satisfies this one."""
        return self.windows.includes(narrow.windows) and set(self.counted) <= set(narrow.counted)


def implied_edges(choice: Sequence[Sequence[Edge]]) -> list[Edge]:
    """Return the bounds that follow from each of some alternatives."""
    first, *others = choice
    found = []
    for edge in first:
        same = [[each for each in own if _ends(each) == _ends(edge)] for own in others]
        if all(same):
            greatest = max(edge.bound, *(min(each.bound for each in own) for own in same), edge.bound)
            found.append(replace(edge, bound=greatest))
    return found


def _ends(edge: Edge) -> tuple[int, int]:
    return edge.source, edge.target


def close(edges: Sequence[Edge], size: int) -> Branch:
    """Return the all-pairs closure of bounds that have no negative cycle.

    Floyd-Warshall with the paths kept; a given bound stands where a path is only as good.
    """
    given = _tightest(edges, size)
    upper = [list(row) for row in given]
    following = [[j if upper[i][j] is not None else -1 for j in range(size)] for i in range(size)]
    for middle, source, target in product(range(size), repeat=3):
        first, second = upper[source][middle], upper[middle][target]
        if first is None or second is None:
            continue
        known = upper[source][target]
        if known is None or first + second < known:
            upper[source][target] = first + second
            following[source][target] = following[source][middle]
    paths = tuple(tuple(_path(following, source, target) for target in range(size)) for source in range(size))
    return Branch(Windows.of(given), Windows.of(upper), paths)


def _path(following: Sequence[Sequence[int]], source: int, target: int) -> tuple[int, ...]:
    if following[source][target] < 0:
        return ()
    path = [source]
    while path[-1] != target:
        path.append(following[path[-1]][target])
    return tuple(path)


def _tightest(edges: Sequence[Edge], size: int) -> list[list[int | None]]:
    bounds: list[list[int | None]] = [[0 if i == j else None for j in range(size)] for i in range(size)]
    for edge in edges:
        known = bounds[edge.source][edge.target]
        bounds[edge.source][edge.target] = edge.bound if known is None else min(known, edge.bound)
    return bounds


def negative_cycle(edges: Sequence[Edge], size: int) -> tuple[Edge, ...]:
    """Return the edges of a cycle whose bounds add up to less than 0, in order; empty when there is none.

    Bellman-Ford from a virtual source.
    """
    distance = [0] * size
    entered: list[Edge | None] = [None] * size
    changed: int | None = None
    for _ in range(size):
        changed = None
        for edge in edges:
            if distance[edge.source] + edge.bound < distance[edge.target]:
                distance[edge.target] = distance[edge.source] + edge.bound
                entered[edge.target] = edge
                changed = edge.target
    if changed is None:
        return ()
    place = changed
    for _ in range(size):
        place = _entry(entered, place).source
    cycle = [_entry(entered, place)]
    while cycle[-1].source != place:
        cycle.append(_entry(entered, cycle[-1].source))
    cycle.reverse()
    start = min(range(len(cycle)), key=lambda number: cycle[number].source)
    return tuple(cycle[start:] + cycle[:start])


def _entry(entered: Sequence[Edge | None], place: int) -> Edge:
    edge = entered[place]
    if edge is None:
        raise AssertionError("a relaxed stream has no edge into it")
    return edge


def without_included(branches: Sequence[Branch]) -> tuple[Branch, ...]:
    """Drop branches whose every tuple satisfies another branch; the first of equal ones stays."""
    kept: list[Branch] = []
    for number, branch in enumerate(branches):
        earlier = (other.includes(branch) for other in kept)
        later = (other.includes(branch) and not branch.includes(other) for other in branches[number + 1 :])
        if not any(earlier) and not any(later):
            kept.append(branch)
    return tuple(kept)
