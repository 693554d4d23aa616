"""Streams and a sink of Delta Lake: nothing is lost and nothing comes twice when the query is killed."""

import random
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from tests.delta.packages import delta_settings
from tests.faults.test_kill import Kills, assert_results, finish, kill_after_progress, start, streams


@pytest.mark.timeout(1800)
def test_a_killed_query_writes_each_result_once(tmp_path: Path, kills: int) -> None:
    settings = ["format=delta", *(f"{name}={value}" for name, value in delta_settings().items())]
    for camera, _, rows in streams(4 * kills + 8, size=60):
        write_deltalake(tmp_path / camera, rows, mode="append")
    chance, met = random.Random(time.time_ns()), Kills()
    while met.done < kills:
        kill_after_progress(tmp_path, start(tmp_path, None, *settings), chance, met)
    finish(tmp_path, start(tmp_path, None, *settings))
    print(f"{met.done} kills, {met.inside} inside a micro-batch")
    # Read by another implementation of Delta Lake, and by DuckDB.
    assert_results(tmp_path, DeltaTable(tmp_path / "tracked").file_uris())
