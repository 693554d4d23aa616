"""FORMAT: columns out of the records of Kafka, rows as records into it, and records that cannot be read."""

import json
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import wjoin
from tests.kafka.conftest import Topics
from tests.tiers import tiers
from wjoin.progress import read

pytestmark = pytest.mark.thorough

TYPES = """
    CAST(-1 AS TINYINT) AS a, 2S AS b, 3 AS c, 4L AS d, CAST(0.5 AS FLOAT) AS e, 0.1D AS f, 12.50BD AS g,
    'a,"b'';\\u00e9' AS h, true AS i, DATE '2024-02-29' AS j, TIMESTAMP '2024-05-01 12:00:00.123456' AS k,
    TIMESTAMP_NTZ '2024-05-01 12:00:00.5' AS l, CAST(NULL AS BIGINT) AS m
"""
COLUMNS = """a TINYINT, b SMALLINT, c INT, d BIGINT, e FLOAT, f DOUBLE, g DECIMAL(4, 2), h STRING, i BOOLEAN,
    j DATE, k TIMESTAMP, l TIMESTAMP_NTZ, m BIGINT"""
NESTED = "array(1, NULL) AS n, named_struct('x', 1, 'y', array('z')) AS o, map('u', 1.5D) AS p, X'00FF' AS q"
NESTED_COLUMNS = ", n ARRAY<INT>, o STRUCT<x: INT, y: ARRAY<STRING>>, p MAP<STRING, DOUBLE>, q BINARY"


def rows_of(session: wjoin.Session, stream: str) -> list[tuple[Any, ...]]:
    """Return all rows that a stream has now."""
    return sorted((tuple(row) for row in _collected(session, stream)), key=repr)


def _collected(session: wjoin.Session, stream: str) -> list[Any]:
    name = f"all_{stream}"
    frame = session.table(stream)
    query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    return session.table(name).collect()


@pytest.mark.parametrize("kind", ["JSON", "CSV", "AVRO"])
def test_every_type_comes_back(session: wjoin.Session, topics: Topics, kind: str) -> None:
    topic, values = topics.name("types"), TYPES if kind == "CSV" else f"{TYPES}, {NESTED}"
    columns = COLUMNS if kind == "CSV" else COLUMNS + NESTED_COLUMNS
    expected = session.sql(f"SELECT {values}").collect()
    session.run_script(f"""
        CREATE SINK kept USING kafka OPTIONS ({topics.options}, topic '{topic}') FORMAT {kind} KEY (d);
        INSERT INTO kept SELECT {values};
        CREATE STREAM back ({columns}) USING kafka
        OPTIONS ({topics.options}, subscribe '{topic}') FORMAT {kind};
    """)
    assert _collected(session, "back") == expected
    assert [key for key, _ in topics.read(topic)] == ["4"]


def test_json_is_as_others_write_it(session: wjoin.Session, topics: Topics) -> None:
    topic = topics.name("written")
    session.run_script(f"""
        CREATE SINK kept USING kafka OPTIONS ({topics.options}, topic '{topic}') FORMAT JSON KEY (id);
        INSERT INTO kept SELECT 'x' AS id, TIMESTAMP '2024-05-01 12:00:00.123456' AS at, NULL AS n;
    """)
    assert topics.read(topic) == [("x", '{"id":"x","at":"2024-05-01T12:00:00.123456Z"}')]


