"""Joins without a key, or with a hot one: what a band saves; what routes send, keep and gain by more workers.

The executor's own logic in this process, its workers one after the other, by the processor's time: so figures
hold on a machine that does other things, too. A micro-batch with n workers would take as long as its slowest
worker; bringing the rows to the workers, which Spark does, is not in it. All ways must find as many results.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import kit_path  # noqa: F401 (finds tests.kit)
import numpy as np
import pyarrow as pa
from conditions import SECOND
from tables import aligned

from tests.kit.local import LocalWorkers
from tests.kit.planned import block_of, plan_over, stream_of
from wjoin.executor.counts import Counts
from wjoin.parts.kernels.runs import BoolArray, Int64Array
from wjoin.parts.routes.hash_route import bucket_numbers
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.udfs.predicate import Predicate

COLUMNS = {"x": "double", "n": "bigint", "k": "bigint"}
WINDOW = 5
SPAN = 120
"""Seconds of the streams; slices of ATR are four windows long, so some of them are in it."""

ROUTES = ("", "PSP, 2", "PSP, 4", "PSP, 8", "ATR, 2", "ATR, 4", "ATR, 8", "CTR, 2", "CTR, 4")
"""Hints; the number is that of workers, with CTR that of the copies on 8 workers."""

RANGED = ("", "PSP, 2", "PSP, 4", "PSP, 8", "RANGE, 2", "RANGE, 4", "RANGE, 8")
NEAR = "abs(A.x - B.x) <= 50 AND chosen(A.n, B.n)"
KEYED = ("MULTIWAY", "SKEW, 8", "PSP, 8", "ATR, 8", "CTR, 2")
HOT = 0.3
"""The share of the rows that have the key 0; others have one of 1,000."""

BUCKET = float(bucket_numbers(np.zeros(1, np.int64))[0])
PARTS = ("bands", "routes", "ranges", "hot")
TWO = "chosen(A.n, B.n)"
THREE = "chosen(A.n, B.n) AND chosen(B.n, C.n)"


@dataclass(frozen=True)
class Ran:
    """What a join did over all micro-batches; ``slowest``: the seconds of each one's slowest worker."""

    results: int
    compared: int
    seconds: float
    slowest: float
    sent: int
    kept: int


