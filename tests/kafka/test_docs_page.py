"""docs/kafka.md says what is true: its statements run, in order, on topics as it describes them."""

import json
import re
from pathlib import Path

import pytest

import wjoin
from tests.kafka.conftest import Topics
from tests.packages import ROOT

pytestmark = pytest.mark.long

_BLOCK = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def instant(second: float) -> str:
    return f"2024-05-01T12:00:{second:09.6f}Z"


@pytest.mark.timeout(600)
def test_page(session: wjoin.Session, topics: Topics, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "kafka.md").read_text("utf-8")
    seen = json.dumps({"obj_id": 7, "ts": "2024-05-01T12:00:00Z"})
    assert f"`{seen}`" in text
    topics.write("camera1", [seen])
    topics.write("camera2", [json.dumps({"obj_id": 7, "ts": instant(second)}) for second in (1, 3)])
    topics.write("sightings", [seen], key="front")
    topics.write("clicks", ['{"customer": 1, "at": "2024-05-01T12:00:00Z"}', "not json"], partition=1)
    for name, first in (("doors", 0), ("lifts", 30)):
        topics.write(name, [json.dumps({"badge": n, "ts": instant(first + n)}) for n in (1, 2)], partition=0)
    schema = re.findall(r"avroSchema '(\{.*?\})'", text, re.DOTALL)[0]
    declared = f"{topics.options}, topic 'measured', avroSchema '{schema}'"
    session.run_script(f"""
        CREATE SINK measurements USING kafka OPTIONS ({declared}) FORMAT AVRO;
        INSERT INTO measurements SELECT TIMESTAMP '2024-05-01 12:00:00.250' AS at, 3 AS sensor;
    """)
    for block in _BLOCK.findall(text):
        placed = block.replace("localhost:9092", topics.servers).replace("'out/", f"'{tmp_path}/out/")
        session.run_script(placed, checkpoint=f"{tmp_path}/checkpoints")
    (found,) = topics.read("tracked")
    assert [f"`{each}`" in text for each in found] == [True, True]
    for stream, expected in {
        "sightings": [(7, "front", "sightings")],
        "measured": [(3, "2024-05-01 12:00:00.25")],
    }.items():
        query = session.table(stream).writeStream.format("memory").queryName(f"read_{stream}")
        query.trigger(availableNow=True).start().awaitTermination()
        rows = session.table(f"read_{stream}")
        wanted = {
            "sightings": ["obj_id", "camera", "split(id, '-')[0]"],
            "measured": ["sensor", "string(at)"],
        }[stream]
        assert [tuple(row) for row in rows.selectExpr(*wanted).collect()] == expected
    assert [(row.id, row.line) for row in session.read.json(f"{tmp_path}/out/broken").collect()] == [
        ("1-1", "not json")
    ]
    assert sorted(key for key, _ in topics.read("entered")) == ["doors-0-0/lifts-0-0", "doors-0-1/lifts-0-1"]
