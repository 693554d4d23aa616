"""How many tuples a stage is expected to look at and to make (W-join 2002, 4).

A probe is played on a sample of tuples: each grows by one input at a time, its time drawn from
the range in which the bounds of the plan look for it, its weight multiplied by the rows that are
expected there. So every kind of bounds, asymmetric windows and derived ones need one rule only.

Keys have two kinds of values: the most frequent one, which is taken to be the same on all
inputs, and all others, equally frequent. They are taken to be independent of time and of each
other; where the results of a stage were measured, its keys agree as much more or less often as
these tell.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.kernel import StepEstimate
from wjoin.planner.catalog import Origin
from wjoin.planner.cost.estimates import Arrival, Floats, InputEstimate, ProbeEstimate, StageEstimate
from wjoin.planner.measurement import stage_name
from wjoin.planner.physical import (
    Band,
    Operand,
    PhysicalPlan,
    PredicateCheck,
    Stage,
    StageInput,
    Step,
    UpperBounds,
    WindowCheck,
)
from wjoin.planner.probes import (
    chosen_orders,
    completed,
    index_of,
    kept_for,
    linked_first,
    origins,
    step_to,
    window_checks,
)
from wjoin.planner.reach import reach
from wjoin.planner.statistics import KEYLESS, UNIQUE, KeyStatistics, StreamStatistics

SAMPLE = 128
"""Tuples that a probe is played on."""

COMPARISON_SHARE = 1 / 3
"""The share of tuples that a condition keeps which no band stands for."""

EXHAUSTIVE_INPUTS = 5
"""Inputs of a stage up to which every order is tried; beyond, the next input is the one that grows least."""


def estimate_stages(
    plan: PhysicalPlan,
    statistics: Sequence[StreamStatistics],
    arrival: Arrival,
    hull: UpperBounds,
    shares: Mapping[Band, float],
    agreements: Sequence[float | None] | None = None,
) -> tuple[StageEstimate, ...]:
    """Return what each stage of a plan is expected to do; rows are kept as the bounds of ``hull`` ask.

    ``shares``: what each band keeps of all pairs. ``agreements`` are those of the stages; without them
    they follow from what was measured.
    Probes whose order the plan has chosen are played in this, others in the one that makes the fewest tuples.
    """
    done: list[StageEstimate] = []
    samples: list[_Samples] = []
    for place, stage in enumerate(plan.stages):
        inputs = tuple(
            _input(plan, stage, number, statistics, done, samples, arrival, hull)
            for number in range(len(stage.inputs))
        )
        agreement = None if agreements is None else agreements[place]
        rates = [each.kept_rate for each in statistics]
        estimate, sample = _StagePlay(plan, stage, inputs, arrival, shares, agreement, rates).play()
        expected = _measured_results(plan, stage, statistics) if agreements is None else None
        if expected is not None and estimate.results > 0:
            # Every step of a probe makes as many times more tuples.
            agreement = (expected / estimate.results) ** (1 / (len(inputs) - 1))
            estimate, sample = _StagePlay(plan, stage, inputs, arrival, shares, agreement, rates).play()
        done.append(estimate)
        samples.append(sample)
    return tuple(done)


def _measured_results(
    plan: PhysicalPlan, stage: Stage, statistics: Sequence[StreamStatistics]
) -> float | None:
    """Return the results per unit of time that a stage with keys was measured to make, None if not known.

    What a user says of a key counts before that.
    """
    name = stage_name(plan.streams[member].alias for member in stage.members)
    found = []
    for each in stage.inputs:
        if each.key is None or statistics[each.key[0]].keys[each.key[1]].distinct.origin is Origin.GIVEN:
            return None
        if each.stage is None and name in statistics[each.members[0]].met:
            own = statistics[each.members[0]]
            found.append(own.met[name] * own.kept_rate)
    return sum(found) / len(found) if found else None


@dataclass(frozen=True)
class _Sample:
    """Partial tuples: the times of each stream, and how many real tuples each stands for, by key."""

    times: dict[int, Floats]
    heavy: Floats
    light: Floats

    @property
    def weights(self) -> Floats:
        return self.heavy + self.light

    @property
    def tuples(self) -> float:
        return float(self.weights.mean())


_Samples = dict[tuple[tuple[int, ...], frozenset[int]], _Sample]
"""Of a stage's results, by the streams whose new rows begin them, and by all their streams."""


