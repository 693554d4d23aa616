"""The command line as a user meets it: output, exit status, clean stop."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.spark

JOIN = """SELECT A.k, B.v FROM lefts A, rights B
WINDOW (A, B) = 5 SECONDS WHERE A.k = B.k"""


@pytest.fixture
def declarations(tmp_path: Path) -> str:
    """Two streams of three files with 20 rows each, and a sink."""
    text = ""
    for name in ("lefts", "rights"):
        (tmp_path / name).mkdir()
        for number in range(3):
            keys = range(number * 20, number * 20 + 20)
            times = pa.array(
                [1_700_000_000_000_000 + key * 1_000_000 for key in keys], pa.timestamp("us", "UTC")
            )
            table = pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array(keys, pa.int64()), "ts": times})
            path = tmp_path / name / f"{number}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        text += f"""CREATE STREAM {name} (k BIGINT, v BIGINT, ts TIMESTAMP)
        USING parquet OPTIONS (path '{tmp_path / name}', maxFilesPerTrigger '1');\n"""
    return text + f"CREATE SINK pairs USING parquet OPTIONS (path '{tmp_path / 'pairs'}');\n"


def wjoin(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wjoin.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "script.sql"
    path.write_text(text)
    return str(path)


def test_once_runs_everything_and_a_second_run_adds_nothing(tmp_path: Path, declarations: str) -> None:
    text = f"{declarations} INSERT INTO pairs {JOIN} AND A.k < :most; {JOIN} ORDER BY 1 LIMIT 2;".replace(
        f"{JOIN} ORDER BY 1 LIMIT 2", "SELECT 1 + 1 AS two"
    )
    path = script(tmp_path, text)
    run = (
        "run",
        path,
        "--once",
        "--json",
        "--checkpoint",
        str(tmp_path / "checkpoints"),
        "--param",
        "most=50",
    )
    first = wjoin(*run)
    assert first.returncode == 0, first.stderr
    lines = [json.loads(line) for line in first.stdout.splitlines() if line.startswith("{")]
    assert [line["batch"] for line in lines] == [0, 1, 2]
    assert sum(line["rows_in"]["A"] for line in lines) == 60
    assert "|2  |" in first.stdout
    assert len(pq.read_table(tmp_path / "pairs")) == 50
    second = wjoin(*run)
    assert second.returncode == 0, second.stderr
    assert len(pq.read_table(tmp_path / "pairs")) == 50
    # What the runs measured is there for whoever asks next.
    setting = f"wjoin.checkpoint={tmp_path / 'checkpoints'}"
    explained = wjoin("explain", path, "--set", setting, "--param", "most=50")
    # Of both streams, and of how often their keys agree.
    assert explained.stdout.count("(measured)") == 3
    assert "  A, B: keys agree" in explained.stdout
    changed = wjoin("run", script(tmp_path, text.replace("5 SECONDS", "6 SECONDS")), *run[2:])
    assert changed.returncode == 0, "nothing new to read, so nothing is refused"
    pq.write_table(pq.read_table(tmp_path / "lefts" / "0.parquet"), tmp_path / "lefts" / "9.parquet")
    refused = wjoin("run", script(tmp_path, text.replace("5 SECONDS", "6 SECONDS")), *run[2:])
    assert refused.returncode == 1
    assert refused.stderr.startswith("wjoin: error[WJ702]")
    assert len(refused.stderr.splitlines()) == 1


def test_streaming_select_prints_its_rows_with_once(tmp_path: Path, declarations: str) -> None:
    done = wjoin("run", script(tmp_path, f"{declarations} {JOIN}"), "--once", "--rows", "100")
    assert done.returncode == 0, done.stderr
    assert len([line for line in done.stdout.splitlines() if line.startswith("|")]) == 61
    refused = wjoin("run", script(tmp_path, f"{declarations} {JOIN}"))
    assert refused.returncode == 2
    assert "WJ606" in refused.stderr


def test_errors_of_a_statement_end_with_status_2_and_a_caret(tmp_path: Path) -> None:
    path = script(tmp_path, "SELECT 1;\nSELECT A.k FROM a A, b B WINDOW (A, B) = 5 WHERE A.k = B.k")
    done = wjoin("run", path, "--once")
    assert done.returncode == 2
    assert done.stderr.startswith("error[WJ214]")
    assert f"{path}:2:17" in done.stderr
    bad = wjoin("run", script(tmp_path, "SELECT A.k FROM a A, b B WINDOW (A B) = 5 SECONDS"))
    assert bad.returncode == 2
    assert f"{path}:1:" in bad.stderr
    assert "^" in bad.stderr
    assert "Traceback" not in bad.stderr
    missing = wjoin("run", str(tmp_path / "nothing.sql"))
    assert missing.returncode == 2
    assert "WJ608" in missing.stderr


def test_explain_needs_no_data(tmp_path: Path, declarations: str) -> None:
    done = wjoin("explain", script(tmp_path, f"{declarations} INSERT INTO pairs {JOIN}"))
    assert done.returncode == 0, done.stderr
    assert "hash" in done.stdout.lower()
    assert "5 s" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_runs_until_stopped_and_stops_cleanly(tmp_path: Path, declarations: str, number: int) -> None:
    path = script(tmp_path, f"{declarations} INSERT INTO pairs {JOIN}")
    screen, terminal = pty.openpty()
    command = [sys.executable, "-m", "wjoin.cli", "run", path, "--checkpoint", str(tmp_path / "checkpoints")]
    commits = tmp_path / "checkpoints" / "pairs" / "commits"
    with (tmp_path / "errors").open("w") as errors:
        environment = {**os.environ, "COLUMNS": "120"}
        running = subprocess.Popen(command, stdout=terminal, stderr=errors, env=environment)
    shown: list[bytes] = []
    reading = threading.Thread(target=lambda: shown.extend(iter(lambda: read_screen(screen), b"")))
    reading.start()
    deadline = time.monotonic() + 120
    while not (commits / "2").exists():
        assert running.poll() is None, (tmp_path / "errors").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(1.5)
    running.send_signal(number)
    running.wait(timeout=60)
    os.close(terminal)
    reading.join(timeout=10)
    os.close(screen)
    printed = (tmp_path / "errors").read_text()
    assert running.returncode == 0, printed
    assert "Traceback" not in printed
    assert b"watermark" in b"".join(shown)
    assert len(pq.read_table(tmp_path / "pairs")) == 60


def read_screen(screen: int) -> bytes:
    try:
        return os.read(screen, 65536)
    except OSError:  # the other end of a terminal is closed
        return b""


def test_version() -> None:
    assert wjoin("--version").stdout.startswith("wjoin 0.")
