"""How far from a tuple others are looked for, by the bounds of the plan (W-join 2002, 5.1)."""

from collections.abc import Collection
from dataclasses import dataclass

from wjoin.planner.plan.physical import Bounds, UpperBounds


@dataclass(frozen=True)
class Reach:
    """Distances in time, in the plan's unit; None where there is no limit.

    ``ahead[i][j]``: how much later than a tuple of stream i those of j may be to be compared
    with it; ``back[i][j]``: how much earlier. A tuple is kept as long as its ``ahead`` asks.
    """

    ahead: UpperBounds
    back: UpperBounds


def reach(bounds: Bounds, upper: UpperBounds, streams: Collection[int]) -> Reach:
    """Return the reach of the tuples of ``streams`` under the closed window graph ``upper``.

    EXACT: what the graph allows. GCA: the widest window of all, both ways. LCA: the widest
    window of the tuple's own stream, both ways. The last two find more than the graph allows.
    """
    size = len(upper)
    if bounds is Bounds.EXACT:
        back = tuple(tuple(upper[other][stream] for other in range(size)) for stream in range(size))
        return Reach(upper, back)
    own = [_widest(upper, [stream], streams) for stream in range(size)]
    if bounds is Bounds.GCA:
        own = [_widest(upper, streams, streams)] * size
    both = tuple((window,) * size for window in own)
    return Reach(both, both)


def _widest(upper: UpperBounds, streams: Collection[int], others: Collection[int]) -> int | None:
    """Return the greatest distance that the graph allows between one of ``streams`` and one of ``others``."""
    pairs = [(upper[i][j], upper[j][i]) for i in streams for j in others if i != j]
    distances = [bound for pair in pairs for bound in pair]
    if any(bound is None for bound in distances):
        return None
    return max((bound for bound in distances if bound is not None), default=0)
