"""The cost of a plan, in seconds of one core for each second of event time."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wjoin.parts.kernels.registry import KERNELS
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.catalog import Origin
from wjoin.planner.choose.held_streams import is_held
from wjoin.planner.cost.approximate import Traffic, traffic
from wjoin.planner.cost.cardinality import play_stages
from wjoin.planner.cost.constants import Constants
from wjoin.planner.cost.psp import Spread, spread, visiting
from wjoin.planner.cost.stage_estimates import ROW_BYTES, Arrival, InputEstimate, StageEstimate
from wjoin.planner.cost.stage_play import Played
from wjoin.planner.cost.stream_statistics import StreamStatistics
from wjoin.planner.plan.physical import Method, Passes, PhysicalPlan
from wjoin.planner.plan.probes import chosen_orders
from wjoin.planner.plan.stage_kinds import Bounds, Stage
from wjoin.planner.windows.bounds import Windows

RUNS = 5
"""Runs of an input that a probe searches on a stream: slices of a few sizes, and the new rows."""

BACKLOG = 60.0
"""Seconds of event time in a micro-batch where rows always wait for the one before."""

OF_PAIRS = frozenset({"comparisons", "tuples", "predicates", "results"})
"""Terms of a cost that grow with the pairs of rows, not with the rows."""

PAID_ELSEWHERE = frozenset({"micro-batches", "results"})
"""Terms that are no work on the rows which are sent to a worker."""

Agreements = tuple[float | None, ...]
"""How often the keys of each stage agree (see ``StageEstimate``)."""


@dataclass(frozen=True)
class Cost:
    """What a plan costs.

    ``terms`` are seconds of one core per second of event time, by name; ``comparisons``,
    ``results`` and ``shuffled_bytes`` are per second of event time, too. ``state_rows`` and
    ``state_bytes`` are what is kept. ``network``: how many times as long as joining them it takes to send
    rows to the workers of a stage in slices, where that is known; beyond 1 the network sets the pace (PSP
    2009, equation 6). ``visits`` of a row to other nodes, and the share of the results that is ``missing``,
    are those of an approximate join.
    """

    terms: Mapping[str, float]
    comparisons: float
    results: float
    shuffled_bytes: float
    state_rows: float
    state_bytes: float
    network: float = 0.0
    visits: float = 0.0
    missing: float = 0.0

    @property
    def seconds(self) -> float:
        """All terms together."""
        return sum(self.terms.values())


@dataclass(frozen=True)
class Estimated:
    """What a plan is expected to do, stage by stage, and what that costs."""

    stages: tuple[StageEstimate, ...]
    cost: Cost


@dataclass(frozen=True)
class CostSettings:
    """What plans are weighed with.

    ``interval``: seconds of event time that a micro-batch is expected to bring. ``memory``: bytes
    that the state of a join may take, None for no limit. ``cores``: how many tasks run at once (None
    where that is not known: one), of the ``partitions`` that a stage can have (None: as many).
    ``throughput``: whether plans are weighed for the most rows (PSP 2009, equation 4), in place of the
    shortest time until results are there (equation 5). ``network``: bytes a second that the network brings
    to a worker, None where nothing limits it. ``stretch``: bytes of new rows that a worker joins at once.
    ``files``: whether the state of streams is in files, not in Spark's store.
    """

    constants: Constants = field(default_factory=Constants)
    interval: float = 1.0
    memory: int | None = None
    cores: int | None = None
    partitions: int | None = None
    throughput: bool = False
    network: float | None = None
    stretch: float = math.inf
    files: bool = False

    @property
    def workers(self) -> int:
        """How many workers of a stage run at once."""
        cores = self.cores or 1
        return cores if self.partitions is None else min(cores, self.partitions)

    @property
    def expected_interval(self) -> float:
        """The seconds of event time that a micro-batch brings: many where rows always wait."""
        return max(self.interval, BACKLOG) if self.throughput else self.interval


class CostModel:
    """Estimates plans over the same streams.

    ``settings`` are what they are weighed with, ``units`` the plan's units of time in a second.
    """

    def __init__(
        self,
        statistics: Sequence[StreamStatistics],
        arrival: Arrival,
        settings: CostSettings,
        units: int,
    ) -> None:
        self.cores = settings.workers
        self._partitions = settings.partitions or self.cores
        self._network = settings.network
        self.statistics = tuple(statistics)
        self.arrival = arrival
        known = settings.constants.in_files() if settings.files else settings.constants
        self.constants = known if arrival.streaming else known.over_tables()
        self.units = units
        self._known: dict[Hashable, tuple[Played, ...]] = {}
        self._agreements: dict[Hashable, Agreements] = {}

    def stages(self, plan: PhysicalPlan, hull: Windows | None = None) -> tuple[StageEstimate, ...]:
        """Return what the stages of a plan are expected to do, the same for every kernel.

        ``hull``: the bounds by which rows are kept, where they are not those of the plan.
        """
        found = self._played(plan, hull or plan.windows, self._measured(plan))
        return tuple(each.estimate for each in found)

    def _passes(self, plan: PhysicalPlan) -> list[tuple[StageEstimate, ...]]:
        """Return what the stages do in each pass over the windows."""
        if not plan.apart:
            return [self.stages(plan)]
        agreements = self._measured(plan)
        passes = (replace(plan, windows=branch, branches=()) for branch in plan.branches)
        found = [self._played(each, plan.windows, agreements, plan.branches) for each in passes]
        return [tuple(each.estimate for each in played) for played in found]

    def _played(
        self,
        plan: PhysicalPlan,
        hull: Windows,
        agreements: Agreements,
        alternatives: tuple[Windows, ...] = (),
    ) -> tuple[Played, ...]:
        """Return what stages do; ``alternatives``: those of all passes, where the plan is one of them."""
        orders = tuple((stage.bounds, tuple((chosen_orders(stage) or {}).items())) for stage in plan.stages)
        key = (_joined(plan), plan.apart, orders, hull, agreements, alternatives)
        if key not in self._known:
            narrowest = with_bounds(plan, Bounds.EXACT)
            exact = None if narrowest == plan else self._played(narrowest, hull, agreements, alternatives)
            whole = None
            if alternatives:
                apart = replace(plan, windows=hull, branches=alternatives)
                whole = self._played(apart, hull, agreements)
            self._known[key] = play_stages(
                plan, self.statistics, self.arrival, hull, agreements, exact, whole
            )
        return self._known[key]

    def _measured(self, plan: PhysicalPlan) -> Agreements:
        """Return how often the keys of each stage agree, the same for all its bounds and orders."""
        if not any(each.met for each in self.statistics):
            return (None,) * len(plan.stages)
        key = _joined(plan)
        if key not in self._agreements:
            exact = _in_hull(plan)
            shape = replace(exact, stages=tuple(replace(stage, probes=()) for stage in exact.stages))
            found = play_stages(shape, self.statistics, self.arrival, plan.windows)
            self._agreements[key] = tuple(each.estimate.agreement for each in found)
        return self._agreements[key]

    def estimate(self, plan: PhysicalPlan) -> Estimated:
        """Return what a plan does and costs."""
        count = _Count(self.units)
        native = plan.method is Method.NATIVE
        whole = self.stages(plan)
        # They are the same under all bounds and in all passes.
        exact = self.stages(_in_hull(plan))
        rate = sum(self.statistics[stream].rate.value for stream in plan.staged)
        results = exact[-1].results if exact else rate
        width_out = sum(self.statistics[stream].width.value for stream in plan.staged)
        own = self.constants.result + width_out * self.constants.byte
        kept: list[tuple[float, InputEstimate]] = []
        shuffled = network = visits = 0.0
        kept_share = 1.0
        if native:
            batches = self.arrival.batches
            count.add("micro-batches", batches, self.constants.native_batch)
            for each in whole:
                _native(count, each, self.constants, batches)
                kept += [(1.0, source) for source in each.inputs]
            count.add("results", results, self.constants.native_result)
            shuffled = sum(rate * (width + ROW_BYTES) for rate, width in self._streams(plan))
        else:
            fixed = self.constants.batch + len(plan.stages) * self.constants.stage
            count.add("micro-batches", self.arrival.batches, fixed)
            if not plan.stages:
                count.add("results", results, own)
                shuffled = sum(self._sent(count, each, 1.0) for each in self._streams(plan))
            passes = self._passes(plan)
            for number, stage in enumerate(plan.stages):
                inputs = whole[number].inputs
                lies = spread(plan, stage, inputs, self._partitions, self.cores, self.arrival)
                goes = self._traffic(plan, stage, inputs, lies.workers)
                if goes is not None:
                    lies = visiting(lies, goes)
                    kept_share *= 1 - goes.lost
                    told = lies.workers * len(inputs) * self.arrival.batches * goes.bytes
                    # Each process reads once what all nodes have told, whatever it sends and joins.
                    readers = min(self.cores, lies.workers)
                    count.add("summaries", told * readers, self.constants.byte)
                    shuffled += told * readers
                    visits = max(visits, goes.visits)
                before, sent = dict(count.terms), shuffled
                for place, source in enumerate(inputs):
                    shuffled += self._sent(count, self._arriving(stage, place, source), lies.sent[place])
                    if is_held(plan, stage.inputs[place]):
                        continue
                    kept.append((lies.kept[place], source))
                    if self.arrival.streaming:
                        count.add("state", lies.kept[place] * source.rate, self.constants.state)
                for played in passes:
                    _multiway(count, stage, played[number], self.constants, self.arrival, lies)
                if stage.placement.length is not None:
                    further = (lies.workers - 1) * self.arrival.batches
                    count.add("micro-batches", further, self.constants.worker)
                if number == len(plan.stages) - 1:
                    count.add("results", results, own)
                added = {name: value - before.get(name, 0.0) for name, value in count.terms.items()}
                if self._network is not None and stage.placement.length is not None:
                    arriving = (shuffled - sent) * self.units / lies.workers / self._network
                    joining = sum(value for name, value in added.items() if name not in PAID_ELSEWHERE)
                    network = max(network, arriving * lies.busy / joining)
                self._idle(count, stage, lies, added)
        state = kept if self.arrival.streaming else []
        cost = Cost(
            terms=count.terms,
            comparisons=count.comparisons * self.units,
            results=results * self.units,
            shuffled_bytes=shuffled * self.units,
            state_rows=sum(times * each.kept_rows for times, each in state),
            state_bytes=sum(times * each.kept_rows * (each.width + ROW_BYTES) for times, each in state),
            network=network,
            visits=visits,
            missing=1 - kept_share,
        )
        return Estimated(whole, cost)

    def _traffic(
        self, plan: PhysicalPlan, stage: Stage, inputs: Sequence[InputEstimate], nodes: int
    ) -> Traffic | None:
        """Return what visits the nodes of a stage of an approximate join, None of an exact one."""
        if plan.approximate is None or not ROUTES[stage.placement.route].approximate:
            return None
        rows = max(each.kept_rows for each in inputs)
        distinct = max(each.key.distinct.value for each in inputs)
        if all(each.key.distinct.origin is Origin.DEFAULT for each in inputs):
            # A summary must do for as many as there may be.
            distinct = max(distinct, rows)
        heaviest = min(each.key.heaviest.value for each in inputs)
        known = [each.key.local.value for each in inputs if each.key.local is not None]
        local = min(known, default=0.0)
        return traffic(plan.approximate, stage.placement.route, nodes, rows, distinct, heaviest, local)

    def _streams(self, plan: PhysicalPlan) -> list[tuple[float, float]]:
        """Return the rate and the width of the rows of each stream that is joined."""
        known = [self.statistics[stream] for stream in plan.staged]
        return [(each.rate.value, each.width.value) for each in known]

    def _arriving(self, stage: Stage, place: int, source: InputEstimate) -> tuple[float, float]:
        """Return the rate and the width of what comes to an input: of a stream, before its filters."""
        if stage.inputs[place].stage is not None:
            return source.rate, source.width
        known = self.statistics[source.members[0]]
        return known.rate.value, known.width.value

    def _sent(self, count: "_Count", arriving: tuple[float, float], times: float) -> float:
        """Add what it costs to bring rows to so many workers each; return the bytes per unit of time."""
        rate, width = arriving
        count.add("rows", rate * times, self.constants.row)
        count.add("rows", rate * width * times, self.constants.byte)
        return rate * (width + ROW_BYTES) * times

    def _idle(self, count: "_Count", stage: Stage, lies: Spread, added: Mapping[str, float]) -> None:
        """Add the time of cores that have no part of a stage's work, whose terms are ``added``."""
        pairs = sum(value for name, value in added.items() if name in OF_PAIRS)
        waiting = (self.cores / lies.busy - 1) * (sum(added.values()) - pairs)
        waiting += (self.cores / lies.pairs_busy - 1) * pairs
        if self.arrival.streaming and not stage.keyed:
            waiting += (self.cores - 1) * self.arrival.batches * self.constants.stage * self.units
        if waiting > 0:
            count.terms["idle"] = count.terms.get("idle", 0.0) + waiting


