"""What it costs to bring a stream from its site: whole rows, or partial tuples and full ones on request.

The unit-time costs of Semijoin streams, section 5.1: seconds of a link in a second of event time. The paper's
equations send every tuple by itself (benchmarks/papers/semijoin_settings.py); what is shipped here travels in
blocks (its future work), so that a request is paid for once in a micro-batch.
"""

import math
from dataclasses import dataclass, replace

from wjoin.grammar.join_kinds import JoinKind
from wjoin.planner.catalog import Estimate, SiteFacts
from wjoin.planner.choose.held_streams import FEW_VALUES, entered
from wjoin.planner.cost.measurement import stage_name
from wjoin.planner.cost.model import CostModel
from wjoin.planner.cost.stage_estimates import InputEstimate, StageEstimate
from wjoin.planner.cost.stream_statistics import StreamStatistics, units_per_second
from wjoin.planner.plan.physical import LikelyRows, PhysicalPlan, Shipping
from wjoin.planner.plan.stage_kinds import Join, Stage

NUMBER_BYTES = 1.0
"""The number of a row, which travels with it: numbers that follow each other are packed well."""

REQUEST_BYTES = 4.0
"""The number of a row in a request. The answer has none."""

KEY_BYTES = 8.0
"""A value of the key in a request."""

COUNT_BYTES = 1.0
"""What a row takes in the counts of join values by hash."""

CALL_BYTES = 900.0
"""What a call takes besides: what is asked for, the schema of the answer, what frames both."""

FALSE_POSITIVES = 0.01
"""The share of rows without a partner that a pushed filter of values lets through."""

FILTER_BYTES = 1.25
"""What a value takes in a pushed filter, which is pushed again when half of what it has is new."""

WORTH_HOLDING = 0.5
"""What part of the cheapest other way holding rows at their site may take to be chosen: it is for the whole
life of a checkpoint, and every micro-batch waits for the site."""

WORTH_A_REQUEST = 0.05
"""By how much, as a share, partial tuples must be cheaper to be taken in place of whole rows."""


@dataclass(frozen=True)
class NetworkLink:
    """A link: ``latency`` of a message in seconds, ``bandwidth`` in bytes a second."""

    latency: float
    bandwidth: float

    def seconds(self, messages: float, size: float) -> float:
        """Return how long so many messages with so many bytes in all take."""
        return messages * self.latency + size / self.bandwidth


def match_probability(window: float, distinct: float) -> float:
    """Return how likely a tuple has a match in a window of so many tuples (section 5.1).

    >>> round(match_probability(500, 10000), 6)
    0.048773
    """
    return 1.0 - math.pow((distinct - 1) / distinct, window)


@dataclass(frozen=True)
class Shipment:
    """What a way to ship takes in a second of event time: bytes, messages, and seconds of its link."""

    shipping: Shipping
    size: float
    messages: float
    seconds: float


@dataclass(frozen=True)
class Shipped:
    """A stream that is shipped: what its ways cost follows from this, and from the share that is matched.

    ``rate``: rows per second of event time, of which its filters keep ``kept``; ``early`` and ``late``: bytes
    of a row that come before, and may come late; ``batches``: micro-batches a second of event time.
    """

    rate: float
    kept: float
    early: float
    late: float
    batches: float
    workers: int
    link: NetworkLink

    def ways(self, matched: float) -> tuple[Shipment, ...]:
        """Return the ways to ship it, the one to take first.

        ``matched``: the share of the rows that its filters keep which are in a result. Where nothing of a row
        may come late, there is one way only.
        """
        asking = min(1.0, matched * self.rate / self.batches) * self.batches * self.workers
        asked = self.kept * self.rate * matched
        first = self.rate * (NUMBER_BYTES + self.early)
        full = self.shipment(Shipping.FULL, first + self.rate * self.late, self.batches)
        if not self.late:
            return (full,)
        size = first + asked * (REQUEST_BYTES + self.late)
        partial = self.shipment(Shipping.PARTIAL, size, self.batches + asking)
        cheaper = partial.seconds < (1 - WORTH_A_REQUEST) * full.seconds
        return (partial, full) if cheaper else (full, partial)

    def shipment(self, way: Shipping, size: float, messages: float) -> Shipment:
        """Return a way in which so many bytes of rows and requests travel in so many calls."""
        size += messages * CALL_BYTES
        return Shipment(way, size, messages, self.link.seconds(messages, size))


