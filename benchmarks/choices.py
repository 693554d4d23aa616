"""Does the planner choose well? Every candidate of many workloads is run, and the chosen one compared.

A workload is a statement over streams with given rates, distinct values and skew, told to the
planner as statistics. Each candidate runs on the executor's own logic of one worker, in this
process, over micro-batches of one second; what is measured is the processor time of a micro-batch
once the windows are full. Rows, state and comparisons come out of the same runs. What every
candidate pays alike in Spark, for a micro-batch and to bring the rows, is added from the
calibrated constants; --bare leaves it out. The method NATIVE is not run here.
"""

import itertools
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import kit_path  # noqa: F401 (finds tests.kit)
import numpy as np
import pyarrow as pa
from choosing import command_line, good_choices, run_all

from tests.kit.local import LocalWorkers
from tests.kit.planned import block_of, plan_over, stream_of
from wjoin.executor.counts import Counts
from wjoin.planner.choose.plan_candidates import Candidate
from wjoin.planner.cost.constants import load_constants
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.explain.plan_words import plan_words
from wjoin.planner.figures import figure
from wjoin.planner.plan.physical import Method, PhysicalPlan
from wjoin.planner.planning import PlannedSelect

SECOND = 1_000_000
MEASURED = 6
"""Micro-batches that are measured, after the windows are full."""

LIMIT = 3e7
"""Comparisons in a micro-batch beyond which a candidate is not run: it cannot be near the fastest."""

VALUES = 10_000

COLUMNS = {"k": "bigint", "v": "bigint"}


@dataclass(frozen=True)
class Workload:
    """A statement and its data: the rate of each stream (rows a second), and the values of the key.

    ``near``: how far the column v, with values from 0 to VALUES, may differ between A and the
    others; None for no condition on it. ``join``: how each stream joins A, such as LEFT JOIN.
    """

    name: str
    windows: str
    rates: tuple[int, ...]
    distinct: int
    heaviest: float
    reach: float
    keys: str = "all"
    near: int | None = None
    join: str = ""

    @property
    def aliases(self) -> str:
        """The names of the streams."""
        return "ABCDEF"[: len(self.rates)]

    @property
    def sql(self) -> str:
        """The statement."""
        sources = ", ".join(f"{alias.lower()} {alias}" for alias in self.aliases)
        others = self.aliases[1:]
        if self.join:
            asof = " MATCH_CONDITION (A.ts >= {}.ts)" if "ASOF" in self.join else ""
            sources = "a A" + "".join(
                f" {self.join} {alias.lower()} {alias}{asof.format(alias)} ON A.k = {alias}.k"
                for alias in others
            )
            return f"SELECT A.k FROM {sources} {self.windows}"
        conditions = [f"A.k = {alias}.k" for alias in others if self.keys == "all"]
        conditions += [f"abs(A.v - {alias}.v) <= {self.near}" for alias in others if self.near is not None]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT A.k FROM {sources} {self.windows}{where}"


