"""A Python session: what Spark and its workers log stays away from a user's output."""

from pathlib import Path

import pytest

from tests.programs import run_python

pytestmark = [pytest.mark.thorough, pytest.mark.spark]

QUERY = """
import sys
import wjoin

settings = {"spark.sql.shuffle.partitions": "1", "spark.master": "local[2]"}
session = wjoin.connect(**settings, **({"wjoin.log": sys.argv[1]} if len(sys.argv) > 1 else {}))
for name in "ab":
    rows = session.range(5).selectExpr("id AS k", "timestamp_seconds(1700000000 + id) AS ts")
    rows.write.parquet(name)
    stream = session.readStream.schema("k BIGINT, ts TIMESTAMP").parquet(name)
    session.stream(name, stream, "ts", "1 minute")
matches = session.sql("SELECT A.k FROM a A, b B WINDOW = 5 SECONDS WHERE A.k = B.k")
query = matches.writeStream.format("console").option("numRows", 3).trigger(availableNow=True).start()
query.awaitTermination()
"""

PROGRAM = f"""
{QUERY}
try:
    session.sql("SELECT nothing(1)")
except Exception as error:
    print(type(error).__name__)
try:
    session.sql("CREATE STREAM c (k BIGINT) USING parquet OPTIONS (path 'nowhere')")
except wjoin.WJoinError as error:
    print(error.help)
assert "Starting Streaming TransformWithState" in session.spark_log.read_text()
print(session.spark_log)
"""


@pytest.mark.parametrize("log", [None, "logs/spark.log"])
def test_a_streaming_join_says_nothing_but_its_rows(tmp_path: Path, log: str | None) -> None:
    done = run_python(tmp_path, "-c", PROGRAM, *([log] if log else []))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.split("\n")
    assert lines[:5] == ["-" * 43, "Batch: 0", "-" * 43, "+---+", "|  k|"]
    *_, error, remedy, path, end = lines
    assert (error, end) == ("AnalysisException", "")
    assert remedy == f"put files into {tmp_path / 'nowhere'}, or give another path"
    # The file stays only where the user has named it.
    assert Path(path).exists() == (log is not None)
    if log is not None:
        assert Path(path) == tmp_path / log


def test_a_spark_that_is_stopped_at_once_says_nothing(tmp_path: Path) -> None:
    """Its workers are being started then, by a thread of connect()."""
    done = run_python(tmp_path, "-c", "import wjoin; wjoin.connect().spark.stop()")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


CLOSED = f"""
{QUERY}
stores = session.spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore
before = stores.isMaintenanceRunning()
session.spark.stop()
print(before, stores.isMaintenanceRunning())
"""


def test_a_spark_that_is_stopped_closes_its_state(tmp_path: Path) -> None:
    """Else the exit of Java may wait for RocksDB's threads, and they for Java: for good."""
    done = run_python(tmp_path, "-c", CLOSED)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "True False"
