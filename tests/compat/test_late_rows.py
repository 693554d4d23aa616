"""LATE ROWS INTO in every way of running a query: the late rows are in their sink, once."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wjoin
from tests.compat.shells import beeline, options, shell, thrift_server
from tests.kit.tables import events
from tests.notebook.kernels import Kernel
from tests.packages import ROOT

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

LATE = [(100, 3), (101, 7)]
"""The numbers of the late rows, and their times in seconds."""

ROWS = {"a": [[(n, n, n % 4) for n in range(20)], [(n, at, 1) for n, at in [*LATE, (102, 19)]]]}
ROWS["b"] = [ROWS["a"][0], [(200, 19, 3), (201, 20, 3)]]


def script(folder: Path) -> list[str]:
    """Write two streams of two files each, and return statements that join them."""
    declared = []
    for name, files in ROWS.items():
        (folder / name).mkdir()
        for number, rows in enumerate(files):
            table = events([(n, at * 1_000_000, k) for n, at, k in rows], "k", time=pa.timestamp("us", "UTC"))
            path = folder / name / f"{number}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + number,) * 2)
        declared.append(
            f"""CREATE STREAM s{name} (id BIGINT, k BIGINT, ts TIMESTAMP) USING parquet
            OPTIONS (path '{folder / name}', maxFilesPerTrigger '1')
            WATERMARK ts DELAY OF '1 second' LATE ROWS INTO lost"""
        )
    sinks = [
        f"CREATE SINK {name} USING parquet OPTIONS (path '{folder / name}')" for name in ("lost", "found")
    ]
    insert = "INSERT INTO found SELECT A.id, B.id AS other FROM sa A, sb B WINDOW = 4 SECONDS WHERE A.k = B.k"
    return [*declared, *sinks, insert]


def run_on_the_command_line(folder: Path, statements: list[str]) -> None:
    (folder / "script.sql").write_text(";\n".join(statements))
    command = ["run", "script.sql", "--once", "--checkpoint", "checkpoints", "--set", "spark.master=local[2]"]
    _said(folder, command)


def run_in_the_shell(folder: Path, statements: list[str]) -> None:
    _said(folder, ["shell", "--checkpoint", "checkpoints"], ";\n".join(statements))


def _said(folder: Path, command: list[str], given: str = "") -> None:
    done = subprocess.run(
        [sys.executable, "-m", "wjoin.cli", *command],
        **{"input": given, "cwd": folder, "env": {**os.environ, "PYTHONPATH": str(ROOT)}},
        **{"capture_output": True, "text": True, "timeout": 300, "check": False},
    )
    assert done.returncode == 0, done.stderr
    assert "2 late" in done.stdout + done.stderr


def run_in_a_notebook(folder: Path, statements: list[str]) -> None:
    kernel = Kernel(str(folder), {**os.environ, "IPYTHONDIR": str(folder / "ipython")})
    try:
        *declared, insert = statements
        for cell in (
            "%load_ext wjoin",
            "%%wjoin\n" + ";\n".join(declared),
            f"%%wjoin --once --checkpoint checkpoints\n{insert}",
        ):
            done = kernel.run(cell)
            assert done.status == "ok", done.error
    finally:
        kernel.close()


def run_in_spark_sql(folder: Path, statements: list[str]) -> None:
    (folder / "wait.sh").write_text(f"until [ -e '{_last_commit(folder)}' ]; do sleep 0.2; done\n")
    *declared, insert = statements
    texts = [*declared, f"SET wjoin.checkpoint = {folder / 'checkpoints'}", insert, "!sh wait.sh"]
    (folder / "script.sql").write_text(";\n".join(texts) + ";\n")
    done = shell(folder, "spark-sql", "-S", *options(), "-f", str(folder / "script.sql"))
    assert done.returncode == 0, done.stderr


def run_by_jdbc(folder: Path, statements: list[str]) -> None:
    *declared, insert = statements
    with thrift_server(folder) as port:
        asked = [*declared, f"SET wjoin.checkpoint = {folder / 'checkpoints'}", insert]
        done = beeline(folder, port, "one", asked, "--outputformat=csv2")
        ends = time.monotonic() + 120
        while not _last_commit(folder).exists():
            assert time.monotonic() < ends, done.stdout + done.stderr
            time.sleep(0.2)


def _last_commit(folder: Path) -> Path:
    return folder / "checkpoints" / "found" / "commits" / "1"


WAYS = (run_on_the_command_line, run_in_the_shell, run_in_a_notebook, run_in_spark_sql, run_by_jdbc)


@pytest.mark.parametrize("run", WAYS, ids=lambda run: run.__name__)
def test_late_rows_are_in_their_sink(run: Callable[[Path, list[str]], None], tmp_path: Path) -> None:
    run(tmp_path, script(tmp_path))
    told = pq.read_table(
        wjoin.committed_files(tmp_path / "lost" / "late_for=found"), partitioning=None
    ).to_pylist()
    assert sorted((row["id"], row["ts"].second, row["late_for"], row["micro_batch"]) for row in told) == [
        (id, at, "found", 1) for id, at in LATE
    ]
    found = [
        row for each in wjoin.committed_files(tmp_path / "found") for row in pq.read_table(each).to_pylist()
    ]
    assert {row["id"] for row in found}.isdisjoint(id for id, _ in LATE) and len(found) > 52
