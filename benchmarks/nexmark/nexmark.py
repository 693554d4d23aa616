"""NEXMark's window joins by wjoin, Flink's and Spark's own joins: the same rows, in turns, each in processes.

    python -m benchmarks.nexmark.nexmark [--flink PYTHON] [--queries q4 q9 ...] [--files N] [--events N]

``--flink`` is the Python of an environment with ``apache-flink``; without it wjoin and Spark are compared.
First every system gives its results over few rows, which must be DuckDB's. Then each works off the first
files and all of them, and drops its results: the rate is that of the rows between, so that no start counts.
Flink reads the same rows from one file of each stream for each of its readers: it takes the files of a folder
in no order, and then drops rows as late. *Results* are those over all files, as a share of DuckDB's.
``--live`` has files appear at a rate and measures from a row's appearing to its result's. Prints a table in
Markdown.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq

from benchmarks.nexmark.generator import Load, feed, write
from benchmarks.nexmark.queries import COLUMNS, QUERIES, Join, Query, query
from benchmarks.sink_log import commits
from tests.kit.processes import Sampler

HERE = Path(__file__).resolve().parent
NONE = "–"


@dataclass(frozen=True)
class Run:
    """What a system tells of a run, and what its processes took: ``memory`` in bytes, ``wall`` in seconds."""

    told: Mapping[str, float]
    memory: int
    wall: float


def can(system: str, asked: Query) -> bool:
    """Return whether a system has a join of streams of that kind: Spark has no anti join."""
    return system != "spark" or asked.join is not Join.ANTI


def run(system: str, python: str, folder: Path, asked: Query, *options: str) -> Run:
    """Run a query by a system in processes of its own. Raises SystemExit where it fails."""
    command = [python, str(HERE / f"by_{system}.py"), str(folder), asked.name, *options]
    began = time.monotonic()
    errors = folder.parent / "errors"
    with (
        errors.open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
        Sampler(process.pid) as usage,
    ):
        printed, _ = process.communicate()
    lines = [line for line in printed.splitlines() if line.startswith("{")]
    if process.returncode or not lines:
        raise SystemExit(f"{system} has failed at {asked.name}:\n{errors.read_text()[-3000:]}")
    return Run(json.loads(lines[-1]), usage.peak.anonymous, time.monotonic() - began)


# The results ---------------------------------------------------------------------


def oracle(folder: Path) -> duckdb.DuckDBPyConnection:
    """Return DuckDB with the streams below a folder as tables."""
    found = duckdb.connect()
    for stream, columns in COLUMNS.items():
        kinds = dict(each.replace("STRING", "VARCHAR").split() for each in columns.split(", "))
        expires = ", make_timestamp(ends * 1000) AS expires" if stream == "auction" else ""
        found.execute(
            f"""CREATE TABLE {stream} AS SELECT *, make_timestamp(millis * 1000) AS ts{expires}
                FROM read_csv('{folder}/{stream}/*.csv', header = false, columns = {kinds})"""
        )
    return found


def check(asked: Query, found: Path, tables: duckdb.DuckDBPyConnection) -> int:
    """Compare the rows that a system has made of a query with DuckDB's; return how many they are.

    Raises SystemExit where they differ, those of the group or rank on top, too.
    """
    expected = Counter(tables.execute(asked.plain).fetchall())
    rows = Counter(_rows(found, tables, asked))
    if rows != expected:
        raise SystemExit(f"{asked.name}: {rows.total()} rows, DuckDB has {expected.total()}")
    after = found.with_name(f"{found.name}-after")
    if asked.after and after.exists():
        ranked = tables.execute(f"WITH joined AS ({asked.plain}) {asked.after}").fetchall()
        told = duckdb.execute(f"SELECT * FROM read_parquet('{after}/*.parquet')").fetchall()
        if Counter(map(rounded, told)) != Counter(map(rounded, ranked)):
            raise SystemExit(f"{asked.name}: what is on top of the join differs from DuckDB's")
    return expected.total()


def _rows(found: Path, tables: duckdb.DuckDBPyConnection, asked: Query) -> list[tuple[Any, ...]]:
    """Return the rows of files, Parquet, or CSV as Flink writes it."""
    if any(found.glob("*.parquet")):
        return duckdb.execute(f"SELECT * FROM read_parquet('{found}/*.parquet')").fetchall()
    kinds = {name: kind for name, kind, *_ in tables.execute(f"DESCRIBE {asked.plain}").fetchall()}
    files = [str(each) for each in found.glob("**/*") if each.is_file() and each.stat().st_size]
    return duckdb.execute(f"SELECT * FROM read_csv({files}, header = false, columns = {kinds})").fetchall()


def rounded(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return a row whose fractions are those of an average in any order."""
    return tuple(round(each, 3) if isinstance(each, float) else each for each in row)