def _largest(samples: _Samples) -> _Sample:
    return max(samples.values(), key=lambda each: each.tuples)


def _input(
    plan: PhysicalPlan,
    stage: Stage,
    number: int,
    statistics: Sequence[StreamStatistics],
    done: Sequence[StageEstimate],
    samples: Sequence[_Samples],
    arrival: Arrival,
    hull: UpperBounds,
) -> InputEstimate:
    each = stage.inputs[number]
    # Of a partial result the time of its newest row is known: that of the micro-batch.
    members = (*each.newest, *(member for member in each.members if member not in each.newest))
    key = KEYLESS if each.key is None else statistics[each.key[0]].keys[each.key[1]]
    key = UNIQUE if each.gathered else key
    offsets: tuple[Floats, ...] = ()
    if each.stage is None or each.carried:
        rate = statistics[each.members[0]].kept_rate
    elif each.origin is not None:
        sample = samples[each.stage][each.newest, frozenset(each.members)]
        rate = sample.tuples
        offsets = _offsets(sample, members)
    else:
        rate = done[each.stage].results
        offsets = _offsets(_largest(samples[each.stage]), members)
    width = sum(statistics[member].width.value for member in each.members)
    return InputEstimate(
        members, rate, width, key, offsets, _kept(plan, stage, number, offsets, arrival, hull)
    )


def _offsets(sample: _Sample, members: Sequence[int]) -> tuple[Floats, ...]:
    """Return times of results, relative to those of their first member: a sample of equal weights."""
    weights = sample.weights
    total = weights.sum()
    share = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
    chosen = np.searchsorted(np.cumsum(share), (np.arange(SAMPLE) + 0.5) / SAMPLE).clip(max=SAMPLE - 1)
    first = sample.times[members[0]][chosen]
    return tuple(sample.times[member][chosen] - first for member in members[1:])


def _kept(
    plan: PhysicalPlan,
    stage: Stage,
    number: int,
    offsets: Sequence[Floats],
    arrival: Arrival,
    hull: UpperBounds,
) -> float:
    """Return how long a tuple of an input stays, after the time of its first member."""
    if not arrival.streaming:
        return arrival.duration
    each = stage.inputs[number]
    if each.gathered:
        return 0.0
    ahead = reach(stage.bounds, hull, plan.staged).ahead
    shifts = (0.0, *(float(offset.mean()) for offset in offsets))
    latest = 0.0
    for other in kept_for(stage, number):
        ends = [
            arrival.duration if bound is None else bound + shift
            for member, shift in zip(each.members, shifts, strict=True)
            for bound in (ahead[member][other],)
        ]
        latest = max(latest, min(ends) + plan.streams[other].delay)
    return max(0.0, latest)


