"""The closure of the window graph against brute force over small integer times."""

from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from wjoin.grammar import syntax
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.windows.bounds import Windows, hull
from wjoin.planner.windows.closure import Edge, close, negative_cycle
from wjoin.planner.windows.window_graph import window_graph

NOWHERE = Span(0, 0)
NAMES = ("A", "B", "C", "D")
TIMES = range(6)


def name(number: int) -> syntax.Identifier:
    return syntax.Identifier(NAMES[number], span=NOWHERE)


def number(value: int) -> syntax.BareNumber:
    return syntax.BareNumber(value, span=NOWHERE)


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[int, list[Edge]]:
    size = draw(st.integers(2, 4))
    pairs = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(
        lambda pair: pair[0] != pair[1]
    )
    drawn = draw(st.lists(st.tuples(pairs, st.integers(-3, 4)), max_size=8))
    return size, [Edge(source, target, bound, NOWHERE) for (source, target), bound in drawn]


def tuples(size: int, times: range = TIMES) -> list[tuple[int, ...]]:
    return list(product(times, repeat=size))


def satisfies(times: tuple[int, ...], edges: list[Edge]) -> bool:
    return all(times[edge.target] - times[edge.source] <= edge.bound for edge in edges)


def within(times: tuple[int, ...], windows: Windows) -> bool:
    return all(
        (bound := windows.between(i, j)) is None or times[j] - times[i] <= bound
        for i, j in product(range(windows.size), repeat=2)
    )


@given(edge_lists())
def test_closure_keeps_exactly_the_same_tuples(drawn: tuple[int, list[Edge]]) -> None:
    size, edges = drawn
    if negative_cycle(edges, size):
        return
    windows = close(edges, size).windows
    for times in tuples(size):
        assert satisfies(times, edges) == within(times, windows)


@given(edge_lists())
def test_a_negative_cycle_is_found_iff_no_tuple_exists(drawn: tuple[int, list[Edge]]) -> None:
    size, edges = drawn
    cycle = negative_cycle(edges, size)
    # Bounds lie in -3..4, so a solution, if there is one, fits in this range.
    possible = any(satisfies((0, *times), edges) for times in tuples(size - 1, range(-12, 13)))
    assert bool(cycle) != possible
    if cycle:
        assert sum(edge.bound for edge in cycle) < 0
        follows = (*cycle[1:], cycle[0])
        assert all(first.target == second.source for first, second in zip(cycle, follows, strict=True))


@given(edge_lists())
def test_every_bound_is_tight_and_its_path_adds_up_to_it(drawn: tuple[int, list[Edge]]) -> None:
    size, edges = drawn
    if negative_cycle(edges, size):
        return
    branch = close(edges, size)
    for i, j in product(range(size), repeat=2):
        bound, path = branch.windows.between(i, j), branch.paths[i][j]
        if bound is None:
            assert path == ()
            continue
        assert path[0] == i and path[-1] == j and len(set(path)) == len(path)
        steps = [branch.given.between(a, b) for a, b in pairwise(path)]
        assert sum(step for step in steps if step is not None) == bound and None not in steps
        # The greatest difference is reached: t = distance from i is a solution.
        distance = [branch.windows.between(i, k) for k in range(size)]
        known = [each if each is not None else 1000 * (k + 1) for k, each in enumerate(distance)]
        assert known[j] - known[i] == bound


@given(st.lists(edge_lists(), min_size=1, max_size=3))
def test_the_hull_is_closed_and_includes_its_branches(drawn: list[tuple[int, list[Edge]]]) -> None:
    size = max(each[0] for each in drawn)
    closures = [close(edges, size).windows for _, edges in drawn if not negative_cycle(edges, size)]
    if not closures:
        return
    whole = hull(closures)
    assert all(whole.includes(closure) for closure in closures)
    edges = [
        Edge(i, j, bound, NOWHERE)
        for i, j in product(range(size), repeat=2)
        if (bound := whole.between(i, j)) is not None
    ]
    assert close(edges, size).windows == whole


