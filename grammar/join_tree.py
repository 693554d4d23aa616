"""The joins of a FROM list that are not all inner ones, as a tree.

Streams that inner joins link are one part, and are joined together. Each other join is one of two sides: each
side is a part, or what joins before have made. The joins of static relations come last.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from wjoin.grammar.join_kinds import JoinKind, Nearest

BASE = -1
"""The number of the part that comes first; the others have the numbers below it."""


@dataclass(frozen=True)
class Link:
    """A condition on ``streams``, or a ``window``; where one of those ``needed`` has no row it is not true.

    ``on``: the item in whose ON it stands, None elsewhere. ``called``: a predicate, for which all its rows
    must be there, also those of one side.
    """

    streams: frozenset[int]
    needed: frozenset[int]
    on: int | None = None
    window: bool = False
    called: bool = False

    def belongs_to(self, join: "LaterJoin") -> bool:
        """Return whether a join is to decide it, as far as its streams are there."""
        if self.on is not None:
            return self.on == join.on
        return not self.streams.isdisjoint(join.right) and not self.streams <= set(join.right)

    def links(self, join: "LaterJoin") -> bool:
        """Return whether it belongs to a join, and compares its sides."""
        return self.belongs_to(join) and (self.called or join.crossed_by(self.streams))


@dataclass(frozen=True)
class LaterJoin:
    """A join of what has the columns of the items ``left`` with what has those of the items ``right``.

    Its conditions stand in the ON of item ``on``. ``asked`` are the streams that these need, windows too:
    where one has no row, nothing meets. ``nearest``: which row of the right side an ASOF JOIN takes, by the
    times of the stream ``timed_by`` on the left and ``timed_to`` on the right; None where none is named.
    ``empty``: its windows are such that nothing can match.
    """

    kind: JoinKind
    left: tuple[int, ...]
    right: tuple[int, ...]
    on: int
    asked: frozenset[int] = frozenset()
    nearest: Nearest | None = None
    timed_by: int | None = None
    timed_to: int | None = None
    empty: bool = False

    @property
    def item(self) -> int:
        """The first item of its right side."""
        return self.right[0]

    @property
    def sides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The items of both sides."""
        return self.left, self.right

    @property
    def shown(self) -> tuple[int, ...]:
        """The items of which its results have columns."""
        return self.left if self.kind.one_sided else (*self.left, *self.right)

    def crossed_by(self, streams: Collection[int]) -> bool:
        """Return whether it brings some streams together."""
        both = all(not {*streams}.isdisjoint(side) for side in self.sides)
        return both and {*streams} <= {*self.left, *self.right}

    def tells(self, side: int) -> bool:
        """Return whether it must know which rows a side has: what has no partner there, or the nearest."""
        return 1 - side in self.kind.preserved or (side == 1 and self.kind.asof)