def test_what_kafka_tells_of_a_record(session: wjoin.Session, topics: Topics) -> None:
    """Its own columns are there for computed ones, hidden by declared ones of their name."""
    topic = topics.name("told")
    topics.write(topic, ['{"timestamp": 7, "id": 1}', '{"timestamp": 8, "id": 2}'], key="k", partition=2)
    topics.write(topic, ['{"timestamp": 9, "id": 3}'], partition=1)
    session.sql(f"""
        CREATE STREAM told (
          place AS concat_ws('/', topic, partition, offset), id INT, timestamp INT,
          key AS CAST(key AS STRING), at AS kafka.timestamp, later AS timestamp + 1
        ) USING kafka OPTIONS ({topics.options}, subscribe '{topic}') FORMAT JSON
    """)
    found = rows_of(session, "told")
    assert session.table("told").columns == ["place", "id", "timestamp", "key", "at", "later"]
    assert [(*row[:4], row[5]) for row in found] == [
        (f"{topic}/1/0", 3, 9, None, 10),
        (f"{topic}/2/0", 1, 7, "k", 8),
        (f"{topic}/2/1", 2, 8, "k", 9),
    ]
    assert all(abs((row[4].replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds()) < 3600 for row in found)
    (shown,) = session.sql("SHOW CREATE STREAM told").collect()[0]
    session.sql("DROP STREAM told")
    session.sql(shown)
    assert rows_of(session, "told") == found


BROKEN = {
    "JSON": ["not json", '{"id": "x", "at": "2024-05-01T10:00:03Z"}', '{"id": 4, "at": "yesterday"}', ""],
    "CSV": ["a,b,c,d", "x,2024-05-01T10:00:03Z", "4,yesterday", ""],
    "AVRO": [b"\xff\xff\xff", b""],
}
WHOLE = {
    "JSON": '{{"id": {id}, "at": "2024-05-01T10:00:0{id}Z"}}',
    "CSV": "{id},2024-05-01T10:00:0{id}Z",
}
READ = {"JSON": [(None, 3), (4, None)], "CSV": [(None, 3), (4, None)], "AVRO": []}
"""What is read of the broken records in the mode PERMISSIVE, but for rows of NULLs: id and second."""


def write_broken(session: wjoin.Session, topics: Topics, kind: str) -> str:
    """Write two records that can be read, of seconds 1 and 2, between those that cannot."""
    topic = topics.name("broken")
    topics.write(topic, BROKEN[kind][:1], partition=0)
    if kind == "AVRO":
        session.run_script(f"""
            CREATE OR REPLACE SINK whole USING kafka OPTIONS ({topics.options}, topic '{topic}') FORMAT AVRO;
            INSERT INTO whole
            SELECT id, timestamp_seconds(1714557600 + id) AS at FROM VALUES (1L), (2L) AS rows(id);
        """)
    else:
        topics.write(topic, [WHOLE[kind].format(id=id) for id in (1, 2)], partition=0)
    topics.write(topic, BROKEN[kind][1:], partition=0)
    return topic


def declare(session: wjoin.Session, topics: Topics, topic: str, kind: str, mode: str) -> None:
    session.sql(f"""
        CREATE OR REPLACE STREAM seen (id BIGINT, at TIMESTAMP) USING kafka
        OPTIONS ({topics.options}, subscribe '{topic}', mode '{mode}') FORMAT {kind}
        WATERMARK at DELAY OF '1 hour'
    """)


PAIRS = "SELECT A.id, B.id AS other FROM seen A, seen B WINDOW = 10 SECONDS WHERE A.id = B.id"


@pytest.mark.parametrize("kind", tiers(BROKEN, long=["JSON"]))
def test_broken_records_are_null_dropped_or_fatal(
    session: wjoin.Session, topics: Topics, tmp_path: Path, kind: str
) -> None:
    topic, broken = write_broken(session, topics, kind), len(BROKEN[kind])
    declare(session, topics, topic, kind, "permissive")
    found = [(row[0], row[1] and row[1].second) for row in rows_of(session, "seen")]
    nothing = [(None, None)] * (broken - len(READ[kind]))
    assert sorted(found, key=repr) == sorted([(1, 1), (2, 2), *READ[kind], *nothing], key=repr)
    with pytest.warns(wjoin.WJoinWarning, match="without an event time") as told:
        joined(session, tmp_path / "permissive")
    execution = session.queries[-1]._jsq.streamingQuery().lastExecution()
    assert ("SimpleRecords" in execution.executedPlan().toJSON()) == (kind == "JSON")
    undated = broken - sum(second is not None for _, second in READ[kind])
    assert any(f"{2 * undated} rows without an event time" in str(each.message) for each in told)

    declare(session, topics, topic, kind, "DROPMALFORMED")
    assert [row[0] for row in rows_of(session, "seen")] == [1, 2]
    with pytest.warns(wjoin.WJoinWarning, match="WJ809") as told:
        progress = joined(session, tmp_path / "dropping")
    dropped = f"dropped {broken} unreadable records ({broken} of seen)"
    assert any(dropped in str(each.message) for each in told)
    assert progress.broken == {"seen": broken}

    declare(session, topics, topic, kind, "FAILFAST")
    with pytest.raises(wjoin.WJoinError) as failed:
        joined(session, tmp_path / "failing")
    assert failed.value.code == "WJ712"
    assert f"at offset 0 of partition 0 of topic {topic}: " in failed.value.message


def joined(session: wjoin.Session, folder: Path) -> Any:
    """Join the stream with itself, as far as it can be read, and check what comes of it."""
    session.run_script(
        f"""
        CREATE OR REPLACE SINK pairs USING parquet OPTIONS (path '{folder}/pairs');
        INSERT INTO pairs {PAIRS};
        """,
        checkpoint=str(folder / "checkpoints"),
    )
    assert sorted(tuple(row) for row in session.read.parquet(f"{folder}/pairs").collect()) == [(1, 1), (2, 2)]
    (progress,) = [read(each) for each in session.queries[-1].recentProgress if each["numInputRows"]]
    return progress


def test_a_record_without_a_value_is_not_broken(session: wjoin.Session, topics: Topics) -> None:
    topic = topics.name("deleted")
    topics.write(topic, ['{"id": 1}', None], key="x")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wjoin.WJoinWarning)
        for mode in ("PERMISSIVE", "DROPMALFORMED", "FAILFAST"):
            session.sql(f"""
                CREATE OR REPLACE STREAM deleted (id BIGINT, k AS CAST(key AS STRING)) USING kafka
                OPTIONS ({topics.options}, subscribe '{topic}', mode '{mode}') FORMAT JSON
            """)
            assert rows_of(session, "deleted") == [(1, "x"), (None, "x")]


