"""An approximate join whose homes are partitions of topics is killed, and decides as if nothing had been."""

import json
import random
import time
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from tests.faults.killing import (
    ORACLE,
    Kills,
    finish,
    kill_after_progress,
    results,
    start,
    streams,
    write_streams,
)
from tests.kafka.conftest import Topics

pytestmark = pytest.mark.long

PARTITIONS = 3


@pytest.mark.timeout(1800)
def test_an_approximate_join_of_topics_is_killed_at_random_moments(
    topics: Topics, jars: Path, tmp_path: Path, kills: int
) -> None:
    prefix, batches = topics.name("killed") + "-", 4 * kills + 6
    write(topics, prefix, batches)
    jar_files = ",".join(map(str, sorted((jars / "connector").glob("*.jar"))))
    settings = ("visits=1", "home=", f"topics={topics.servers}/{prefix}", f"spark.jars={jar_files}")
    settings += ("spark.sql.shuffle.partitions=4",)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for root in (killed, whole):
        root.mkdir()
    write_streams(whole, batches)
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


def write(topics: Topics, prefix: str, batches: int) -> None:
    """Write the rows of the cameras to topics, those of each batch to all partitions alike."""
    records: dict[tuple[str, int], list[str]] = {}
    for camera, _, rows in streams(batches):
        for number, row in enumerate(rows.to_pylist()):
            text = json.dumps({**row, "ts": row["ts"].isoformat()})
            records.setdefault((f"{prefix}{camera}", number % PARTITIONS), []).append(text)
    for (topic, partition), values in records.items():
        topics.write(topic, values, partition=partition)