@dataclass(frozen=True)
class JoinTree:
    """The streams ``base``, which inner joins link, further such ``parts``, and the ``joins``, in order.

    Without joins all is one inner join. Those of the relations ``static`` come last. A part has a number
    below zero: ``BASE``, and below it those of ``parts`` in their order. ``counted``: whether windows of rows
    say which rows are partners.
    """

    base: tuple[int, ...]
    joins: tuple[LaterJoin, ...] = ()
    static: frozenset[int] = frozenset()
    parts: tuple[tuple[int, ...], ...] = ()
    counted: bool = False

    @property
    def staged(self) -> "JoinTree":
        """The joins without those of static relations."""
        return replace(self, joins=tuple(each for each in self.joins if each.item not in self.static))

    @property
    def first(self) -> int:
        """The least number of a part."""
        return BASE - len(self.parts)

    def part(self, number: int) -> tuple[int, ...]:
        """Return the streams of the part with a number."""
        return self.base if number == BASE else self.parts[BASE - 1 - number]

    def known(self, number: int) -> tuple[int, ...]:
        """Return the streams whose rows a join or a part brings together."""
        return self.part(number) if number < 0 else (*self.joins[number].left, *self.joins[number].right)

    @property
    def kind(self) -> JoinKind:
        """The kind of the first join that is not an inner one, INNER where all are."""
        return next((each.kind for each in self.joins if each.kind is not JoinKind.INNER), JoinKind.INNER)

    @property
    def asof(self) -> bool:
        """Whether one of its joins is an ASOF JOIN, which Spark does not have."""
        return any(each.kind.asof for each in self.joins)

    @property
    def ours(self) -> bool:
        """Whether Spark's joins cannot do them, whatever is joined: an ASOF JOIN, or windows of rows."""
        return self.asof or (self.counted and bool(self.joins))

    @property
    def hidden(self) -> frozenset[int]:
        """The streams of which no result has a column."""
        joins = (each.right for each in self.joins if each.kind.one_sided)
        return frozenset(stream for right in joins for stream in right)

    @property
    def optional(self) -> frozenset[int]:
        """The streams of which a result need not have a row."""
        return self.missing(len(self.joins))

    def missing(self, number: int) -> frozenset[int]:
        """Return the streams of which what the first joins make, so many, need not have a row."""
        found: set[int] = set()
        for each in self.joins[:number]:
            found.update(stream for side in each.kind.optional for stream in each.sides[side])
        return frozenset(found)

    def there(self, streams: Collection[int], number: int) -> tuple[frozenset[int], frozenset[int]]:
        """Return the streams that have a row where some have one, and what has then matched.

        Of what the first joins make, so many; parts and joins are told by their numbers.
        """
        found = set(streams)
        matched: set[int] = set()
        before = None
        while before != (found, matched):
            before = set(found), set(matched)
            for place in range(self.first, 0):
                if not found.isdisjoint(self.part(place)):
                    found.update(self.part(place))
                    matched.add(place)
            for place, each in enumerate(self.joins[:number]):
                left, right = (not found.isdisjoint(side) for side in each.sides)
                if (left or right) and each.kind.matches(left, right):
                    found |= each.asked
                    matched.add(place)
        return frozenset(found), frozenset(matched)

    def meeting(self, streams: Collection[int]) -> int:
        """Return the number of the part or join that first brings some streams together."""
        numbers = range(self.first, len(self.joins))
        whole = (number for number in numbers if {*streams} <= {*self.known(number)})
        return next(whole, len(self.joins) - 1) if streams else BASE

    def place(self, stream: int) -> int:
        """Return the number of the part or join that a stream comes to."""
        return self.meeting((stream,))

    def number_of(self, on: int) -> int:
        """Return the number of the join whose conditions stand in the ON of an item, or of the part."""
        return next((n for n, each in enumerate(self.joins) if each.on == on), min(self.place(on), BASE))

    def kind_of(self, item: int) -> JoinKind:
        """Return the kind of the join whose conditions stand in the ON of an item."""
        place = self.number_of(item)
        return JoinKind.INNER if place < 0 else self.joins[place].kind

    def join_of(self, streams: Collection[int], on: int | None) -> int:
        """Return the number of the join or part that a condition on streams belongs to.

        ``on``: the item in whose ON it stands, None where it stands in WHERE.
        """
        if on is None:
            return self.meeting(streams)
        return max(self.number_of(on), *map(self.place, self.static.intersection(streams)), self.first)

    def brings(self, pair: Collection[int], on: int | None) -> bool:
        """Return whether a condition on the times of two streams is a window of the join that brings them.

        One of ON is where that join has it, one of WHERE where no result is without either stream.
        """
        if not self.static.isdisjoint(pair):
            return False
        if on is None:
            return self.optional.isdisjoint(pair)
        return max(map(self.place, pair)) == self.place(on)

    def decides(self, streams: Collection[int]) -> bool:
        """Return whether a join decides a condition of WHERE on streams; others are tested after all joins.

        Those are on streams of which a result need not have a row, but for what an inner join of a static
        relation asks: no join after it makes rows anew.
        """
        if self.optional.isdisjoint(streams):
            return True
        number = self.meeting(streams)
        last = self.joins[number] if number >= 0 else None
        return (
            last is not None and len(streams) > 1 and last.kind is JoinKind.INNER and last.on in self.static
        )

    def above(self, number: int) -> Iterator[tuple[LaterJoin, int]]:
        """Yield the joins that what a join or part makes comes to, one after the other, and on which side."""
        own = {*(self.part(number) if number < 0 else self.joins[number].shown)}
        for each in self.joins[max(0, number + 1) :]:
            for side, streams in enumerate(each.sides):
                if own <= {*streams}:
                    yield each, side

    def is_told(self, number: int) -> bool:
        """Return whether a later join must know what a join or part makes, to tell what has no partner."""
        return any(join.tells(side) for join, side in self.above(number))