def workloads() -> Iterator[Workload]:
    """Yield the grid: forms of windows, rates, distinct values, skew, with a key and without."""
    few, many = ((20, 0.0), (2000, 0.0), (2000, 0.1)), ((500, 0.0), (20000, 0.0), (20000, 0.01))
    rates = {
        "even": ((200, 200, 200), few),
        "uneven": ((1000, 100, 20), few),
        "fast": ((2000, 2000, 2000), many),
    }
    forms = {
        "one 0.2 s": ("WINDOW = 200 MILLISECONDS", 0.2),
        "one 3 s": ("WINDOW = 3 SECONDS", 3.0),
        "one pair narrow": (
            "WINDOW (A, B) = 100 MILLISECONDS AND WINDOW (B, C) = 2 SECONDS AND WINDOW (A, C) = 2 SECONDS",
            2.0,
        ),
        "derived": ("WINDOW (A, B) = 300 MILLISECONDS AND WINDOW (B, C) = 2 SECONDS", 2.3),
        "directed": ("DWINDOW (A, B) = 1 SECOND AND DWINDOW (B, C) = 1 SECOND", 2.0),
        "both ways": ("PATH (A, B, C) WITHIN (1 SECOND, 1 SECOND) BIDIRECTIONAL", 2.0),
    }
    for (form, (windows, reach)), (speed, (each, keys)) in itertools.product(forms.items(), rates.items()):
        for distinct, heaviest in keys:
            yield Workload(
                f"{form}, {speed}, {distinct} values, skew {heaviest}",
                windows,
                each,
                distinct,
                heaviest,
                reach,
            )
    for width, pair in itertools.product((0.05, 1.0), ((200, 200), (1000, 50), (2000, 2000))):
        yield Workload(
            f"two {width} s, {pair}", f"WINDOW = {int(width * 1000)} MILLISECONDS", pair, 500, 0.0, width
        )
        if pair != (2000, 2000):
            yield Workload(
                f"no key {width} s, {pair}",
                f"WINDOW = {int(width * 1000)} MILLISECONDS",
                pair,
                1,
                1.0,
                width,
                "none",
            )
    for near, distinct in itertools.product((10, 500), (1, 20)):
        key = "none" if distinct == 1 else "all"
        for width, pair in itertools.product((0.2, 3.0), ((300, 300), (1000, 100, 20))):
            yield Workload(
                f"near {near}, {width} s, {pair}, {distinct} values",
                f"WINDOW = {int(width * 1000)} MILLISECONDS",
                pair,
                distinct,
                1 / distinct,
                width,
                key,
                near,
            )


def planned(load: Workload, settings: CostSettings) -> PlannedSelect:
    """Plan a workload with the statistics of its data."""
    relations = []
    for rate in load.rates:
        known = {
            "rate": rate,
            "distinct.k": load.distinct,
            "heaviest.k": max(load.heaviest, 1 / load.distinct),
            "minimum.v": 0,
            "maximum.v": VALUES,
        }
        relations.append(stream_of(COLUMNS, known))
    return plan_over(load.sql, relations, costs=settings)


def micro_batches(load: Workload, plan: PhysicalPlan) -> list[dict[int, pa.RecordBatch]]:
    """Return the blocks of each second of event time: random times, keys with the asked-for skew."""
    random = np.random.default_rng(7)
    batches = []
    for second in range(int(load.reach) + 2 + MEASURED):
        blocks = {}
        for number, rate in enumerate(load.rates):
            times = np.sort(random.integers(0, SECOND, rate)) + second * SECOND
            keys = (
                random.integers(1, max(2, load.distinct), rate)
                if load.distinct > 1
                else np.zeros(rate, np.int64)
            )
            keys[random.random(rate) < load.heaviest] = 0
            rows = {"ts": times, "k": keys, "v": keys}
            if load.near is not None:
                rows["v"] = random.integers(0, VALUES, rate)
            blocks[number] = block_of(plan, number, rows)
        batches.append(blocks)
    return batches


def of_our_own(plan: PlannedSelect) -> list[Candidate]:
    """Return the candidates that run in this process."""
    return [each for each in plan.candidates if each.plan.method is Method.MULTIWAY]


@dataclass(frozen=True)
class Measured:
    """What a candidate did in a median micro-batch: seconds, comparisons, results; and its state."""

    seconds: float
    comparisons: float
    results: float
    state_rows: float


def measure(plan: PhysicalPlan, batches: Sequence[dict[int, pa.RecordBatch]]) -> Measured:
    """Run a plan over micro-batches; the last MEASURED of them count."""
    worker = LocalWorkers(plan)
    seconds, comparisons, results, state = [], [], [], []
    for blocks in batches:
        counts = Counts()
        start = time.process_time()
        found = worker.run(blocks, counts)
        seconds.append(time.process_time() - start)
        comparisons.append(counts.stage["comparisons"])
        results.append(sum(each.num_rows for each in found))
        state.append(worker.state_rows)
    middle = [statistics.median(each[-MEASURED:]) for each in (seconds, comparisons, results, state)]
    return Measured(*map(float, middle))


