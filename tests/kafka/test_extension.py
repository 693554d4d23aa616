"""Kafka through ``spark.sql.extensions``: the same statements in Spark's own SQL shell."""

import json
from pathlib import Path

import pytest

from tests.kafka.conftest import Topics
from tests.programs import run_python

pytestmark = pytest.mark.thorough


@pytest.mark.timeout(600)
def test_in_spark_sql(topics: Topics, jars: Path, tmp_path: Path) -> None:
    one, two, out = (topics.name(word) for word in ("one", "two", "out"))
    for topic, second in ((one, 0), (two, 1)):
        seen = [json.dumps({"id": n, "ts": f"2024-05-01T12:00:{second + n:02}Z"}) for n in range(20)]
        topics.write(topic, seen)
    streams = [
        f"""CREATE STREAM {name} (id BIGINT, ts TIMESTAMP, k AS CAST(key AS STRING)) USING kafka
        OPTIONS ({topics.options}, subscribe '{topic}') FORMAT JSON WATERMARK ts DELAY OF '1 second'"""
        for name, topic in (("a", one), ("b", two))
    ]
    statements = [
        *streams,
        f"CREATE SINK pairs USING kafka OPTIONS ({topics.options}, topic '{out}') FORMAT AVRO KEY (id)",
        "SHOW STREAMS",
        "SHOW CREATE SINK pairs",
        f"SET wjoin.checkpoint = {tmp_path}/checkpoints",
        "INSERT INTO pairs SELECT A.id, A.ts, B.ts AS other FROM a A, b B WINDOW (A, B) = 2 SECONDS"
        " WHERE A.id = B.id",
        # Queries end with the shell, which ends with the script.
        "SELECT java_method('java.lang.Thread', 'sleep', 30000L)",
        f"CREATE STREAM c (id INT) USING kafka OPTIONS ({topics.options}, subscribe '{one}x') FORMAT JSON",
    ]
    script = tmp_path / "script.sql"
    script.write_text(";\n".join(statements) + ";\n")
    settings = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.enabled": "false",
        "spark.driver.extraClassPath": f"{jars / 'connector'}/*",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    }
    options = [f"--conf={name}={value}" for name, value in settings.items()]
    done = run_python(tmp_path, "-m", "wjoin.cli", "spark-sql", "-S", *options, "-f", str(script))
    assert "a\tkafka\tts\t1 s" in done.stdout
    assert f"'topic' '{out}') FORMAT AVRO KEY (id)" in done.stdout
    assert f"error[WJ617]: there is no topic {one}x at {topics.servers}" in done.stderr
    assert sorted(int(key or -1) for key, _ in topics.read(out)) == list(range(20))