def _joined(plan: PhysicalPlan) -> Hashable:
    """Return what is joined, whatever the choices for it."""
    inputs = tuple(
        (each.source, each.key, stage.chains(number))
        for stage in plan.stages
        for number, each in enumerate(stage.inputs)
    )
    return plan.streams, plan.windows, plan.branches, inputs, tuple(stage.checks for stage in plan.stages)


def with_bounds(plan: PhysicalPlan, bounds: Bounds) -> PhysicalPlan:
    """Return a plan whose stages look for partners by other bounds."""
    return replace(plan, stages=tuple(replace(stage, bounds=bounds) for stage in plan.stages))


def _in_hull(plan: PhysicalPlan) -> PhysicalPlan:
    """Return a plan with the narrowest bounds, and with one pass inside the hull of the windows."""
    return replace(with_bounds(plan, Bounds.EXACT), passes=Passes.HULL)


class _Count:
    """Adds up the terms of a cost."""

    def __init__(self, units: int) -> None:
        self._units = units
        self.terms: dict[str, float] = {}
        self.comparisons = 0.0

    def add(self, name: str, often: float, seconds: float) -> None:
        """Add work that is done ``often`` per unit of time and takes ``seconds`` each time."""
        self.terms[name] = self.terms.get(name, 0.0) + often * seconds * self._units


