"""The cost of a plan, in seconds of one core for each second of event time."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wjoin.parts.kernels.registry import KERNELS
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.catalog import Estimate
from wjoin.planner.cost.cardinality import Arrival, StageEstimate, estimate_stages
from wjoin.planner.cost.constants import Constants
from wjoin.planner.physical import Band, Bounds, Method, PhysicalPlan, Stage, UpperBounds
from wjoin.planner.probes import chosen_orders
from wjoin.planner.statistics import StreamStatistics

RUNS = 5
"""Runs of an input that a probe searches on a stream: slices of a few sizes, and the new rows."""

ROW_BYTES = 16
"""What every row carries beside its columns: event time and key code."""


Agreements = tuple[float | None, ...]
"""How often the keys of each stage agree (see ``StageEstimate``)."""


@dataclass(frozen=True)
class Cost:
    """What a plan costs.

    ``terms`` are seconds of one core per second of event time, by name; ``comparisons``,
    ``results`` and ``shuffled_bytes`` are per second of event time, too. ``state_rows`` and
    ``state_bytes`` are what is kept.
    """

    terms: Mapping[str, float]
    comparisons: float
    results: float
    shuffled_bytes: float
    state_rows: float
    state_bytes: float

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
    that the state of a join may take, None for no limit.
    """

    constants: Constants = field(default_factory=Constants)
    interval: float = 1.0
    memory: int | None = None


class CostModel:
    """Estimates plans over the same streams.

    ``units`` are the plan's units of time in a second, ``shares`` what its bands keep of all pairs.
    """

    def __init__(
        self,
        statistics: Sequence[StreamStatistics],
        arrival: Arrival,
        constants: Constants,
        units: int,
        shares: Mapping[Band, Estimate],
    ) -> None:
        self.statistics = tuple(statistics)
        self._shares = {band: share.value for band, share in shares.items()}
        self.arrival = arrival
        self.constants = constants if arrival.streaming else constants.over_tables()
        self.units = units
        self._known: dict[Hashable, tuple[StageEstimate, ...]] = {}
        self._agreements: dict[Hashable, Agreements] = {}

    def stages(
        self, plan: PhysicalPlan, hull: UpperBounds | None = None, agreements: Agreements | None = None
    ) -> tuple[StageEstimate, ...]:
        """Return what the stages of a plan are expected to do, the same for every kernel.

        ``hull``: the bounds by which rows are kept, where they are not those of the plan. ``agreements``:
        those of its keys, where the plan is a pass over some of the windows only.
        """
        agreements = self._measured(plan) if agreements is None else agreements
        played = tuple((stage.bounds, tuple((chosen_orders(stage) or {}).items())) for stage in plan.stages)
        key = (_joined(plan), played, hull or plan.upper, agreements)
        if key not in self._known:
            self._known[key] = estimate_stages(
                plan, self.statistics, self.arrival, hull or plan.upper, self._shares, agreements
            )
        return self._known[key]

    def _measured(self, plan: PhysicalPlan) -> Agreements:
        """Return how often the keys of each stage agree, the same for all its bounds and orders."""
        if not any(each.met for each in self.statistics):
            return (None,) * len(plan.stages)
        key = _joined(plan)
        if key not in self._agreements:
            exact = _exact(plan)
            shape = replace(exact, stages=tuple(replace(stage, probes=()) for stage in exact.stages))
            found = estimate_stages(shape, self.statistics, self.arrival, plan.upper, self._shares)
            self._agreements[key] = tuple(each.agreement for each in found)
        return self._agreements[key]

    def estimate(self, plan: PhysicalPlan) -> Estimated:
        """Return what a plan does and costs."""
        count = _Count(self.units)
        rate = sum(self.statistics[stream].rate.value for stream in plan.staged)
        width = sum(
            self.statistics[stream].rate.value * self.statistics[stream].width.value for stream in plan.staged
        )
        batches = self.arrival.batches
        # Those of a stage concern its inputs; the shares of the streams are taken to be alike.
        sent = max((ROUTES[stage.route].sent for stage in plan.stages), default=1.0)
        whole = self.stages(plan)
        kept_by = [ROUTES[stage.route].kept for stage in plan.stages]
        inputs = [(times, each) for times, stage in zip(kept_by, whole, strict=True) for each in stage.inputs]
        if plan.method is Method.NATIVE:
            count.add("micro-batches", batches, self.constants.native_batch)
            for each in whole:
                _native(count, each, self.constants, batches)
        else:
            count.add("rows", rate * sent, self.constants.row)
            count.add("rows", width * sent, self.constants.byte)
            count.add(
                "micro-batches", batches, self.constants.batch + len(plan.stages) * self.constants.stage
            )
            agreements = self._measured(plan)
            for stages in [self.stages(each, plan.upper, agreements) for each in _passes(plan)]:
                for stage, each in zip(plan.stages, stages, strict=True):
                    _multiway(count, stage, each, self.constants, self.arrival)
            if self.arrival.streaming:
                kept = sum(times * each.rate for times, each in inputs)
                count.add("state", kept, self.constants.state)
        # They are the same under all bounds; what wider ones estimate of them is less certain.
        exact = self.stages(_exact(plan))
        results = exact[-1].results if exact else rate
        width_out = sum(self.statistics[stream].width.value for stream in plan.staged)
        own = self.constants.result + width_out * self.constants.byte
        count.add("results", results, self.constants.native_result if plan.method is Method.NATIVE else own)
        state = inputs if self.arrival.streaming else []
        cost = Cost(
            terms=count.terms,
            comparisons=count.comparisons * self.units,
            results=results * self.units,
            shuffled_bytes=(width + ROW_BYTES * rate) * sent * self.units,
            state_rows=sum(times * each.kept_rows for times, each in state),
            state_bytes=sum(times * each.kept_rows * (each.width + ROW_BYTES) for times, each in state),
        )
        return Estimated(whole, cost)


