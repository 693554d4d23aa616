"""Spark's own shells and servers, started with wjoin's setting as users start them."""

import contextlib
import itertools
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyspark

from tests.packages import ROOT
from wjoin.commands.spark_shells import extension_settings

HOME = Path(pyspark.__file__).parent

SETTINGS = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.ui.enabled": "false",
}

_SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


def options(**settings: str) -> list[str]:
    """Return settings as options of Spark's programs, those above among them."""
    return [f"--conf={name}={value}" for name, value in {**SETTINGS, **settings}.items()]


def shell(folder: Path, name: str, *arguments: str, merged: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a shell of Spark's by ``wjoin NAME`` to its end; ``merged``: with its errors among its output."""
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-P", "-m", "wjoin.cli", name, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": search},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merged else subprocess.PIPE,
        text=True,
        timeout=240,
        check=False,
    )


@contextlib.contextmanager
def thrift_server(folder: Path, **settings: str) -> Iterator[int]:
    """Run Spark's server for JDBC with wjoin's setting; yield its port once it listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(HOME / "bin" / "spark-submit"),
        "--class",
        _SERVER,
        *options(**extension_settings(), **settings),
    ]
    command += ["spark-internal", "--hiveconf", f"hive.server2.thrift.port={port}"]
    environment = {**os.environ, "SPARK_HOME": str(HOME), "PYTHONSAFEPATH": "1"}
    said = (folder / "server.log").open("w")
    with said, subprocess.Popen(command, cwd=folder, env=environment, stdout=said, stderr=said) as running:
        try:
            _await(port)
            yield port
        finally:
            running.kill()


def _await(port: int) -> None:
    listening = time.monotonic() + 120
    while time.monotonic() < listening:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise TimeoutError("the server does not listen")


def beeline(
    folder: Path, port: int, user: str, statements: Sequence[str], *arguments: str, merged: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run statements by Spark's client for JDBC."""
    script = folder / f"{user}.sql"
    script.write_text(";\n".join(statements) + ";\n")
    return subprocess.run(
        [*_beeline(port, user), *arguments, "-f", str(script)],
        cwd=folder,
        env={**os.environ, "SPARK_HOME": str(HOME)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merged else subprocess.PIPE,
        text=True,
        timeout=240,
        check=False,
    )


def _beeline(port: int, user: str) -> list[str]:
    return [
        str(HOME / "bin" / "beeline"),
        "-u",
        f"jdbc:hive2://127.0.0.1:{port}",
        "-n",
        user,
        "--silent=true",
    ]


@contextlib.contextmanager
def staying(folder: Path, port: int, user: str) -> Iterator[Callable[[str], list[str]]]:
    """Yield what runs a statement for a user of JDBC who stays, and returns the lines of its answer."""
    environment = {**os.environ, "SPARK_HOME": str(HOME)}
    with subprocess.Popen(
        [*_beeline(port, user), "--outputformat=csv2", "--showHeader=false", "-f", "/dev/stdin"],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdin is not None and running.stdout is not None
        told, ask = running.stdout, running.stdin

        def answer(statement: str) -> list[str]:
            ask.write(f"{statement};\nSELECT 'that ' || 'is all';\n")
            ask.flush()
            lines = (line.rstrip("\n") for line in iter(told.readline, ""))
            answered = itertools.takewhile(lambda line: line != "that is all", lines)
            return [line for line in answered if line]

        yield answer
        ask.close()
        running.wait(timeout=60)
