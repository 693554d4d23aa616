"""Ten statements over the same three streams: as one statement set, each by itself, and one of them alone.

    python benchmarks/statement_sets.py --rows 300000 --batches 8

Every way runs in a process of its own, which practises first. A run begins when its queries are started and
ends when all have worked off the same files; the micro-batches of a way are those that its progress tells.
State and shuffle are those of the last run.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kit_path  # noqa: F401 (finds tests.kit)
from run_system import common
from streams import DISORDER, Load, write_streams
from tables import aligned

import wjoin
from tests.kit.processes import Sampler
from wjoin.grammar.parser import parse_script
from wjoin.queries.running import Running
from wjoin.statements.inserts import insert
from wjoin.statements.statement_sets import execute_set

WAYS = ("one", "set of one", "set", "apart")


def statements(load: Load, count: int) -> list[str]:
    """Return statements with windows, conditions and columns of their own, the widest window first."""
    found = []
    for number in range(count):
        window = load.window * 1000 * (count - number) // count
        condition = "" if number % 2 == 0 else f" AND a.payload < 'a-label-{1000 - 50 * number:03}'"
        columns = (
            "a.id, a.ts, c.payload",
            "b.id, b.payload AS b, MATCH_TIME() AS at",
            "a.payload || c.payload AS both",
        )
        found.append(
            f"INSERT INTO out{number} SELECT {columns[number % 3]} FROM a, b, c "
            f"WINDOW = {window} MILLISECONDS WHERE a.id = b.id AND b.id = c.id{condition}"
        )
    return found


def main() -> None:
    """Measure the ways that are asked for, or one of them in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000, help="of a micro-batch, all streams together")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--window", type=int, default=10, help="seconds of the widest one")
    parser.add_argument("--statements", type=int, default=10)
    parser.add_argument("--practice", type=int, default=3, help="runs before those that count")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    load = Load(options.window, options.rows, options.batches)
    if options.way is not None:
        print(json.dumps(_measured(options, load)))
        return
    with tempfile.TemporaryDirectory(prefix="wjoin-sets-") as folder:
        write_streams(load, Path(folder) / "data")
        found = {way: _in_a_process(way, Path(folder)) for way in options.ways}
    rows = options.rows * options.batches
    base = found.get("one", next(iter(found.values())))
    lines = [
        ("way", "seconds", "rows/s", "of one", "a micro-batch", "state rows", "shuffled bytes", "memory MB")
    ]
    for way, each in found.items():
        lines.append(
            (
                way,
                f"{each['seconds']:.2f}",
                f"{rows / each['seconds']:,.0f}",
                f"{base['seconds'] / each['seconds']:.2f}",
                f"{each['batch_ms']:.0f} ms",
                f"{each['state']:,}",
                f"{each['shuffled']:,}",
                f"{each['memory'] / 1e6:,.0f}",
            )
        )
    print(aligned(lines))


def _in_a_process(way: str, folder: Path) -> dict[str, Any]:
    print(f"  {way} ...", file=sys.stderr, flush=True)
    command = [sys.executable, __file__, *sys.argv[1:], "--way", way, "--folder", str(folder)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        Sampler(process.pid) as usage,
    ):
        printed, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{way} has failed")
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return {**found, "memory": usage.peak.anonymous}


def _measured(options: argparse.Namespace, load: Load) -> dict[str, Any]:
    scratch = options.folder / options.way.replace(" ", "_")
    scratch.mkdir()
    session = wjoin.connect(**common(scratch, "2g"))
    session.spark.sparkContext.setLogLevel("ERROR")
    for name in load.names:
        session.sql(
            f"""CREATE STREAM {name} (id BIGINT, other BIGINT, ts TIMESTAMP, payload STRING) USING parquet
                OPTIONS (path '{options.folder / "data" / name}', maxFilesPerTrigger '1')
                WATERMARK ts DELAY OF INTERVAL {DISORDER // 1_000_000} SECONDS"""
        )
    runs = []
    for number in range(options.practice + options.runs):
        runs.append(_run(session, options, load, scratch / str(number)))
    measured = runs[options.practice :]
    return {
        "seconds": statistics.median(each["seconds"] for each in measured),
        "batch_ms": statistics.median(ms for each in measured for ms in each["batches"]),
        **{name: measured[-1][name] for name in ("state", "shuffled")},
    }


def _run(session: wjoin.Session, options: argparse.Namespace, load: Load, folder: Path) -> dict[str, Any]:
    count = 1 if options.way in ("one", "set of one") else options.statements
    inserts = statements(load, count)
    for number in range(count):
        session.sql(f"CREATE OR REPLACE SINK out{number} USING parquet OPTIONS (path '{folder}/out{number}')")
    text = "; ".join(inserts)
    if options.way.startswith("set"):
        text = f"EXECUTE STATEMENT SET BEGIN {text}; END"
    shuffled, began = _shuffled(session), time.perf_counter()
    running = list(_started(session, text, folder / "checkpoints"))
    for each in running:
        each.wait()
    seconds = time.perf_counter() - began
    reports = [each for query in running for each in query.query.recentProgress if each["numInputRows"]]
    return {
        "seconds": seconds,
        # The first micro-batch of a query starts what the later ones have.
        "batches": [each["durationMs"]["triggerExecution"] for each in reports if each["batchId"] > 0],
        "state": sum(query.totals.total.rows_of_state for query in running),
        "shuffled": _shuffled(session) - shuffled,
    }


def _started(session: wjoin.Session, text: str, checkpoints: Path) -> Iterator[Running]:
    session.context.queries.begin_script()
    asked = session.context.asked(text, {})
    for statement in parse_script(text):
        start: Any = execute_set if text.startswith("EXECUTE") else insert
        started = start(asked, statement, once=True, checkpoint=str(checkpoints))
        if started is not None:
            yield started


def _shuffled(session: wjoin.Session) -> int:
    """Return the bytes that all stages of this Spark have written for a shuffle so far."""
    spark: Any = session.spark
    store = spark._jsc.sc().statusStore()
    executors = store.executorList(False)
    return sum(executors.apply(place).totalShuffleWrite() for place in range(executors.size()))


if __name__ == "__main__":
    main()
