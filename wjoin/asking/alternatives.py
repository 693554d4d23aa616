"""The windows of a block: alternatives of bounds between two streams, and of windows of rows."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product

from wjoin.grammar.syntax import Per
from wjoin.planner.plan.physical import CountedWindow
from wjoin.planner.planning import PlannedSelect
from wjoin.planner.windows.bounds import Windows
from wjoin.planner.windows.closure import RowsTerm
from wjoin.planner.windows.window_graph import MAXIMUM_BRANCHES, WindowGraph


@dataclass(frozen=True)
class Bound:
    """A window between two streams: ``second`` is from ``least`` to ``most`` later than ``first``.

    In microseconds, in the unit of the event time where that is integral; None where there is no bound.
    """

    first: int
    second: int
    least: int | None
    most: int | None

    @property
    def streams(self) -> tuple[int, int]:
        """The streams that it is about."""
        return self.first, self.second

    @property
    def width(self) -> float:
        """How much the times of rows inside may differ, infinity where nothing limits that."""
        return math.inf if self.most is None or self.least is None else self.most - self.least

    def beyond(self, times: Sequence[int]) -> int:
        """Return by how much the times of one row of each stream are outside, 0 inside."""
        later = times[self.second] - times[self.first]
        if self.most is not None and later > self.most:
            return later - self.most
        if self.least is not None and later < self.least:
            return self.least - later
        return 0


@dataclass(frozen=True)
class Count:
    """A window of rows: fewer than ``rows`` rows of ``stream`` are later than its own, up to the latest one.

    Of those that satisfy ``test`` (empty: all) and have the same values of ``keys``, in SQL over its alias,
    by what is counted ``per``. The latest one is that of the streams ``among``, which a join brings together.
    """

    stream: int
    rows: int
    test: str
    keys: tuple[str, ...]
    among: tuple[int, ...]
    per: Per


def can_be_told(graph: WindowGraph) -> bool:
    """Return whether the windows of a tree of joins have few enough alternatives, each with each."""
    return math.prod(map(len, graph.joins)) <= MAXIMUM_BRANCHES


def alternatives_of(planned: PlannedSelect) -> Iterator[tuple[tuple[Bound, ...], tuple[Count, ...]]]:
    """Yield the alternatives of windows; of a tree of joins those of all joins, each with each."""
    graph, tree = planned.graph, planned.bound.tree
    every = frozenset(range(len(graph.names))) - tree.static
    if not graph.joins or not can_be_told(graph):
        for each in graph.branches:
            rows = {term: [every] for term in each.counted}
            yield tuple(_bounds(each.given)), tuple(_counts(planned, rows))
        return
    numbers = range(tree.first, len(tree.joins))
    together = [frozenset(tree.known(number)) - tree.static for number in numbers]
    always = {
        term: [each for each in together if term.stream in each]
        for branch in graph.branches
        for term in branch.counted
    }
    of_joins = (
        [(given, counted, streams) for given, counted in zip(own, rows, strict=True)]
        for own, rows, streams in zip(graph.joins, graph.rows, together, strict=True)
    )
    for chosen in product(*of_joins):
        rows = {term: list(streams) for term, streams in always.items()}
        for term, streams in ((term, streams) for _, counted, streams in chosen for term in counted):
            rows.setdefault(term, []).append(streams)
        bounds = dict.fromkeys(chain.from_iterable(_bounds(given) for given, _, _ in chosen))
        yield tuple(bounds), tuple(_counts(planned, rows))


def _counts(planned: PlannedSelect, rows: Mapping[RowsTerm, Sequence[Collection[int]]]) -> Iterator[Count]:
    """Yield windows of rows, for the streams of each join in which they count, where no larger one does."""
    for term, joins in rows.items():
        window = _window(planned, term)
        codes = (planned.physical.streams[term.stream].codes[key] for key in window.keys)
        keys = tuple(part for code in codes for part in code.expressions)
        most = {frozenset(each) for each in joins if not any({*each} < {*other} for other in joins)}
        for streams in sorted(map(sorted, most)):
            yield Count(term.stream, term.rows, window.condition, keys, tuple(streams), term.per)


def _window(planned: PlannedSelect, term: RowsTerm) -> CountedWindow:
    """Return a window of rows as the plan has it."""
    condition = "" if term.landmark is None else planned.bound.landmarks[term.landmark]
    return next(
        each
        for each in planned.physical.counted
        if (each.stream, each.rows, each.condition, each.per) == (term.stream, term.rows, condition, term.per)
    )


def _bounds(given: Windows) -> Iterator[Bound]:
    for first in range(given.size):
        for second in range(first + 1, given.size):
            most, back = given.between(first, second), given.between(second, first)
            if most is not None or back is not None:
                yield Bound(first, second, None if back is None else -back, most)
