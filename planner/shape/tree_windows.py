"""The windows of a tree of joins: each join has those that it brings together, as if they stood in its ON.

A bound belongs to the join of the later one of its streams. Alternatives of one OR belong together, to the
last of their joins: what they say of streams that are there before is a condition on these. Those with
windows of rows belong to each later join as well that knows their streams: what it brings may be the latest.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations, product

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_tree import JoinTree, LaterJoin
from wjoin.grammar.plurals import listed
from wjoin.grammar.spans import Span
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.windows.bounds import Windows, hull
from wjoin.planner.windows.closure import Branch, Edge, RowsTerm, close, negative_cycle, without_included
from wjoin.planner.windows.window_graph import GivenWindows, WindowGraph, contradiction

Alternative = tuple[Edge | RowsTerm, ...]
"""What a result keeps of an OR: bounds, and windows of rows."""


@dataclass(frozen=True)
class TreeWindows:
    """A window condition over the streams ``names``, for a tree of joins."""

    given: GivenWindows
    names: tuple[str, ...]
    kind: TimeKind

    @property
    def conditions(self) -> list[frozenset[int]]:
        """The streams of each bound, and of all alternatives of each choice together."""
        return [*map(ends, self.given.bounds), *map(named_in, self.given.choices)]

    @cached_property
    def held(self) -> frozenset[frozenset[int]]:
        """The streams whose times all bounds together hold near each other, in pairs."""
        size = len(self.names)
        if negative_cycle(self.given.bounds, size):
            return frozenset(map(ends, self.given.bounds))
        windows = close(self.given.bounds, size).windows
        bounded = (
            pair
            for pair in combinations(range(size), 2)
            if windows.between(*pair) is not None and windows.between(*pair[::-1]) is not None
        )
        return frozenset(map(frozenset, bounded))

    @property
    def choices(self) -> list[list[frozenset[int]]]:
        """The streams of each alternative of each choice."""
        return [[named_in([each]) for each in choice] for choice in self.given.choices]

    @property
    def counted(self) -> frozenset[int]:
        """The streams of its windows of rows outside of choices."""
        return frozenset(each.stream for each in self.given.counted)

    @property
    def counted_choices(self) -> list[list[frozenset[int]]]:
        """The streams of each alternative of those choices that have windows of rows."""
        choices = (choice for choice in self.given.choices if any(map(rows_in, choice)))
        return [[named_in([each]) for each in choice] for choice in choices]

    def of_join(self, tree: JoinTree, number: int) -> list[Alternative]:
        """Return the alternatives of a join, each with what all of them have. Raises WJ107."""
        bounds = [each for each in self.given.bounds if _belongs(ends(each), tree, number)]
        choices = [each for each in self.given.choices if self._is_of(each, tree, number)]
        for alternative in chain(*choices):
            self._refuse_missing(tree, number, alternative)
        return [tuple(chain(bounds, *chosen)) for chosen in product(*choices)]

    def _is_of(self, choice: Sequence[Alternative], tree: JoinTree, number: int) -> bool:
        """Return whether a join keeps one of the alternatives of a choice."""
        named = named_in(choice)
        if _belongs(named, tree, number):
            return True
        later = number > tree.meeting(named) and number >= 0 and tree.joins[number].item not in tree.static
        return later and any(map(rows_in, choice)) and named <= {*tree.known(number)}

    def _refuse_missing(self, tree: JoinTree, number: int, alternative: Alternative) -> None:
        """Raise WJ107 for an alternative about a stream that need not be there where the others hold.

        Where ON, or all alternatives, name a stream of each side, rows are found by the times of these.
        """
        if number < 0:
            return
        join = tree.joins[number]
        asked = tree.there(join.asked, number)[0]
        loose = (named_in([alternative]) & tree.missing(number)) - asked
        if loose and not all(map(asked.intersection, join.sides)):
            name, own = self.names[min(loose)], self.names[join.item]
            message = (
                f"of the windows joined by OR at the join with {own} one asks for {name}, "
                "which need not have a row there, and another does not"
            )
            remedy = f"compare {own} with a stream before it in ON, or name {name} in each of these windows"
            raise WJoinError("WJ107", message, span=alternative[0].span, help=remedy)

    def refuse_lost(self, tree: JoinTree) -> None:
        """Raise WJ107 for a choice that no join can make: its streams are never together."""
        for choice in self.given.choices:
            named = named_in(choice)
            if not named <= {*tree.known(tree.meeting(named))}:
                names = listed([self.names[each] for each in sorted(named)])
                message = f"windows with OR name {names}, which no join brings together"
                remedy = "name only streams whose columns are still there"
                raise WJoinError("WJ107", message, span=choice[0][0].span, help=remedy)

    def resolved(self, tree: JoinTree) -> tuple[JoinTree, WindowGraph]:
        """Return the tree with those joins marked in which nothing can match, and the windows of each join.

        Raises WJ302 where so nothing would be a result.
        """
        size, left_out = len(self.names), 0
        found: list[tuple[Branch, ...]] = []
        joins = list(tree.joins)
        for number in range(tree.first, len(joins)):
            alternatives = self.of_join(tree, number)
            before = [self._before(tree, number, each, found) for each in alternatives]
            cycles = [
                negative_cycle((*known, *edges_in(own)), size)
                for known, own in zip(before, alternatives, strict=True)
            ]
            possible = [own for own, cycle in zip(alternatives, cycles, strict=True) if not cycle]
            left_out += len(alternatives) - len(possible) if possible else 0
            if not possible and (number < 0 or not joins[number].kind.alone):
                raise contradiction(cycles[0], self.names, self.kind)
            if not possible and joins[number].item not in tree.static:
                # Nothing is looked for, so that nothing waits.
                joins[number] = replace(joins[number], empty=True)
                (item, other, span) = _link(alternatives[0], joins[number])
                possible = [(Edge(item, other, 0, span), Edge(other, item, 0, span))]
            found.append(without_included([as_given(each, size) for each in possible or alternatives]))
        tree = replace(tree, joins=tuple(joins))
        of_joins = tuple(tuple(each.given for each in own) for own in found)
        rows = tuple(tuple(each.counted for each in own) for own in found)
        if size == 2:
            return tree, self._of_two(found[-1], left_out)
        given = together(of_joins)
        branch = Branch(given, given, ((),), self.given.counted)
        return tree, WindowGraph(self.names, self.kind, (branch,), given, left_out, of_joins, rows)

    def _of_two(self, alternatives: Sequence[Branch], left_out: int) -> WindowGraph:
        """Return the windows of a join of two streams."""
        branches = [
            replace(closed(tuple(_edges(each.given)), 2), counted=(*self.given.counted, *each.counted))
            for each in alternatives
        ]
        kept = without_included(branches)
        return WindowGraph(self.names, self.kind, kept, hull([each.windows for each in kept]), left_out)

    def _before(
        self, tree: JoinTree, number: int, own: Alternative, found: Sequence[Sequence[Branch]]
    ) -> Iterator[Edge]:
        """Yield the bounds that what meets in a join keeps already."""
        if number < 0:
            return
        streams, matched = tree.there(tree.joins[number].asked | named_in([own]), number)
        for each in sorted(matched):
            for edge in bounds_between(hull([branch.given for branch in found[each - tree.first]]), streams):
                yield replace(edge, span=self._spans.get(_key(edge), edge.span))

    @cached_property
    def _spans(self) -> dict[tuple[int, int, int], Span]:
        """Where bounds are written."""
        written = chain(self.given.bounds, *map(edges_in, chain(*self.given.choices)))
        return {_key(each): each.span for each in written}


def together(joins: Sequence[Sequence[Windows]]) -> Windows:
    """Return the windows that results of all joins keep, as they are written; of each join the hull."""
    hulls = [hull(own) for own in joins]
    numbers = range(hulls[0].size)
    return Windows.of([[_tightest([each.between(i, j) for each in hulls]) for j in numbers] for i in numbers])


def bounds_between(windows: Windows, streams: Collection[int]) -> Iterator[Edge]:
    """Yield the bounds of windows between some streams."""
    return (each for each in _edges(windows) if ends(each) <= set(streams))


def _edges(windows: Windows) -> Iterator[Edge]:
    for first, second in combinations(range(windows.size), 2):
        for source, target in ((first, second), (second, first)):
            bound = windows.between(source, target)
            if bound is not None:
                yield Edge(source, target, bound, Span(0, 0))


def _key(edge: Edge) -> tuple[int, int, int]:
    return edge.source, edge.target, edge.bound


def ends(edge: Edge) -> frozenset[int]:
    """Return the streams of a bound."""
    return frozenset((edge.source, edge.target))


def named_in(alternatives: Sequence[Alternative]) -> frozenset[int]:
    """Return the streams of all bounds of some alternatives."""
    edges = (ends(edge) for each in alternatives for edge in edges_in(each))
    counted = (each.stream for alternative in alternatives for each in rows_in(alternative))
    return frozenset(counted).union(*edges)


def edges_in(terms: Alternative) -> tuple[Edge, ...]:
    """Return the bounds of an alternative."""
    return tuple(each for each in terms if isinstance(each, Edge))


def rows_in(terms: Alternative) -> tuple[RowsTerm, ...]:
    """Return the windows of rows of an alternative."""
    return tuple(dict.fromkeys(each for each in terms if isinstance(each, RowsTerm)))


def _belongs(streams: frozenset[int], tree: JoinTree, number: int) -> bool:
    """Return whether bounds on some streams are those of a join."""
    return tree.meeting(streams) == number and streams <= {*tree.known(number)}


def as_given(terms: Alternative, size: int) -> Branch:
    """Return bounds as they are written."""
    edges = edges_in(terms)
    given = Windows.of(
        [
            _tightest([0 if i == j else None, *(e.bound for e in edges if (e.source, e.target) == (i, j))])
            for j in range(size)
        ]
        for i in range(size)
    )
    return Branch(given, given, (), rows_in(terms))


def closed(edges: tuple[Edge, ...], size: int) -> Branch:
    """Return the closure of bounds; of those that no rows together can keep the bounds themselves."""
    if not negative_cycle(edges, size):
        return close(edges, size)
    given = as_given(edges, size).given
    paths = [[(i, j) if given.between(i, j) is not None else () for j in range(size)] for i in range(size)]
    return Branch(given, given, tuple(map(tuple, paths)))


def _tightest(bounds: Sequence[int | None]) -> int | None:
    return min((each for each in bounds if each is not None), default=None)


def _link(terms: Alternative, join: LaterJoin) -> tuple[int, int, Span]:
    """Return two streams of the sides of a join that a bound links, and where that stands."""
    own = next((each for each in edges_in(terms) if join.crossed_by(ends(each))), None)
    return (join.left[0], join.item, terms[0].span) if own is None else (own.source, own.target, own.span)
