"""What a condition on plain columns, or a predicate, costs for each candidate pair, beside DuckDB.

Two inputs without a key, joined inside a window: every pair inside it is a candidate. wjoin's part is
the executor's own logic of one worker, in this process, on one core; DuckDB runs with one thread and with
two, on the same rows. Both count the pairs for which the conditions are true. A figure is the best of some
repetitions. The predicate is a function in Python, which DuckDB does as an expression; the time inside the
function is told apart.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import duckdb
import kit_path  # noqa: F401 (finds tests.kit)
import numpy as np
import pyarrow as pa
from tables import aligned

from tests.kit.local import LocalWorkers
from tests.kit.planned import block_of, plan_over, stream_of
from wjoin.executor.counts import Counts
from wjoin.parts.kernels.runs import BoolArray, Int64Array
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.udfs.predicate import Predicate

SECOND = 1_000_000
SPAN = 100 * SECOND
COLUMNS = {"x": "double", "y": "double", "n": "bigint", "word": "string"}
CONDITIONS = {
    "arithmetic": "A.x + B.y * 1000 > 1900 AND A.y * B.y > 0.5",
    "two inequalities": "A.x > B.x AND A.y < B.y - 0.95",
    "whole numbers": "A.n > B.n AND A.n + B.n > 19000",
    "either": "abs(A.x - B.x) < 0.5 OR A.word = B.word",
}
PREDICATE = "a predicate"
CONDITIONS[PREDICATE] = "chosen(A.n, B.n)"
IN_DUCKDB = {"chosen(A.n, B.n)": "(A.n * 7 + B.n) % 100 = 0"}


class _Chosen:
    """A predicate that keeps one pair in a hundred, and counts the seconds that it takes itself."""

    seconds = 0.0

    def __call__(self, left: Int64Array, right: Int64Array) -> BoolArray:
        began = time.perf_counter()
        found: BoolArray = (left * 7 + right) % 100 == 0
        self.seconds += time.perf_counter() - began
        return found


_CHOSEN = _Chosen()
PREDICATES = {"chosen": Predicate("chosen", _CHOSEN, selectivity=0.01)}


@dataclass(frozen=True)
class Timed:
    """Seconds and results of one way to join, and the seconds inside a predicate's function."""

    name: str
    seconds: float
    results: int
    inside: float


def main() -> int:
    """Print the nanoseconds a pair of every condition and system; 1 where they count different pairs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=30_000, help="rows of each input (%(default)s)")
    parser.add_argument("--window", type=float, default=1.25, help="seconds, of 100 (%(default)s)")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument(
        "--processor", action="store_true", help="count the time of the processor, on a machine that is busy"
    )
    given = parser.parse_args()
    clock = time.process_time if given.processor else time.perf_counter
    window = int(given.window * SECOND)
    tables = [_rows(given.rows, seed) for seed in (1, 2)]
    pairs = _pairs(tables, window)
    lines = [["condition", "results", "wjoin", "DuckDB, 1 thread", "DuckDB, 2 threads"]]
    wrong = False
    for name, condition in CONDITIONS.items():
        found = _measured(tables, condition, window, given.repetitions, clock)
        wrong |= len({each.results for each in found}) > 1
        figures = [f"{each.seconds / pairs * 1e9:.1f}" for each in found]
        lines.append([name, f"{found[0].results:,}", *figures])
        if name == PREDICATE:
            own = found[0].inside / pairs * 1e9
            print(f"{own:.1f} ns of the predicate's {figures[0]} are inside its function")
    print(f"{pairs:,} candidate pairs; nanoseconds a pair")
    print(aligned(lines))
    if wrong:
        print("DIFFERENT RESULTS", file=sys.stderr)
    return int(wrong)


def _measured(
    tables: list[pa.Table], condition: str, window: int, repetitions: int, clock: Callable[[], float]
) -> list[Timed]:
    plan = _plan(condition, window)
    ways: dict[str, Callable[[], int]] = {
        "wjoin": lambda: _by_wjoin(plan, tables),
        "1": lambda: _by_duckdb(tables, condition, window, 1),
        "2": lambda: _by_duckdb(tables, condition, window, 2),
    }
    best: dict[str, Timed] = {}
    for _ in range(repetitions):
        for name, way in ways.items():
            _CHOSEN.seconds = 0.0
            began = clock()
            results = way()
            timed = Timed(name, clock() - began, results, _CHOSEN.seconds)
            best[name] = min(best.get(name, timed), timed, key=lambda each: each.seconds)
    return list(best.values())


def _rows(count: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    words = np.array([f"word {number:05}" for number in range(1000)])
    return pa.table(
        {
            "ts": np.sort(random.integers(0, SPAN, count)),
            "x": random.random(count) * 1000,
            "y": random.random(count),
            "n": random.integers(0, 10_000, count),
            "word": words[random.integers(0, len(words), count)],
        }
    )


def _pairs(tables: list[pa.Table], window: int) -> int:
    left, right = (table.column("ts").to_numpy() for table in tables)
    above = np.searchsorted(right, left + window, "right")
    return int((above - np.searchsorted(right, left - window)).sum())


def _plan(condition: str, window: int) -> PhysicalPlan:
    sql = f"SELECT A.ts, B.ts AS other FROM a A, b B WINDOW (A, B) = {window} MICROSECONDS WHERE {condition}"
    return plan_over(sql, [stream_of(COLUMNS)] * 2, predicates=PREDICATES).physical


def _by_wjoin(plan: PhysicalPlan, tables: list[pa.Table]) -> int:
    rows = [table.combine_chunks().to_batches()[0] for table in tables]
    blocks = {number: block_of(plan, number, each) for number, each in enumerate(rows)}
    return sum(found.num_rows for found in LocalWorkers(plan, predicates=PREDICATES).run(blocks, Counts()))


def _by_duckdb(tables: list[pa.Table], condition: str, window: int, threads: int) -> int:
    with duckdb.connect() as database:
        database.execute(f"SET threads = {threads}")
        for name, table in zip("AB", tables, strict=True):
            database.register(name, table)
        written = IN_DUCKDB.get(condition, condition)
        inside = f"A.ts BETWEEN B.ts - {window} AND B.ts + {window}"
        found = database.execute(f"SELECT count(*) FROM A, B WHERE {inside} AND ({written})").fetchone()
    assert found is not None
    return int(found[0])


if __name__ == "__main__":
    sys.exit(main())
