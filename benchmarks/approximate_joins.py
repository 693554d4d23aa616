"""Approximate joins on Spark: shuffle bytes, rows a second and lost results of each plan beside BASE.

    python -m benchmarks.approximate_joins --rows 200000 --nodes 16 --error 0.1

Rows of 16 regions: the keys of each are Zipf-distributed over an order of its own, so that nodes have like
windows for few keys only. Results are counted by the sink; what is lost is counted against BASE.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import wjoin

WINDOW_MS = 20_000


def write(folder: Path, rows: int, files: int, nodes: int, keys: int, skew: float) -> None:
    """Write two streams, each file of 2 s."""
    weights = 1 / np.arange(1, keys + 1) ** skew
    weights /= weights.sum()
    orders = [np.random.default_rng(1000 + node).permutation(keys) for node in range(nodes)]
    for place, name in enumerate("ab"):
        (folder / name).mkdir()
        for number in range(files):
            rng = np.random.default_rng(2 * number + place)
            count = rows // files
            region = rng.integers(0, nodes, count)
            ranks = rng.choice(keys, count, p=weights)
            table = pa.table(
                {
                    "k": np.array([orders[node][rank] for node, rank in zip(region, ranks, strict=True)]),
                    "n": number * count + np.arange(count),
                    "payload": [f"{each:032d}" for each in rng.integers(0, 1 << 60, count)],
                    "region": region.astype(np.int32),
                    "ms": 2000 * number + np.sort(rng.integers(0, 2000, count)),
                }
            )
            pq.write_table(table, folder / name / f"{number:04}.parquet")


def measured(session: wjoin.Session, folder: Path, hints: str) -> dict[str, object]:
    """Return what one plan did with all rows."""
    found = {"results": 0}

    def count(rows: object, _: int) -> None:
        found["results"] += rows.count()

    own = Path(tempfile.mkdtemp(dir=folder))
    for name in "ab":
        session.sql(
            f"CREATE OR REPLACE STREAM {name} (k BIGINT, n BIGINT, payload STRING, region INT, ms BIGINT, "
            f"ts AS timestamp_millis(ms)) USING parquet OPTIONS (path '{folder / name}', "
            "maxFilesPerTrigger '1') WATERMARK ts DELAY OF INTERVAL 2 SECONDS HOME BY region"
        )
    session.sink("counted", count)
    session.sql(f"SET wjoin.checkpoint = {own}")
    store = session.spark.sparkContext._jsc.sc().statusStore()

    def written() -> int:
        return int(sum(each.totalShuffleWrite() for each in _each(store.executorList(False))))

    before, began = written(), time.monotonic()
    session.run_script(
        f"INSERT INTO counted SELECT {hints} a.k, a.n, b.n AS m, a.payload, b.payload AS other "
        f"FROM a, b WINDOW = {WINDOW_MS} ms WHERE a.k = b.k"
    )
    seconds = time.monotonic() - began
    time.sleep(1)
    return {"hints": hints, **found, "seconds": round(seconds, 1), "shuffled": written() - before}


def _each(scala: object) -> list[object]:
    return [scala.apply(place) for place in range(scala.size())]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--keys", type=int, default=50_000)
    parser.add_argument("--skew", type=float, default=1.0)
    parser.add_argument("--error", type=float, default=0.1)
    parser.add_argument("plans", nargs="*", default=["BLOOM", "DIGEST"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, given.rows, given.files, given.nodes, given.keys, given.skew)
        session = wjoin.connect()
        session.spark.conf.set("spark.sql.shuffle.partitions", str(given.nodes))
        hints = [f"/*+ PLAN(BASE, {given.nodes}) */"]
        hints += [
            f"/*+ PLAN({plan}, {given.nodes}), APPROXIMATE(error = {given.error}) */" for plan in given.plans
        ]
        base = None
        for each in hints:
            found = measured(session, folder, each)
            base = base or found
            found["lost"] = round(1 - found["results"] / base["results"], 4)
            found["of_base"] = round(found["shuffled"] / base["shuffled"], 3)
            found["rows_per_second"] = round(2 * given.rows / found["seconds"])
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
