"""A cluster of Spark's of two hosts: attempts of a task at once, and a disk that is of one host alone."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyspark
import pytest

from tests.faults.cluster import SLOWED
from tests.faults.killing import assert_more, assert_results, committed_files, write_streams
from wjoin.spark.extensions import COLUMNS, EXTENSIONS
from wjoin.spark.java_classes import JAR

HOSTS = ("127.0.0.1", "127.0.0.2")
CHILD = Path(__file__).with_name("cluster.py")
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.3",
}


@contextlib.contextmanager
def cluster(root: Path, before: Sequence[str] = ()) -> Iterator[str]:
    """Yield the master of a cluster; ``before``: by what the worker of the second host is started."""
    spark = Path(pyspark.__file__).parent
    with socket.create_server((HOSTS[0], 0)) as free:
        port = str(free.getsockname()[1])
    master = f"spark://{HOSTS[0]}:{port}"
    environment = {**os.environ, "SPARK_HOME": str(spark), "PYSPARK_PYTHON": sys.executable}
    running: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str, by: Sequence[str] = ()) -> None:
        command = [*by, str(spark / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        with (root / f"process{len(running)}.log").open("wb") as log:
            running.append(
                subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
            )

    try:
        start("master.Master", "--host", HOSTS[0], "--port", port, "--webui-port", "0")
        for host, by in zip(HOSTS, ((), before), strict=True):
            what = ("--host", host, "--cores", "2", "--memory", "900m", "--webui-port", "0")
            start("worker.Worker", *what, "--work-dir", str(root / f"work-{host}"), master, by=by)
        for number in range(3):
            log, said = (
                root / f"process{number}.log",
                "Successfully registered" if number else "I have been elected",
            )
            until = time.monotonic() + 120
            while said not in log.read_text() and time.monotonic() < until:
                time.sleep(0.2)
            assert said in log.read_text()
        yield master
    finally:
        for each in running:
            os.killpg(each.pid, signal.SIGKILL)
            each.wait()


def run(
    root: Path, state: str, master: str, together: str = "", **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run the query on a cluster, in a set with others."""
    own = {
        "spark.executor.memory": "700m",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.host": HOSTS[0],
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": f"file://{root}/events",
    }
    (root / "events").mkdir()
    command = [
        sys.executable,
        str(CHILD),
        str(root),
        state,
        master,
        together,
        json.dumps({**own, **settings}),
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": str(CHILD.parents[2]),
        "SPARK_LOCAL_IP": HOSTS[0],
        "PYSPARK_PYTHON": sys.executable,
    }
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=850, check=False)


def speculative(root: Path) -> int:
    """Return how many attempts Spark has made of tasks that it found slow."""
    (log,) = (root / "events").iterdir()
    ends = (json.loads(line) for line in log.read_text().splitlines() if '"SparkListenerTaskEnd"' in line)
    return sum(each["Task Info"]["Speculative"] for each in ends)


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("state", ["files", "spark"])
def test_two_attempts_of_a_task_at_once(tmp_path: Path, state: str) -> None:
    write_streams(tmp_path, 6, 150)
    with cluster(tmp_path) as master:
        done = run(tmp_path, state, master, **SPECULATION)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert (tmp_path / SLOWED).exists() and speculative(tmp_path) > 0
    assert_results(tmp_path, committed_files(tmp_path, "tracked"))


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_two_attempts_at_once_to_write_the_sinks_of_a_set(tmp_path: Path) -> None:
    """One job writes all of them; Spark does not know its class, and gets it from the driver."""
    write_streams(tmp_path, 6, 150)
    with cluster(tmp_path) as master:
        done = run(tmp_path, "files", master, "near+pairs", **SPECULATION)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert (tmp_path / SLOWED).exists() and speculative(tmp_path) > 0
    assert_results(tmp_path, committed_files(tmp_path, "tracked"))
    for sink in ("near", "pairs"):
        assert_more(tmp_path, sink, committed_files(tmp_path, sink))


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_rows_go_to_executors_as_columns(tmp_path: Path) -> None:
    write_streams(tmp_path, 3, 150)
    with cluster(tmp_path) as master:
        done = run(tmp_path, "files", master, **{"spark.jars": str(JAR), EXTENSIONS: COLUMNS})
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    (log,) = (tmp_path / "events").iterdir()
    plans = [line for line in log.read_text().splitlines() if "SparkListenerSQLExecutionStart" in line]
    reading = [plan for plan in plans if "Scan parquet" in plan and "MapInArrow" in plan]
    assert len(reading) == 3 and all(plan.count(") Blocks") == 3 for plan in reading)
    assert_results(tmp_path, committed_files(tmp_path, "tracked"))


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_a_checkpoint_that_one_host_does_not_have(tmp_path: Path) -> None:
    write_streams(tmp_path, 2, 60)
    (tmp_path / "checkpoints").mkdir()
    hidden = f'mount -t tmpfs none {tmp_path}/checkpoints && exec "$@"'
    apart = ["unshare", "--mount", "sh", "-c", hidden, "sh"]
    if subprocess.run([*apart, "true"], check=False).returncode:
        pytest.skip("this user may not mount a file system")
    with cluster(tmp_path, apart) as master:
        done = run(tmp_path, "files", master)
    assert done.returncode == 1, done.stdout + done.stderr[-3000:]
    assert "error[WJ720]" in done.stdout
    assert not (tmp_path / "checkpoints" / "tracked" / "offsets" / "0").exists()