# Latency -------------------------------------------------------------------------


@contextmanager
def appearing(load: Load, folder: Path) -> Iterator[None]:
    """Have a file of each stream appear whenever its events are due, from ``with`` to its end."""
    ended = threading.Event()
    thread = threading.Thread(target=feed, args=(load, partial(write, load, folder), ended), daemon=True)
    thread.start()
    while not (folder / "bid").exists():
        time.sleep(0.01)
    try:
        yield
    finally:
        ended.set()
        thread.join()


def waited(system: str, results: Path, since: float) -> tuple[float, float, int]:
    """Return the median and the 99th percentile of seconds that results took, and how many they are.

    Of those of rows that came after a moment. Spark's and wjoin's are there once their file is committed,
    Flink's once they leave the join, before its sink has them in a file.
    """
    found = []
    if system == "flink":
        for path in results.glob("**/*"):
            # A stopped job leaves its last line as it is.
            whole, _, _ = path.read_text().rpartition("\n") if path.is_file() else ("", "", "")
            for line in whole.splitlines():
                *_, came, told = line.rsplit(",", 2)
                moment = datetime.fromisoformat(told.strip('"')).replace(tzinfo=UTC).timestamp()
                found.append((int(came) / 1000, moment))
    else:
        for path, moment in commits(results).items():
            found += [
                (came / 1000, moment) for came in pq.read_table(path, columns=["came"])["came"].to_pylist()
            ]
    seconds = [told - came for came, told in found if came >= since]
    if not seconds:
        return float("nan"), float("nan"), 0
    p50, p99 = np.quantile(seconds, [0.5, 0.99])
    return float(p50), float(p99), len(seconds)


def latency(system: str, python: str, asked: Query, load: Load, seconds: float) -> tuple[float, float, int]:
    """Run a query while files appear, and measure in the second half of the time."""
    with tempfile.TemporaryDirectory(prefix="wjoin-nexmark-") as scratch:
        folder, results = Path(scratch) / "live", Path(scratch) / "results"
        with appearing(load, folder):
            done = run(system, python, folder, asked, "--live", str(seconds), "--results", str(results))
            # It began so long ago, once its processes had started.
            since = time.time() - done.told["seconds"] + seconds / 2
        return waited(system, results, since)


# The table -----------------------------------------------------------------------


def first_files(whole: Path, folder: Path, count: int) -> Path:
    """Make a folder of the first files of each stream."""
    for stream in COLUMNS:
        (folder / stream).mkdir(parents=True)
        for file in sorted((whole / stream).iterdir())[:count]:
            (folder / stream / file.name).hardlink_to(file)
    return folder


def dealt(whole: Path, folder: Path, readers: int) -> Path:
    """Deal the rows of each stream, in their order, to as many files as there are readers."""
    for stream in COLUMNS:
        (folder / stream).mkdir(parents=True)
        with ExitStack() as opened:
            dealt = [
                opened.enter_context((folder / stream / f"{reader}.csv").open("wb"))
                for reader in range(readers)
            ]
            for file in sorted((whole / stream).iterdir()):
                lines = file.read_bytes().splitlines(keepends=True)
                for reader, to in enumerate(dealt):
                    to.writelines(lines[reader::readers])
    return folder


