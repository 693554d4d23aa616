"""wjoin beside Pathway and Flink: three streams of CSV files, joined by a key inside a window of 5 seconds.

    python benchmarks/peers.py --pathway PYTHON --flink PYTHON [--statements N] [--first N] [--batches N]

Every system reads the same files, in a process of its own, after the others, on this machine's cores, and
drops its results; event times are epoch milliseconds. It works them off twice: the first few files, and all.
The rate is of the rows between, so that no start counts, nor what a young process has not compiled yet. The
Pythons are those of environments with ``pathway`` and ``apache-flink``. Fails when systems differ in the
number of results of a file of each stream, or one fails. Several statements, with windows of 1 to 5 seconds,
are a statement set of wjoin and of Flink; Pathway has one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import kit_path  # noqa: F401 (finds tests.kit)
import numpy as np
import pyarrow as pa
import pyarrow.csv
from streams import Load, rows, write_files

HERE = Path(__file__).parent / "peers"
LOAD = Load(window=5, batch_rows=300_000, batches=40)


def write(load: Load, folder: Path) -> None:
    """Write the rows of a load as CSV; event times are whole milliseconds, and Pathway wants no column id."""
    random = np.random.default_rng(2002)

    def made(stream: str, batch: int) -> pa.Table:
        table = rows(random, load, stream, batch)
        times = table["ts"].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
        return table.set_column(2, "millis", times).rename_columns(["badge", "other", "millis", "payload"])

    def save(table: pa.Table, file: Path) -> None:
        pyarrow.csv.write_csv(table, file.with_suffix(".csv"))

    write_files(load, folder, made, save)


def ran(python: str, system: str, folder: Path, *options: str) -> dict[str, float]:
    """Run a system over a folder; return its ``seconds`` and, where it counts them, ``results``."""
    command = [python, str(HERE / f"{system}_join.py"), str(folder), *options]
    env = {**os.environ, "PATHWAY_THREADS": str(os.cpu_count())}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False, env=env)
    if done.returncode:
        raise SystemExit(f"{system} failed:\n{done.stderr[-3000:]}")
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def linked(folder: Path, first: Path, count: int) -> None:
    """Make a folder of the first files of each stream."""
    for stream in folder.iterdir():
        (first / stream.name).mkdir(parents=True)
        for file in sorted(stream.iterdir())[:count]:
            (first / stream.name / file.name).hardlink_to(file)


def compare(pythons: Mapping[str, str | None], whole: Path, asked: str, first: int, more: int) -> None:
    """Run systems over a folder of streams and over their ``first`` files; print their rates.

    ``asked``: how many statements, or which; ``more``: the rows of all streams after the first files. Raises
    SystemExit where systems differ in the number of results of a file of each stream, or one fails.
    """
    few, one = (whole.with_name(name) for name in ("first", "one"))
    linked(whole, few, first)
    linked(whole, one, 1)
    counts, rates = {}, {}
    for system, python in pythons.items():
        if python is None:
            continue
        counts[system] = ran(python, system, one, asked, "--count")["results"]
        short, long = (ran(python, system, each, asked)["seconds"] for each in (few, whole))
        rates[system] = more / (long - short)
        print(f"{system}: {short:.1f} s for the first files, {long:.1f} s for all", flush=True)
    print(f"results of one file: {counts}")
    for system, rate in rates.items():
        print(f"{system:8} {rate:12,.0f} rows/s   wjoin is {rates['wjoin'] / rate:.2f} times as fast")
    if len(set(counts.values())) > 1:
        raise SystemExit("the systems differ in the number of results")


def main() -> None:
    """Write the files, run the systems, and print their rates."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pathway", metavar="PYTHON", help="the Python of an environment with Pathway")
    parser.add_argument("--flink", metavar="PYTHON", help="the Python of one with apache-flink")
    parser.add_argument("--statements", type=int, default=1, help="of a set (%(default)s)")
    parser.add_argument(
        "--first", type=int, default=10, help="files of a stream in the first run (%(default)s)"
    )
    parser.add_argument(
        "--batches", type=int, default=LOAD.batches, help="files of a stream in all (%(default)s)"
    )
    given = parser.parse_args()
    if given.pathway and given.statements > 1:
        parser.error("Pathway runs one statement")
    pythons = {"wjoin": sys.executable, "pathway": given.pathway, "flink": given.flink}
    load = Load(LOAD.window, LOAD.batch_rows, given.batches)
    with tempfile.TemporaryDirectory(prefix="wjoin-peers-") as scratch:
        whole = Path(scratch) / "whole"
        write(load, whole)
        more = (load.batches - given.first) * load.batch_rows
        compare(pythons, whole, str(given.statements), given.first, more)


if __name__ == "__main__":
    main()
