"""An approximate join whose homes are partitions of topics is killed, and decides as if nothing had been."""

import json
from pathlib import Path

import pytest

from tests.faults.killing import assert_part_as_undisturbed, batches_for, streams
from tests.kafka.conftest import Topics

pytestmark = pytest.mark.long

PARTITIONS = 3


@pytest.mark.timeout(1800)
def test_an_approximate_join_of_topics_is_killed_at_random_moments(
    topics: Topics, jars: Path, tmp_path: Path, kills: int
) -> None:
    prefix = topics.name("killed") + "-"
    write(topics, prefix, batches_for(kills))
    jar_files = ",".join(map(str, sorted((jars / "connector").glob("*.jar"))))
    settings = ("visits=1", "home=", f"topics={topics.servers}/{prefix}", f"spark.jars={jar_files}")
    settings += ("spark.sql.shuffle.partitions=4",)
    assert_part_as_undisturbed(tmp_path, kills, settings, learns=False)


def write(topics: Topics, prefix: str, batches: int) -> None:
    """Write the rows of the cameras to topics, those of each batch to all partitions alike."""
    records: dict[tuple[str, int], list[str]] = {}
    for camera, _, rows in streams(batches):
        for number, row in enumerate(rows.to_pylist()):
            text = json.dumps({**row, "ts": row["ts"].isoformat()})
            records.setdefault((f"{prefix}{camera}", number % PARTITIONS), []).append(text)
    for (topic, partition), values in records.items():
        topics.write(topic, values, partition=partition)
