"""Which streams WHERE lets no result have a row of."""

from collections.abc import Iterator

from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.tokens import scan
from wjoin.planner.bind.binding import BoundSelect
from wjoin.planner.conditions.conjuncts import Equality, Residual
from wjoin.planner.text.scope import StreamColumn


def lacked_streams(bound: BoundSelect) -> frozenset[int]:
    """Return the streams of which WHERE lets no result have a row: what no row of them lacks is to be NULL.

    That is its event time, or a column of a LEFT JOIN's equality.
    """
    tree = bound.tree.staged
    found = set()
    for each in bound.conjuncts:
        if not isinstance(each, Residual) or each.on is not None or len(each.columns) != 1:
            continue
        (column,) = each.columns
        stream, words = column.stream, [token.text.upper() for token in scan(each.text)]
        if stream not in tree.optional - tree.hidden or words[-2:] != ["IS", "NULL"] or len(words) > 5:
            continue
        time = bound.times[stream]
        if (time is not None and time.column.name == column.column.name) or column in _equal(bound, stream):
            found.add(stream)
    return frozenset(found)


def _equal(bound: BoundSelect, stream: int) -> Iterator[StreamColumn]:
    """Yield the columns of a stream that are equal to others wherever it has a row."""
    join = next((each for each in bound.tree.joins if each.right == (stream,)), None)
    for each in bound.conjuncts if join is not None and join.kind is JoinKind.LEFT else ():
        if isinstance(each, Equality) and each.on == stream:
            sides = (each.left, each.right)
            yield from (side.plain for side in sides if side.stream == stream and side.plain is not None)
