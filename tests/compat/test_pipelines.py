"""Inside a function of a declarative pipeline nothing may be analysed, set or named in the session."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pyspark
import pytest
from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.thorough,
    # Time to wait for the other server, too.
    pytest.mark.timeout(600),
    pytest.mark.skipif(find_spec("pyspark.pipelines") is None, reason="Spark has pipelines from 4.1 on"),
]

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SPECIFICATION = f"""
name: doors
storage: file://{{folder}}/storage
libraries:
  - glob:
      include: transformations/**
configuration:
  spark.sql.streaming.stateStore.providerClass: {ROCKSDB}
  spark.sql.shuffle.partitions: "2"
"""
DEFINITION = '''
import wjoin
from pyspark import pipelines
from pyspark.sql import SparkSession

spark = SparkSession.active()
session = wjoin.connect(spark)
for name in ("door", "badge"):
    rows = spark.readStream.schema("k BIGINT, ts TIMESTAMP, word STRING").parquet("{folder}/" + name)
    session.stream(name, rows, "ts", "1 minute")


@pipelines.table
def matches():
    return session.sql(
        """
        SELECT A.k, A.ts AS a_ts, B.ts AS b_ts, A.word FROM door A, badge B WINDOW = 1 SECOND
        WHERE A.k = B.k AND A.word <> 'w3'
        """
    )
'''
ORACLE = """
SELECT A.k, A.ts, B.ts, A.word
FROM read_parquet('{folder}/door/*.parquet') A, read_parquet('{folder}/badge/*.parquet') B
WHERE A.k = B.k AND abs(epoch_us(A.ts) - epoch_us(B.ts)) <= 1000000 AND A.word <> 'w3'
"""


def test_a_join_inside_a_function_of_a_pipeline(tmp_path: Path, spark: SparkSession) -> None:
    for name, step in (("door", 70), ("badge", 90)):
        rows = spark.range(500).selectExpr(
            "id % 9 AS k",
            f"timestamp_millis(1700000000000 + id * {step}) AS ts",
            "concat('w', id % 7) AS word",
        )
        rows.coalesce(1).write.parquet(str(tmp_path / name))
    (tmp_path / "spark-pipeline.yml").write_text(SPECIFICATION.format(folder=tmp_path))
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations" / "doors.py").write_text(DEFINITION.replace("{folder}", str(tmp_path)))
    home = Path(pyspark.__file__).parent
    done = subprocess.run(
        [str(home / "bin" / "spark-pipelines"), "run"],
        cwd=tmp_path,
        env={**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = duckdb.sql(
        f"SELECT k, a_ts, b_ts, word FROM read_parquet('{tmp_path}/spark-warehouse/matches/*.parquet')"
    )
    expected = duckdb.sql(ORACLE.format(folder=tmp_path)).fetchall()
    assert len(expected) > 50
    assert sorted(found.fetchall()) == sorted(expected)
