"""The example of a cluster: a master, two workers of which one is killed, and spark-submit."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import wjoin
from tests.packages import ROOT

pytestmark = [pytest.mark.long, pytest.mark.slow]

FOLDER = ROOT / "examples" / "cluster"
BIN = Path(sys.executable).parent
PATIENCE = 300
EXPECTED = """
    SELECT count(*) FROM read_parquet('{shared}/camera1/*') a, read_parquet('{shared}/camera2/*') b
    WHERE a.obj_id = b.obj_id AND epoch_us(b.ts) - epoch_us(a.ts) BETWEEN 0 AND 5000000
"""
WRONG = """
    SELECT count(*) FROM (
      SELECT obj_id, epoch_us(at_1), epoch_us(at_2) FROM read_parquet($files)
      EXCEPT ALL
      SELECT a.obj_id, epoch_us(a.ts), epoch_us(b.ts)
      FROM read_parquet('{shared}/camera1/*') a, read_parquet('{shared}/camera2/*') b
      WHERE a.obj_id = b.obj_id AND epoch_us(b.ts) - epoch_us(a.ts) BETWEEN 0 AND 5000000
    )
"""


class Cluster:
    """Processes of a cluster in a folder, each in a group of its own with what it starts."""

    def __init__(self, shared: Path) -> None:
        self.shared, self.running = shared, {}
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = str(free.getsockname()[1])
        self.master = f"spark://127.0.0.1:{self.port}"
        # Workers find wjoin as those do that have it installed, in whatever folder they are started.
        self.environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
        }

    def start(self, name: str, *command: object) -> subprocess.Popen[bytes]:
        with self.log(name).open("wb") as log:
            self.running[name] = subprocess.Popen(
                [*map(str, command)],
                cwd=FOLDER,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self.running[name]

    def start_worker(self, name: str) -> None:
        spark_class = (BIN / "spark-class", "org.apache.spark.deploy.worker.Worker")
        options = ("--cores", 1, "--memory", "1g", "--webui-port", 0, "--work-dir", self.shared / name)
        self.start(name, *spark_class, *options, self.master)
        self.await_said(name, "Successfully registered")

    def submit(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        conf = ("spark.executor.memory=700m", "spark.sql.shuffle.partitions=2", "spark.ui.enabled=false")
        given = [f"--conf={each}" for each in conf]
        program = (FOLDER / "submit.py", FOLDER / "tracked.sql", self.shared, *options)
        return self.start(name, BIN / "spark-submit", "--master", self.master, *given, *program)

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def log(self, name: str) -> Path:
        return self.shared / f"{name}.log"

    def await_said(self, name: str, said: str) -> None:
        await_true(lambda: said in self.log(name).read_text(), lambda: self.log(name).read_text()[-3000:])


def await_true(happened: Callable[[], bool], told: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < until, told()
        time.sleep(0.3)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        address = ("--host", "127.0.0.1", "--port", made.port, "--webui-port", 0)
        made.start("master", BIN / "spark-class", "org.apache.spark.deploy.master.Master", *address)
        made.await_said("master", "I have been elected")
        made.start_worker("work-1")
        made.start_worker("work-2")
        yield made
    finally:
        for name in list(made.running):
            made.kill(name)


def write(shared: Path, first: int, last: int) -> None:
    command = [sys.executable, FOLDER / "make_rows.py", shared, first, last]
    subprocess.run([*map(str, command)], check=True)


def found(shared: Path) -> int:
    files = wjoin.committed_files(str(shared / "tracked")) if (shared / "tracked").is_dir() else []
    count = "SELECT count(*) FROM read_parquet($files)"
    return duckdb.execute(count, {"files": files}).fetchone()[0] if files else 0


def expected(shared: Path) -> int:
    return duckdb.execute(EXPECTED.format(shared=shared)).fetchone()[0]


@pytest.mark.timeout(900)
def test_a_query_goes_on_without_one_of_its_workers(cluster: Cluster) -> None:
    shared = cluster.shared
    write(shared, 0, 5)
    query = cluster.submit("query")

    def all_found() -> bool:
        assert query.poll() is None, cluster.log("query").read_text()[-5000:]
        return found(shared) >= expected(shared)

    def told() -> str:
        return f"{found(shared)} of {expected(shared)}: {cluster.log('query').read_text()[-5000:]}"

    await_true(all_found, told)
    cluster.kill("work-2")
    write(shared, 6, 11)
    await_true(all_found, told)
    cluster.start_worker("work-2")
    write(shared, 12, 13)
    await_true(all_found, told)
    cluster.kill("query")

    # Another submission goes on with what the first has left.
    write(shared, 14, 15)
    assert cluster.submit("again", "--once").wait(PATIENCE) == 0, cluster.log("again").read_text()[-5000:]
    assert found(shared) == expected(shared) > 500
    files = wjoin.committed_files(str(shared / "tracked"))
    assert duckdb.execute(WRONG.format(shared=shared), {"files": files}).fetchone() == (0,)
    assert any((shared / "checkpoints" / "tracked" / "wjoin" / "state").iterdir())