def measured(
    pythons: Mapping[str, str],
    asked: Query,
    folders: Mapping[str, Mapping[str, Path]],
    more: int,
    live: tuple[Load, float],
    together: int,
    expected: int,
) -> Iterator[str]:
    """Yield a line of the table for each system that can run a query, which has ``expected`` results."""
    cut = ("--together", str(together))
    rates: dict[str, float] = {}
    for system, python in pythons.items():
        if not can(system, asked):
            yield f"| {asked.name} | {system} | {' | '.join([NONE] * 8)} |"
            continue
        sources = folders.get(system, folders["spark"])
        start, few, whole = (
            run(system, python, sources[name], asked, *cut) for name in ("one", "few", "whole")
        )
        counted = run(system, python, sources["whole"], asked, "--count") if system == "flink" else whole
        rates[system] = more / max(1e-9, whole.told["seconds"] - few.told["seconds"])
        waits = (NONE, NONE)
        if live[1] and asked.join is Join.INNER:
            p50, p99, _ = latency(system, python, asked, *live)
            waits = (f"{p50:.2f} s", f"{p99:.2f} s")
        cells = (
            f"{rates[system]:,.0f}",
            NONE if system == "wjoin" else f"{rates['wjoin'] / rates[system]:.1f} ×",
            f"{counted.told['results'] / expected:.2%}",
            f"{whole.told['state'] / 1e6:,.1f} MB",
            *waits,
            f"{whole.memory / 1e9:.1f} GB",
            f"{start.wall:.1f} s",
        )
        yield f"| {asked.name} | {system} | {' | '.join(cells)} |"


def main() -> None:
    """Compare the results, then measure, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--flink", metavar="PYTHON", help="the Python of an environment with apache-flink")
    parser.add_argument("--queries", nargs="+", choices=[each.name for each in QUERIES])
    parser.add_argument("--systems", nargs="+", choices=("wjoin", "flink", "spark"))
    parser.add_argument(
        "--rate", type=int, default=Load.rate, help="events a second of event time (%(default)s)"
    )
    parser.add_argument("--events", type=int, default=400_000, help="of a file of each stream (%(default)s)")
    parser.add_argument("--files", type=int, default=20, help="of each stream (%(default)s)")
    parser.add_argument("--first", type=int, default=5, help="files of the first run (%(default)s)")
    parser.add_argument(
        "--together", type=int, default=1, help="files in a micro-batch of wjoin and Spark (%(default)s)"
    )
    parser.add_argument("--live", type=float, default=0, help="seconds to measure latency for; 0: not")
    parser.add_argument("--check-only", action="store_true", help="compare the results, and measure nothing")
    given = parser.parse_args()
    pythons = {"wjoin": sys.executable, "flink": given.flink, "spark": sys.executable}
    wanted = given.systems or [system for system, python in pythons.items() if python]
    pythons = {system: pythons[system] for system in ("wjoin", "flink", "spark") if system in wanted}
    asked = [query(name) for name in given.queries] if given.queries else list(QUERIES)
    load = Load(given.rate, given.files, given.events)
    with tempfile.TemporaryDirectory(prefix="wjoin-nexmark-") as scratch:
        root = Path(scratch)
        small = Load(given.rate, 3, min(given.events, 20_000))
        for file in range(small.files):
            write(small, root / "small", file)
        tables = oracle(root / "small")
        for each in asked:
            for system, python in pythons.items():
                if can(system, each):
                    results = root / f"{system}-{each.name}"
                    run(system, python, root / "small", each, "--results", str(results))
                    print(
                        f"{each.name} by {system}: {check(each, results, tables):,} rows, as DuckDB",
                        flush=True,
                    )
        if given.check_only:
            return
        for file in range(load.files):
            write(load, root / "whole", file)
        files = {
            "whole": root / "whole",
            "few": first_files(root / "whole", root / "few", given.first),
            "one": first_files(root / "whole", root / "one", 1),
        }
        folders = {"spark": files}
        if "flink" in pythons:
            readers = os.cpu_count() or 1
            folders["flink"] = {
                name: dealt(folder, root / "dealt" / name, readers) for name, folder in files.items()
            }
        tables = oracle(root / "whole")
        more = (load.files - given.first) * load.events
        live = Load(given.rate, 1_000_000, given.rate // 2), given.live
        print(
            "\n| query | system | rows/s | wjoin's is | results | state "
            "| p50 | p99 | memory | one file, with start |"
        )
        print(f"|{' --- |' * 10}")
        for each in asked:
            (expected,) = tables.execute(f"SELECT COUNT(*) FROM ({each.plain}) AS q").fetchone() or (0,)
            for line in measured(pythons, each, folders, more, live, given.together, expected):
                print(line, flush=True)


if __name__ == "__main__":
    main()
