"""The Python of which those are forked that Spark starts on the driver. Spark itself is played here."""

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from wjoin.executor.spark import warm
from wjoin.executor.spark.warm import FOLDER, VARIABLE, Warm

WORKER = "pyspark.sql.streaming.transform_with_state_driver_worker"
SECRET = b"secret"


@pytest.fixture(scope="module")
def started() -> Iterator[Warm]:
    found = warm.start(sys.executable, warm.ALONE, {"PYTHONHASHSEED": "0"})
    assert found is not None
    yield found
    found.end()


@dataclass(frozen=True)
class Called:
    """A worker that has called back: the process that Spark knows, the one it names, and the connection."""

    process: "subprocess.Popen[str]"
    named: int
    connection: socket.socket


def environment(path: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    return {**kept, "PYTHONPATH": str(FOLDER), VARIABLE: str(path), "PYTHONHASHSEED": "0", **more}


def call(stack: ExitStack, path: Path, **more: str) -> Called:
    """Start a worker as Spark does, and wait until it has called back."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(60)
        own = {
            "PYTHON_WORKER_FACTORY_PORT": str(listening.getsockname()[1]),
            "PYTHON_WORKER_FACTORY_SECRET": SECRET.decode(),
        }
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", WORKER],
                env=environment(path, **own, **more),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        connection = stack.enter_context(listening.accept()[0])
    told = connection.makefile("rb")
    (size,) = struct.unpack(">i", told.read(4))
    assert told.read(size) == SECRET
    connection.sendall(struct.pack(">i", 2) + b"ok")
    (named,) = struct.unpack(">i", told.read(4))
    return Called(process, named, connection)


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def ends(process: int) -> bool:
    """Whether a process ends soon."""
    for _ in range(600):
        if not Path(f"/proc/{process}").exists():
            return True
        time.sleep(0.1)
    return False


def test_a_worker_that_spark_starts_is_forked(started: Warm) -> None:
    with ExitStack() as stack:
        called = call(stack, started.path)
        assert called.named != called.process.pid
        assert parent(called.named) == started.process.pid
        open_files = [str(each.readlink()) for each in Path(f"/proc/{called.named}/fd").iterdir()]
        # The connection to Spark: none of those of the process that it is forked of.
        assert sum(each.startswith("socket:") for each in open_files) == 1
        assert not [each for each in open_files if "eventpoll" in each]
        called.connection.close()
        # It ends as it would by itself: without a command it fails, and says so where Spark reads it.
        assert called.process.wait(60) == 1
        assert called.process.stdout is not None
        assert "EOFError" in called.process.stdout.read()
        assert ends(called.named)


def test_it_ends_when_spark_stops_what_it_has_started(started: Warm) -> None:
    with ExitStack() as stack:
        called = call(stack, started.path)
        called.process.terminate()
        assert ends(called.named)
    assert started.lives


def test_what_begins_otherwise_is_not_forked(started: Warm) -> None:
    """Python reads the seed of its hashes when it starts."""
    with ExitStack() as stack:
        called = call(stack, started.path, PYTHONHASHSEED="1")
        assert called.named == called.process.pid


def test_without_it_a_worker_works_by_itself(tmp_path: Path) -> None:
    with ExitStack() as stack:
        called = call(stack, tmp_path / "nobody")
        assert called.named == called.process.pid


def test_it_ends_with_its_session_and_what_it_has_forked_with_it() -> None:
    found = warm.start(sys.executable, (), {"PYTHONHASHSEED": "0"})
    assert found is not None
    with ExitStack() as stack:
        called = call(stack, found.path)
        assert found.path.parent.stat().st_mode & 0o777 == 0o700
        found.end()
        assert not found.lives
        assert ends(called.named)
        assert not found.path.exists()


def test_it_ends_with_the_process_that_has_started_it_however_that_ends() -> None:
    program = """
import os, signal, sys
from wjoin.executor.spark import warm
print(warm.start(sys.executable, (), {}).process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ends(int(done.stdout))


def test_a_python_that_is_not_there_starts_none() -> None:
    assert warm.start("/no/python", (), {}) is None


def test_what_others_have_customized_stays(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.customized = 'by others'\n")
    path = os.pathsep.join((str(FOLDER), str(tmp_path)))
    done = subprocess.run(
        [sys.executable, "-c", "import sys; print(sys.customized)"],
        env={**environment(tmp_path / "nobody"), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "by others\n"
    assert done.stderr == ""


class Context:
    """What of a SparkContext that others have started matters here."""

    def __init__(self) -> None:
        self.environment = {"PYTHONHASHSEED": "0", "PYTHONPATH": "/mine"}
        self.pythonExec = sys.executable
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


def test_functions_made_for_a_spark_of_others_find_one_that_goes_with_it() -> None:
    context = Context()
    spark = SimpleNamespace(_sc=context)
    before = dict(context.environment)
    with ExitStack() as stack:
        paths = []
        for _ in range(2):
            with warm.served(spark):
                paths.append(Path(context.environment[VARIABLE]))
                assert context.environment["PYTHONPATH"].split(os.pathsep) == ["/mine", str(FOLDER)]
            assert context.environment == before
        assert len(set(paths)) == 1
        called = call(stack, paths[0])
        assert called.named != called.process.pid
        context.stop()
        assert context.stopped and not paths[0].exists()
        assert ends(called.named)


def test_clients_of_spark_connect_are_left_alone() -> None:
    with warm.served(SimpleNamespace()):
        pass
