"""Queries that begin while Spark's Python is not there in time."""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import wjoin
from tests.session.test_queries import PAIRS, declared
from wjoin.executor.spark import beginning
from wjoin.executor.spark.warm import FOLDER
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.spark.spark_failures import failure

pytestmark = pytest.mark.thorough

__all__ = ["declared"]

LATE = """
import os, runpy, sys, time
from pathlib import Path
times = Path({times!r})
if "-m" in sys.orig_argv and sys.orig_argv[2].endswith("transform_with_state_driver_worker"):
    left = int(times.read_text())
    times.write_text(str(left - 1))
    if left > 0:
        time.sleep(12)
    else:
        runpy.run_path({there!r}, run_name="sitecustomize")
"""
"""Makes the Python that Spark starts at each start of a query come too late, so many times."""


@pytest.fixture
def late(declared: wjoin.Session, tmp_path: Path) -> Iterator[Path]:
    """The file that says how often it is late from now on."""
    times = tmp_path / "times"
    folder = tmp_path / "late"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        LATE.format(times=str(times), there=str(FOLDER / "sitecustomize.py"))
    )
    environment = declared.spark.sparkContext.environment
    kept = environment["PYTHONPATH"]
    environment["PYTHONPATH"] = os.pathsep.join((str(folder), str(FOLDER)))
    # With its state in files a query needs no Python on the driver.
    declared.sql("SET wjoin.state = spark")
    yield times
    environment["PYTHONPATH"] = kept


@pytest.mark.long
def test_what_was_not_there_in_time_is_started_again(declared: wjoin.Session, late: Path) -> None:
    late.write_text("1")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        declared.run_script(f"INSERT INTO nothing {PAIRS}", once=True)
    (said,) = [each.message for each in told if "WJ814" in str(each.message)]
    assert "starting the query into nothing again, 2 of 5" in str(said)
    assert late.read_text() == "-1"
    (running,) = declared.running
    assert running.state == "ended"
    running.followed.look()
    assert running.totals.total.matches == 10


def test_what_is_never_there_in_time_has_failed(
    declared: wjoin.Session, late: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beginning, "TRIES", 2)
    late.write_text("9")
    with pytest.warns(wjoin.WJoinWarning, match="WJ814"), pytest.raises(WJoinError) as failed:
        declared.run_script(f"INSERT INTO nothing {PAIRS}", once=True)
    assert failed.value.code == "WJ717"
    assert "it resumes from its checkpoint" in (failed.value.help or "")
    assert late.read_text() == "7"


def test_other_failures_are_not_of_that_kind() -> None:
    error = RuntimeError("Python worker exited unexpectedly")
    assert not beginning.late(error) and not beginning.late(None)
    assert failure(error, Span(0, 1), "x").code == "WJ704"
