"""What W-join SQL costs in a Spark that Python has not started: start, planning, and Spark's own statements.

Two Sparks take turns, each in its own process: with ``spark.sql.extensions``, and with ``wjoin.connect``.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from pyspark.sql import SparkSession

import wjoin
from wjoin.commands.spark_shells import extension_settings

JOIN = "SELECT A.id, B.id AS other FROM a A, b B WINDOW (A, B) = 4 SECONDS WHERE A.k = B.k AND A.id > {}"
SPARKS = "SELECT id, k + {} AS more FROM a WHERE ts IS NOT NULL"
NAMED = "SELECT rank() OVER w AS r, {} AS n FROM a WINDOW w AS (ORDER BY id)"

_PRACTICE = 20
_JOINS = 40
_PARSED = 400


def main() -> None:
    """Measure in turns, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--measure", choices=("bridge", "connect"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(measured(options.measure == "bridge")))
        return
    found: dict[str, list[dict[str, float]]] = {"bridge": [], "connect": []}
    for _ in range(options.turns):
        for kind, each in found.items():
            command = [sys.executable, __file__, "--measure", kind]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            each.append(json.loads(done.stdout.splitlines()[-1]))
    print(f"medians of {options.turns} turns; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'milliseconds':24} {'bridge':>10} {'connect':>10} {'more':>10}")
    for name in found["bridge"][0]:
        values = [statistics.median(each.get(name, 0.0) for each in found[kind]) for kind in found]
        print(f"{name:24} {values[0]:10.2f} {values[1]:10.2f} {values[0] - values[1]:10.2f}")


def measured(bridge: bool) -> dict[str, float]:
    """Return medians of milliseconds in a Spark of this process."""
    builder = wjoin.configure(SparkSession.builder.master("local[2]"))
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
    for name, value in (extension_settings() if bridge else {}).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sql("SELECT 1").collect()
    begun = time.perf_counter()
    sql = spark.sql if bridge else wjoin.connect(spark).sql
    sql("SHOW STREAMS").collect()
    first = (time.perf_counter() - begun) * 1000
    for name in "ab":
        rows = spark.sql("SELECT id, id % 4 AS k, timestamp_seconds(id) AS ts FROM range(100)")
        rows.createOrReplaceTempView(name)
    parser = spark._jsparkSession.sessionState().sqlParser()
    return {
        "the first statement": first,
        "planning a join": _median(lambda n: sql(JOIN.format(n)), _JOINS),
        "parsing, no such word": _median(lambda n: parser.parsePlan(SPARKS.format(n)), _PARSED),
        "parsing, a named window": _median(lambda n: parser.parsePlan(NAMED.format(n)), _PARSED),
    }


def _median(call: Callable[[int], object], runs: int) -> float:
    for number in range(_PRACTICE):
        call(-number)
    seconds = []
    for number in range(runs):
        begun = time.perf_counter()
        call(number)
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds) * 1000


if __name__ == "__main__":
    main()