# Written joins ---------------------------------------------------------------


@dataclass
class _Joined:
    """The items ``base``, which inner joins link, and the joins after them, in order."""

    base: list[int]
    joins: list["_Later"] = field(default_factory=list)


@dataclass(frozen=True)
class _Later:
    kind: JoinKind
    on: int
    right: _Joined
    said: LaterJoin | None = None
    """What is known of it already."""


def join_tree(
    kinds: Sequence[JoinKind],
    absent: Collection[int] = (),
    static: Collection[int] = (),
    sizes: Sequence[int] = (),
) -> JoinTree:
    """Return the joins as they are written; ``kinds`` are those of the items of FROM, by their numbers.

    ``sizes``: how many items the right side of each join has that begins with an item, by their numbers; one
    where nothing is said. Of the items ``absent`` no row is to be there, once all others are joined. Where
    not all are inner joins, the items ``static`` are joined after the others.
    """
    apart = frozenset() if not absent and {*kinds} <= {JoinKind.INNER} else frozenset(static)
    whole = _written(kinds, sizes or [1] * len(kinds), 0, len(kinds))
    _take_out(whole, {*absent, *apart})
    if not whole.base:
        # What a refused statement begins with: a table.
        first = whole.joins.pop(0).right if whole.joins else _Joined([0])
        whole = _Joined(first.base, [*first.joins, *whole.joins])
    made = [(JoinKind.ANTI, item) for item in sorted(absent) if item not in apart]
    made += [(kinds[item], item) for item in sorted(apart) if item not in absent]
    made += [(JoinKind.ANTI, item) for item in sorted(absent) if item in apart]
    whole.joins += [_Later(kind, item, _Joined([item])) for kind, item in made]
    return _flat(whole, apart)


def _written(kinds: Sequence[JoinKind], sizes: Sequence[int], start: int, stop: int) -> _Joined:
    """Return the joins of some items that follow each other."""
    found, place = _Joined([start]), start + 1
    while place < stop:
        right = _written(kinds, sizes, place, place + sizes[place])
        inner = kinds[place] is JoinKind.INNER
        if inner and not right.joins and not found.joins:
            found.base += right.base
        elif inner and right.joins and not found.joins:
            # The sides of an inner join may change places.
            found = _Joined(right.base, [*right.joins, _Later(JoinKind.INNER, place, found)])
        else:
            found.joins.append(_Later(kinds[place], place, right))
        place += sizes[place]
    return found


def _take_out(joined: _Joined, items: Collection[int]) -> None:
    """Leave items out that are joined last."""
    joined.base = [each for each in joined.base if each not in items]
    for each in joined.joins:
        _take_out(each.right, items)
    for place, each in reversed([*enumerate(joined.joins)]):
        if not each.right.base:
            joined.joins[place : place + 1] = each.right.joins


def _flat(whole: _Joined, static: frozenset[int], links: Collection[Link] | None = None) -> JoinTree:
    """Return joins one after the other, each after those of its sides; with ``links`` with what they ask."""
    joins: list[LaterJoin] = []
    parts: list[tuple[int, ...]] = []

    def add(joined: _Joined) -> tuple[int, ...]:
        left = tuple(joined.base)
        if joined is not whole and len(left) > 1:
            parts.append(left)
        for each in joined.joins:
            right = add(each.right)
            made = replace(each.said or LaterJoin(each.kind, left, right, each.on), left=left, right=right)
            joins.append(made if links is None else _asking(made, links))
            left = made.shown
        return left

    add(whole)
    return JoinTree(tuple(whole.base), tuple(joins), static, tuple(parts))


def _asking(join: LaterJoin, links: Collection[Link]) -> LaterJoin:
    """Return a join with the streams that its conditions need."""
    linked = [link for link in links if link.links(join)]
    asked = frozenset().union(*(link.needed for link in linked))
    if join.nearest is None or join.timed_by is not None:
        return replace(join, asked=asked)
    # What a window links it with, or else comes first.
    pairs = [link for link in linked if len(link.streams) == 2]
    chosen = min((sorted(each.streams) for each in pairs if each.window), default=None) or min(
        (sorted(each.streams) for each in pairs), default=[join.left[0], join.item]
    )
    by, to = (next(each for each in chosen if each in side) for side in join.sides)
    return replace(join, asked=asked, timed_by=by, timed_to=to)


