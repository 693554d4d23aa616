"""Does the planner choose well over tables? Workloads run on Spark, by wjoin's stages and by Spark's joins.

The planner knows of each table what ANALYZE STREAM would tell. Measured is the whole statement,
on all cores of this machine, once the virtual machine is warm: from its text to the last of its
rows, which are thrown away. Spark's joins are not run where they would compare too many pairs to be
near the fastest.
"""

import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from choosing import command_line, good_choices

import wjoin
from wjoin.executor.spark.meter import RESULTS, Meter
from wjoin.grammar.parser import parse_statement
from wjoin.joins.rewrite import rewrite
from wjoin.planner.catalog import Origin
from wjoin.planner.choose.plan_candidates import Candidate
from wjoin.planner.figures import figure
from wjoin.planner.plan.physical import Method

SPAN = 1_000_000_000
"""Microseconds of event time that every table spans."""

LIMIT = 5e8
"""Pairs that Spark's joins would compare beyond which they are not run."""

REPETITIONS = 3
FILES = 4


@dataclass(frozen=True)
class Workload:
    """Tables of so many rows, joined on one key that ``per_key`` rows of the largest share.

    ``matches``: rows of the largest table that a row finds in its window.
    """

    rows: tuple[int, ...]
    per_key: int
    matches: float = 0.2

    @property
    def name(self) -> str:
        """What tells it from the others."""
        sizes = " x ".join(f"{rows:,}" for rows in self.rows)
        return f"{sizes}, {self.per_key} a key, {self.matches} matches"

    @property
    def keys(self) -> int:
        """Different values of the key."""
        return max(1, max(self.rows) // self.per_key)

    def sql(self, method: Method | None) -> str:
        """Return the statement, with a hint where a method is asked for."""
        hint = "" if method is None else f"/*+ PLAN({method.name}) */ "
        names = "abc"[: len(self.rows)]
        equal = " AND ".join(f"a.k = {name}.k" for name in names[1:])
        window = max(1, int(SPAN * self.matches / self.per_key / 2))
        columns = ", ".join(f"{name}.x AS x{name}" for name in names)
        return (
            f"SELECT {hint}a.k, {columns} FROM {', '.join(names)} "
            f"WINDOW = {window} MICROSECONDS WHERE {equal}"
        )


def workloads() -> Iterator[Workload]:
    """Yield the grid: two and three tables, their rows, rows of a key; then lopsided and fruitful ones."""
    sizes = (1_000, 10_000, 100_000, 1_000_000)
    for relations, rows, per_key in itertools.product((2, 3), sizes, (2, 50, 1_000)):
        yield Workload((rows,) * relations, per_key)
    for small in ((1_000_000, 1_000), (1_000_000, 1_000_000, 1_000)):
        yield Workload(small, 2)
        yield Workload(small, 1_000)
    yield Workload((100_000, 100_000), 50, matches=20.0)
    yield Workload((100_000, 100_000), 1_000, matches=20.0)


def register(session: wjoin.Session, load: Workload, folder: Path) -> None:
    """Write the tables of a workload, and tell the session of them what is true."""
    random = np.random.default_rng(11)
    for name, rows in zip("abc", load.rows, strict=False):
        path = folder / name
        path.mkdir()
        table = pa.table(
            {
                "k": random.integers(0, load.keys, rows),
                "ts": pa.array(np.sort(random.integers(0, SPAN, rows)), pa.timestamp("us", tz="UTC")),
                "x": random.integers(0, 1_000_000, rows),
            }
        )
        for file in range(FILES):
            pq.write_table(table.slice(file * rows // FILES, rows // FILES), path / f"{file}.parquet")
        session.stream(name, session.spark.read.parquet(str(path)), "ts")
        known = {
            "rows": float(rows),
            "rate": rows / SPAN * 1e6,
            "width": 24.0,
            "distinct.k": float(min(rows, load.keys)),
            "heaviest.k": 1 / min(rows, load.keys),
        }
        session.declarations.learn(name, Origin.ANALYZED, known)


@dataclass(frozen=True)
class Outcome:
    """A workload: the candidates with the median seconds of each that was run, the chosen one first."""

    load: Workload
    chosen: Candidate
    seconds: dict[Method, float]
    expected: dict[Method, float]

    @property
    def fastest(self) -> Method:
        """The method that took least."""
        return min(self.seconds, key=lambda method: self.seconds[method])

    @property
    def ratio(self) -> float:
        """How many times slower the chosen method is than the fastest."""
        return self.seconds[self.chosen.plan.method] / self.seconds[self.fastest]


def run(session: wjoin.Session, load: Workload) -> Outcome:
    """Run a workload by each method in turn, so that what else this machine does slows both alike."""
    with tempfile.TemporaryDirectory(prefix="wjoin-choices-") as folder:
        register(session, load, Path(folder))
        text = load.sql(None)
        asked = session.context.asked
        planned = rewrite(asked(text, {}), parse_statement(text)).planned
        candidates = planned[0].candidates
        best = {
            method: next(each for each in candidates if each.plan.method is method)
            for method in (Method.MULTIWAY, Method.NATIVE)
        }
        span = SPAN / 1e6
        pairs = best[Method.NATIVE].estimated.cost.comparisons * span
        methods = [
            method
            for method, each in best.items()
            if method is Method.MULTIWAY or pairs <= LIMIT or each is candidates[0]
        ]
        found: dict[Method, list[float]] = {method: [] for method in methods}
        results = set()
        for method in methods * (1 + REPETITIONS):
            seconds, rows = timed(session, load.sql(method))
            found[method].append(seconds)
            results.add(rows)
    if len(results) > 1:
        raise SystemExit(f"{load.name}: the methods differ in their results: {results}")
    medians = {method: statistics.median(each[1:]) for method, each in found.items()}
    expected = {method: each.estimated.cost.seconds * span for method, each in best.items()}
    return Outcome(load, candidates[0], medians, expected)


def timed(session: wjoin.Session, text: str) -> tuple[float, int]:
    """Run a statement; return its seconds and its rows."""
    meter = Meter()
    start = time.monotonic()
    frame = meter.watch(RESULTS, session.sql(text), ["count(1) AS rows"])
    frame.write.format("noop").mode("overwrite").save()
    return time.monotonic() - start, meter.counts(frame)[RESULTS]["rows"]


def report(outcomes: Sequence[Outcome]) -> bool:
    """Print the summary; return whether the choices are good."""
    both = [each for each in outcomes if len(each.seconds) > 1]
    natives = sum(each.chosen.plan.method is Method.NATIVE for each in outcomes)
    ran = f"{len(both)} of them by both methods; native chosen {natives} times"
    return good_choices([each.ratio for each in outcomes], ran)


def line(outcome: Outcome) -> str:
    """Return the line of a workload; seconds measured are of the clock, those expected of one core."""
    names = f"{outcome.chosen.plan.method.value:9} {outcome.fastest.value:9}"
    cells = []
    for method in (Method.MULTIWAY, Method.NATIVE):
        measured = f"{outcome.seconds[method]:.2f}" if method in outcome.seconds else "-"
        cells.append(f"{measured:>7}/{figure(outcome.expected[method]):>7}")
    return f"{outcome.load.name[:58]:58} {names} {outcome.ratio:6.2f} {'  '.join(cells)}"


def main() -> int:
    """Run all workloads, or some with --quick; fail where the choices are not good."""
    arguments = command_line(__doc__, "fourth").parse_args()
    session = wjoin.connect(**{"spark.driver.memory": "2g"})
    loads = [load for load in workloads() if arguments.only in load.name]
    loads = loads[:: 4 if arguments.quick else 1]
    # Practice: the first statements of a virtual machine are slow.
    for load in (Workload((300_000, 300_000), 50), Workload((10_000, 10_000, 10_000), 50)):
        run(session, load)
    head = f"{'workload':58} {'chosen':9} {'fastest':9} {'ratio':>6}"
    print(f"{head}  seconds measured/expected: multiway, native", flush=True)
    outcomes = []
    for load in loads:
        outcomes.append(run(session, load))
        print(line(outcomes[-1]), flush=True)
    print(f"\nload of the machine at the end: {os.getloadavg()[0]:.1f}")
    return 0 if report(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
