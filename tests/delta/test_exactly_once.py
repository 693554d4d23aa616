"""Streams and a sink of Delta Lake: nothing is lost and nothing comes twice when the query is killed."""

import random
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from tests.delta.packages import delta_settings
from tests.faults.child import MORE
from tests.faults.killing import (
    Kills,
    assert_more,
    assert_results,
    finish,
    kill_after_progress,
    kill_inside_commit,
    start,
    streams,
)

pytestmark = [pytest.mark.sparks, pytest.mark.long]

FILES = {
    # Files of a micro-batch are there, which no commit names.
    "before the commit": "*.parquet",
    # Delta Lake has committed it, and Spark has not.
    "after the commit": "_delta_log/*.json",
}


def write_tables(root: Path, batches: int) -> list[str]:
    """Write one file a stream and micro-batch; return the settings of a child."""
    for camera, _, rows in streams(batches, size=60):
        write_deltalake(root / camera, rows, mode="append")
    return ["format=delta", *(f"{name}={value}" for name, value in delta_settings().items())]


def assert_exactly_once(root: Path, more: Iterable[str] = ()) -> None:
    # Read by another implementation of Delta Lake, and by DuckDB.
    assert_results(root, DeltaTable(root / "tracked").file_uris())
    for sink in more:
        assert_more(root, sink, DeltaTable(root / sink).file_uris())


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("more", [(), MORE], ids=["alone", "in a set"])
def test_a_killed_query_writes_each_result_once(tmp_path: Path, kills: int, more: Iterable[str]) -> None:
    settings = write_tables(tmp_path, 4 * kills + 8) + (["set=near+pairs"] if more else [])
    chance, met = random.Random(time.time_ns()), Kills()
    while met.done < kills:
        kill_after_progress(tmp_path, start(tmp_path, None, *settings), chance, met)
    finish(tmp_path, start(tmp_path, None, *settings))
    assert_exactly_once(tmp_path, more)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("place", FILES)
def test_a_query_killed_inside_a_commit_writes_each_result_once(
    tmp_path: Path, kills: int, place: str
) -> None:
    settings = write_tables(tmp_path, 2 * kills + 8)
    met = Kills()
    while met.done < kills:
        child = start(tmp_path, None, *settings)
        kill_inside_commit(tmp_path, child, met, lambda: len(list((tmp_path / "tracked").glob(FILES[place]))))
    assert met.inside, "no kill was inside a micro-batch"
    finish(tmp_path, start(tmp_path, None, *settings))
    assert_exactly_once(tmp_path)