def main() -> int:
    """Print the tables; 1 where two ways have different numbers of results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--cost-us", type=float, default=10, help="of the predicate (%(default)s)")
    parser.add_argument("--selectivity", type=float, default=0.01, help="of the predicate (%(default)s)")
    given = parser.parse_args()
    right = True
    if "bands" in given.parts:
        right &= _bands()
    predicates = {"chosen": _burning(given.cost_us, given.selectivity)}
    if "routes" in given.parts:
        right &= _routes(2, TWO, predicates)
        right &= _routes(2, TWO, predicates, every=SPAN)
        right &= _routes(3, THREE, predicates)
    if "ranges" in given.parts:
        right &= _routes(2, NEAR, predicates, routes=RANGED, rate=100)
    if "hot" in given.parts:
        right &= _routes(2, "A.k = B.k", {}, routes=KEYED, rate=300)
    if not right:
        print("DIFFERENT RESULTS", file=sys.stderr)
    return int(not right)


def _bands() -> bool:
    """Print what pairs cost that are all compared, and where a band is searched for."""
    rows = [_rows(500, 40, seed) for seed in (1, 2)]
    lines = [["band keeps", "results", "all pairs tested, s", "searched, s", "times faster"]]
    right = True
    for share in (0.1, 0.01, 0.001):
        condition = f"abs(A.x - B.x) <= {share * 500}"
        tested, searched = (_fastest(rows, condition, f"ALGORITHM({kernel})") for kernel in ("MW", "ORDERED"))
        right &= tested.results == searched.results
        figures = [
            f"{tested.seconds:.2f}",
            f"{searched.seconds:.2f}",
            f"{tested.seconds / searched.seconds:.1f}",
        ]
        lines.append([f"{share:.1%}", f"{searched.results:,}", *figures])
    print(f"{_count(rows):,} rows, 500 a second on each of two streams, window {WINDOW} s")
    print(aligned(lines), end="\n\n")
    return right


def _fastest(rows: Sequence[pa.RecordBatch], condition: str, hint: str) -> Ran:
    return min((_run(rows, condition, hint) for _ in range(3)), key=lambda ran: ran.seconds)


def _routes(
    streams: int,
    condition: str,
    predicates: dict[str, Predicate],
    every: int = WINDOW,
    routes: Sequence[str] = ROUTES,
    rate: int = 20,
) -> bool:
    """Print what each route sends, keeps and takes, in micro-batches of ``every`` seconds."""
    rows = [_rows(rate, SPAN, seed) for seed in range(streams)]
    lines = [["route", "pairs compared", "rows sent", "rows kept", "work, s", "slowest, s", "speed-up"]]
    results = set()
    single = 0.0
    for route in routes:
        ran = _run(rows, condition, f"PLAN({route})" if route else "", predicates, every)
        single = single or ran.slowest
        results.add(ran.results)
        figures = [
            f"{ran.compared:,}",
            f"{ran.sent:,}",
            f"{ran.kept:,}",
            f"{ran.seconds:.1f}",
            f"{ran.slowest:.1f}",
        ]
        lines.append([route or "single", *figures, f"{single / ran.slowest:.2f}"])
    print(f"{condition}: {_count(rows):,} rows, {rate} a second on each stream, window {WINDOW} s")
    print(f"in micro-batches of {every} s")
    print(aligned(lines), end="\n\n", flush=True)
    return len(results) == 1


def _burning(cost_us: float, selectivity: float) -> Predicate:
    """Return a predicate that takes so much of a core for a pair, and keeps so many of them."""
    every = round(1 / selectivity)

    def chosen(left: Int64Array, right: Int64Array) -> BoolArray:
        end = time.process_time() + len(left) * cost_us / 1e6
        found: BoolArray = (left * 7 + right) % every == 0
        while time.process_time() < end:
            pass
        return found

    return Predicate("chosen", chosen, cost_us=cost_us, selectivity=selectivity)


def _run(
    rows: Sequence[pa.RecordBatch],
    condition: str,
    hint: str,
    predicates: dict[str, Predicate] | None = None,
    every: int = WINDOW,
) -> Ran:
    """Join the rows in micro-batches of so many seconds."""
    rate = rows[0].num_rows / (rows[0]["ts"].to_numpy().max() / SECOND)
    plan = _plan(condition, hint, len(rows), predicates or {}, rate)
    workers = LocalWorkers(plan, 8 if hint.startswith("PLAN") else 1, predicates=predicates)
    counts = Counts()
    results, kept, slowest, work, sent = 0, 0, 0.0, 0.0, 0
    for blocks in _micro_batches(plan, rows, every * SECOND):
        results += sum(found.num_rows for found in workers.run(blocks, counts))
        kept = max(kept, workers.state_rows)
        slowest += sum(max(stage) for stage in workers.seconds)
        work += sum(map(sum, workers.seconds))
        sent += sum(load.rows for stage in workers.loads for load in stage)
    return Ran(results, counts.stage["comparisons"], work, slowest, sent, kept)


def _micro_batches(
    plan: PhysicalPlan, rows: Sequence[pa.RecordBatch], every: int
) -> Iterator[dict[int, pa.RecordBatch]]:
    end = max(each["ts"].to_numpy().max() for each in rows)
    for begin in range(0, int(end) + 1, every):
        blocks = {}
        for number, each in enumerate(rows):
            first, last = np.searchsorted(each["ts"].to_numpy(), [begin, begin + every])
            blocks[number] = block_of(plan, number, each.slice(first, last - first))
        yield blocks


def _plan(
    condition: str, hint: str, streams: int, predicates: dict[str, Predicate], rate: float
) -> PhysicalPlan:
    names = "ABC"[:streams]
    windows = [f"WINDOW ({one}, {two}) = {WINDOW} SECONDS" for one, two in itertools.pairwise(names)]
    sql = (
        f"SELECT {f'/*+ {hint} */' if hint else ''} A.ts, B.ts AS other FROM {', '.join(names)}"
        f" {' AND '.join(windows)} WHERE {condition}"
    )
    # With rates, new rows meet first the stream with which they have a condition.
    known = {"rate": rate, "heaviest.k": HOT, "distinct.k": 1000, "bucket.k": BUCKET}
    relations = [stream_of(COLUMNS, known)] * streams
    return plan_over(sql, relations, predicates=predicates).physical


def _rows(rate: int, seconds: int, seed: int) -> pa.RecordBatch:
    random = np.random.default_rng(seed)
    count = rate * seconds
    return pa.RecordBatch.from_pydict(
        {
            "ts": np.sort(random.integers(0, seconds * SECOND, count)),
            "x": random.random(count) * 1000,
            "n": random.integers(0, 10_000, count),
            "k": np.where(random.random(count) < HOT, 0, random.integers(1, 1001, count)),
        }
    )


def _count(rows: Sequence[pa.RecordBatch]) -> int:
    return sum(each.num_rows for each in rows)


if __name__ == "__main__":
    sys.exit(main())