# Arranged joins --------------------------------------------------------------


def arranged(
    tree: JoinTree,
    links: Collection[Link],
    counted: Collection[tuple[frozenset[int], frozenset[int]]] = (),
    *,
    stays: bool = False,
) -> JoinTree:
    """Return the same joins with what they ask, inner ones first where that makes no difference.

    An inner join can come before a LEFT, SEMI or ANTI JOIN whose item it does not know, where none ``stays``
    in its place. ``counted``: the items of windows of rows and of choices with such, and those without which
    none is true. They belong to each join of what has the first; that of such an item itself knows all rows
    that are there before it.
    """
    links = [*links, *(link for each in tree.staged.joins for link in _of_rows(each, counted))]
    whole = _nested(tree)
    for each in () if stays else _all(whole):
        _inner_first(each, links, frozenset().union(*(streams for streams, _ in counted)))
    last = _linked_first(tree, [link.streams for link in links if len(link.streams) > 1])
    whole.joins += [_Later(each.kind, each.on, _Joined([each.item]), each) for each in last]
    return _flat(whole, tree.static, links)


def _of_rows(join: LaterJoin, counted: Collection[tuple[frozenset[int], frozenset[int]]]) -> Iterator[Link]:
    """Yield what a join asks for where it is inside windows of rows; ``counted`` as above."""
    own = frozenset({join.item})
    for streams, needed in counted:
        if streams <= {*join.left}:
            yield Link(streams | own, needed | own if len(join.right) == 1 else needed)
        elif streams <= {*join.right} and len(join.right) > 1:
            yield Link(streams | {join.left[0]}, needed)


def _nested(tree: JoinTree) -> _Joined:
    """Return the joins of streams as they are nested."""
    bases = [tree.base, *tree.parts]
    found = {base[0]: _Joined([*base]) for base in bases}
    for each in tree.staged.joins:
        right = found.setdefault(each.right[0], _Joined([each.right[0]]))
        left = found.setdefault(each.left[0], _Joined([each.left[0]]))
        left.joins.append(_Later(each.kind, each.on, right, each))
    return found[tree.base[0]]


def _all(joined: _Joined) -> Iterable[_Joined]:
    yield joined
    for each in joined.joins:
        yield from _all(each.right)


def _items(joined: _Joined) -> tuple[int, ...]:
    """Return the items of which some joins have columns."""
    shown = (_items(each.right) for each in joined.joins if not each.kind.one_sided)
    return tuple(item for items in (tuple(joined.base), *shown) for item in items)


def _inner_first(joined: _Joined, links: Sequence[Link], counted: Collection[int]) -> None:
    left = tuple(joined.base)
    for each in [*joined.joins]:
        right = _items(each.right)
        join = LaterJoin(each.kind, left, right, each.on)
        left = join.shown
        if each.kind in (JoinKind.RIGHT, JoinKind.FULL):
            break
        if each.kind is not JoinKind.INNER or each.right.joins:
            continue
        if not {*counted}.isdisjoint(right) and not {*join.left} <= {*joined.base}:
            continue
        own = (link.streams for link in links if link.belongs_to(join))
        if all(found <= {*joined.base, *right} for found in own if found <= {*left}):
            joined.base += right
            joined.joins.remove(each)


def _linked_first(tree: JoinTree, conditions: Collection[frozenset[int]]) -> Iterator[LaterJoin]:
    """Yield the joins of static relations; of inner ones in a row first what conditions link."""
    waiting = [each for each in tree.joins if each.item in tree.static]
    joined = {*tree.base, *(item for each in tree.staged.joins for side in each.sides for item in side)}
    while waiting:
        inner = list(takewhile(lambda each: each.kind is JoinKind.INNER, waiting)) or waiting[:1]
        linked = (each for each in inner for found in conditions if found - joined == {each.item})
        taken = next(linked, inner[0])
        waiting.remove(taken)
        joined.add(taken.item)
        yield taken
