"""Kafka through Spark Connect, by a client that has wjoin."""

import json
from pathlib import Path

import pytest
from pyspark.sql.connect.group import GroupedData

from tests.kafka.conftest import Topics
from tests.programs import run_python

pytestmark = pytest.mark.thorough


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("only_server")
@pytest.mark.skipif(
    not hasattr(GroupedData, "transformWithStateInPandas"), reason="Spark 4.0 has no such operator there"
)
def test_topics_are_joined_into_a_topic(topics: Topics, jars: Path, tmp_path: Path) -> None:
    one, two, out = (topics.name(word) for word in ("one", "two", "out"))
    for topic, second in ((one, 0), (two, 1)):
        seen = [json.dumps({"id": n, "ts": f"2024-05-01T12:00:{second + n:02}Z"}) for n in range(20)]
        topics.write(topic, seen, key="all")
    client = str(Path(__file__).with_name("connect_client.py"))
    given = (str(tmp_path), topics.servers, one, two, out, str(jars / "connector"))
    done = run_python(tmp_path, client, *given)
    assert done.returncode == 0, done.stderr[-12000:]
    assert done.stdout.splitlines()[-1] == "[('a', 'kafka'), ('b', 'kafka')]"
    found = [(int(key or -1), json.loads(value or "{}")) for key, value in topics.read(out)]
    assert sorted(key for key, _ in found) == list(range(20))
    assert dict(found)[3] == {"id": 3, "ts": "2024-05-01T12:00:04.000000Z"}
