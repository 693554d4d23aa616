"""Does the planner choose well where there is no key: route, number of workers, length of slices, kernel?

As benchmarks/choices.py, for streams that only a condition links, or a costly predicate. Each candidate runs
on as many workers as it asks for, one after the other in this process; what counts is the critical path of
a micro-batch: the slowest worker of each stage, stage after stage. What a candidate pays in Spark for a
micro-batch, and to bring its rows to as many workers as they go to, is added from the calibrated constants.
"""

import itertools
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import kit_path  # noqa: F401 (finds tests.kit)
import numpy as np
import pyarrow as pa
from choices import MEASURED, SECOND
from choosing import command_line, good_choices, run_all

from tests.kit.local import LocalWorkers
from tests.kit.planned import block_of, plan_over, stream_of
from wjoin.executor.counts import Counts
from wjoin.planner.choose.layouts import FREE
from wjoin.planner.choose.plan_candidates import Candidate
from wjoin.planner.cost.constants import load_constants
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.explain.plan_words import plan_words
from wjoin.planner.plan.physical import Method, PhysicalPlan
from wjoin.planner.plan.stage_kinds import Bounds
from wjoin.planner.planning import PlannedSelect
from wjoin.udfs.predicate import Predicate

COLUMNS = {"id": "bigint", "x": "double"}

LIMIT = 2.0
"""How many times as much as the best one a candidate may be expected to cost to be run."""


@dataclass(frozen=True)
class Workload:
    """Streams of so many rows a second each, inside a window of seconds, on so many cores.

    ``cost_us``: what the predicate takes for a pair in microseconds, None for a condition on plain columns;
    it keeps the share ``selectivity``. ``near``: whether there is a band, too, that keeps a hundredth.
    ``whole``: whether all streams are linked with each other, not each with the next one.
    """

    rates: tuple[int, ...]
    window: float
    cores: int
    cost_us: float | None
    selectivity: float
    near: bool = False
    whole: bool = False

    @property
    def name(self) -> str:
        """What tells it from the others."""
        link = "a condition" if self.cost_us is None else f"{self.cost_us:g} us a pair"
        more = f"{', a band' if self.near else ''}{', each pair' if self.whole else ''}"
        return (
            f"{self.rates}, {self.window:g} s, {self.cores} cores, {link}, keeps {self.selectivity:g}{more}"
        )

    @property
    def sql(self) -> str:
        """The statement: each stream is linked to the next, or to all others."""
        names = "ABCDEF"[: len(self.rates)]
        pairs = list(itertools.combinations(names, 2) if self.whole else itertools.pairwise(names))
        links = [
            # Of a sum of two numbers between 0 and 1, the share above 2 - s is s * s / 2.
            f"{a}.x + {b}.x > {2 - (2 * self.selectivity) ** 0.5}"
            if self.cost_us is None
            else f"alike({a}.id, {b}.id)"
            for a, b in pairs
        ]
        if self.near:
            # Of the differences of two numbers between 0 and 1.
            links += [f"abs({a}.x - {b}.x) <= 0.005" for a, b in pairs]
        sources = ", ".join(f"{name.lower()} {name}" for name in names)
        window = f"WINDOW = {int(self.window * 1000)} MILLISECONDS"
        return f"SELECT A.id FROM {sources} {window} WHERE {' AND '.join(links)}"

    @property
    def predicate(self) -> Predicate:
        """The predicate, which takes its time and keeps its share of the pairs."""
        cost = self.cost_us or 0.0

        def alike(left: Any, right: Any) -> Any:
            until = time.process_time() + len(left) * cost / 1e6
            mixed = (left.astype(np.uint64) * np.uint64(2654435761)) ^ (
                right.astype(np.uint64) << np.uint64(7)
            )
            found = mixed * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40) < self.selectivity * (1 << 24)
            while time.process_time() < until:
                pass
            return found

        return Predicate("alike", alike, cost_us=cost or None, selectivity=self.selectivity)


def workloads() -> Iterator[Workload]:
    """Yield the grid: rates, windows, cores, conditions and predicates of several costs."""
    pairs = ((300, 300), (2000, 2000), (2000, 50))
    for rates, window, cores in itertools.product(pairs, (0.2, 3.0), (2, 4)):
        yield Workload(rates, window, cores, None, 0.001)
        if rates != (2000, 2000):
            yield Workload(rates, window, cores, None, 0.05)
    for cost, window, cores in itertools.product((5.0, 100.0), (0.5, 3.0), (2, 4)):
        yield Workload((40, 40), window, cores, cost, 0.01)
        yield Workload((100, 5), window, cores, cost, 0.1)
    for cost, cores, share in itertools.product((None, 50.0), (2, 4), (0.01, 0.1)):
        yield Workload((30, 30, 30), 1.0, cores, cost, share)
    for cores, share in itertools.product((2, 4), (0.01, 0.1)):
        yield Workload((30, 30, 30), 1.0, cores, 50.0, share, whole=True)
    for (rate, cost), cores in itertools.product(((300, None), (300, 50.0), (2000, None)), (2, 4)):
        yield Workload((rate, rate), 3.0, cores, cost, 0.1, near=True)
    for rates, cost in (((40, 40), 100.0), ((100, 5), 100.0), ((300, 300), None), ((2000, 50), None)):
        yield Workload(rates, 3.0, 8, cost, 0.05)


