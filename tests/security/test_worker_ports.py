"""Strangers at the ports of Python workers, which are TCP on this machine where Spark has no Unix sockets."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.security.listening import listening
from wjoin.executor.spark import warm
from wjoin.spark.worker_daemon import DAEMON
from wjoin.web.page_access import LOOPBACK

SECRET = "a secret of Spark's"
WAIT = 30

PROCESS = 4
"""Bytes of the number of the worker's process, which come first."""


@pytest.fixture
def daemon() -> Iterator[tuple[int, int]]:
    """The process and the port of a daemon of Python workers, as Spark starts it before 4.1."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(warm.FOLDER), os.environ.get("PYTHONPATH")))),
        "PYTHON_UNIX_DOMAIN_ENABLED": "false",
        "PYTHON_WORKER_FACTORY_SECRET": SECRET,
    }
    command = [sys.executable, "-P", "-m", DAEMON, "pyspark.worker"]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stdin is not None
        (port,) = struct.unpack(">i", running.stdout.read(4))
        yield running.pid, port
        running.stdin.close()


def text(words: str) -> bytes:
    return struct.pack(">i", len(words.encode())) + words.encode()


def answer(port: int, said: bytes) -> bytes:
    """Return what a worker answers to whoever says something, until it cuts the connection."""
    with socket.create_connection((LOOPBACK, port), timeout=WAIT) as connection:
        connection.sendall(said)
        found = b""
        while more := connection.recv(65_536):
            found += more
        return found


@pytest.mark.long
@pytest.mark.slow
def test_strangers_are_refused_before_anything_is_run(daemon: tuple[int, int]):
    process, port = daemon
    assert listening(process) == {(LOOPBACK, port)}
    for wrong in ("", "guess", SECRET[:-1], SECRET + " ", "é" * 1000):
        # Behind it would come a function, pickled.
        assert answer(port, text(wrong) + b"\x80\x04" * 1000)[PROCESS:] == text("err")
    with socket.create_connection((LOOPBACK, port), timeout=WAIT) as known:
        known.sendall(text(SECRET))
        expected = text("ok")
        with known.makefile("rb") as answers:
            assert answers.read(PROCESS + len(expected))[PROCESS:] == expected