class _StagePlay:
    """The probes of one stage."""

    def __init__(
        self,
        plan: PhysicalPlan,
        stage: Stage,
        inputs: tuple[InputEstimate, ...],
        arrival: Arrival,
        shares: Mapping[Band, float],
        agreement: float | None,
        rates: Sequence[float],
    ) -> None:
        self._plan = plan
        self._stage = stage
        self._inputs = inputs
        self._arrival = arrival
        self._shares = shares
        self._rates = rates
        self._measured = agreement
        self._agreement = 1.0 if agreement is None else agreement
        self._reach = reach(stage.bounds, plan.upper, plan.staged)
        self._orders = chosen_orders(stage) or {}
        spread = np.random.default_rng(20020226)
        # One draw for each input: estimates of different orders and bounds then differ by these alone.
        self._draws = spread.random((len(inputs) + 1, SAMPLE))

    def play(self) -> tuple[StageEstimate, _Samples]:
        """Return the estimate, and samples of the results."""
        probes = []
        samples: _Samples = {}
        for first in origins(self._stage, streaming=self._arrival.streaming):
            begun = self._stage.inputs[first]
            for order in begun.chains or (self._order(first),):
                probe, sample = self._probe(first, order)
                probes.append(probe)
                members = (self._stage.inputs[number].members for number in (first, *order))
                samples[begun.newest, frozenset(itertools.chain(*members))] = sample
        return StageEstimate(self._inputs, tuple(probes), self._measured), samples

    def _order(self, first: int) -> Sequence[int]:
        return self._orders[first] if first in self._orders else self._best_order(first)

    def _best_order(self, first: int) -> tuple[int, ...]:
        others = [number for number in range(len(self._inputs)) if number != first]
        start = self._start(first)
        if len(self._inputs) > EXHAUSTIVE_INPUTS:
            return self._greedy(first, start, others)
        return min(self._all_orders([first], start, others), key=lambda each: each[0])[1]

    def _greedy(self, first: int, sample: _Sample, others: Sequence[int]) -> tuple[int, ...]:
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
        self, joined: list[int], sample: _Sample, others: Sequence[int]
    ) -> Iterator[tuple[float, tuple[int, ...]]]:
        if not others:
            yield 0.0, ()
        # Of orders that cost the same, the first one is taken.
        for number in linked_first(self._stage, joined, others):
            step, grown = self._step(joined, sample, number)
            rest = [each for each in others if each != number]
            for growth, order in self._all_orders([*joined, number], grown, rest):
                yield _growth(step) + growth, (number, *order)

    def _probe(self, first: int, order: Sequence[int]) -> tuple[ProbeEstimate, _Sample]:
        sample = self._start(first)
        steps = []
        for place, number in enumerate(order):
            step, sample = self._step([first, *order[:place]], sample, number)
            steps.append(step)
        complete = np.logical_or.reduce(
            [_within(upper, sample) for upper in self._plan.branches or (self._plan.upper,)]
        )
        sample = _Sample(sample.times, sample.heavy * complete, sample.light * complete)
        return ProbeEstimate(first, tuple(steps), sample.tuples), sample

    def _start(self, first: int) -> _Sample:
        """Return the new rows of an input, spread over the micro-batch."""
        own = self._inputs[first]
        length = self._arrival.interval if self._arrival.streaming else self._arrival.duration
        anchor = self._draws[-1] * length
        share = own.key.heaviest.value
        every = np.full(SAMPLE, own.rate)
        return _Sample(_times(own, anchor), every * share, every * (1 - share))

    def _step(self, joined: Sequence[int], sample: _Sample, number: int) -> tuple[StepEstimate, _Sample]:
        first, target = joined[0], self._inputs[number]
        step = step_to(self._plan, self._stage, joined, number, self._reach, self._plan.upper)
        met = self._stage.inputs[number]
        newest = self._newest(first, number)
        if met.gathered:
            # What one row has begun comes at once, whenever that row has come.
            low, length = sample.times[met.members[0]], np.zeros(SAMPLE)
            rows = np.full(SAMPLE, target.rate / self._rates[met.members[0]])
            agree = 1.0, 1.0
        else:
            low, length = self._looks(step, sample, newest)
            rows = target.rate * length
            agree = self._agree(self._inputs[first].key, target.key)
        heavy, light = sample.heavy * rows * agree[0], sample.light * rows * agree[1]
        matching = float((heavy + light).mean())
        if self._arrival.streaming:
            at_hand = target.rate * max(0.0, newest) + target.kept_rows
        else:
            apart = float(length.mean())
            at_hand = target.rate * self._arrival.met(self._inputs, apart, keyed=self._stage.keyed)
        agreeing = float((sample.heavy * agree[0] + sample.light * agree[1]).mean())
        of_key = matching if met.gathered else agreeing * at_hand
        band = index_of(met, sample.times)
        allowed = 1.0 if band is None else self._shares[band]
        conditions = self._conditions(sample, met)
        share = self._share(sample, met, conditions)
        heavy, light = heavy * share, light * share
        grown_times = {**sample.times, **_times(target, low + self._draws[number] * length)}
        grown = _Sample(grown_times, heavy, light)
        if step.windows:
            keep = _inside(step.windows, grown)
            grown = _Sample(grown_times, heavy * keep, light * keep)
        checked = grown.tuples
        called, grown = self._called(step, joined, number, grown)
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

    def _called(
        self, step: Step, joined: Sequence[int], number: int, grown: _Sample
    ) -> tuple[float, _Sample]:
        """Return the seconds that the predicates of a step take, and what they leave."""
        seconds, left = 0.0, 1.0
        for each in step.predicates:
            calls = min(grown.tuples * left, self._distinct(each, joined, number))
            seconds += calls * each.cost_us.value / 1e6
            left *= each.share.value
        return seconds, replace(grown, heavy=grown.heavy * left, light=grown.light * left)

    def _distinct(self, check: PredicateCheck, joined: Sequence[int], number: int) -> float:
        """Return the most different rows that a predicate can be asked about: it is called once for each."""
        asked = {operand[0] for operand in check.operands}
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
        turns = (
            [each.newest[0] for each in self._stage.inputs] if self._stage.hop else range(len(self._inputs))
        )
        return self._arrival.newest(turns[first], turns[number])

    def _looks(self, step: Step, sample: _Sample, newest: float) -> tuple[Floats, Floats]:
        """Return from when on tuples look for rows, and for how long; there are none after ``newest``."""
        low, high = np.full(SAMPLE, newest - self._arrival.duration), np.full(SAMPLE, newest)
        for each in step.ranges:
            if each.back is not None:
                low = np.maximum(low, sample.times[each.stream] - each.back)
            if each.ahead is not None:
                high = np.minimum(high, sample.times[each.stream] + each.ahead)
        return low, np.maximum(0.0, high - low)

    def _agree(self, first: KeyStatistics, second: KeyStatistics) -> tuple[float, float]:
        """Return the shares of rows that have a tuple's key: the most frequent one, or another."""
        heaviest, tail = second.heaviest.value, _tail(first, second)
        return min(1.0, self._agreement * heaviest), min(1.0, self._agreement * (1 - heaviest) / tail)

    def _share(self, sample: _Sample, met: StageInput, conditions: Sequence[set[Operand]]) -> float:
        """Return the share of pairs that the bands and conditions keep which can be checked now."""
        bands = list(completed(self._stage.bands, sample.times, met.members))
        ordered = [{band.left, band.right} for band in bands]
        others = sum(columns not in ordered for columns in conditions)
        return math.prod(self._shares[band] for band in bands) * COMPARISON_SHARE**others

    def _conditions(self, sample: _Sample, met: StageInput) -> list[set[Operand]]:
        """Return the columns of each condition that can be checked now."""
        comparisons = completed(self._stage.comparisons, sample.times, met.members)
        conditions = completed(self._stage.conditions, sample.times, met.members)
        return [{each.left, each.right} for each in comparisons] + [set(each.operands) for each in conditions]


def _growth(step: StepEstimate) -> float:
    return step.matching + step.tuples


def _times(own: InputEstimate, anchor: Floats) -> dict[int, Floats]:
    times = {own.members[0]: anchor}
    for member, offset in zip(own.members[1:], own.offsets, strict=True):
        times[member] = anchor + offset
    return times


def _tail(first: KeyStatistics, second: KeyStatistics) -> float:
    """Return how many values the tuples share that have not the most frequent one."""
    return max(1.0, first.distinct.value - 1, second.distinct.value - 1)


def _inside(windows: Iterable[WindowCheck], sample: _Sample) -> npt.NDArray[np.bool_]:
    keep = np.ones(SAMPLE, bool)
    for each in windows:
        keep &= sample.times[each.second] - sample.times[each.first] <= each.upper
    return keep


def _within(upper: UpperBounds, sample: _Sample) -> npt.NDArray[np.bool_]:
    return _inside(window_checks(upper, sample.times, sample.times), sample)