@dataclass(frozen=True)
class Holding:
    """What asks for the rows of a stream that are held at its site.

    ``windows``: keys in the other windows; ``values``: those that come there in a second of event time;
    ``pairs``: combinations a second of its rows with one of each other input.
    """

    windows: float
    values: float
    pairs: float

    def shipment(self, shipped: Shipped, matched: float) -> Shipment:
        """Return what it takes to bring the rows that are asked for.

        New rows come once where their key is in the other windows, older ones once for each key that comes.
        Few keys are sent with each request; of more a filter is at the site, which lets some others through.
        """
        few = self.windows <= FEW_VALUES * shipped.workers
        others = 0.0 if few else FALSE_POSITIVES * (1 - matched)
        rows = shipped.rate * (matched + others) + self.pairs
        pushed = (
            self.windows * shipped.batches * KEY_BYTES
            if few
            else self.values * (KEY_BYTES + 2 * FILTER_BYTES)
        )
        asked = self.values * KEY_BYTES + pushed
        # One tells of new rows; each worker asks for some of them, and for older ones where a key has come.
        messages = shipped.batches + shipped.workers * (shipped.batches + min(shipped.batches, self.values))
        size = asked + rows * (NUMBER_BYTES + shipped.early + shipped.late)
        return shipped.shipment(Shipping.HELD, size, messages)


@dataclass(frozen=True)
class Shipments:
    """The ways to ship a stream from its site, the chosen one first, and what they rest on.

    ``matched``: the share of its rows that are in a result. ``wished``: whether a hint or setting has chosen.
    ``told``: whether the number of results tells that share.
    """

    stream: int
    ways: tuple[Shipment, ...]
    matched: Estimate
    latency: Estimate
    bandwidth: Estimate
    shipped: Shipped
    wished: bool
    told: bool = True

    @property
    def chosen(self) -> Shipping:
        """How it travels."""
        return self.ways[0].shipping

    @property
    def revisable(self) -> bool:
        """Whether it may travel in another way while a query runs."""
        return self.told and not self.wished and self.chosen is not Shipping.HELD and self.shipped.late > 0

    @property
    def saved(self) -> float:
        """Seconds of its link in a second that the chosen way saves; none where nothing was weighed."""
        return max(each.seconds for each in self.ways) - self.ways[0].seconds

    @property
    def keeps_up(self) -> bool:
        """Whether its link needs no more than a second for what comes in one, by the chosen way."""
        return self.ways[0].seconds <= 1

    def likely(self, rows: LikelyRows) -> "Shipments":
        """Return the ways with that of bringing rows that probably match as the first one.

        Counts of all rows travel, and the buckets that are brought. Rows that match are few or many; which of
        them are worth it is known only as they come.
        """
        shipped = self.shipped
        matched = min(1.0, self.matched.value)
        matched = min(matched, rows.messages or 1.0) if rows.error is None else matched * (1 - rows.error)
        size = shipped.rate * (COUNT_BYTES + matched * (NUMBER_BYTES + shipped.early + shipped.late))
        way = shipped.shipment(Shipping.LIKELY, size, 3 * shipped.batches)
        return replace(self, ways=(way, *self.ways), wished=True)

    def without_holding(self) -> "Shipments":
        """Return the ways without that of holding its rows."""
        return replace(self, ways=tuple(each for each in self.ways if each.shipping is not Shipping.HELD))


def shipments(
    plan: PhysicalPlan,
    stream: int,
    site: SiteFacts,
    model: CostModel,
    wished: Shipping | None,
    *,
    held: bool = False,
) -> Shipments:
    """Return the ways to ship a stream that a plan reads from a site; ``wished``: the one asked for.

    ``held``: whether its rows may be held there.
    """
    scan, known = plan.streams[stream], model.statistics[stream]
    if scan.site is None:
        raise ValueError("a stream that is not at a site is not shipped")
    unit = units_per_second(plan.time_kind)
    matched = matched_share(plan, stream, model)
    late = (str(scan.columns[number].output) for number in scan.site.late)
    shipped = Shipped(
        rate=known.rate.value * unit,
        kept=known.selectivity.value,
        early=sum(site.widths.get(name.lower(), 0.0) for name in scan.site.early),
        late=sum(max(1.0, site.widths.get(name.lower(), 0.0)) for name in late),
        batches=model.arrival.batches * unit,
        workers=model.cores,
        link=NetworkLink(site.latency.value, site.bandwidth.value),
    )
    ways = list(shipped.ways(matched.value))
    if held:
        way = _holding(plan, stream, model).shipment(shipped, matched.value)
        ways.insert(0 if way.seconds < WORTH_HOLDING * ways[0].seconds else len(ways), way)
    ways.sort(key=lambda way: way.shipping is not wished)
    link = site.latency, site.bandwidth
    # Rows without a partner are results, too, so their number says little of each stream.
    told = plan.kind is JoinKind.INNER or (plan.kind.one_sided and not plan.tree)
    return Shipments(stream, tuple(ways), matched, *link, shipped, wished is not None, told)


