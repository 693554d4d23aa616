"""The probes of a stage, played on a sample of tuples: what they look at, and what they make."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wjoin.grammar.join_kinds import JoinKind
from wjoin.parts.kernels.kernel import StepEstimate
from wjoin.planner.cost.alternatives import HALF_A_UNIT, even_draws
from wjoin.planner.cost.stage_estimates import Arrival, Floats, InputEstimate, ProbeEstimate, StageEstimate
from wjoin.planner.cost.stream_statistics import KeyStatistics
from wjoin.planner.plan.checks import Band, Comparison, Condition, Operand, PredicateCheck, of_kind
from wjoin.planner.plan.physical import PhysicalPlan, windows_of
from wjoin.planner.plan.probes import chosen_orders, completed, index_of, linked_first, origins
from wjoin.planner.plan.reach import reach
from wjoin.planner.plan.stage_kinds import Bounds, Join, Pairs, Stage, StageEdge

SAMPLE = 128
"""Tuples that a probe is played on."""

COMPARISON_SHARE = 1 / 3
"""The share of tuples that a condition keeps which no band stands for."""

EXHAUSTIVE_INPUTS = 5
"""Inputs of a stage up to which every order is tried; beyond, the next input is the one that grows least."""


@dataclass(frozen=True)
class Sample:
    """Partial tuples: the times of each stream, and how many real tuples each stands for, by key.

    ``volume``: how much of their times each stands for, in units of time for each stream after the first.
    """

    times: dict[int, Floats]
    heavy: Floats
    light: Floats
    volume: Floats

    @property
    def weights(self) -> Floats:
        """How many real tuples each stands for."""
        return self.heavy + self.light

    @property
    def tuples(self) -> float:
        """How many real tuples there are."""
        return float(self.weights.mean())

    def times_as_many(self, factor: float) -> "Sample":
        """Return the same tuples, each of which stands for ``factor`` times as many."""
        return replace(
            self, heavy=self.heavy * factor, light=self.light * factor, volume=self.volume * factor
        )


Samples = dict[tuple[tuple[int, ...], frozenset[int]], Sample]
"""Of a stage's results, by the streams whose new rows begin them, and by all their streams."""


@dataclass(frozen=True)
class Played:
    """What a stage is expected to do, and samples of its results."""

    estimate: StageEstimate
    samples: Samples