def test_what_cannot_be_read_can_be_kept(session: wjoin.Session, topics: Topics) -> None:
    topic = topics.name("corrupt")
    topics.write(topic, ["not json", '{"id": 1}'])
    session.sql(f"""
        CREATE STREAM corrupt (id BIGINT, _corrupt_record STRING, at AS timestamp) USING kafka
        OPTIONS ({topics.options}, subscribe '{topic}') FORMAT JSON
    """)
    assert [row[:2] for row in rows_of(session, "corrupt")] == [(1, None), (None, "not json")]


def test_options_say_how_records_are_written(session: wjoin.Session, topics: Topics) -> None:
    topic = topics.name("spelt")
    topics.write(topic, ["1;01.05.2024 10:00", "-;02.05.2024 10:00"], partition=0)
    session.sql(f"""
        CREATE STREAM spelt (id BIGINT, at TIMESTAMP) USING kafka
        OPTIONS ({topics.options}, subscribe '{topic}', sep ';', nullValue '-',
          timestampFormat 'dd.MM.yyyy HH:mm')
        FORMAT CSV
    """)
    assert [(row[0], row[1].day) for row in rows_of(session, "spelt")] == [(1, 1), (None, 2)]


def test_avro_of_a_given_schema(session: wjoin.Session, topics: Topics) -> None:
    """What others write: fields in another order, other types, plain ones; columns are found by name."""
    topic = topics.name("foreign")
    fields = [
        {"name": "note", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "id", "type": "int"},
    ]
    schema = json.dumps({"type": "record", "name": "Seen", "namespace": "cameras", "fields": fields})
    session.run_script(f"""
        CREATE SINK foreign USING kafka OPTIONS ({topics.options}, topic '{topic}', avroSchema '{schema}')
        FORMAT AVRO;
        INSERT INTO foreign SELECT 'hello' AS note, TIMESTAMP '2024-05-01 10:00:00.250' AS at, 7 AS id;
        CREATE STREAM back (id BIGINT, at TIMESTAMP) USING kafka
        OPTIONS ({topics.options}, subscribe '{topic}', avroSchema '{schema}') FORMAT AVRO;
    """)
    assert topics.read(topic)[0][1] is not None
    (row,) = _collected(session, "back")
    assert (row.id, row.at) == (7, datetime(2024, 5, 1, 10, 0, 0, 250_000))
    assert session.table("back").dtypes == [("id", "bigint"), ("at", "timestamp")]
    with pytest.raises(wjoin.WJoinError, match="FIELD_NOT_FOUND") as refused:
        session.sql(f"""
            CREATE STREAM other (name STRING) USING kafka
            OPTIONS ({topics.options}, subscribe '{topic}', avroSchema '{schema}') FORMAT AVRO
        """)
    assert refused.value.code == "WJ604"
