"""Static relations beside streams: in which order they are joined to the result, and on what."""

from collections.abc import Collection, Sequence

from wjoin.planner.conditions.conjuncts import ColumnComparison
from wjoin.planner.plan.physical import StaticJoin
from wjoin.planner.shape.join_keys import EqualityClass, KeyPart
from wjoin.planner.text.scope import StreamColumn

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
        columns += [column for each in ready for column in (each.left, each.right)]
        equalities = tuple(f"{known.text} = {own.text}" for known, own in links)
        join = StaticJoin(stream, equalities, tuple(each.text for each in ready))
        found.append((join, tuple(columns)))
    return tuple(found)


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
