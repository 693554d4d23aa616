"""The daemon of Spark's Python workers, without Spark."""

import io
import os
import socket
import struct
import subprocess
import sys
import threading
import types
import zipfile
from pathlib import Path

import pyspark
import pytest

import wjoin.executor.spark.workers.wjoin_daemon as daemon
from tests.tiers import tiers
from wjoin.executor.spark.workers.wjoin_tcp import acknowledge_at_once, acknowledging
from wjoin.spark.embedded import embedded_settings
from wjoin.spark.worker_daemon import DAEMON, daemon_settings

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


@pytest.mark.parametrize("wjoin_there", tiers([True, False], long=[True]))
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


def connected(family: socket.AddressFamily, address: object) -> tuple[socket.socket, io.BufferedReader]:
    """One end of a connection, and the other as a file that has read ahead."""
    with socket.socket(family) as listening:
        listening.bind(address)
        listening.listen()
        near = socket.socket(family)
        near.connect(listening.getsockname())
        far, _ = listening.accept()
    near.sendall(b"first second")
    with far:
        infile = os.fdopen(os.dup(far.fileno()), "rb")
    assert infile.read(6) == b"first "
    return near, infile


def test_over_tcp_what_is_read_is_the_same() -> None:
    near, infile = connected(socket.AF_INET, ("127.0.0.1", 0))
    with near, infile, acknowledging(infile) as reading:
        assert reading is not infile
        assert reading.fileno() == infile.fileno()
        assert reading.read(6) == b"second"
        big = os.urandom(1 << 20)
        sending = threading.Thread(target=lambda: (near.sendall(big), near.shutdown(socket.SHUT_WR)))
        sending.start()
        assert reading.read() == big
        sending.join()


def test_over_tcp_each_read_is_acknowledged_at_once() -> None:
    near, infile = connected(socket.AF_INET, ("127.0.0.1", 0))
    with near, infile, acknowledging(infile) as reading:
        told = socket.socket(fileno=os.dup(infile.fileno()))
        with told:
            told.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
            assert reading.read(6) == b"second"
            assert told.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 1


def test_where_a_system_cannot_do_so_its_sockets_are_read_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wjoin.executor.spark.workers.wjoin_tcp._OPTION", None)
    near, infile = connected(socket.AF_INET, ("127.0.0.1", 0))
    with near, infile:
        assert acknowledging(infile) is infile
        assert infile.read(6) == b"second"


def test_other_sockets_are_read_as_they_are(tmp_path: Path) -> None:
    near, infile = connected(socket.AF_UNIX, str(tmp_path / "socket"))
    with near, infile:
        assert acknowledging(infile) is infile


def test_the_work_of_a_worker_reads_through_it() -> None:
    near, infile = connected(socket.AF_INET, ("127.0.0.1", 0))
    module = types.SimpleNamespace(main=lambda infile, outfile: (infile.read(6), outfile))
    acknowledge_at_once(module)
    with near, infile:
        assert module.main(infile, "out") == (b"second", "out")
