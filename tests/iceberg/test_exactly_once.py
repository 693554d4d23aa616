"""Streams and a sink of Iceberg: nothing is lost and nothing comes twice when the query is killed."""

from collections.abc import Sequence
from pathlib import Path

import pyspark
import pytest

from tests.faults.child import MORE
from tests.faults.killing import (
    Kills,
    assert_more,
    assert_results,
    finish,
    kill_inside_commit,
    start,
    write_streams,
)
from tests.iceberg.packages import iceberg_settings
from tests.programs import run_python

pytestmark = [pytest.mark.sparks, pytest.mark.long]

FILES = {
    # Files of a micro-batch are there, which no snapshot names.
    "before the commit": "data/*.parquet",
    # Iceberg has committed it, and Spark has not.
    "after the commit": "metadata/v*.metadata.json",
}


@pytest.mark.skipif(
    pyspark.__version__.startswith("4.0."),
    reason="Iceberg for Spark 4.0 works off what is there in one micro-batch: there is no later one to kill",
)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("place", "more"),
    # Behind the commit to its first sink a set has not written the others.
    [*((place, ()) for place in FILES), ("after the commit", tuple(MORE))],
    ids=[*FILES, "between two sinks of a set"],
)
def test_a_query_killed_inside_a_commit_writes_each_result_once(
    tmp_path: Path, kills: int, place: str, more: Sequence[str]
) -> None:
    lake = tmp_path / "lake"
    settings = [f"{name}={value}" for name, value in iceberg_settings(lake).items()]
    query = ["format=iceberg", *settings, *([f"set={'+'.join(more)}"] if more else [])]
    write_streams(tmp_path, 2 * kills + 8, size=60)
    cameras(tmp_path, "prepare", *settings)
    met, tracked = Kills(), lake / "db" / "tracked"
    while met.done < kills:
        child = start(tmp_path, None, *query)
        kill_inside_commit(tmp_path, child, met, lambda: len(list(tracked.glob(FILES[place]))))
    assert met.inside, "no kill was inside a micro-batch"
    finish(tmp_path, start(tmp_path, None, *query))
    cameras(tmp_path, "results", *settings)
    assert_results(tmp_path, result_files(tmp_path, "tracked"))
    for sink in more:
        assert_more(tmp_path, sink, result_files(tmp_path, sink))


def result_files(root: Path, sink: str) -> list[str]:
    return [str(path) for path in (root / "results" / sink).glob("*.parquet")]


def cameras(root: Path, work: str, *settings: str) -> None:
    done = run_python(root, str(Path(__file__).with_name("cameras.py")), work, str(root), *settings)
    assert done.returncode == 0, done.stderr[-3000:]