def planned(load: Workload) -> PlannedSelect:
    """Plan a workload with the statistics of its data."""
    relations = [stream_of(COLUMNS, {"rate": rate}) for rate in load.rates]
    costs = CostSettings(load_constants(), cores=load.cores)
    known = {"alike": load.predicate}
    return plan_over(load.sql, relations, costs=costs, layouts=FREE, predicates=known)


def micro_batches(load: Workload, plan: PhysicalPlan) -> list[dict[int, pa.RecordBatch]]:
    """Return the blocks of each second of event time."""
    random = np.random.default_rng(7)
    made = [0] * len(load.rates)
    batches = []
    for second in range(int(2 * load.window) + 1 + MEASURED):
        blocks = {}
        for number, rate in enumerate(load.rates):
            times = np.sort(random.integers(0, SECOND, rate)) + second * SECOND
            ids = np.arange(made[number], made[number] + rate)
            made[number] += rate
            blocks[number] = block_of(plan, number, {"ts": times, "x": random.random(rate), "id": ids})
        batches.append(blocks)
    return batches


@dataclass(frozen=True)
class Measured:
    """What a candidate took for a median micro-batch, in seconds with what it pays in Spark; its results."""

    seconds: float
    results: int


def measure(load: Workload, candidate: Candidate) -> Measured:
    """Run a candidate; the last MEASURED micro-batches count."""
    local = LocalWorkers(candidate.plan, load.cores, predicates={"alike": load.predicate})
    seconds, results = [], 0
    for blocks in micro_batches(load, candidate.plan):
        start = time.process_time()
        results += sum(each.num_rows for each in local.run(blocks, Counts()))
        spent = time.process_time() - start
        seconds.append(spent - sum(sum(each) - max(each) for each in local.seconds))
    terms = candidate.estimated.cost.terms
    return Measured(statistics.median(seconds[-MEASURED:]) + terms["micro-batches"] + terms["rows"], results)


def to_run(plan: PlannedSelect) -> list[Candidate]:
    """Return the chosen candidate, then the others that could be the fastest: each with the exact bounds."""
    found = [each for each in plan.candidates if each.plan.method is Method.MULTIWAY]
    most = LIMIT * found[0].estimated.cost.seconds
    others = [
        each
        for each in found[1:]
        if each.plan.stages[0].bounds is Bounds.EXACT and each.estimated.cost.seconds < most
    ]
    return [found[0], *others]


@dataclass(frozen=True)
class Outcome:
    """A workload: its candidates with what was measured of them, the chosen one first."""

    load: Workload
    runs: tuple[tuple[Candidate, Measured], ...]

    @property
    def ratio(self) -> float:
        """How many times slower the chosen plan is than the fastest."""
        times = [measured.seconds for _, measured in self.runs]
        return times[0] / min(times)

    @property
    def fastest(self) -> Candidate:
        """The candidate that took least."""
        return min(self.runs, key=lambda run: run[1].seconds)[0]


def run(load: Workload) -> Outcome:
    """Run the candidates of a workload."""
    plan = planned(load)
    runs = tuple(
        (each, min((measure(load, each) for _ in range(2)), key=lambda found: found.seconds))
        for each in to_run(plan)
    )
    results = {measured.results for _, measured in runs}
    if len(results) > 1:
        raise SystemExit(f"{load.name}: the candidates differ in their results: {results}")
    return Outcome(load, runs)


HEAD = f"{'workload':66} {'chosen':34} {'fastest':34} {'ratio':>6} {'plans':>5}  results"


def line(outcome: Outcome, *, detailed: bool) -> str:
    """Return the line of a workload; ``detailed``: with one for each of its candidates."""
    names = f"{plan_words(outcome.runs[0][0].plan):34} {plan_words(outcome.fastest.plan):34}"
    results = outcome.runs[0][1].results
    lines = [f"{outcome.load.name:66} {names} {outcome.ratio:6.2f} {len(outcome.runs):5}  {results:,}"]
    for candidate, measured in outcome.runs if detailed else ():
        expected = candidate.estimated.cost.seconds / outcome.load.cores
        lines.append(
            f"    {plan_words(candidate.plan):60} {measured.seconds:8.3f} s, expected {expected:8.3f}"
        )
    return "\n".join(lines)


def main() -> int:
    """Run all workloads, or some with --quick; fail where the choices are not good."""
    parser = command_line(__doc__, "sixth")
    parser.add_argument("--detailed", action="store_true", help="print what was measured of each candidate")
    arguments = parser.parse_args()
    print(HEAD, flush=True)
    outcomes = run_all(
        workloads(),
        6 if arguments.quick else 1,
        run,
        partial(line, detailed=arguments.detailed),
        arguments.only,
    )
    ran = f"{sum(len(each.runs) for each in outcomes)} plans run"
    return 0 if good_choices([each.ratio for each in outcomes], ran) else 1


if __name__ == "__main__":
    sys.exit(main())