def _holding(plan: PhysicalPlan, stream: int, model: CostModel) -> Holding:
    """Return what asks for the rows of a stream at the stage that it enters."""
    number, place = entered(plan, stream)
    stage = model.stages(plan)[number]
    others = [each for n, each in enumerate(stage.inputs) if n != place]
    unit = units_per_second(plan.time_kind)
    batches = model.arrival.batches
    values = sum(batches * min(each.rate / batches, each.key.distinct.value) for each in others)
    windows = min(min(each.kept_rows, each.key.distinct.value) for each in others)
    return Holding(windows, values * unit, stage.results * unit)


def matched_share(plan: PhysicalPlan, stream: int, model: CostModel) -> Estimate:
    """Return the share of the rows of a stream, of those that its filters keep, that are in a result.

    Where one key links all streams: of its most frequent value, and of all others, as section 5.1 has it of
    values that are all as frequent. Elsewhere the results of every stage come to the rows at random.
    """
    known = model.statistics[stream]
    if known.matched is not None:
        return known.matched
    found = model.stages(plan)
    if plan.kind is not JoinKind.INNER:
        joins = zip(plan.stages, found, strict=True)
        shares = (_shown(plan, stream, stage, each, model.statistics) for stage, each in joins)
        return Estimate(min(share for share in shares if share is not None))
    results = found[-1].results / max(known.kept_rate, 1e-12) if found else 1.0
    if len(plan.stages) == 1 and plan.stages[0].keyed and found[0].agreement is None:
        return Estimate(min(results, _matched_by_key(plan, stream, found[0], model.statistics)))
    made = [
        each.results / max(known.kept_rate, 1e-12)
        for stage, each in zip(plan.stages, found, strict=True)
        if stream in stage.members and isinstance(stage, Join)
    ]
    return Estimate(min(1.0 - math.exp(-each) for each in (*made, results)))


def _shown(
    plan: PhysicalPlan,
    stream: int,
    stage: Stage,
    estimate: StageEstimate,
    statistics: tuple[StreamStatistics, ...],
) -> float | None:
    """Return the share of the rows of a stream that are in what a join makes, with or without a partner.

    None where it does not join them.
    """
    if not isinstance(stage, Join) or stream not in stage.members:
        return None
    side = 0 if stream in stage.inputs[0].members else 1
    if stage.kind.one_sided and side == 1:
        return 0.0
    if side in stage.kind.preserved and stage.kind.pairs and stage.kind.alone:
        return 1.0
    known, name = statistics[stream], stage_name(plan.streams[each].alias for each in stage.members)
    if stage.kind.one_sided and name in known.met:
        return min(1.0, known.met[name])
    met = 1.0 - math.exp(-estimate.met / max(known.kept_rate, 1e-12))
    if len(plan.stages) == 1 and estimate.agreement is None:
        met = min(met, _matched_by_key(plan, stream, estimate, statistics))
    return 1.0 - met if stage.kind.one_sided and stage.kind.alone else met


def _matched_by_key(
    plan: PhysicalPlan, stream: int, stage: StageEstimate, statistics: tuple[StreamStatistics, ...]
) -> float:
    own = next(each for each in stage.inputs if each.members == (stream,))
    others = [each for each in stage.inputs if each is not own]
    heavy = light = 1.0
    for other in others:
        rows = _met(plan, stream, other, statistics)
        heaviest, distinct = other.key.heaviest.value, max(1.0, other.key.distinct.value)
        heavy *= 1.0 - math.exp(-rows * heaviest)
        light *= match_probability(rows * (1 - heaviest), max(1.0, distinct - 1)) if distinct > 1 else 0.0
    share = own.key.heaviest.value
    return share * heavy + (1 - share) * light


def _met(
    plan: PhysicalPlan, stream: int, other: InputEstimate, statistics: tuple[StreamStatistics, ...]
) -> float:
    """Return how many rows of another stream are inside the window of a row."""
    member = other.members[0]
    ahead, back = plan.windows.between(stream, member), plan.windows.between(member, stream)
    if ahead is None or back is None:
        return other.kept_rows
    return statistics[member].kept_rate * max(0, ahead + back)