class StagePlay:
    """The probes of one stage.

    ``inside``: which part of the complete tuples is a result; ``exact``: the stage with the bounds EXACT,
    where it has others.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        stage: Stage,
        inputs: tuple[InputEstimate, ...],
        arrival: Arrival,
        agreement: float | None,
        rates: Sequence[float],
        inside: float,
        exact: Played | None,
    ) -> None:
        self._plan = plan
        self._stage = stage
        self._inputs = inputs
        self._arrival = arrival
        self._rates = rates
        self._measured = agreement
        self._agreement = 1.0 if agreement is None else agreement
        self._inside = inside
        self._exact = exact
        self._reach = reach(stage.bounds, windows_of(plan, stage), plan.staged)
        self._orders = chosen_orders(stage) or {}
        # One draw for each stream: estimates of different orders and bounds then differ by these alone.
        self._draws = even_draws(len(plan.streams) + 1, SAMPLE)

    def play(self) -> Played:
        """Return the estimate, and samples of the results."""
        probes = []
        samples: Samples = {}
        if self._exact is not None:
            found = self._exact.estimate
            probes = [self._wider(each, self._probe(each.origin, each.order)[0]) for each in found.probes]
            estimate = replace(found, inputs=self._inputs, probes=tuple(probes), agreement=self._measured)
            return Played(estimate, self._exact.samples)
        for first in origins(self._stage, streaming=self._arrival.streaming):
            begun = self._stage.inputs[first]
            orders = (self._order(first),) if isinstance(self._stage, Join) else self._stage.chains(first)
            for order in orders:
                probe, sample = self._probe(first, order)
                probes.append(probe)
                members = (self._stage.inputs[number].members for number in (first, *order))
                samples[begun.newest, frozenset(itertools.chain(*members))] = sample
        estimate = StageEstimate(self._inputs, tuple(probes), self._measured)
        if not isinstance(self._stage, Join) or self._stage.kind is JoinKind.INNER:
            return Played(estimate, samples)
        single = self._single(self._stage.kind, list(samples.values()))
        told = sum(each.tuples for each in single.values())
        kept = samples if self._stage.kind.pairs else {}
        return Played(replace(estimate, single=told, paired=self._stage.kind.pairs), kept | single)

    def _single(self, kind: JoinKind, met: Sequence[Sample]) -> Samples:
        """Return the rows of two inputs of which a join tells whether they have partners.

        What such a row lacks has its own time.
        """
        found: Samples = {}
        pairs = [np.sum([each.mean() for each in part]) for part in zip(*map(_parts, met), strict=True)]
        for number in kind.preserved:
            own, start = self._inputs[number], self._start(number)
            heavy, light = (
                each * _single_share(kind, _partners(met, each))
                for met, each in zip(pairs, _parts(start), strict=True)
            )
            times = dict.fromkeys(self._stage.members, start.times[own.members[0]]) | start.times
            # Beside pairs its times count as theirs.
            volume = np.zeros(SAMPLE) if kind.pairs else start.volume
            found[self._stage.inputs[number].newest, frozenset(own.members)] = Sample(
                times, heavy, light, volume
            )
        return found

    def _wider(self, exact: ProbeEstimate, played: ProbeEstimate) -> ProbeEstimate:
        """Return a probe by wider bounds, whose results are those of the exact one.

        The last step leaves out what is outside the windows before it calls predicates.
        """
        *before, last = played.steps
        found = exact.steps[-1]
        last = replace(last, tuples=found.tuples, predicate_seconds=found.predicate_seconds)
        return replace(played, steps=(*before, last), results=exact.results)

    def _order(self, first: int) -> Sequence[int]:
        return self._orders[first] if first in self._orders else self._best_order(first)

    def _best_order(self, first: int) -> tuple[int, ...]:
        others = [number for number in range(len(self._inputs)) if number != first]
        start = self._start(first)
        if len(self._inputs) > EXHAUSTIVE_INPUTS:
            return self._greedy(first, start, others)
        return min(self._all_orders([first], start, others), key=lambda each: each[0])[1]

    def _greedy(self, first: int, sample: Sample, others: Sequence[int]) -> tuple[int, ...]:
        order: list[int] = []
        waiting = list(others)
        while waiting:
            waiting = list(linked_first(self._stage, [first, *order], waiting))
            steps = [self._step([first, *order], sample, number) for number in waiting]
            place = min(range(len(waiting)), key=lambda n: _growth(steps[n][0]))
            sample = steps[place][1]
            order.append(waiting.pop(place))
        return tuple(order)

    def _all_orders(
        self, joined: list[int], sample: Sample, others: Sequence[int]
    ) -> Iterator[tuple[float, tuple[int, ...]]]:
        if not others:
            yield 0.0, ()
        # Of orders that cost the same, the first one is taken.
        for number in linked_first(self._stage, joined, others):
            step, grown = self._step(joined, sample, number)
            rest = [each for each in others if each != number]
            for growth, order in self._all_orders([*joined, number], grown, rest):
                yield _growth(step) + growth, (number, *order)

    def _probe(self, first: int, order: Sequence[int]) -> tuple[ProbeEstimate, Sample]:
        sample = self._start(first)
        steps = []
        for place, number in enumerate(order):
            step, sample = self._step([first, *order[:place]], sample, number)
            steps.append(step)
        sample = sample.times_as_many(self._inside)
        if self._asof:
            # A row is joined to one.
            (step,), rows = steps, _parts(self._start(first))
            heavy, light = (
                each * -np.expm1(-_partners(met, each))
                for met, each in zip(_parts(sample), rows, strict=True)
            )
            sample = replace(sample, heavy=heavy, light=light)
            steps = [replace(step, matching=sample.tuples, checked=sample.tuples)]
        return ProbeEstimate(first, tuple(steps), sample.tuples), sample

    def _start(self, first: int) -> Sample:
        """Return the new rows of an input, spread over the micro-batch."""
        own = self._inputs[first]
        length = self._arrival.interval if self._arrival.streaming else self._arrival.duration
        anchor = self._draws[-1] * length
        share = own.key.heaviest.value
        every = np.full(SAMPLE, own.rate)
        volume = np.full(SAMPLE, own.volume)
        return Sample(_times(own, anchor), every * share, every * (1 - share), volume)

    def _step(self, joined: Sequence[int], sample: Sample, number: int) -> tuple[StepEstimate, Sample]:
        first, target = joined[0], self._inputs[number]
        met = self._stage.inputs[number]
        newest = self._newest(first, number)
        gathered = isinstance(met.source, Pairs)
        if gathered:
            # What one row has begun comes at once, whenever that row has come.
            low, length = sample.times[met.members[0]], np.zeros(SAMPLE)
            rows = np.full(SAMPLE, target.rate / self._rates[met.members[0]])
            agree = 1.0, 1.0
        else:
            low, length = self._looks(sample.times, target.members[0], newest)
            rows = target.rate * length
            if self._arrival.streaming:
                # Partial results are dropped when one of their rows is too old.
                rows = np.minimum(rows, target.rate * max(0.0, newest) + target.kept_rows)
            agree = self._agree(self._inputs[first].key, target.key)
        heavy, light = sample.heavy * rows * agree[0], sample.light * rows * agree[1]
        matching = float((heavy + light).mean())
        if self._arrival.streaming:
            at_hand = target.rate * max(0.0, newest) + target.kept_rows
        else:
            apart = float(length.mean())
            at_hand = target.rate * self._arrival.met(self._inputs, apart, keyed=self._stage.keyed)
        agreeing = float((sample.heavy * agree[0] + sample.light * agree[1]).mean())
        of_key = matching if gathered else agreeing * at_hand
        band = index_of(met, sample.times)
        allowed = 1.0 if band is None else band.share.value
        conditions = self._conditions(sample, met)
        share = self._share(sample, met, conditions)
        heavy, light = heavy * share, light * share
        if self._stage.bounds is Bounds.EXACT and len(met.members) > 1 and self._is_asked(met):
            times, volume = self._drawn(first, number, sample)
            density = target.rate / target.volume if target.volume else 0.0
            density /= self._rates[met.members[0]] if gathered else 1.0
            inside = np.divide(volume * density, rows, out=np.zeros(SAMPLE), where=rows > 0)
            heavy, light = heavy * inside, light * inside
        else:
            anchor = low + self._draws[target.members[0]] * length
            times, volume = {**sample.times, **_times(target, anchor)}, length * target.volume
        grown = Sample(times, heavy, light, sample.volume * volume)
        checked = grown.tuples
        predicates = of_kind(completed(self._stage.checks, sample.times, met.members), PredicateCheck)
        called, grown = self._called(predicates, joined, number, grown)
        weights = sample.weights
        return (
            StepEstimate(
                number,
                searches=sample.tuples,
                window=sample.tuples * at_hand,
                period=float((weights * rows).mean()),
                matching=matching,
                of_key=of_key,
                banded=of_key * allowed,
                near=matching * allowed,
                tested=0 if self._stage.keyed else len(conditions),
                checked=checked,
                tuples=grown.tuples,
                predicate_seconds=called,
            ),
            grown,
        )

    def _is_asked(self, met: StageEdge) -> bool:
        """Return whether the windows of the stage are about all streams of an input."""
        asked = self._stage.asked if isinstance(self._stage, Join) else None
        return not asked or asked.issuperset(met.members)

    def _called(
        self, predicates: Sequence[PredicateCheck], joined: Sequence[int], number: int, grown: Sample
    ) -> tuple[float, Sample]:
        """Return the seconds that the predicates of a step take, and what they leave."""
        seconds, left = 0.0, 1.0
        for each in predicates:
            calls = min(grown.tuples * left, self._distinct(each, joined, number))
            seconds += calls * each.cost_us.value / 1e6
            left *= each.share.value
        return seconds, replace(grown, heavy=grown.heavy * left, light=grown.light * left)

    def _distinct(self, check: PredicateCheck, joined: Sequence[int], number: int) -> float:
        """Return the most different rows that a predicate can be asked about: it is called once for each."""
        asked = {operand[0] for operand in check.columns}
        others = [each for each in joined if asked & set(self._stage.inputs[each].members)]
        if len(others) != 1 or len(joined) == 1:
            return math.inf
        (other,) = others
        pairs = self._step([other], self._start(other), number)[0].checked
        own, interval = self._inputs[other], self._arrival.interval
        if other == joined[0] or not self._arrival.streaming or not own.rate:
            return pairs
        # Rows that are kept meet the same ones again, with each new row of another input.
        return pairs * (1 + own.kept_rows / (own.rate * interval))

    def _newest(self, first: int, number: int) -> float:
        """Return up to when rows of an input are there when those of input ``first`` probe."""
        # Of new rows that meet in a hop, the later ones are those of later streams as often as not.
        turns: Sequence[int] = range(len(self._inputs))
        if self._asof and self._arrival.streaming:
            # A row waits for what it looks for.
            return self._arrival.newest(1, 0) + self._inputs[first].kept
        if not isinstance(self._stage, Join):
            turns = [each.newest[0] for each in self._stage.inputs]
        return self._arrival.newest(turns[first], turns[number])

    @property
    def _asof(self) -> bool:
        return isinstance(self._stage, Join) and self._stage.nearest is not None

    def _drawn(self, first: int, number: int, sample: Sample) -> tuple[dict[int, Floats], Floats]:
        """Return the times of tuples with those of a partial result that they meet, and the volume of these.

        Each is drawn from the range that the windows leave between those before.
        """
        target, gathered = self._inputs[number], isinstance(self._stage.inputs[number].source, Pairs)
        newest = self._newest(first, number)
        later = self._arrival.duration if self._arrival.streaming else 0.0
        times, volume = dict(sample.times), np.ones(SAMPLE)
        for member in target.members:
            if member in times:
                continue
            if gathered:
                newest, later = self._arrival.newest(target.members[0], member), 0.0
            # Where the first one is, the others are, sooner or later.
            low, length = self._looks(times, member, newest, later if member != target.members[0] else 0.0)
            times[member] = low + self._draws[member] * length
            volume = volume * length
        return times, volume

    def _looks(
        self, times: Mapping[int, Floats], member: int, newest: float, later: float = 0.0
    ) -> tuple[Floats, Floats]:
        """Return from when on tuples with some times look for rows of a stream, and for how long.

        There are none more than ``later`` after ``newest``. Bounds are inclusive, of whole units: each is
        half a unit wider.
        """
        low, high = np.full(SAMPLE, newest - self._arrival.duration), np.full(SAMPLE, newest + later)
        for stream, time in times.items():
            back, ahead = self._reach.back(stream, member), self._reach.ahead(stream, member)
            if back is not None:
                low = np.maximum(low, time - back - HALF_A_UNIT)
            if ahead is not None:
                high = np.minimum(high, time + ahead + HALF_A_UNIT)
        return low, np.maximum(0.0, high - low)

    def _agree(self, first: KeyStatistics, second: KeyStatistics) -> tuple[float, float]:
        """Return the shares of rows that have a tuple's key: the most frequent one, or another."""
        heaviest = second.heaviest.value
        # The values that the tuples share which have not the most frequent one.
        tail = max(1.0, first.distinct.value - 1, second.distinct.value - 1)
        return min(1.0, self._agreement * heaviest), min(1.0, self._agreement * (1 - heaviest) / tail)

    def _share(self, sample: Sample, met: StageEdge, conditions: Sequence[frozenset[Operand]]) -> float:
        """Return the share of pairs that the bands and conditions keep which can be checked now."""
        bands = of_kind(completed(self._stage.checks, sample.times, met.members), Band)
        ordered = {frozenset(band.columns) for band in bands}
        others = sum(columns not in ordered for columns in conditions)
        return math.prod(band.share.value for band in bands) * COMPARISON_SHARE**others

    def _conditions(self, sample: Sample, met: StageEdge) -> list[frozenset[Operand]]:
        """Return the columns of each condition that can be checked now."""
        found = completed(self._stage.checks, sample.times, met.members)
        return [frozenset(each.columns) for each in found if isinstance(each, Comparison | Condition)]


def _parts(sample: Sample) -> tuple[Floats, Floats]:
    return sample.heavy, sample.light


def _partners(pairs: Floats | float, rows: Floats) -> Floats:
    """Return how many partners a row has on average."""
    return np.divide(pairs, rows, out=np.zeros(SAMPLE), where=rows > 0)


def _single_share(kind: JoinKind, partners: Floats) -> Floats:
    """Return the share of rows of which a join tells that they have partners, or none."""
    match kind:
        case JoinKind.LEFT_ASOF:
            return np.asarray(1 - partners)
        case JoinKind.SEMI:
            return np.asarray(-np.expm1(-partners))
        case _:
            return np.asarray(np.exp(-partners))


def _growth(step: StepEstimate) -> float:
    return step.matching + step.tuples


def _times(own: InputEstimate, anchor: Floats) -> dict[int, Floats]:
    times = {own.members[0]: anchor}
    for member, offset in zip(own.members[1:], own.offsets, strict=True):
        times[member] = anchor + offset
    return times
