"""Executors that follow the load (wjoin.executors), and rates with fixed numbers of them, on a local-cluster.

    python benchmarks/executors.py rates --numbers 2 4
    python benchmarks/executors.py follow --range '2 4 5 15' --rates 0 20000 0

``rates`` works off rows that wait, with each number of executors, and prints rows a second. ``follow`` begins
with as many executors as the range has at most; rows of both streams come at each of some rates until other
executors are asked for. It prints how many there are then, and in the end whether the results are those that
DuckDB finds. Executors have one core each: with fewer cores on the machine they share these.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

import wjoin
from wjoin.grammar.errors import WJoinWarning
from wjoin.measured.followed import Followed, follower_of
from wjoin.measured.load import following
from wjoin.spark.executors import executors

SECOND = 1_000_000
KEYS = 20_000
WINDOW = 5
"""Seconds."""

_SETTLED = 8.0

PARTITIONS = 8
MEGABYTES = 700
"""Of an executor."""

SCRIPT = """
CREATE STREAM a (k BIGINT, id BIGINT, ts TIMESTAMP) USING parquet OPTIONS (path '{root}/a'{limit})
WATERMARK ts DELAY OF INTERVAL 0 SECONDS;
CREATE STREAM b (k BIGINT, id BIGINT, ts TIMESTAMP) USING parquet OPTIONS (path '{root}/b'{limit})
WATERMARK ts DELAY OF INTERVAL 0 SECONDS;
CREATE SINK found USING parquet OPTIONS (path '{root}/found') {every};
SET wjoin.state = files;
SET wjoin.checkpoint = {root}/checkpoints;
{more}
INSERT INTO found SELECT A.id AS a, B.id AS b FROM a A, b B WINDOW (A, B) = {window} SECONDS WHERE A.k = B.k;
"""

ORACLE = """SELECT count(*), bit_xor(hash(a.id, b.id)) FROM read_parquet('{root}/a/*.parquet') a,
read_parquet('{root}/b/*.parquet') b WHERE a.k = b.k AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= {apart}"""


def connected(number: int) -> wjoin.Session:
    """Return a session on a cluster of so many executors, on this machine."""
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = wjoin.configure(SparkSession.builder.master(f"local-cluster[{number},1,{MEGABYTES}]"))
    for name, value in {
        "spark.executor.memory": f"{MEGABYTES}m",
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }.items():
        builder = builder.config(name, value)
    session = wjoin.connect(builder.getOrCreate())
    while len(names(session)) < number:
        time.sleep(0.2)
    return session


def names(session: wjoin.Session) -> tuple[str, ...]:
    """Return the executors that there are."""
    found = executors(session.spark)
    return () if found is None else found.names


def settled(session: wjoin.Session) -> tuple[str, ...]:
    """Return the executors that there are once none has come or gone for some seconds."""
    found, since = names(session), time.monotonic()
    while time.monotonic() - since < _SETTLED:
        if (now := names(session)) != found:
            found, since = now, time.monotonic()
        time.sleep(0.2)
    return found


def write(root: Path, second: int, rate: int, chance: np.random.Generator, number: int) -> None:
    """Write the rows of one second of both streams, each as a file that is there at once."""
    for name in "ab":
        times = second * SECOND + np.sort(chance.integers(0, SECOND, rate))
        columns = {
            "k": chance.integers(0, KEYS, rate),
            "id": number * SECOND + np.arange(rate),
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
        (root / name).mkdir(exist_ok=True)
        unfinished = root / f"{name}.unfinished"
        pq.write_table(pa.table(columns), unfinished)
        os.utime(unfinished, (second, second))
        unfinished.rename(root / name / f"{number:06}.parquet")


def begin(
    session: wjoin.Session,
    root: Path,
    *,
    limit: str = "",
    every: str = "",
    more: str = "",
    once: bool = False,
) -> Followed:
    script = SCRIPT.format(root=root, limit=limit, every=every, more=more, window=WINDOW)
    *_, query = session.run_script(script, once=once)
    assert isinstance(query, StreamingQuery)
    return follower_of(session.spark).follow(query)


def rate(number: int, rows: int, seconds: int) -> None:
    """Print how many rows a second a number of executors work off, once the windows are full."""
    session = connected(number)
    with tempfile.TemporaryDirectory() as folder:
        root, chance = Path(folder), np.random.default_rng(1)
        for second in range(seconds):
            write(root, 1_700_000_000 + second, rows, chance, second)
        running = begin(session, root, limit=f", maxFilesPerTrigger '{2 * WINDOW}'", once=True)
        points = [each for each in running.totals.hour().points if each.batches][2:]
        found = sum(each.rows_read for each in points) / sum(each.seconds for each in points)
        print(json.dumps({"executors": number, "rows a second": round(found)}), flush=True)
        session.spark.stop()


def follow(scaling: str, every: str, rates: list[int], most: int) -> None:
    """Let rows come at some rates, each until executors come or go, and print how many there are."""
    session = connected(int(scaling.split()[1]))
    warnings.simplefilter("always", WJoinWarning)
    with tempfile.TemporaryDirectory() as folder:
        root, chance = Path(folder), np.random.default_rng(2)
        write(root, int(time.time()) - 1, 100, chance, 0)
        running = begin(session, root, every=every, more=f"SET wjoin.executors = '{scaling}';")
        number, asking = 0, following(session.spark)
        for rows in rates:
            began, before, told = time.monotonic(), names(session), asking.words
            while names(session) == before and (passed := time.monotonic() - began) < most:
                if rows and asking.words == told:
                    number += 1
                    write(root, int(time.time()) - 1, rows, chance, number)
                if running.error is not None:
                    raise running.error
                time.sleep(1)
            load = asking.load
            found = {"rows a second": rows, "executors": len(before), "then": len(settled(session))}
            print(json.dumps({**found, "after": round(passed, 1), "load": round(load, 2)}), flush=True)
        running.query.processAllAvailable()
        running.query.stop()
        query = ORACLE.format(root=root, apart=WINDOW * SECOND)
        files = wjoin.committed_files(root / "found")
        own = duckdb.sql(
            "SELECT count(*), bit_xor(hash(a, b)) FROM read_parquet($1)", params=[files]
        ).fetchall()
        print(json.dumps({"results": own[0][0], "right": own == duckdb.sql(query).fetchall()}), flush=True)
        session.spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    rates = commands.add_parser("rates")
    rates.add_argument("--numbers", type=int, nargs="+", default=[2, 4])
    rates.add_argument("--rows", type=int, default=20_000, help="of a second of each stream")
    rates.add_argument("--seconds", type=int, default=80)
    to_follow = commands.add_parser("follow")
    to_follow.add_argument("--range", default="2 4 5 15", help="as wjoin.executors has it")
    to_follow.add_argument("--every", default="COMMIT EVERY 4 SECONDS")
    to_follow.add_argument("--rates", type=int, nargs="+", default=[0, 20_000, 0], help="rows of a second")
    to_follow.add_argument("--most", type=int, default=300, help="seconds for which a rate lasts")
    given = parser.parse_args()
    if given.command == "follow":
        follow(given.range, given.every, given.rates, given.most)
    elif len(given.numbers) == 1:
        rate(given.numbers[0], given.rows, given.seconds)
    else:
        for number in given.numbers:
            # A Spark of its own for each.
            more = ["--numbers", str(number), "--rows", str(given.rows), "--seconds", str(given.seconds)]
            subprocess.run([sys.executable, __file__, "rates", *more], check=True)


if __name__ == "__main__":
    main()
