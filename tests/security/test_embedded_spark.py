"""Who reaches the Spark that wjoin starts on this machine: nobody from outside, and no stranger on it."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.packages import ROOT
from tests.security.listening import listening
from wjoin.commands.spark_shells import given_settings
from wjoin.spark.doors import SAFE_WORKERS, behind_doors, door_environment, door_settings
from wjoin.spark.embedded import embedded_settings
from wjoin.web.page_access import LOOPBACK

STRANGE = "strange.Visitor"

STARTED = """
import sys, time
import wjoin
spark = wjoin.connect(**{settings!r}).spark
spark.range(3).count()
java = spark._jvm.java.lang.ProcessHandle.current().pid()
print(java, spark.sparkContext.getConf().get("spark.driver.port"), flush=True)
sys.stdin.read()
"""


def strange_object() -> bytes:
    """Return what Java writes for an object of a class that it does not know, without fields."""
    name = STRANGE.encode()
    return b"\xac\xed\x00\x05sr" + struct.pack(">H", len(name)) + name + bytes(8) + b"\x02\x00\x00xp"


def call_of_a_stranger(port: int) -> bytes:
    """Return a call of Spark's driver with an object of the sender's choice."""
    name = b"MapOutputTracker"
    host = LOOPBACK.encode()
    message = b"\x00\x01" + struct.pack(">H", len(host)) + host + struct.pack(">i", port)
    message += struct.pack(">H", len(name)) + name + strange_object()
    call = b"\x03" + struct.pack(">qi", 1, len(message)) + message
    return struct.pack(">q", len(call) + 8) + call


def answer_to_a_stranger(port: int) -> bytes:
    """Return what Spark's driver answers to it."""
    with socket.create_connection((LOOPBACK, port), timeout=30) as connection:
        connection.sendall(call_of_a_stranger(port))
        answer = b""
        while len(answer) < 8 or len(answer) < struct.unpack(">q", answer[:8])[0]:
            if not (more := connection.recv(1 << 16)):
                break
            answer += more
        return answer


def test_it_listens_on_this_machine_alone(spark: SparkSession):
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    found = listening(java)
    assert spark.sparkContext.getConf().get("spark.driver.port") in {str(port) for _, port in found}
    assert {address for address, _ in found} == {LOOPBACK}


def test_it_reads_nothing_of_a_stranger(spark: SparkSession):
    answer = answer_to_a_stranger(int(spark.sparkContext.getConf().get("spark.driver.port")))
    assert b"Expected SaslMessage" in answer
    assert STRANGE.encode() not in answer


@pytest.mark.parametrize(
    ("settings", "environment", "outside", "read"),
    [
        pytest.param({"spark.ui.enabled": "true"}, {}, set(), False, id="with the UI"),
        pytest.param({"spark.authenticate": "false"}, {}, set(), True, id="a user who wants no secret"),
        pytest.param({}, {"SPARK_LOCAL_IP": "0.0.0.0"}, {"::"}, False, id="a user who names an address"),
    ],
)
@pytest.mark.long
def test_what_the_user_says_counts(
    tmp_path: Path, settings: dict[str, str], environment: dict[str, str], outside: set[str], read: bool
):
    command = [sys.executable, "-c", STARTED.format(settings=settings)]
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, **environment, "PYTHONPATH": search},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            java, port = map(int, running.stdout.readline().split())
            assert {address for address, _ in listening(java)} - {LOOPBACK} == outside
            # Without a secret, the attack of this module makes Java look for a class that a stranger names.
            assert (STRANGE.encode() in answer_to_a_stranger(port)) is read
        finally:
            running.communicate("")


def reached(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what says whence Pythons import."""
    return {name: value for name, value in environment.items() if name != "PYTHONSAFEPATH"}


def test_a_spark_of_a_cluster_is_left_as_it_is():
    for master in ("yarn", "spark://elsewhere:7077", "k8s://https://elsewhere"):
        assert door_settings({"spark.master": master}).items() <= SAFE_WORKERS.items()
        assert reached(door_environment({"spark.master": master})) == reached(os.environ)


def test_settings_of_the_user_stay():
    theirs = {"spark.driver.host": "10.0.0.7", "spark.authenticate": "false"}
    assert door_settings(theirs).items() <= SAFE_WORKERS.items()
    assert embedded_settings(theirs).items() >= theirs.items()
    assert reached(door_environment(theirs)) == reached(os.environ)


@pytest.mark.parametrize("imports", [True, False])
def test_workers_import_from_the_folder_of_the_start_only_where_this_process_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, imports: bool
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.setattr("sys.path", ["", *sys.path] if imports else [each for each in sys.path if each])
    assert (SAFE_WORKERS.items() <= door_settings({}).items()) is not imports
    assert ("PYTHONSAFEPATH" in door_environment({})) is not imports


def test_secrets_of_this_process_do_not_go_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WJOIN_WEB_TOKEN", "a token of the page")
    before = dict(os.environ)
    with behind_doors({}):
        assert "WJOIN_WEB_TOKEN" not in os.environ
        assert os.environ["SPARK_LOCAL_IP"] == LOOPBACK
        os.environ["PYSPARK_PYTHON"] = "set inside"
    assert os.environ.pop("PYSPARK_PYTHON") == "set inside"
    assert os.environ == {name: value for name, value in before.items() if name != "PYSPARK_PYTHON"}


@pytest.mark.parametrize(
    ("arguments", "master"),
    [
        ((), None),
        (("--master", "yarn"), "yarn"),
        (("--master=local[2]", "-e", "SELECT 1"), "local[2]"),
        (("--conf", "spark.master=yarn"), "yarn"),
        (("-c", "spark.master=a", "--conf=spark.master=b"), "b"),
        (("--remote", "sc://elsewhere"), "sc://elsewhere"),
    ],
)
def test_where_a_shell_of_spark_runs_is_known(tmp_path: Path, arguments: tuple[str, ...], master: str | None):
    assert given_settings(arguments, tmp_path).get("spark.master") == master


def test_files_of_settings_count_below_options(tmp_path: Path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("# mine\nspark.master  yarn\nspark.ui.port=4050\n")
    assert given_settings((), tmp_path) == {"spark.master": "yarn", "spark.ui.port": "4050"}
    assert given_settings(("--master", "local"), tmp_path)["spark.master"] == "local"
    other = tmp_path / "other.conf"
    other.write_text("spark.master: mesos://elsewhere\n")
    assert given_settings(("--properties-file", str(other)), tmp_path) == {
        "spark.master": "mesos://elsewhere"
    }
