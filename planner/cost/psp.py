"""How the work of a stage lies on its workers (PSP 2009, section 5).

Equations 1 and 2 are the sum of a plan's terms: what the rows of a stage cost on one worker, and what sending
them to several adds. Equation 4, which assumes that all nodes are busy, and equation 5, of the time until
results are there, both divide the work by the number of workers; here that is how many of them a micro-batch
gives work to.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.routes.route import Slicing
from wjoin.planner.cost.approximate import Traffic
from wjoin.planner.cost.stage_estimates import Arrival, InputEstimate, ProbeEstimate
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.slicing import band_width, cut_by, slicing
from wjoin.planner.plan.stage_kinds import Gather, Stage

SKEWED = 1.25
"""By how much the rows of the worker with the heaviest key must be above its share for a key to be skewed."""


@dataclass(frozen=True)
class Spread:
    """How the rows and the work of a stage lie on its workers.

    ``sent``, ``searching`` and ``kept``, by input: to how many workers a row goes, by how many it is searched
    for, and on how many it is kept. ``workers``: how many a micro-batch starts. ``busy`` and ``pairs_busy``:
    how many times as fast as on one worker the stage works off its rows and its pairs. ``copied``: whether
    only the first input is in slices, and rows of others are copied.
    """

    sent: tuple[float, ...]
    searching: tuple[float, ...]
    kept: tuple[float, ...]
    workers: int
    busy: float
    pairs_busy: float
    copied: bool = False

    def searched(self, probe: ProbeEstimate, step: int) -> float:
        """Return how often each tuple is searched for in a step of a probe, as several workers have it."""
        if self.copied:
            return self.repeated(probe, step - 1) if step else self.searching[probe.origin]
        return self.searching[probe.origin]

    def repeated(self, probe: ProbeEstimate, step: int) -> float:
        """Return how often each tuple is made in a step of a probe: copies meet again on each worker."""
        met = (probe.origin, *(each.number for each in probe.steps[: step + 1]))
        return self.searching[probe.origin] if self.copied and 0 not in met else 1.0


def spread(
    plan: PhysicalPlan,
    stage: Stage,
    inputs: Sequence[InputEstimate],
    partitions: int,
    cores: int,
    arrival: Arrival,
) -> Spread:
    """Return how a stage lies on its workers, so many of which work at once as there are cores."""
    once = (1.0,) * len(inputs)
    where = stage.placement
    route = ROUTES[where.route]
    count = route.workers(partitions)
    if where.workers is not None:
        count = where.workers
    known = [view for number in range(len(inputs)) if (view := slicing(plan, stage, number)) is not None]
    if not known:
        turns = min(count, cores)
        rows, pairs = (even(share, turns) if stage.keyed else float(turns) for share in heaviest(inputs))
        return Spread(
            once, once, (0.0,) * len(inputs) if isinstance(stage, Gather) else once, count, rows, pairs
        )
    searching = tuple(1.0 if each.sliced and not each.visits else reached(each, count) for each in known)
    copies = min(where.copies, count)
    kept = tuple(_kept(each, met, copies) for each, met in zip(known, searching, strict=True))
    sent = tuple(_sent(each, met, copies) for each, met in zip(known, searching, strict=True))
    visits = any(each.visits for each in known)
    if route.values:
        # The values of all rows, whenever they come: a band that keeps a tenth of them is as wide.
        band = cut_by(stage)
        slices = band_width(band) / band.share.value / known[0].length
    else:
        slices = (arrival.interval if arrival.streaming else arrival.duration) / known[0].length
    # A row is worked on by one of as many groups of workers as it has copies: those take turns by its slice.
    groups_busy = shared(slices, copies)
    if visits and not route.values:
        # New rows are worked on wherever their partners are kept.
        slices += copies * min(reached(each, sys.maxsize) for each in known if each.probes)
    busy = groups_busy * shared(slices / copies, count // copies)
    busy = busy if busy <= cores else busy / math.ceil(busy / cores)
    whole = Spread(sent, searching, kept, count, busy, busy, copied=not visits)
    return _of_the_heaviest(whole, inputs, min(count, cores)) if route.heaviest else whole


def visiting(lies: Spread, goes: Traffic) -> Spread:
    """Return how a stage of an approximate join lies: rows visit other nodes, where they are not kept."""
    sent = tuple(each * (1 + goes.visits) for each in lies.sent)
    return replace(lies, sent=sent, searching=tuple(each * (1 + goes.visits) for each in lies.searching))


def _kept(view: Slicing, met: float, copies: int) -> float:
    """Return on how many workers a row is kept that ``met`` of them are visited by."""
    if not view.sliced:
        return met
    return float(copies) if view.stored else 0.0


def _sent(view: Slicing, met: float, copies: int) -> float:
    """Return to how many workers a row goes: one of those that keep it is visited, too."""
    if not view.sliced:
        return met
    if not view.probes:
        return max(1.0, _kept(view, met, copies))
    return met + copies - 1 if view.stored else met


def _of_the_heaviest(whole: Spread, inputs: Sequence[InputEstimate], turns: int) -> Spread:
    """Return how a stage lies on its workers that has only the rows of the heaviest key in slices."""

    def mixed(sliced: Sequence[float]) -> tuple[float, ...]:
        shares = (each.key.heaviest.value for each in inputs)
        return tuple(1 + share * (each - 1) for each, share in zip(sliced, shares, strict=True))

    rows, pairs = (1 / (share / whole.busy + (1 - share) / turns) for share in heaviest(inputs))
    return replace(
        whole,
        sent=mixed(whole.sent),
        searching=mixed(whole.searching),
        kept=mixed(whole.kept),
        busy=rows,
        pairs_busy=pairs,
    )


def heaviest_bucket(inputs: Sequence[InputEstimate]) -> int | None:
    """Return the bucket of the key that has the largest share of the rows of an input, None where unknown."""
    known = [each.key for each in inputs if each.key.bucket is not None]
    return max(known, key=lambda key: key.heaviest.value).bucket if known else None


def heaviest(inputs: Sequence[InputEstimate]) -> tuple[float, float]:
    """Return the share of the most frequent key: of the rows of some input, and of the pairs of two."""
    first, second = inputs[0].key, inputs[1].key
    heavy = first.heaviest.value * second.heaviest.value
    others = max(1.0, first.distinct.value - 1, second.distinct.value - 1)
    light = (1 - first.heaviest.value) * (1 - second.heaviest.value) / others
    rows = max(each.key.heaviest.value for each in inputs)
    return rows, max(rows, heavy / (heavy + light)) if heavy else rows


def even(heaviest: float, workers: int) -> float:
    """Return how many times as fast workers are than one, which have the rows of some keys each."""
    most = heaviest + (1 - heaviest) / workers
    return float(workers) if most * workers <= SKEWED else 1 / most


def reached(view: Slicing, workers: int) -> float:
    """Return how many of the workers a row must visit, for all slices that it can reach."""
    copies = view.placement.copies
    group = float(workers // min(copies, workers))
    if view.back is None or view.ahead is None:
        return group
    return min(group, 1 + max(0.0, (view.back + view.ahead) / (view.length * copies)))


def shared(slices: float, workers: int) -> float:
    """Return how many times as fast workers are than one, with so many slices assigned round-robin."""
    whole = max(1, math.ceil(slices))
    return max(1.0, min(float(workers), slices / math.ceil(whole / workers)))
