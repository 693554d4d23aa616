"""What the shell makes of a Java process that is about to end."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from wjoin.shell.gone import ENDING_SECONDS, gone


def test_a_process_that_answers_no_more_is_given_time_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sockets go before its memory: who cannot reach it may be told so before it has ended."""
    ending = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.5); raise SystemExit(3)"])
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=ending))
    assert gone() is None
    assert str(gone(ENDING_SECONDS)).startswith("error: Spark's Java process has ended with status 3")


def test_one_that_runs_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=running))
        assert gone(0.1) is None
        running.kill()
