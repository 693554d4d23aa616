"""The command line as a user meets it: output, exit status, clean stop."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wjoin.testing.waiting import until

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


def wjoin(*arguments: str, piped: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wjoin.cli", *arguments]
    return subprocess.run(
        command, input=piped, capture_output=True, text=True, timeout=200, env={**os.environ, **environment}
    )


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "script.sql"
    path.write_text(text)
    return str(path)


@pytest.mark.long
def test_a_completed_run_decides_what_waits(tmp_path: Path, declarations: str) -> None:
    left = JOIN.replace("lefts A, rights B", "lefts A LEFT JOIN rights B ON A.k = B.k + 1000")
    text = script(tmp_path, f"{declarations} INSERT INTO pairs {left.partition(' WHERE')[0]}")
    checkpoint = ("--checkpoint", str(tmp_path / "checkpoints"))
    done = wjoin("run", text, "--once", "--complete", *checkpoint)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert re.match(r"pairs: 120 rows in .*, [1-5]\d results of the join", lines[0])
    assert re.match(r"pairs: no new rows, [1-9] results of the join", lines[1])
    assert pq.read_table(tmp_path / "pairs").num_rows == 60
    refused = wjoin("run", text, "--complete", *checkpoint)
    assert "WJ727" in refused.stderr
    select = script(tmp_path, f"{declarations} {JOIN}")
    assert "WJ727" in wjoin("run", select, "--once", "--complete").stderr


@pytest.mark.thorough
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
    *lines, row = map(json.loads, first.stdout.splitlines())
    assert [line["batch"] for line in lines] == [0, 1, 2]
    assert sum(line["rows_in"]["A"] for line in lines) == 60
    assert row == {"two": 2}
    assert (
        "pairs: 120 rows in (A 60, B 60), 50 results of the join, 0 late, 0 without event time"
        in first.stderr
    )
    assert len(pq.read_table(tmp_path / "pairs")) == 50
    second = wjoin(*run)
    assert second.returncode == 0, second.stderr
    assert "pairs: no new rows" in second.stderr
    assert len(pq.read_table(tmp_path / "pairs")) == 50
    # What the runs measured is there for whoever asks next.
    setting = f"wjoin.checkpoint={tmp_path / 'checkpoints'}"
    explained = wjoin("explain", path, "--set", setting, "--param", "most=50")
    # Of both streams, and of how often their keys agree.
    assert explained.stdout.count("(measured)") == 3
    assert "  A, B: keys agree" in explained.stdout
    # Nothing new is there to be read: the checkpoint is compared before anything runs.
    refused = wjoin("run", script(tmp_path, text.replace("5 SECONDS", "6 SECONDS")), *run[2:])
    assert refused.returncode == 2
    shown = refused.stderr[refused.stderr.index("error[WJ702]") :].splitlines()
    assert "pairs" in shown[0]
    assert str(tmp_path / "checkpoints" / "pairs") in shown[0]
    assert shown[1].startswith(f" --> {path}:")
    assert shown[-1].startswith("help: start from a new checkpoint folder")


@pytest.mark.thorough
@pytest.mark.timeout(800)  # four processes, each with a Spark of its own
def test_a_checkpoint_is_repartitioned_whole_or_not_at_all(tmp_path: Path, declarations: str) -> None:
    path = script(tmp_path, f"{declarations} INSERT INTO pairs {JOIN};")
    late = tmp_path / "rights" / "2.parquet"
    late.rename(tmp_path / "late.parquet")
    run = ("run", path, "--once", "--set", "spark.sql.shuffle.partitions=2", "--checkpoint")
    old, new = str(tmp_path / "old"), tmp_path / "new"
    first = wjoin(*run, old)
    assert first.returncode == 0, first.stderr
    there = {file: file.read_bytes() for file in Path(old).rglob("*") if file.is_file()}
    move = ("checkpoint", "repartition", old, str(new), "--partitions", "3", path)
    killed = wjoin(*move, WJOIN_FAULT="before-checkpoint-appears")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not new.exists()
    assert (tmp_path / "new.unfinished" / "checkpoint").exists()
    moved = wjoin(*move)
    assert moved.returncode == 0, moved.stderr
    said = f"pairs: continues after micro-batch 2 with 3 partitions instead of 2, in {new}/pairs"
    assert moved.stdout.splitlines() == [said]
    assert not (tmp_path / "new.unfinished").exists()
    assert {file: file.read_bytes() for file in Path(old).rglob("*") if file.is_file()} == there
    # Its rows meet those that are kept, wherever they lie.
    (tmp_path / "late.parquet").rename(late)
    assert len(pq.read_table(tmp_path / "pairs")) == 40
    going_on = wjoin(*run[:-2], "spark.sql.shuffle.partitions=3", "--checkpoint", str(new))
    assert going_on.returncode == 0, going_on.stderr
    assert len(pq.read_table(tmp_path / "pairs")) == 60


@pytest.mark.thorough
def test_streaming_select_prints_its_rows(tmp_path: Path, declarations: str) -> None:
    path = script(tmp_path, f"{declarations} {JOIN}")
    done = wjoin("run", path, "--once", "--rows", "100")
    assert done.returncode == 0, done.stderr
    assert len([line for line in done.stdout.splitlines() if line.startswith("|")]) == 61
    command = [sys.executable, "-m", "wjoin.cli", "run", path, "--rows", "2"]
    with (tmp_path / "errors").open("w") as errors, (tmp_path / "rows").open("w") as rows:
        running = subprocess.Popen(command, stdout=rows, stderr=errors)
    until(
        lambda: "micro-batch 2: " in (tmp_path / "rows").read_text(),
        "the third micro-batch",
        process=running,
        said=(tmp_path / "errors").read_text,
    )
    for _ in range(2):  # an impatient user
        running.send_signal(signal.SIGINT)
    assert running.wait(timeout=60) == 0
    printed, said = (tmp_path / "rows").read_text(), (tmp_path / "errors").read_text()
    assert printed.count("only showing top 2 rows") == 3
    # Rows are printed before Spark reports their micro-batch, and the stop may come between.
    assert re.search(r"^SELECT: (80|120) rows in .*, (40|60) results of the join", printed, re.MULTILINE)
    assert "no checkpoint" in said
    assert said.rstrip().endswith("Stopped cleanly")


@pytest.mark.long
def test_a_select_ends_quietly_when_nobody_reads_its_lines_any_more(
    tmp_path: Path, declarations: str
) -> None:
    command = [sys.executable, "-m", "wjoin.cli", "run", script(tmp_path, f"{declarations} {JOIN}"), "--json"]
    with (tmp_path / "errors").open("w") as errors:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
    assert running.stdout is not None
    with running.stdout as lines:
        assert json.loads(lines.readline()).keys() == {"k", "v"}
    assert running.wait(timeout=100) == 1
    said = (tmp_path / "errors").read_text()
    assert "error" not in said
    assert "Traceback" not in said


@pytest.mark.thorough
def test_a_failure_while_running_ends_with_status_1_and_its_place(tmp_path: Path, declarations: str) -> None:
    select = JOIN.replace("SELECT A.k, B.v", "SELECT raise_error('no ' || A.k) AS e")
    path = script(tmp_path, f"{declarations}INSERT INTO pairs {select}")
    checkpoint = ("--checkpoint", str(tmp_path / "checkpoints"))
    checked = wjoin("check", path, *checkpoint)
    assert checked.returncode == 0, checked.stderr
    begins = f"good, 1 window join, starts with checkpoint {tmp_path / 'checkpoints' / 'pairs'}"
    assert checked.stdout.splitlines()[-1].endswith(f"INSERT INTO pairs: {begins}")
    assert not (tmp_path / "pairs").exists()
    assert not (tmp_path / "checkpoints").exists()
    failed = wjoin("run", path, *checkpoint)
    assert failed.returncode == 1
    shown = failed.stderr[failed.stderr.index("error[WJ704]") :].splitlines()
    assert "the query into pairs failed: [USER_RAISED_EXCEPTION] no " in shown[0]
    assert f"{path}:6:13" in shown[1]
    assert shown[-1].startswith("help: ")
    assert "Traceback" not in failed.stderr


SET = f"""EXECUTE STATEMENT SET both {{}} BEGIN
INSERT INTO pairs {JOIN};
INSERT INTO parted {JOIN.replace("B.v", "B.v, B.v % 2 AS odd")};
END;
"""


@pytest.mark.parametrize("shell", [pytest.param(False, marks=pytest.mark.long), True], ids=["run", "piped"])
@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_a_sink_of_a_set_that_fails_is_named_and_so_is_what_waits(
    tmp_path: Path, declarations: str, shell: bool
) -> None:
    parted = (
        f"CREATE SINK parted USING parquet OPTIONS (path '{tmp_path / 'parted'}') PARTITIONED BY (odd);\n"
    )
    checkpoint = ("--checkpoint", str(tmp_path / "checkpoints"))

    def run(failure: str) -> subprocess.CompletedProcess[str]:
        text = declarations + parted + SET.format(failure)
        if shell:
            return wjoin("shell", *checkpoint, piped=text)
        return wjoin("run", script(tmp_path, text), "--once", *checkpoint)

    (tmp_path / "parted").mkdir()
    (tmp_path / "parted" / "odd=1").touch()
    failed = run("")
    assert failed.returncode == 1
    assert "error[WJ704]: the sink parted could not be written: " in failed.stderr
    assert "Traceback" not in failed.stderr
    kept = run("ON FAILURE KEEP OTHERS")
    assert kept.returncode == 0, kept.stderr
    assert re.search(
        r"warning\[WJ818\]: in the set both wait \d micro-batch.* for the sink parted", kept.stderr
    )
    assert re.search(r"^both: .* for the sink parted since .* wait, ", kept.stdout, re.MULTILINE)
    assert pq.ParquetDataset(tmp_path / "pairs").read().num_rows == 60


@pytest.mark.long
def test_errors_of_a_statement_end_with_status_2_and_a_caret(tmp_path: Path) -> None:
    path = script(tmp_path, "SELECT 1;\nSELECT A.k FROM a A, b B WINDOW (A, B) = 5 WHERE A.k = B.k")
    done = wjoin("run", path, "--once")
    assert done.returncode == 2
    assert "\nerror[WJ214]" in done.stderr
    assert f"{path}:2:17" in done.stderr
    bad = wjoin("run", script(tmp_path, "SELECT A.k FROM a A, b B WINDOW (A B) = 5 SECONDS"))
    assert bad.returncode == 2
    assert f"{path}:1:" in bad.stderr
    assert "^" in bad.stderr
    assert "Traceback" not in bad.stderr
    missing = wjoin("run", str(tmp_path / "nothing.sql"))
    assert missing.returncode == 2
    assert "WJ608" in missing.stderr


@pytest.mark.long
def test_explain_needs_no_data(tmp_path: Path, declarations: str) -> None:
    done = wjoin("explain", "--cost", "-e", f"{declarations} INSERT INTO pairs {JOIN}")
    assert done.returncode == 0, done.stderr
    assert "Candidates" in done.stdout
    assert "hash" in done.stdout.lower()
    assert "5 s" in done.stdout


@pytest.mark.thorough
def test_explain_without_a_window_join_shows_spark_s_plan() -> None:
    done = wjoin("explain", "SELECT 1 AS one; EXPLAIN SELECT 2 AS two")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("== Physical Plan ==") == 2
    assert "1 AS one" in done.stdout
    assert "2 AS two" in done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_runs_until_stopped_and_stops_cleanly(tmp_path: Path, declarations: str, number: int) -> None:
    path = script(tmp_path, f"{declarations} INSERT INTO pairs {JOIN}")
    screen, terminal = pty.openpty()
    command = [sys.executable, "-m", "wjoin.cli", "run", path, "--checkpoint", str(tmp_path / "checkpoints")]
    command += ["--set", "spark.sql.streaming.noDataProgressEventInterval=1s"]
    commits = tmp_path / "checkpoints" / "pairs" / "commits"
    with (tmp_path / "errors").open("w") as errors:
        environment = {**os.environ, "COLUMNS": "160"}
        running = subprocess.Popen(command, stdout=terminal, stderr=errors, env=environment)
    shown: list[bytes] = []
    reading = threading.Thread(target=lambda: shown.extend(iter(lambda: read_screen(screen), b"")))
    reading.start()
    said = (tmp_path / "errors").read_text
    until((commits / "2").exists, "the third micro-batch", process=running, said=said)
    # Spark reports an idle time after one second.
    time.sleep(4)
    running.send_signal(number)
    running.wait(timeout=60)
    os.close(terminal)
    reading.join(timeout=10)
    os.close(screen)
    printed = (tmp_path / "errors").read_text()
    assert running.returncode == 0, printed
    assert "Traceback" not in printed
    assert "Stopped cleanly; the next run continues here" in printed
    screens = b"".join(shown).decode()
    assert "pairs: 120 rows in (A 60, B 60), 60 results of the join" in screens
    last = [line for line in screens.splitlines() if "idle since" in line][-1]
    assert "120" in last, "an idle report hides nothing"
    assert "2023-11-14 22:14:19" in last
    assert len(pq.read_table(tmp_path / "pairs")) == 60


def read_screen(screen: int) -> bytes:
    try:
        return os.read(screen, 65536)
    except OSError:  # the other end of a terminal is closed
        return b""


def test_version() -> None:
    assert wjoin("--version").stdout.startswith("wjoin 0.")