def _joined(plan: PhysicalPlan) -> Hashable:
    """Return what is joined, whatever the choices for it."""
    conditions = tuple((stage.comparisons, stage.bands, stage.predicates) for stage in plan.stages)
    inputs = tuple((each.members, each.stage, each.key) for stage in plan.stages for each in stage.inputs)
    return plan.streams, plan.upper, plan.branches, inputs, conditions


def _exact(plan: PhysicalPlan) -> PhysicalPlan:
    """Return a plan with the narrowest bounds."""
    return replace(plan, stages=tuple(replace(stage, bounds=Bounds.EXACT) for stage in plan.stages))


def _passes(plan: PhysicalPlan) -> list[PhysicalPlan]:
    """Return the plan of each pass over the windows."""
    if plan.apart:
        return [replace(plan, upper=branch, branches=()) for branch in plan.branches]
    return [plan]


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
    count: _Count, stage: Stage, estimated: StageEstimate, constants: Constants, arrival: Arrival
) -> None:
    works = [_Work.of(kernel, estimated, constants, arrival) for kernel in stage.kernels]
    # Workers that adapt take the cheaper one.
    work = min(works, key=lambda each: each.search_seconds + each.pair_seconds)
    count.comparisons += work.compared
    count.add("searches", work.search_seconds, 1)
    count.add("comparisons", work.pair_seconds, 1)
    for probe in estimated.probes:
        for step in probe.steps:
            # Conditions are checked on the tuples that have been made.
            count.add("tuples", KERNELS[stage.kernels[0]].made(step), constants.tuple)
            if step.predicate_seconds:
                count.add("predicates", step.predicate_seconds, 1)
        if stage.bounds is not Bounds.EXACT and probe.steps:
            count.add("tuples", probe.steps[-1].tuples, constants.tuple)


@dataclass(frozen=True)
class _Work:
    """What a kernel does in a stage, per unit of time: pairs compared, and the seconds of searching and
    comparing."""

    compared: float
    search_seconds: float
    pair_seconds: float

    @classmethod
    def of(cls, name: str, estimated: StageEstimate, constants: Constants, arrival: Arrival) -> "_Work":
        kernel = KERNELS[name]
        runs = RUNS if arrival.streaming else 1
        searches = compared = 0.0
        for probe in estimated.probes:
            searches += sum(step.searches for step in probe.steps)
            compared += sum(kernel.compared(step) for step in probe.steps)
            if kernel.sweeps and probe.steps:
                searches += probe.steps[0].searches * len(probe.steps)
        return cls(
            compared,
            searches * runs * constants.search_seconds(name),
            compared * constants.pair_seconds(name),
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
