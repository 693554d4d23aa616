"""The joins of a FROM list that are not all inner ones, in their order.

First come the streams that inner joins link, then one join after the other, each of one more item; at last
those of static relations.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from wjoin.grammar.join_kinds import JoinKind, Nearest


@dataclass(frozen=True)
class Link:
    """A condition on ``streams``, or a ``window``; where one of those ``needed`` has no row it is not true.

    ``on``: the item in whose ON it stands, None elsewhere.
    """

    streams: frozenset[int]
    needed: frozenset[int]
    on: int | None = None
    window: bool = False

    def belongs_to(self, item: int) -> bool:
        """Return whether the join of an item is to decide it, as far as its streams are there."""
        return item in self.streams if self.on is None else self.on == item

    def links(self, item: int) -> bool:
        """Return whether it belongs to the join of an item, and compares that with others."""
        return self.belongs_to(item) and item in self.streams and len(self.streams) > 1


@dataclass(frozen=True)
class LaterJoin:
    """A join of what is there, which has the columns of the items ``left``, with one more ``item``.

    ``asked`` are the streams that its conditions need, windows too: where one has no row, nothing meets.
    ``nearest``: which row of the item an ASOF JOIN takes, by the times of the stream ``timed_by`` before it;
    None where it names none. ``empty``: its windows are such that nothing can match.
    """

    kind: JoinKind
    left: tuple[int, ...]
    item: int
    asked: frozenset[int] = frozenset()
    nearest: Nearest | None = None
    timed_by: int | None = None
    empty: bool = False


@dataclass(frozen=True)
class JoinTree:
    """The streams ``base``, which inner joins link, and the ``joins`` after them, in order.

    Without joins after them all is one inner join. Those of the relations ``static`` come last.
    """

    base: tuple[int, ...]
    joins: tuple[LaterJoin, ...] = ()
    static: frozenset[int] = frozenset()

    @property
    def staged(self) -> "JoinTree":
        """The joins without those of static relations."""
        return JoinTree(self.base, tuple(each for each in self.joins if each.item not in self.static))

    @property
    def kind(self) -> JoinKind:
        """The kind of the first join that is not an inner one, INNER where all are."""
        return next((each.kind for each in self.joins if each.kind is not JoinKind.INNER), JoinKind.INNER)

    @property
    def asof(self) -> bool:
        """Whether one of its joins is an ASOF JOIN, which Spark does not have."""
        return any(each.kind.asof for each in self.joins)

    @property
    def hidden(self) -> frozenset[int]:
        """The streams of which no result has a column."""
        return frozenset(each.item for each in self.joins if each.kind.one_sided)

    @property
    def optional(self) -> frozenset[int]:
        """The streams of which a result need not have a row."""
        return self.missing(len(self.joins))

    def missing(self, number: int) -> frozenset[int]:
        """Return the streams of which what the first joins make, so many, need not have a row."""
        found: set[int] = set()
        for each in self.joins[:number]:
            sides = (each.left, (each.item,))
            found.update(stream for side in each.kind.optional for stream in sides[side])
        return frozenset(found)

    def there(self, streams: Collection[int], number: int) -> tuple[frozenset[int], frozenset[int]]:
        """Return the streams that have a row where some have one, and the joins that have then matched.

        Of what the first joins make, so many; -1 stands for the inner joins of the base.
        """
        found = set(streams)
        matched: set[int] = set()
        before = None
        while before != (found, matched):
            before = set(found), set(matched)
            if not found.isdisjoint(self.base):
                found.update(self.base)
                matched.add(-1)
            for place, each in enumerate(self.joins[:number]):
                if each.kind.matches(not found.isdisjoint(each.left), each.item in found):
                    found |= each.asked
                    matched.add(place)
        return frozenset(found), frozenset(matched)

    def place(self, stream: int) -> int:
        """Return the number of the join that brings a stream, -1 where it is one of the base."""
        return next((n for n, each in enumerate(self.joins) if each.item == stream), -1)

    def kind_of(self, item: int) -> JoinKind:
        """Return the kind of the join that brings an item, INNER for one of the base."""
        place = self.place(item)
        return JoinKind.INNER if place < 0 else self.joins[place].kind

    def join_of(self, streams: Collection[int], on: int | None) -> int:
        """Return the number of the join that a condition on streams belongs to, -1 for that of the base.

        ``on``: the item in whose ON it stands, None where it stands in WHERE.
        """
        asked = streams if on is None else (on, *self.static.intersection(streams))
        return max(map(self.place, asked), default=-1)

    def decides(self, streams: Collection[int]) -> bool:
        """Return whether a join decides a condition of WHERE on streams; others are tested after all joins.

        Those are on streams of which a result need not have a row, but for what an inner join of a static
        relation asks: no join after it makes rows anew.
        """
        if self.optional.isdisjoint(streams):
            return True
        last = self.joins[max(map(self.place, streams))]
        return len(streams) > 1 and last.kind is JoinKind.INNER and last.item in self.static


def join_tree(
    kinds: Sequence[JoinKind], absent: Collection[int] = (), static: Collection[int] = ()
) -> JoinTree:
    """Return the joins as they are written; ``kinds`` are those of the items of FROM, by their numbers.

    Of the items ``absent`` no row is to be there, once all others are joined. Where not all are inner joins,
    the items ``static`` are joined after the others.
    """
    apart = frozenset() if not absent and {*kinds} <= {JoinKind.INNER} else frozenset(static)
    items = [number for number in range(len(kinds)) if number not in absent and number not in apart]
    later = (place for place, number in enumerate(items) if place and kinds[number] is not JoinKind.INNER)
    first = next(later, len(items))
    made = [(kinds[item], item) for item in items[first:]]
    made += [(JoinKind.ANTI, item) for item in sorted(absent) if item not in apart]
    made += [(kinds[item], item) for item in sorted(apart) if item not in absent]
    made += [(JoinKind.ANTI, item) for item in sorted(absent) if item in apart]
    base = tuple(items[:first])
    return JoinTree(base, tuple(_one_after_another(base, made)), apart)


def _one_after_another(base: tuple[int, ...], made: Sequence[tuple[JoinKind, int]]) -> Iterator[LaterJoin]:
    left = base
    for kind, item in made:
        yield LaterJoin(kind, left, item)
        left = left if kind.one_sided else (*left, item)


def arranged(tree: JoinTree, links: Collection[Link], counted: Collection[int] = ()) -> JoinTree:
    """Return the same joins with what they ask, inner ones first where that makes no difference.

    An inner join can come before a LEFT, SEMI or ANTI JOIN whose item it does not know. Windows of rows of
    the items ``counted`` belong to each join of what has one; that of such an item itself knows all rows that
    are there before it.
    """
    streaming = (each for each in tree.joins if each.item not in tree.static)
    of_rows = (
        frozenset({stream, each.item}) for each in streaming for stream in counted if stream in each.left
    )
    links = [*links, *(Link(pair, pair) for pair in of_rows)]
    base, joins = list(tree.base), list(tree.staged.joins)
    for each in tree.staged.joins:
        if each.kind is not JoinKind.INNER:
            if each.kind in (JoinKind.RIGHT, JoinKind.FULL):
                break
            continue
        known = {*each.left, each.item}
        if each.item in counted and not {*each.left} <= {*base}:
            continue
        own = (link.streams for link in links if link.belongs_to(each.item))
        if all(found <= {*base, each.item} for found in own if found <= known):
            base.append(each.item)
            joins.remove(each)
    joins += _linked_first(tree, [link.streams for link in links if len(link.streams) > 1])
    left = tuple(base)
    moved: list[LaterJoin] = []
    for each in joins:
        known = {*left, each.item}
        linked = [link for link in links if link.links(each.item) and link.streams <= known]
        asked = frozenset().union(*(link.needed for link in linked))
        by = each.timed_by
        if each.nearest is not None and by is None:
            # What a window links it with, or else comes first.
            pairs = [link for link in linked if len(link.streams) == 2]
            windows = [link for link in pairs if link.window]
            by = min((min(link.streams - {each.item}) for link in windows or pairs), default=left[0])
        moved.append(replace(each, left=left, asked=asked, timed_by=by))
        left = left if each.kind.one_sided else (*left, each.item)
    return JoinTree(tuple(base), tuple(moved), tree.static)


def _linked_first(tree: JoinTree, conditions: Collection[frozenset[int]]) -> Iterator[LaterJoin]:
    """Yield the joins of static relations; of inner ones in a row first what conditions link."""
    waiting = [each for each in tree.joins if each.item in tree.static]
    joined = {*tree.base, *(each.item for each in tree.staged.joins)}
    while waiting:
        inner = list(takewhile(lambda each: each.kind is JoinKind.INNER, waiting)) or waiting[:1]
        linked = (each for each in inner for found in conditions if found - joined == {each.item})
        taken = next(linked, inner[0])
        waiting.remove(taken)
        joined.add(taken.item)
        yield taken
