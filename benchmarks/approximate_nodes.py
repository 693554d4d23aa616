"""Approximate joins without Spark: visits, summaries, lost results and what is told of them, by micro-batch.

    python -m benchmarks.approximate_nodes --rows 28000 --batches 14 --nodes 16 --error 0.1

The stages run in this process, so all but the time is the same on every machine. The keys of each region are
Zipf-distributed over an order of its own, as in benchmarks.approximate_joins.
"""

import argparse
import json
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tests.kit.local import LocalWorkers
from tests.kit.planned import block_of, plan_over, stream_of
from wjoin.executor.counts import Counts
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.plan.physical import PhysicalPlan

SECOND = 1_000_000
LENGTH, WINDOW = 2 * SECOND, 20 * SECOND

Rows = dict[str, npt.NDArray[np.int64]]


def drawn(given: argparse.Namespace) -> list[tuple[Rows, Rows]]:
    """Draw the micro-batches of both streams."""
    weights = 1 / np.arange(1, given.keys + 1) ** given.skew
    weights /= weights.sum()
    orders = np.array(
        [
            np.random.default_rng(1000 * (given.seed + 1) + node).permutation(given.keys)
            for node in range(given.nodes)
        ]
    )

    def batch(number: int, place: int) -> Rows:
        random, count = np.random.default_rng((given.seed, number, place)), given.rows // given.batches
        region = random.integers(0, given.nodes, count)
        times = LENGTH * number + np.sort(random.integers(0, LENGTH, count))
        return {
            "k": orders[region, random.choice(given.keys, count, p=weights)],
            "region": region,
            "ts": times,
        }

    return [(batch(number, 0), batch(number, 1)) for number in range(given.batches)]


def results(batches: list[tuple[Rows, Rows]], keys: int) -> int:
    """Return how many results there are, by counting."""
    left, right = (
        {name: np.concatenate([each[side][name] for each in batches]) for name in ("k", "ts")}
        for side in (0, 1)
    )
    span = int(left["ts"].max() + right["ts"].max() + 3 * WINDOW)
    ordered = np.sort(right["k"] * span + right["ts"] + WINDOW)
    place = left["k"] * span + left["ts"] + WINDOW
    last, first = (
        np.searchsorted(ordered, place + far, side) for far, side in ((WINDOW, "right"), (-WINDOW, "left"))
    )
    return int((last - first).sum())


def plan_of(name: str, given: argparse.Namespace) -> PhysicalPlan:
    """Return the plan of a summary."""
    rate = given.rows / given.batches / (LENGTH / SECOND)
    stream = stream_of({"k": "bigint", "region": "bigint"}, {"rate": rate}, home="region")
    goal = "" if name == "BASE" else f", APPROXIMATE(error = {given.error})"
    plan = plan_over(
        f"SELECT /*+ PLAN({name}, {given.nodes}){goal} */ A.ts, B.ts AS other FROM a A, b B "
        f"WINDOW (A, B) = {WINDOW // SECOND} s WHERE A.k = B.k",
        [stream, stream],
        costs=CostSettings(cores=2, partitions=given.nodes),
    ).physical
    if not given.size or plan.approximate is None:
        return plan
    return replace(plan, approximate=replace(plan.approximate, size=given.size))


def main() -> None:
    """Run each plan, and print what it did."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in (
        ("rows", 28_000),
        ("batches", 14),
        ("nodes", 16),
        ("keys", 20_000),
        ("size", 4096),
        ("seed", 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--skew", type=float, default=0.8)
    parser.add_argument("--error", type=float, default=0.1)
    parser.add_argument("plans", nargs="*", default=["DIGEST", "BLOOM", "DFTT"])
    given = parser.parse_args()
    batches = drawn(given)
    exact = results(batches, given.keys)
    for name in given.plans:
        plan = plan_of(name, given)
        local, counts, found = LocalWorkers(plan, given.nodes), Counts(), 0
        for batch in batches:
            blocks = {number: block_of(plan, number, rows) for number, rows in enumerate(batch)}
            found += sum(rows.num_rows for rows in local.run(blocks, counts))
        chooser, rows = local.chooser(0), 2 * given.rows // given.batches * given.batches
        told = {
            "plan": name,
            "lost": round(1 - found / exact, 4),
            "told": str(None if chooser is None else chooser.estimate),
            "copies": round(1 + counts.stage["visits"] / rows, 2),
            "of_base": round((1 + counts.stage["visits"] / rows) / given.nodes, 3),
            "summary_bytes_a_row": round(counts.stage["summary_bytes"] / rows, 1),
        }
        print(json.dumps(told, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
