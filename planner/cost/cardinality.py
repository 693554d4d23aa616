"""How many tuples a stage is expected to look at and to make (W-join 2002, 4).

A probe is played on a sample of tuples: each grows by one input at a time, its time drawn from
the range in which the bounds of the plan look for it, its weight multiplied by the rows that are
expected there. So every kind of bounds, asymmetric windows and derived ones need one rule only.

No draw is ever thrown away, as narrow windows beside wide ones would leave none. The times of a
result are drawn one after the other from the ranges of the closed windows, which are never empty;
those of a partial result that is met, too, in the place of times that its own stage has drawn. LCA and
GCA find the results of EXACT, and how many are in some alternative of the windows is a ratio of volumes.

Keys have two kinds of values: the most frequent one, which is taken to be the same on all
inputs, and all others, equally frequent. Among results that have met on a key the most frequent one is more
frequent than among rows. They are taken to be independent of time and of each
other; where the results of a stage were measured, its keys agree as much more or less often as
these tell.

How many partners a row has is taken to be random: of rows with μ partners each on average, e to the power
of -μ have none.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wjoin.grammar.join_kinds import JoinKind
from wjoin.planner.catalog import Origin
from wjoin.planner.cost.alternatives import share_inside
from wjoin.planner.cost.measurement import stage_name
from wjoin.planner.cost.stage_estimates import Arrival, Floats, InputEstimate
from wjoin.planner.cost.stage_play import SAMPLE, Played, Sample, StagePlay
from wjoin.planner.cost.stream_statistics import KEYLESS, UNIQUE, KeyStatistics, StreamStatistics
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.probes import retention_within
from wjoin.planner.plan.reach import reach
from wjoin.planner.plan.stage_kinds import Join, Joined, Pairs, PassedOn, Scanned, Stage
from wjoin.planner.windows.bounds import Windows


def play_stages(
    plan: PhysicalPlan,
    statistics: Sequence[StreamStatistics],
    arrival: Arrival,
    hull: Windows,
    agreements: Sequence[float | None] | None = None,
    exact: Sequence[Played] | None = None,
    whole: Sequence[Played] | None = None,
) -> tuple[Played, ...]:
    """Return what each stage of a plan is expected to do; rows are kept as the bounds of ``hull`` ask.

    ``agreements`` are those of the stages; without them
    they follow from what was measured. ``exact``: the same plan with the bounds EXACT, for one with others.
    ``whole``: all passes together, where the plan is one of several: it meets what all have found before.
    Probes whose order the plan has chosen are played in this, others in the one that makes the fewest tuples.
    """
    done: list[Played] = []
    for place, stage in enumerate(plan.stages):
        inputs = tuple(
            _input(plan, stage, number, statistics, done if whole is None else whole, arrival, hull)
            for number in range(len(stage.inputs))
        )
        agreement = None if agreements is None else agreements[place]
        rates = [each.kept_rate for each in statistics]
        found = None if exact is None else exact[place]
        share = _inside_alternatives(plan, place, arrival)
        play = StagePlay(plan, stage, inputs, arrival, agreement, rates, share, found)
        played = play.play()
        expected = _measured_results(plan, stage, statistics) if agreements is None else None
        if expected is not None and played.estimate.met > 0:
            # Every step of a probe makes as many times more tuples.
            agreement = (expected / played.estimate.met) ** (1 / (len(inputs) - 1))
            played = StagePlay(plan, stage, inputs, arrival, agreement, rates, share, found).play()
        done.append(played)
    return tuple(done)


def _inside_alternatives(plan: PhysicalPlan, place: int, arrival: Arrival) -> float:
    """Return which part of what a stage finds inside the hull of the windows is inside some alternative.

    A pass inside the hull leaves out the others in the last stage; passes apart never find them.
    """
    if not plan.branches or not (plan.apart or place == len(plan.stages) - 1):
        return 1.0
    stage = plan.stages[place]

    def share(members: tuple[int, ...]) -> float:
        return share_inside(plan.windows, plan.branches, members, arrival.duration)

    before = math.prod(share(each.members) for each in stage.inputs) if plan.apart else 1.0
    return share(stage.members) / before if before else 0.0


def _measured_results(
    plan: PhysicalPlan, stage: Stage, statistics: Sequence[StreamStatistics]
) -> float | None:
    """Return the results per unit of time that a stage with keys was measured to make, None if not known.

    What a user says of a key counts before that. Where rows without a partner are results, or a row comes
    once for many, results do not tell how often rows meet.
    """
    if isinstance(stage, Join) and stage.kind is not JoinKind.INNER:
        return None
    name = stage_name(plan.streams[member].alias for member in stage.members)
    found = []
    for each in stage.inputs:
        if each.key is None or statistics[each.key[0]].keys[each.key[1]].distinct.origin is Origin.GIVEN:
            return None
        if each.stage is None and name in statistics[each.members[0]].met:
            own = statistics[each.members[0]]
            found.append(own.met[name] * own.kept_rate)
    return sum(found) / len(found) if found else None


def _input(
    plan: PhysicalPlan,
    stage: Stage,
    number: int,
    statistics: Sequence[StreamStatistics],
    done: Sequence[Played],
    arrival: Arrival,
    hull: Windows,
) -> InputEstimate:
    each = stage.inputs[number]
    # Of a partial result the time of its newest row is known: that of the micro-batch.
    members = (*each.newest, *(member for member in each.members if member not in each.newest))
    key = KEYLESS if each.key is None else statistics[each.key[0]].keys[each.key[1]]
    key = UNIQUE if isinstance(each.source, Pairs) else key
    offsets: tuple[Floats, ...] = ()
    volume = 1.0
    if isinstance(each.source, Scanned | PassedOn):
        rate = statistics[each.members[0]].kept_rate
    else:
        before = done[each.source.stage].samples
        if isinstance(each.source, Joined):
            found = list(before.values())
            if each.key in (one.key for one in plan.stages[each.source.stage].inputs):
                key = _met_on(key, found)
        else:
            found = [before[each.newest, frozenset(each.members)]]
        rate = sum(sample.tuples for sample in found)
        offsets = _offsets(found, members)
        volume = sum(float(sample.volume.mean()) for sample in found)
    width = sum(statistics[member].width.value for member in each.members)
    kept = _kept(plan, stage, number, offsets, arrival, hull)
    return InputEstimate(members, rate, width, key, offsets, kept, volume)


def _met_on(key: KeyStatistics, samples: Sequence[Sample]) -> KeyStatistics:
    """Return what the key of rows is among the results that have met on it: the frequent one is more so."""
    heavy, every = sum(float(each.heavy.mean()) for each in samples), sum(each.tuples for each in samples)
    return replace(key, heaviest=replace(key.heaviest, value=heavy / every)) if every > 0 else key


def _offsets(samples: Sequence[Sample], members: Sequence[int]) -> tuple[Floats, ...]:
    """Return times of results, relative to those of their first member: a sample of equal weights."""
    weights = np.concatenate([sample.weights for sample in samples])
    total, size = weights.sum(), len(weights)
    share = weights / total if total > 0 else np.full(size, 1 / size)
    chosen = np.searchsorted(np.cumsum(share), (np.arange(SAMPLE) + 0.5) / SAMPLE).clip(max=size - 1)

    def times(member: int) -> Floats:
        return np.asarray(np.concatenate([sample.times[member] for sample in samples])[chosen])

    first = times(members[0])
    return tuple(times(member) - first for member in members[1:])


def _kept(
    plan: PhysicalPlan,
    stage: Stage,
    number: int,
    offsets: Sequence[Floats],
    arrival: Arrival,
    hull: Windows,
) -> float:
    """Return how long a tuple of an input stays, from when its newest row has come."""
    if not arrival.streaming:
        return arrival.duration
    each = stage.inputs[number]
    if isinstance(each.source, Pairs):
        return 0.0
    distances = reach(stage.bounds, hull, plan.staged)
    shifts = (np.zeros(SAMPLE), *offsets)
    latest = np.zeros(SAMPLE)
    for rule in retention_within(stage, number, distances):
        ends = [
            np.full(SAMPLE, arrival.duration) if bound is None else bound + shift
            for member, bound in rule.distances
            for shift in (shifts[each.members.index(member)],)
        ]
        latest = np.maximum(latest, np.minimum.reduce(ends) + plan.streams[rule.stream].delay)
    return float(np.maximum(0.0, latest - np.maximum.reduce(shifts)).mean())