def test_hull_and_inclusion_go_by_every_clock() -> None:
    times = ((0, 5), (5, 0))
    one, two = (Windows((times, ((None, rows), (None, None)))) for rows in (1, 3))
    assert hull([one, two]) == hull([two, one]) == two
    assert two.includes(one)
    assert not one.includes(two)


# Whole conditions -----------------------------------------------------------


def terms() -> st.SearchStrategy[syntax.WindowCondition]:
    streams = st.lists(st.integers(0, 2), min_size=2, max_size=2, unique=True)
    widths = st.integers(0, 4)
    bounds = st.lists(st.integers(-3, 4), min_size=2, max_size=2).map(sorted)
    return st.one_of(
        st.builds(lambda w: syntax.WindowAll(number(w), span=NOWHERE), widths),
        st.builds(
            lambda s, w, d: syntax.WindowPair(name(s[0]), name(s[1]), number(w), d, span=NOWHERE),
            streams,
            widths,
            st.booleans(),
        ),
        st.builds(
            lambda s, b: syntax.WindowBetween(
                name(s[0]), name(s[1]), number(b[0]), number(b[1]), span=NOWHERE
            ),
            streams,
            bounds,
        ),
        st.builds(
            lambda s, w: syntax.WindowStream(name(s), number(w), span=NOWHERE), st.integers(0, 2), widths
        ),
        st.builds(
            lambda order, w, both: syntax.WindowPath(
                tuple(map(name, order)), tuple(map(number, w)), both, span=NOWHERE
            ),
            st.permutations(range(3)),
            st.tuples(widths, widths),
            st.booleans(),
        ),
    )


def conditions() -> st.SearchStrategy[syntax.WindowCondition]:
    return st.recursive(
        terms(),
        lambda inner: st.one_of(
            st.builds(
                lambda both: syntax.WindowAnd(tuple(both), span=NOWHERE),
                st.lists(inner, min_size=2, max_size=3),
            ),
            st.builds(
                lambda both: syntax.WindowOr(tuple(both), span=NOWHERE),
                st.lists(inner, min_size=2, max_size=3),
            ),
        ),
        max_leaves=5,
    )


def value(duration: syntax.Duration) -> int:
    assert isinstance(duration, syntax.BareNumber)
    return duration.value


def holds(condition: syntax.WindowCondition, times: tuple[int, ...]) -> bool:
    """Decide a condition as LANGUAGE's table words it, without the graph."""

    def at(stream: syntax.Identifier) -> int:
        return times[NAMES.index(stream.name)]

    match condition:
        case syntax.WindowAnd(inner):
            return all(holds(each, times) for each in inner)
        case syntax.WindowOr(inner):
            return any(holds(each, times) for each in inner)
        case syntax.WindowAll(width):
            return max(times) - min(times) <= value(width)
        case syntax.WindowPair(first, second, width, directed):
            return (0 if directed else -value(width)) <= at(second) - at(first) <= value(width)
        case syntax.WindowBetween(first, second, low, high):
            return value(low) <= at(second) - at(first) <= value(high)
        case syntax.WindowStream(stream, width):
            return max(times) - at(stream) <= value(width)
        case syntax.WindowPath(streams, widths, both):
            hops = [
                (at(second) - at(first), value(width))
                for first, second, width in zip(streams, streams[1:], widths, strict=False)
            ]
            forward = all(0 <= difference <= width for difference, width in hops)
            backward = all(0 <= -difference <= width for difference, width in hops)
            return forward or (both and backward)
    raise AssertionError(condition)


@given(conditions())
def test_a_condition_holds_iff_a_branch_of_its_graph_does(condition: syntax.WindowCondition) -> None:
    all_times = tuples(3, range(7))
    try:
        graph = window_graph(condition, NAMES[:3], TimeKind.INTEGRAL, {}, must_connect=False)
    except WJoinError as error:
        assert error.code in ("WJ302", "WJ306")
        if error.code == "WJ302":
            assert not any(holds(condition, times) for times in all_times)
        return
    for times in all_times:
        expected = holds(condition, times)
        assert any(within(times, branch.windows) for branch in graph.branches) == expected
        assert not expected or within(times, graph.windows)
