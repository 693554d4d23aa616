"""Where the sockets of Spark's Python workers are."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from wjoin.executor.spark.sockets import LONGEST_FOLDER, socket_folder
from wjoin.spark.embedded import embedded_settings
from wjoin.spark.worker_sockets import socket_settings

pytestmark = pytest.mark.core

FOLDER = "spark.python.unix.domain.socket.dir"


def test_the_folder_is_of_this_user_alone_and_goes_with_the_process():
    program = (
        "from wjoin.executor.spark.sockets import socket_folder; "
        "f = socket_folder(); print(f, f.stat().st_mode)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    folder, mode = done.stdout.split()
    assert int(mode) & 0o777 == 0o700
    assert not Path(folder).exists()


def test_a_folder_too_long_for_a_socket_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    deep = tmp_path / ("long" * 15)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    folder = socket_folder.__wrapped__()
    assert folder is not None
    assert len(str(folder)) <= LONGEST_FOLDER
    assert not folder.is_relative_to(deep)


def test_without_a_place_for_sockets_workers_use_tcp(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wjoin.spark.worker_sockets.socket_folder", lambda: None)
    assert socket_settings("4.3.0") == {}


@pytest.mark.parametrize(("version", "known"), [("4.0.1", False), ("4.1.0", True), ("5.0.0.dev0", True)])
def test_sparks_before_4_1_are_told_nothing(version: str, known: bool):
    assert (socket_settings(version).get(FOLDER) == str(socket_folder())) is known


def test_a_spark_on_other_machines_is_told_no_folder_of_this_one():
    assert FOLDER not in embedded_settings({"spark.master": "spark://elsewhere:7077"})
