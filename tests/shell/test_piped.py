"""Statements that are piped into the shell, and the page about it: each of its examples runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packages import ROOT

pytestmark = [pytest.mark.thorough, pytest.mark.spark, pytest.mark.timeout(600)]

_SQL = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def piped(text: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wjoin.cli", "shell", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=300, cwd=folder, env=environment
    )


def test_statements_run_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "1.json").write_text('{"k": 1, "ts": "2024-05-01T12:00:00Z"}\n')
    (tmp_path / "more.sql").write_text("SELECT count(*) AS kept FROM parquet.`out`;\n")
    text = """
    SELECT 1 AS one; SELECT
    'a;b' AS two;
    CREATE STREAM s (k INT, ts TIMESTAMP) USING json OPTIONS (path 'data');
    CREATE SINK kept USING parquet OPTIONS (path 'out');
    INSERT INTO kept SELECT * FROM s WHERE k < :most;
.read more.sql
.tables
    SELECT k AS streamed FROM s
    """
    done = piped(text, tmp_path, "--checkpoint", "checkpoints", "--param", "most=5")
    assert done.returncode == 0, done.stderr
    assert "|one|" in done.stdout
    assert "|a;b|" in done.stdout
    assert "kept: 1 row in, 1 micro-batch" in done.stdout
    assert re.search(r"\|kept\|\n\+-+\+\n\|1 +\|", done.stdout)
    assert " kept │ sink\n s    │ stream" in done.stdout
    assert re.search(r"\|streamed\|\n\+-+\+\n\|1 +\|", done.stdout), "the last needs no semicolon"
    assert "wjoin>" not in done.stdout + done.stderr
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.long
def test_a_query_is_asked_for_its_state(tmp_path: Path) -> None:
    declared, asked = (
        "",
        "SELECT stream, count(*) AS kept FROM STATE OF QUERY {} GROUP BY stream ORDER BY 1;\n",
    )
    for name in ("p", "q"):
        (tmp_path / name).mkdir()
        rows = [f'{{"k": {n % 3}, "n": {n}}}\n' for n in range(20)]
        (tmp_path / name / "1.json").write_text("".join(rows))
        declared += f"""CREATE STREAM {name} (k INT, n BIGINT) USING json OPTIONS (path '{name}')
            WATERMARK n DELAY OF 1;"""
    insert = "INSERT INTO kept SELECT P.n FROM p P, q Q WINDOW (P, Q) = 40 WHERE P.k = Q.k;\n"
    text = f"""{declared} CREATE SINK kept USING parquet OPTIONS (path 'out'); {insert}
        {asked.format("kept")} EXPLAIN MATCH P(n = 1), Q(n = 2) {insert} EXPLAIN DELAY p;"""
    done = piped(text, tmp_path, "--checkpoint", "checkpoints")
    assert done.returncode == 0, done.stderr
    state = r"\|P +\|20 +\|\n\|Q +\|20 +\|"
    assert re.search(state, done.stdout), done.stdout
    assert "P.k = Q.k: '1' is not '2'." in done.stdout
    assert "lost of kept" in done.stdout
    # The query is not known to another shell but by its checkpoint.
    text = asked.format("kept") + asked.format("'checkpoints/kept'")
    done = piped(text, tmp_path, "--checkpoint", "checkpoints")
    assert len(re.findall(state, done.stdout)) == 2, done.stderr


def test_the_first_error_ends_it(tmp_path: Path) -> None:
    done = piped(
        "SELECT 1 AS one;\nSELECT *\n  FROM nowhere a, b WINDOW = 5 SECONDS;\nSELECT 2 AS two;", tmp_path
    )
    assert done.returncode == 2
    assert "|one|" in done.stdout
    assert "two" not in done.stdout
    assert " --> <sql>:" in done.stderr
    assert "error[WJ214]: no table, view or stream is named nowhere" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    blocks = _SQL.findall((ROOT / "docs" / "shell.md").read_text("utf-8"))
    assert blocks
    done = piped("\n".join(blocks), tmp_path, "--checkpoint", "checkpoints")
    assert done.returncode == 0, done.stderr
