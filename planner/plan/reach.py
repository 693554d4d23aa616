"""How far from a tuple others are looked for, by the bounds of the plan (W-join 2002, 5.1)."""

from collections.abc import Collection
from dataclasses import dataclass

from wjoin.planner.plan.stage_kinds import Bounds
from wjoin.planner.windows.bounds import Windows


@dataclass(frozen=True)
class Reach:
    """Distances in time, in the plan's unit.

    A tuple is kept as long as its ``ahead`` asks. ``own`` is how far a tuple of each stream looks both ways,
    empty where it looks as far as the windows allow.
    """

    windows: Windows
    own: tuple[int | None, ...]

    def ahead(self, stream: int, other: int) -> int | None:
        """Return how much later than a tuple of ``stream`` one of ``other`` may be, None for any."""
        return self.own[stream] if self.own else self.windows.between(stream, other)

    def back(self, stream: int, other: int) -> int | None:
        """Return how much earlier than a tuple of ``stream`` one of ``other`` may be, None for any."""
        return self.own[stream] if self.own else self.windows.between(other, stream)


def reach(bounds: Bounds, windows: Windows, streams: Collection[int]) -> Reach:
    """Return the reach of the tuples of ``streams`` under closed windows.

    EXACT: what these allow. GCA: the widest window of all, both ways. LCA: the widest
    window of the tuple's own stream, both ways. The last two find more than the windows allow.
    """
    numbers = range(windows.size)
    if bounds is Bounds.EXACT:
        return Reach(windows, ())
    if bounds is Bounds.GCA:
        return Reach(windows, (_widest(windows, streams, streams),) * windows.size)
    return Reach(windows, tuple(_widest(windows, [stream], streams) for stream in numbers))


def _widest(windows: Windows, streams: Collection[int], others: Collection[int]) -> int | None:
    """Return the greatest distance that windows allow between one of ``streams`` and one of ``others``."""
    apart = [(i, j) for i in streams for j in others if i != j]
    return windows.widest([*apart, *((j, i) for i, j in apart)])