def _multiway(
    count: _Count,
    stage: Stage,
    estimated: StageEstimate,
    constants: Constants,
    arrival: Arrival,
    lies: Spread,
) -> None:
    works = [_Work.of(kernel, estimated, constants, arrival, lies) for kernel in stage.kernels]
    # Workers that adapt take the cheaper one.
    work = min(works, key=lambda each: each.search_seconds + each.pair_seconds)
    count.comparisons += work.compared
    count.add("searches", work.search_seconds, 1)
    count.add("comparisons", work.pair_seconds, 1)
    for probe in estimated.probes:
        for number, step in enumerate(probe.steps):
            times = lies.repeated(probe, number)
            kernel = KERNELS[stage.kernels[0]]
            # Other conditions are checked on the tuples that have been made.
            made = step.checked if kernel.tested(step) else kernel.made(step)
            count.add("tuples", times * made, constants.tuple)
            if step.predicate_seconds:
                count.add("predicates", times * step.predicate_seconds, 1)
        if stage.bounds is not Bounds.EXACT and probe.steps:
            count.add("tuples", probe.steps[-1].checked, constants.tuple)


@dataclass(frozen=True)
class _Work:
    """What a kernel does in a stage, per unit of time: pairs compared, and the seconds of searching and
    comparing."""

    compared: float
    search_seconds: float
    pair_seconds: float

    @classmethod
    def of(
        cls, name: str, estimated: StageEstimate, constants: Constants, arrival: Arrival, lies: Spread
    ) -> "_Work":
        kernel = KERNELS[name]
        runs = RUNS if arrival.streaming else 1
        searches = compared = seconds = 0.0
        for probe in estimated.probes:
            steps = list(enumerate(probe.steps))
            searches += sum(lies.searched(probe, number) * step.searches for number, step in steps)
            for number, step in steps:
                pairs = lies.repeated(probe, number) * kernel.compared(step)
                compared += pairs
                tested = constants.condition * kernel.tested(step)
                seconds += pairs * (tested or constants.pair_seconds(name))
            if kernel.sweeps and probe.steps:
                searches += lies.searching[probe.origin] * probe.steps[0].searches * len(probe.steps)
        return cls(
            compared,
            searches * runs * constants.search_seconds(name),
            seconds,
        )


def _native(count: _Count, estimated: StageEstimate, constants: Constants, batches: float) -> None:
    """Add a chain of joins of two over the inputs of a stage."""
    rows = sum(each.rate for each in estimated.inputs)
    steps = [step for probe in estimated.probes for step in probe.steps]
    between = sum(step.tuples for probe in estimated.probes for step in probe.steps[:-1])
    pairs = sum(step.of_key for step in steps)
    count.add("rows", rows + between, constants.native_row)
    count.add("comparisons", pairs, constants.native_pair)
    count.comparisons += pairs
    joins = len(estimated.inputs) - 1
    count.add("micro-batches", joins * batches, constants.native_join)
