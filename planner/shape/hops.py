"""Joins without a key in hops: partial results go from stage to stage, kept by none (PSP 2009, section 4.1).

A new row visits the slices of one other stream in each hop, in an order of its own; what it has met so far
goes with it. So each hop keeps rows of the streams that some new row meets there, and no others. Nothing can
go back to a hop before, so a stream that is met in two hops is kept in both: orders are picked that have few
of those.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from wjoin.parts.routes.registry import plainest
from wjoin.parts.routes.route import Placement
from wjoin.planner.plan.checks import Band, Kind
from wjoin.planner.plan.edges import with_columns
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.probes import completed
from wjoin.planner.plan.stage_kinds import Hop, Partial, PassedOn, Scanned, Stage, StageEdge

FEWEST_STREAMS = 3
"""Two streams meet in one stage."""

MOST_STREAMS = 9
"""Beyond, to look for orders takes too long."""

_MOST_BEGINS = 5
"""Streams up to which the search for orders begins with each of them once."""

Cell = tuple[int, int]
"""A hop and a stream that is met there."""


def hop_orders(streams: Sequence[int], links: Collection[Collection[int]]) -> dict[int, tuple[int, ...]]:
    """Return for each stream the others in the order in which its new rows meet them, one in each hop.

    Streams come next that a condition links with those met before, as far as there are such; ``links`` are
    the streams of each condition. Of orders that do that alike, those are taken by which the fewest streams
    are kept, each counted in every hop that keeps it.
    """
    found = [
        _settled((*streams[first:], *streams[:first]), links)
        for first in range(len(streams) if len(streams) <= _MOST_BEGINS else 1)
    ]
    best = min(found, key=lambda orders: len(_cells(orders.values())))
    return {stream: best[stream] for stream in streams}


def _settled(streams: Sequence[int], links: Collection[Collection[int]]) -> dict[int, tuple[int, ...]]:
    """Return orders none of which alone can be changed so that fewer streams are kept."""
    orders: dict[int, tuple[int, ...]] = {}
    while True:
        before = dict(orders)
        for origin in streams:
            others = _cells(order for stream, order in orders.items() if stream != origin)
            own = orders.get(origin)
            better = _best_order(origin, streams, links, others)
            if own is None or len(_cells([better]) - others) < len(_cells([own]) - others):
                orders[origin] = better
        if orders == before:
            return orders


def _cells(orders: Collection[tuple[int, ...]] | Iterator[tuple[int, ...]]) -> set[Cell]:
    return {(hop, stream) for order in orders for hop, stream in enumerate(order)}


def _best_order(
    origin: int, streams: Sequence[int], links: Collection[Collection[int]], kept: Collection[Cell]
) -> tuple[int, ...]:
    """Return the order for new rows of a stream that keeps the fewest streams which are not ``kept`` already.

    Of each set of streams that may have been met only the best way to it is followed.
    """
    ways: dict[frozenset[int], tuple[int, int, tuple[int, ...]]] = {frozenset([origin]): (0, 0, ())}
    for hop in range(len(streams) - 1):
        further: dict[frozenset[int], tuple[int, int, tuple[int, ...]]] = {}
        for met, (apart, more, order) in ways.items():
            for stream in sorted(set(streams) - met):
                way = (
                    apart + (not _linked(links, met, stream)),
                    more + ((hop, stream) not in kept),
                    (*order, stream),
                )
                reached = met | {stream}
                if reached not in further or way < further[reached]:
                    further[reached] = way
        ways = further
    ((_, _, order),) = ways.values()
    return order


def _linked(links: Collection[Collection[int]], met: Collection[int], stream: int) -> bool:
    """Return whether a condition can be checked once a stream joins those that were met."""
    return any(stream in link and set(link) - {stream} <= set(met) for link in links if len(set(link)) > 1)


def can_hop(plan: PhysicalPlan) -> bool:
    """Return whether a plan is one stage without a key, or an approximate one, over three streams or more.

    Over tables nothing is kept, and a chain of joins of two does as well.
    """
    if not plan.streaming or len(plan.stages) != 1:
        return False
    (stage,) = plan.stages
    keyless = not any(each.key for each in stage.inputs)
    several = FEWEST_STREAMS <= len(stage.inputs) <= MOST_STREAMS
    return several and (keyless or plan.approximate is not None)


def in_hops(plan: PhysicalPlan) -> PhysicalPlan:
    """Return a plan with hops in the place of its one stage (``can_hop``), their probes not arranged yet."""
    (stage,) = plan.stages
    orders = hop_orders(stage.members, [each.streams for each in stage.checks])
    hops = tuple(_Hop(stage, orders, number).made() for number in range(len(stage.inputs) - 1))
    return with_columns(replace(plan, stages=hops))


@dataclass(frozen=True)
class _Hop:
    """Hop ``number`` of the joins of a stage, by the orders of its streams."""

    stage: Stage
    orders: Mapping[int, tuple[int, ...]]
    number: int

    def made(self) -> Hop:
        """Return it as a stage: first the streams that are kept or passed on, then the partial results."""
        first = self.number == 0
        streams = [stream for stream in self.orders if first or self._needed(stream)]
        places = {stream: place for place, stream in enumerate(streams)}
        before = self.number - 1
        sources = [Scanned(stream) if first else PassedOn(before, stream) for stream in streams]
        inputs = [StageEdge(each, self._key(each.stream), self._index(each.stream)) for each in sources]
        meets = [(places[self.orders[stream][0]],) if first else () for stream in streams]
        for begun_by, order in self.orders.items() if not first else ():
            members = tuple(sorted((begun_by, *order[: self.number])))
            inputs.append(StageEdge(Partial(before, members, begun_by), self._key(begun_by)))
            meets.append((places[order[self.number]],))
        return Hop(
            inputs=tuple(inputs),
            bounds=self.stage.bounds,
            placement=Placement(plainest(keyed=self.stage.keyed, inputs=len(inputs), hop=True)),
            kernels=self.stage.kernels,
            checks=self._checked(self.stage.checks),
            meets=tuple(meets),
        )

    def _key(self, stream: int) -> tuple[int, int] | None:
        """Return the key on which rows of a stream meet all others, None where on none."""
        return next(each.key for each in self.stage.inputs if each.members == (stream,))

    def _needed(self, stream: int) -> bool:
        """Return whether this hop or a later one keeps rows of a stream."""
        return any(stream in order[self.number :] for order in self.orders.values())

    def _index(self, stream: int) -> Band | None:
        """Return the band that orders the rows of a stream: its own where that is checked here."""
        own = next(each.index for each in self.stage.inputs if each.members == (stream,))
        here = [band for band in self._checked(self.stage.bands) if stream in band.streams]
        return own if own in here else next(iter(here), None)

    def _checked(self, checks: Sequence[Kind]) -> tuple[Kind, ...]:
        """Return what is checked first in this hop, for new rows of some stream."""
        found: list[Kind] = []
        for origin, order in self.orders.items():
            found += completed(checks, {origin, *order[: self.number]}, [order[self.number]])
        return tuple(each for each in checks if each in found)
