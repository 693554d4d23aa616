"""The window graph: a condition on timestamps as bounds on their differences.

Each conjunction of window terms is a simple temporal network: ``t_j - t_i <= bound`` for
pairs of streams. Its all-pairs shortest-path closure (Floyd-Warshall) completes missing
windows and tightens given ones; a cycle of negative length is a contradiction. A disjunction
is a set of such networks, one to a branch (W-join 2002, forms 1 to 3 and path joins).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product
from math import prod

from wjoin.grammar import syntax
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.suggestions import suggestion
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.windows.bounds import Windows, hull
from wjoin.planner.windows.closure import (
    Branch,
    Edge,
    RowsTerm,
    close,
    implied_edges,
    negative_cycle,
    without_included,
)
from wjoin.planner.windows.lengths import duration_value, human

MAXIMUM_BRANCHES = 64


@dataclass(frozen=True)
class WindowGraph:
    """The completed window condition over the streams ``names``.

    ``branches`` are the alternatives that can hold, without those another one includes;
    ``windows`` is their hull, the greatest bound of every pair. ``contradictory`` counts the
    alternatives that no tuple can satisfy. ``joins`` are, of a tree of joins of more than two streams, those
    of each join as written, first of the inner ones at its beginning: a result is inside one of them.
    ``rows`` are the windows of rows that stand in these alternatives. ``said`` are the bounds that conditions
    say, and the limits of those that rows say themselves.
    """

    names: tuple[str, ...]
    kind: TimeKind
    branches: tuple[Branch, ...]
    windows: Windows
    contradictory: int
    joins: tuple[tuple[Windows, ...], ...] = ()
    rows: tuple[tuple[tuple[RowsTerm, ...], ...], ...] = ()
    said: tuple[Edge, ...] = ()

    @property
    def alternatives(self) -> tuple[Windows, ...]:
        """The windows of which a result must be inside one as a whole; empty where there are no others."""
        return tuple(branch.windows for branch in self.branches) if len(self.branches) > 1 else ()


@dataclass(frozen=True)
class GivenWindows:
    """A window condition as it is written: ``bounds`` that every result keeps, and ``choices``.

    Of each choice a result keeps one alternative. ``counted`` are its windows of rows outside of choices.
    """

    bounds: tuple[Edge, ...]
    choices: tuple[tuple[tuple[Edge | RowsTerm, ...], ...], ...]
    counted: tuple[RowsTerm, ...]


def given_windows(
    condition: syntax.WindowCondition | None,
    names: Sequence[str],
    kind: TimeKind,
    parameters: Mapping[str, object],
    timeless: Collection[int],
) -> GivenWindows:
    """Return a window condition as it is written, None for no windows. Nothing may be inside of it.

    Raises WJ110, WJ201, WJ212 and WJ303 to WJ306.
    """
    reader = _Reader(tuple(names), kind, parameters, frozenset(timeless), empty=True)
    bounds: list[Edge] = []
    choices = []
    counted: list[RowsTerm] = []
    for term in () if condition is None else _conjuncts(condition):
        read = reader.alternatives(term)
        if len(read) > 1:
            choices.append(tuple(map(tuple, read)))
            continue
        counted += [each for each in read[0] if isinstance(each, RowsTerm)]
        bounds += [each for each in read[0] if isinstance(each, Edge)]
    if condition is not None:
        _refuse_many(condition)
    return GivenWindows(tuple(bounds), tuple(choices), tuple(dict.fromkeys(counted)))


def _conjuncts(condition: syntax.WindowCondition) -> Iterator[syntax.WindowCondition]:
    """Yield what AND joins."""
    if isinstance(condition, syntax.WindowAnd):
        for term in condition.terms:
            yield from _conjuncts(term)
    else:
        yield condition


def _refuse_many(condition: syntax.WindowCondition) -> None:
    if (alternatives := _count(condition)) > MAXIMUM_BRANCHES:
        message = f"the window condition has {alternatives} alternatives; the limit is {MAXIMUM_BRANCHES}"
        raise WJoinError("WJ306", message, span=condition.span)


def window_graph(
    condition: syntax.WindowCondition | None,
    names: Sequence[str],
    kind: TimeKind,
    parameters: Mapping[str, object],
    *,
    must_connect: bool,
    timeless: Collection[int] = (),
    static: Collection[int] = (),
    said: Sequence[Sequence[Sequence[Edge]]] = (),
) -> WindowGraph:
    """Return the completed graph of a window condition, None for no windows.

    Of the streams ``timeless`` nothing is bounded; ``static`` are tables beside streams. ``must_connect``
    asks for an error where a branch leaves streams unconnected. ``said`` are the alternatives of each other
    condition on event times. Raises WJ110, WJ201, WJ212 and WJ301 to WJ306.
    """
    reader = _Reader(tuple(names), kind, parameters, frozenset(timeless))
    if condition is not None:
        _refuse_many(condition)
    branches: list[Branch] = []
    first_error: WJoinError | None = None
    contradictory = 0
    conjunctions = [()] if condition is None else reader.alternatives(condition)
    for terms, others in product(conjunctions, _chosen(said, len(conjunctions))):
        edges = (*(each for each in terms if isinstance(each, Edge)), *others)
        counted = tuple(dict.fromkeys(each for each in terms if isinstance(each, RowsTerm)))
        if must_connect and condition is not None and not _ends_by_count(counted, names, timeless):
            which = "an alternative of " if conjunctions[1:] else ""
            linking = [*edges[: len(edges) - len(others)], *_both_ways(edges, len(names))]
            _check_connected(linking, names, timeless, static, condition.span, which, counted)
        cycle = negative_cycle(edges, len(names))
        if cycle:
            contradictory += 1
            first_error = first_error or contradiction(cycle, names, kind)
        else:
            branches.append(replace(close(edges, len(names)), counted=counted))
    if not branches and first_error is not None:
        raise first_error
    kept = without_included(branches)
    found = hull([branch.windows for branch in kept])
    told = dict.fromkeys((*_flat(said), *told_by(edge for terms in conjunctions for edge in terms)))
    return WindowGraph(tuple(names), kind, kept, found, contradictory, said=tuple(told))


def told_by(edges: Iterable[Edge | RowsTerm]) -> tuple[Edge, ...]:
    """Return the bounds of which a condition says more."""
    return tuple(each for each in edges if isinstance(each, Edge) and each.condition)


def _flat(said: Sequence[Sequence[Sequence[Edge]]]) -> Iterator[Edge]:
    return (edge for choice in said for each in choice for edge in each)


def _chosen(said: Sequence[Sequence[Sequence[Edge]]], others: int) -> list[tuple[Edge, ...]]:
    """Return the conjunctions of the alternatives of conditions; what all imply where these are too many."""
    if prod(map(len, said)) * others > MAXIMUM_BRANCHES:
        said = [[implied_edges(choice)] for choice in said]
    return [tuple(edge for own in each for edge in own) for each in product(*said)]


def _both_ways(edges: Sequence[Edge], size: int) -> Iterator[Edge]:
    """Yield bounds between the streams whose times all bounds together hold near each other."""
    if negative_cycle(edges, size):
        yield from edges
        return
    windows = close(edges, size).windows
    for first, second in combinations(range(size), 2):
        high = windows.between(first, second)
        if high is not None and windows.between(second, first) is not None:
            yield Edge(first, second, high, edges[0].span)


def _count(condition: syntax.WindowCondition) -> int:
    match condition:
        case syntax.WindowAnd(terms):
            return prod(_count(term) for term in terms)
        case syntax.WindowOr(terms):
            return sum(_count(term) for term in terms)
        case syntax.WindowPath(bidirectional=True):
            return 2
    return 1


@dataclass(frozen=True)
class _Reader:
    """Reads window terms as edges over stream numbers."""

    names: tuple[str, ...]
    kind: TimeKind
    parameters: Mapping[str, object]
    timeless: frozenset[int]
    empty: bool = False
    """Whether a window may be one in which nothing can be."""

    def alternatives(self, condition: syntax.WindowCondition) -> list[tuple[Edge | RowsTerm, ...]]:
        """Return the disjunctive normal form: the edges and the windows of rows of each conjunction."""
        match condition:
            case syntax.WindowAnd(terms):
                choices = product(*(self.alternatives(term) for term in terms))
                return [tuple(edge for edges in choice for edge in edges) for choice in choices]
            case syntax.WindowOr(terms):
                return [edges for term in terms for edges in self.alternatives(term)]
            case syntax.WindowPath():
                return [*self._path(condition)]
        return [self._term(condition)]

    def _term(self, term: syntax.WindowTerm) -> tuple[Edge | RowsTerm, ...]:
        match term:
            case syntax.WindowAll(width, span=span):
                return self._all(self._width(width), span)
            case syntax.WindowPair(first, second, width, directed, in_row, span=span):
                ends = self._pair(first, second, span)
                high = self._width(width)
                edges = self._between(ends, 0 if directed else -high, high, span)
                if in_row is None:
                    return edges
                shown = f"{' '.join(in_row.expression.split())} AT MOST {human(high, self.kind)}"
                return tuple(replace(each, condition=shown if each.bound else "") for each in edges)
            case syntax.WindowBetween(first, second, low, high, span=span):
                return self._window_between(self._pair(first, second, span), low, high, span)
            case syntax.WindowStream(stream, width, span=span):
                source = self._stream(stream)
                bound = self._width(width)
                return tuple(Edge(source, other, bound, span) for other in self._others(source))
            case syntax.WindowRows(stream, rows, per, span=span):
                return (RowsTerm(self._stream(stream), rows, per, None, span),)
            case syntax.WindowSince(stream, _, place, span=span):
                return (RowsTerm(self._stream(stream), 1, syntax.Per.STREAM, place, span),)
        raise AssertionError(f"no such window term: {term!r}")

    def _path(self, path: syntax.WindowPath) -> list[tuple[Edge, ...]]:
        hops = [
            (self._pair(first, second, path.span), self._width(width))
            for (first, second), width in zip(pairwise(path.streams), path.widths, strict=True)
        ]
        absent = [edge for each in path.absent for edge in self._absent(path, each)]
        turned = [((second, first), width) for (first, second), width in hops]
        directions = [hops, turned] if path.bidirectional else [hops]
        return [
            (
                *(edge for ends, width in direction for edge in self._between(ends, 0, width, path.span)),
                *absent,
            )
            for direction in directions
        ]

    def _absent(self, path: syntax.WindowPath, step: syntax.Absent) -> Iterator[Edge]:
        """Yield where rows are that must not be there: up to the next stream, or for a width at the end."""
        before = self._pair(path.streams[step.after], step.stream, path.span)
        if step.width is not None:
            yield from self._between(before, 0, self._width(step.width), path.span)
            return
        after = self._pair(step.stream, path.streams[step.after + 1], path.span)
        for first, second in (before, after):
            yield Edge(second, first, 0, path.span)

    def _all(self, bound: int, span: Span) -> tuple[Edge, ...]:
        dated = [number for number in range(len(self.names)) if number not in self.timeless]
        return tuple(Edge(source, other, bound, span) for source in dated for other in self._others(source))

    def _window_between(
        self, ends: tuple[int, int], low: syntax.Duration, high: syntax.Duration, span: Span
    ) -> tuple[Edge, ...]:
        least, greatest = (duration_value(bound, self.kind, self.parameters) for bound in (low, high))
        if least > greatest and not self.empty:
            shown = f"{human(least, self.kind)} is above {human(greatest, self.kind)}"
            remedy = "write the smaller bound first; both are bounds on the second stream minus the first"
            message = f"the window is empty: {shown}"
            raise WJoinError("WJ110", message, span=low.span.cover(high.span), help=remedy)
        return self._between(ends, least, greatest, span)

    def _between(self, ends: tuple[int, int], low: int, high: int, span: Span) -> tuple[Edge, ...]:
        first, second = ends
        return Edge(first, second, high, span), Edge(second, first, -low, span)

    def _width(self, width: syntax.Duration) -> int:
        value = duration_value(width, self.kind, self.parameters)
        if value < 0:
            message = f"a window cannot be {human(value, self.kind)} wide"
            raise WJoinError("WJ110", message, span=width.span)
        return value

    def _pair(self, first: syntax.Identifier, second: syntax.Identifier, span: Span) -> tuple[int, int]:
        ends = self._stream(first), self._stream(second)
        if ends[0] == ends[1]:
            raise WJoinError("WJ303", f"a window joins {self.names[ends[0]]} to itself", span=span)
        return ends

    def _others(self, stream: int) -> list[int]:
        numbers = range(len(self.names))
        return [number for number in numbers if number != stream and number not in self.timeless]

    def _stream(self, name: syntax.Identifier) -> int:
        for number, each in enumerate(self.names):
            if name.matches(each):
                return number
        help = suggestion(name.name, self.names) or f"the streams are {', '.join(self.names)}"
        raise WJoinError("WJ201", f"{name.name} is not a stream of FROM", span=name.span, help=help)


def contradiction(cycle: Sequence[Edge], names: Sequence[str], kind: TimeKind) -> WJoinError:
    """Return the error about bounds that no tuple can keep."""
    steps = [
        f"{names[edge.target]} - {names[edge.source]} <= {human(edge.bound, kind)}"
        + (f" by {edge.condition}" if edge.condition else "")
        for edge in cycle
    ]
    route = " -> ".join([*(names[edge.source] for edge in cycle), names[cycle[0].source]])
    total = human(sum(edge.bound for edge in cycle), kind)
    message = f"no tuple can satisfy the windows: the cycle {route} adds up to {total} ({', '.join(steps)})"
    span = cycle[0].span
    for edge in cycle:
        span = span.cover(edge.span)
    return WJoinError("WJ302", message, span=span)


def _ends_by_count(counted: Sequence[RowsTerm], names: Sequence[str], timeless: Collection[int]) -> bool:
    """Return whether no row of any stream need be kept forever, whatever the windows in time."""
    return {*range(len(names))} <= {*timeless, *(each.stream for each in counted)}


def _check_connected(
    edges: Sequence[Edge],
    names: Sequence[str],
    timeless: Collection[int],
    static: Collection[int],
    span: Span,
    which: str,
    counted: Sequence[RowsTerm] = (),
) -> None:
    first = next(number for number in range(len(names)) if number not in timeless)
    part = [first if number in timeless else number for number in range(len(names))]
    for edge in edges:
        old, new = part[edge.source], part[edge.target]
        part = [new if each == old else each for each in part]
    if len(set(part)) == 1:
        return
    groups = [
        "{" + ", ".join(name for name, number in zip(names, part, strict=True) if number == each) + "}"
        for each in dict.fromkeys(part)
    ]
    verb = "does" if which else "do"
    message = f"{which}the windows {verb} not connect all streams: {' and '.join(groups)} are apart"
    one, other = (names[part.index(each)] for each in list(dict.fromkeys(part))[:2])
    help = f"add a window between the parts, for example WINDOW ({one}, {other}) = …"
    if counted:
        help += ", or one of rows for every stream"
    tables = [names[number] for number in static if all(each in static for each in _part_of(part, number))]
    if tables:
        help += f"; {tables[0]}, a table, needs none in a subquery without its time column"
    raise WJoinError("WJ301", message, span=span, help=help)


def _part_of(part: Sequence[int], number: int) -> list[int]:
    return [each for each, other in enumerate(part) if other == part[number]]
