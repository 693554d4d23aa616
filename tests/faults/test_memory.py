"""Whatever waits at the first start, and however many partners a row has, memory stays bounded.

Each case runs as users run it: `wjoin run --once` in a process of its own, with the settings that
come. `make faults` runs these, with 12,000,000 rows; other numbers are for trying them.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from tests.faults.large import CASES, Case, Result
from tests.kit.processes import Sampler, Usage
from wjoin.checkpoints.committed import committed_files

pytestmark = pytest.mark.thorough

KILLED_AT = 14 * 10**9
"""Bytes of anonymous memory at which a case is killed, before it takes the machine with it."""


@dataclass(frozen=True)
class Ran:
    """What a case took, what it printed, and the end of what it said on standard error."""

    seconds: float
    usage: Usage
    status: int
    printed: "Printed"
    words: str


@dataclass
class Printed:
    """What a command prints: how many rows, the number in the last one, and the report of a query."""

    rows: int = 0
    number: int = 0
    report: str = ""

    def take(self, line: bytes) -> None:
        """Take a line; what is neither a row that begins with a number nor the report is passed over."""
        cell = line.strip().strip(b"|").split(b"|")[0].strip()
        if cell.isdigit():
            self.rows, self.number = self.rows + 1, int(cell)
        elif b" rows in (" in line:
            self.report = line.decode().strip()


def run(case: Case, root: Path) -> Ran:
    """Run the script of a case in its folder; its output is read as it comes, through a pipe."""
    (root / "case.sql").write_text(case.script)
    command = [sys.executable, "-m", "wjoin.cli", "run", str(root / "case.sql"), "--once", *case.arguments]
    # The tests' own options of the JVM are for short runs.
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_SUBMIT_OPTS"}
    began = time.monotonic()
    with (root / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    assert process.stdout is not None
    printed = Printed()
    try:
        with Sampler(process.pid, limit=KILLED_AT, proportional=True) as usage, process.stdout as out:
            for line in out:
                printed.take(line)
            status = process.wait()
    finally:
        process.kill()
    seconds = time.monotonic() - began
    return Ran(seconds, usage, status, printed, (root / "log").read_text()[-3000:])


def results(case: Case, ran: Ran, root: Path) -> tuple[int, int]:
    """Return how many results a case has, and how many different ones, which is not known of printed ones."""
    match case.result:
        case Result.FILES:
            return written(root / "joined", case.columns)
        case Result.LINES:
            return ran.printed.rows, ran.printed.rows
        case Result.NUMBER:
            return ran.printed.number, ran.printed.number


def written(folder: Path, columns: tuple[str, ...]) -> tuple[int, int]:
    """Return how many rows a sink or folder has, and how many that differ in some columns."""
    files = committed_files(folder) or [str(path) for path in folder.glob("*.parquet")]
    query = f"SELECT count(*), count(DISTINCT ({', '.join(columns)})) FROM read_parquet($files)"
    found = duckdb.execute(query, {"files": files}).fetchall()
    return int(found[0][0]), int(found[0][1])


def told(case: Case, rows: int, ran: Ran) -> str:
    """Return what a case took, in a line."""
    peak = ran.usage.peak
    sizes = (peak.anonymous, peak.resident, ran.usage.peak_proportional)
    anonymous, resident, proportional = (f"{size / 1e9:.2f} GB" for size in sizes)
    return (
        f"{case.name}: {rows:,} rows in {ran.seconds:.0f} s ({rows / ran.seconds:,.0f} rows/s);"
        f" peak memory {anonymous} anonymous, {resident} resident, {proportional} proportional"
        + (f"\n  {ran.printed.report}" if ran.printed.report else "")
    )


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_memory_is_bounded(
    case: Case, backlog: int, limit_gb: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = max(3, int(backlog * case.scale))
    case.write(tmp_path, rows)
    ran = run(case, tmp_path)
    with capsys.disabled():
        print("\n" + told(case, rows, ran))
    assert not ran.usage.killed, f"killed at {KILLED_AT / 1e9:.0f} GB"
    assert ran.status == 0, ran.words
    assert results(case, ran, tmp_path) == (case.expected(rows), case.expected(rows))
    assert ran.usage.peak.anonymous <= limit_gb * 1e9
