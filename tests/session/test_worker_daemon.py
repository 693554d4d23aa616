"""The daemon of Spark's Python workers, without Spark."""

import os
import socket
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest

import wjoin.executor.spark.workers.wjoin_daemon as daemon
from wjoin.embedded import embedded_settings
from wjoin.worker_daemon import DAEMON, daemon_settings

PATH = "spark.executorEnv.PYTHONPATH"


def test_pyspark_is_taken_from_folders_where_it_is_installed_beside_its_archives():
    home = Path(pyspark.__file__).parent
    zipped = [str(home / "python" / "lib" / name) for name in ("pyspark.zip", "py4j-0.10-src.zip")]
    assert daemon.installed_first([*zipped, "a.zip", str(home.parent)]) == [
        "a.zip",
        str(home.parent),
        *zipped,
    ]


def test_archives_of_another_spark_stay_first(tmp_path: Path):
    path = [str(tmp_path / "python" / "lib" / "pyspark.zip"), str(Path(pyspark.__file__).parents[1])]
    assert daemon.installed_first(path) == path


def test_archives_stay_first_where_nothing_is_installed(tmp_path: Path):
    path = [str(tmp_path / "python" / "lib" / "pyspark.zip"), str(tmp_path)]
    assert daemon.installed_first(path) == path


def test_the_users_path_of_workers_stays():
    assert embedded_settings({PATH: "/mine"})[PATH].split(os.pathsep)[0] == "/mine"


def test_the_users_own_variables_of_workers_win():
    given = {"spark.executorEnv.SPARK_SIMPLIFIED_TRACEBACK": ""}
    assert embedded_settings(given).items() >= given.items()


def test_the_users_daemon_wins():
    given = {"spark.python.daemon.module": "mine"}
    assert daemon_settings(given) == {}
    assert embedded_settings(given)["spark.python.daemon.module"] == "mine"


def test_a_spark_on_other_machines_keeps_its_own_daemon():
    assert "spark.python.daemon.module" not in embedded_settings({"spark.master": "spark://elsewhere:7077"})


@pytest.mark.parametrize("wjoin_there", [True, False])
def test_workers_are_forked_also_where_wjoin_cannot_be_imported(tmp_path: Path, wjoin_there: bool):
    """Without wjoin, and with a module of its that prints: Spark reads the port from standard output."""
    path = [daemon_settings({})[PATH]]
    if not wjoin_there:
        with zipfile.ZipFile(tmp_path / "first.zip", "w") as broken:
            broken.writestr("wjoin/__init__.py", "print('loud'); raise RuntimeError('not this one')")
        path.insert(0, str(tmp_path / "first.zip"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "SPARK_REUSE_WORKER": "1"}
    environment |= {"PYTHON_UNIX_DOMAIN_ENABLED": "false", "PYTHON_WORKER_FACTORY_SECRET": "secret"}
    command = [sys.executable, "-m", DAEMON, "pyspark.worker"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd=tmp_path
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        (port,) = struct.unpack(">i", process.stdout.read(4))
        with socket.create_connection(("127.0.0.1", port)) as worker:
            (forked,) = struct.unpack(">i", worker.recv(4))
            assert forked != process.pid
            os.kill(forked, 0)
        process.stdin.close()
        said = process.stderr.read().decode()
        process.wait()
    assert ("wjoin.executor.spark.pack is left to the workers" in said) is not wjoin_there
    assert ("loud" in said) is not wjoin_there