@dataclass(frozen=True)
class Outcome:
    """A workload: its candidates with what was measured of them, the chosen one first."""

    load: Workload
    runs: tuple[tuple[Candidate, Measured], ...]
    fixed: float

    @property
    def ratio(self) -> float:
        """How many times slower the chosen plan is than the fastest."""
        times = [self.fixed + measured.seconds for _, measured in self.runs]
        return times[0] / min(times)

    @property
    def fastest(self) -> Candidate:
        """The candidate that took least."""
        return min(self.runs, key=lambda run: run[1].seconds)[0]

    @property
    def sizes(self) -> dict[str, tuple[float, float]]:
        """What the chosen plan made, kept and compared: as measured, and as expected."""
        chosen, measured = self.runs[0]
        cost = chosen.estimated.cost
        return {
            "results": (measured.results, cost.results),
            "state rows": (measured.state_rows, cost.state_rows),
            "comparisons": (measured.comparisons, cost.comparisons),
        }


def run(load: Workload, settings: CostSettings, *, bare: bool) -> Outcome:
    """Run every candidate of a workload."""
    plan = planned(load, settings)
    batches = micro_batches(load, plan.physical)
    runs = []
    found = set()
    for each in of_our_own(plan):
        if each.estimated.cost.comparisons > LIMIT and each is not plan.candidates[0]:
            continue
        measured = min((measure(each.plan, batches) for _ in range(2)), key=lambda run: run.seconds)
        found.add(measured.results)
        runs.append((each, measured))
    if len(found) > 1:
        raise SystemExit(f"{load.name}: the candidates differ in their results: {found}")
    terms = plan.candidates[0].estimated.cost.terms
    fixed = 0.0 if bare else terms["micro-batches"] + terms["rows"] + terms["results"]
    return Outcome(load, tuple(runs), fixed)


HEAD = (
    f"{'workload':48} {'chosen':18} {'fastest':18} {'ratio':>6} {'plans':>5}"
    "  results, state, comparisons: measured/estimated"
)


def line(outcome: Outcome) -> str:
    """Return the line of a workload."""
    shown = ", ".join(f"{figure(real)}/{figure(expected)}" for real, expected in outcome.sizes.values())
    names = f"{plan_words(outcome.runs[0][0].plan):18} {plan_words(outcome.fastest.plan):18}"
    return f"{outcome.load.name[:48]:48} {names} {outcome.ratio:6.2f} {len(outcome.runs):5}  {shown}"


def report(outcomes: Sequence[Outcome]) -> bool:
    """Print the summary; return whether the choices are good."""
    errors: dict[str, list[float]] = {}
    for each in outcomes:
        for name, (real, expected) in each.sizes.items():
            errors.setdefault(name, []).append((real + 1) / (expected + 1))
    ratios = [each.ratio for each in outcomes]
    good = good_choices(ratios, f"{sum(len(each.runs) for each in outcomes)} plans run")
    for name, values in errors.items():
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
        print(f"{name}: measured / estimated {middle:.2f}, eight tenths from {low:.2f} to {high:.2f}")
    return good


def main() -> int:
    """Run all workloads, or some with --quick; fail where the choices are not good."""
    parser = command_line(__doc__, "eighth")
    parser.add_argument("--bare", action="store_true", help="compare the worker's time alone")
    arguments = parser.parse_args()
    constants = load_constants()
    settings = CostSettings(constants)
    if arguments.bare:
        # The planner then weighs just what is measured.
        free = replace(constants, row=0.0, byte=0.0, result=0.0, batch=0.0, stage=0.0)
        settings = CostSettings(free)
    print(HEAD, flush=True)
    outcomes = run_all(
        workloads(),
        8 if arguments.quick else 1,
        lambda load: run(load, settings, bare=arguments.bare),
        line,
        arguments.only,
    )
    return 0 if report(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
