"""An approximate join that is killed loses what it loses undisturbed, and makes no result twice."""

import random
import time
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from tests.faults.killing import ORACLE, Kills, finish, kill_after_progress, results, start, write_streams

SETTINGS = ("visits=1", "spark.sql.shuffle.partitions=4")


@pytest.mark.timeout(1800)
@pytest.mark.long
@pytest.mark.parametrize(
    ("home", "counted"),
    [("row_id", ""), ("", ""), ("row_id", "200")],
    ids=["by a column", "by file", "windows of rows"],
)
def test_an_approximate_join_is_killed_at_random_moments(
    tmp_path: Path, kills: int, home: str, counted: str
) -> None:
    settings = (*SETTINGS, f"home={home}", f"counted={counted}")
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for root in (killed, whole):
        root.mkdir()
        write_streams(root, 4 * kills + 6)
    chance, met = random.Random(time.time_ns()), Kills()
    while met.done < kills:
        kill_after_progress(killed, start(killed, None, *settings), chance, met)
    finish(killed, start(killed, None, *settings))
    finish(whole, start(whole, None, *settings))
    print(f"{met.done} kills, {met.inside} inside a micro-batch")
    with duckdb.connect() as oracle:
        exact = Counter(oracle.execute(ORACLE.format(root=whole)).fetchall())
    found, undisturbed = results(killed), results(whole)
    assert found == undisturbed
    assert not found - exact
    assert 0 < found.total() < exact.total()
