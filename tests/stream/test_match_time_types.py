"""MATCH_TIME() on a stream of each type of event time."""

import datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import wjoin

JOIN = "SELECT A.k, MATCH_TIME() AS last FROM one A, two B WINDOW (A, B) = {width} WHERE A.k = B.k"


@pytest.mark.parametrize(
    ("expression", "width", "last"),
    [
        ("timestamp_seconds(60 + id)", "5 SECONDS", datetime.datetime(1970, 1, 1, 0, 1)),
        pytest.param(
            "TIMESTAMP_NTZ '1970-01-01 00:01:00'",
            "5 SECONDS",
            datetime.datetime(1970, 1, 1, 0, 1),
            marks=pytest.mark.long,
        ),
        pytest.param("id", "5", 0, marks=pytest.mark.thorough),
    ],
)
def test_match_time_streams_for_every_event_time(
    session: wjoin.Session, tmp_path: Path, expression: str, width: str, last: object
) -> None:
    spark: SparkSession = session.spark
    rows: DataFrame = spark.sql(f"SELECT id AS k, {expression} AS ts FROM range(1)")
    rows.write.parquet(str(tmp_path / "rows"))
    for name in ("one", "two"):
        files = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "rows"))
        session.stream(name, files, event_time="ts", delay=0 if expression == "id" else "0 seconds")
    session.sql(f"CREATE OR REPLACE SINK found USING parquet OPTIONS (path '{tmp_path / 'found'}')")
    session.run_script(
        f"INSERT INTO found {JOIN.format(width=width)}", checkpoint=str(tmp_path / "checkpoint")
    )
    assert [row.last for row in spark.read.parquet(str(tmp_path / "found")).collect()] == [last]
