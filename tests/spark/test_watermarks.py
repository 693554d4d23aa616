"""What wjoin takes for granted of Spark's own watermarks."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wjoin.executor.spark.watermarks import WATERMARK, WATERMARKED, unmoved, watermark_delay

pytestmark = [pytest.mark.long, pytest.mark.sparks]


def files(folder: Path, *batches: list[int], removed: tuple[int, ...] = ()) -> str:
    """Write a file for each micro-batch, with a row at each of some milliseconds."""
    folder.mkdir()
    for number, times in enumerate(batches):
        rows = [{"ms": ms, "keep": ms not in removed} for ms in times]
        path = folder / f"{number}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return str(folder)


def stream(spark: SparkSession, folder: str) -> DataFrame:
    reader = spark.readStream.schema("ms BIGINT, keep BOOLEAN").option("maxFilesPerTrigger", 1)
    return reader.json(folder).select("*", F.timestamp_millis("ms").alias("ts"))


def run(frame: DataFrame, name: str) -> list[Any]:
    writer = frame.writeStream.format("memory").queryName(name).outputMode("append")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return list(query.recentProgress)


@pytest.fixture
def rows(session: Any, spark: SparkSession, tmp_path: Path) -> DataFrame:
    """A stream without rows; ``session`` stops its queries."""
    return stream(spark, files(tmp_path / "rows", [1]))


def test_a_column_with_a_watermark_has_its_delay_in_its_metadata(rows: DataFrame) -> None:
    """Rests on it: wjoin/joins/relations.py reads there what the user has told Spark of a column's disorder.

    Else streams with a watermark would count as such without, with a delay of 0.
    """
    assert rows.withWatermark("ts", "3 seconds").schema["ts"].metadata == {WATERMARK: 3000}


def test_the_metadata_alone_make_a_column_an_event_time(rows: DataFrame) -> None:
    """Rests on it: MATCH_TIME() over inputs with watermarks (executor/spark/compile.py), and the joins of
    executor/spark/native.py. Else nothing could be aggregated by MATCH_TIME() there.
    """
    dated = rows.withWatermark("ts", "0 seconds").select(
        (F.col("ts") + F.expr("INTERVAL 1 SECOND")).alias("at")
    )
    with pytest.raises(AnalysisException, match="STREAMING_OUTPUT_MODE"):
        run(dated.groupBy(F.window("at", "1 second")).count(), "undated")
    marked = dated.withMetadata("at", WATERMARKED)
    assert run(marked.groupBy(F.window("at", "1 second")).count(), "dated")
    aliased = dated.select(F.greatest("at", "at").alias("at", metadata=WATERMARKED))
    assert aliased.schema["at"].metadata == WATERMARKED


def test_there_is_no_second_watermark_above_a_first_one(
    session: Any, spark: SparkSession, tmp_path: Path
) -> None:
    """Rests on it: the rule for inputs that come with a watermark (``undated``, planner/bind/event_time.py).

    If Spark allowed it MATCH_TIME() could have a watermark of its own in those cases, too.
    """
    rows = stream(spark, files(tmp_path / "twice", [100_000], [200_000]))
    dated = rows.withWatermark("ts", "1 second").withColumn("at", F.col("ts"))
    with pytest.raises((AnalysisException, StreamingQueryException), match="Redefining watermark"):
        run(dated.withWatermark("at", "1 second").groupBy("at").count(), "twice")


def test_a_timestamp_without_time_zone_is_no_event_time_of_spark(rows: DataFrame) -> None:
    """Rests on it: ``_is_dated`` (executor/spark/compile.py), and ``native_refusal``
    (planner/choose/native_method.py).
    """
    local = rows.select(F.lit("2026-01-01").cast("timestamp_ntz").alias("ts"))
    with pytest.raises(AnalysisException, match="EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE"):
        local.withWatermark("ts", "1 second").schema  # noqa: B018 (analysed when it is asked for)


def test_a_row_as_old_as_the_watermark_is_late_and_counted(
    session: Any, spark: SparkSession, tmp_path: Path
) -> None:
    """Rests on it: ``watermark_delay`` (executor/spark/watermarks.py) adds a millisecond to a delay in whole
    ones, and wjoin/measured/dropped_rows.py tells the rows that Spark's operators drop from
    ``numRowsDroppedByWatermark``.
    """
    folder = files(tmp_path / "late", [10_000], [11_000], [7_000, 7_001])
    reports = run(
        stream(spark, folder).withWatermark("ts", "3 seconds").groupBy("ts").count(),
        "late",
    )
    dropped = sum(
        each["numRowsDroppedByWatermark"] for report in reports for each in report["stateOperators"]
    )
    assert dropped == 1
    kept = [row.ts.timestamp() for row in spark.table("late").orderBy("ts").collect()]
    assert kept == [7.001]
    assert watermark_delay(3_000_000) == "3001 milliseconds"


@pytest.mark.parametrize("condition", ["keep", "missing IS NOT NULL"])
def test_rows_that_a_nondeterministic_filter_removes_move_the_watermark(
    session: Any, spark: SparkSession, tmp_path: Path, condition: str
) -> None:
    """Rests on it: the scans of executor/spark/native.py, and the marks of executor/spark/compile.py.

    Spark pulls any other filter below the watermark: a stream of which WHERE leaves few rows would hold back
    the state of all others, and groups by MATCH_TIME() would stay open until a result came. Filters above it
    stay there as well.
    """
    folder = files(tmp_path / "filtered", [1_000, 9_000], removed=(9_000,))
    rows = stream(spark, folder).withColumn("missing", F.when(F.col("keep"), F.lit(1)))
    kept = rows.withWatermark("ts", "0 seconds").filter(unmoved(condition))
    (report, *_) = run(kept.filter("missing > 0").groupBy("ts").count(), "filtered")
    assert report["eventTime"]["max"] == "1970-01-01T00:00:09.000Z"


def test_a_querys_watermark_is_the_least_of_its_streams(
    session: Any, spark: SparkSession, tmp_path: Path
) -> None:
    """Rests on it: MATCH_TIME() over inputs with watermarks (planner/bind/event_time.py).

    Else a result that waited for the slowest stream would be late for the aggregate above it.
    """
    fast = stream(spark, files(tmp_path / "fast", [9_000])).withWatermark("ts", "0 seconds")
    slow = stream(spark, files(tmp_path / "slow", [2_000])).withWatermark("ts", "0 seconds")
    reports = run(fast.union(slow).groupBy("ts").count(), "least")
    assert reports[-1]["eventTime"]["watermark"] == "1970-01-01T00:00:02.000Z"


def test_spark_drops_state_by_a_range_of_seconds_as_numbers(
    session: Any, spark: SparkSession, tmp_path: Path
) -> None:
    """Rests on it: ``_ranges`` (executor/spark/native.py). Else the state of PLAN(NATIVE) would grow for
    ever.
    """
    left = stream(spark, files(tmp_path / "left", [1_000], [60_000], [61_000])).select(F.col("ts").alias("l"))
    right = stream(spark, files(tmp_path / "right", [1_000], [60_000], [61_000])).select(
        F.col("ts").alias("r")
    )
    left, right = (
        frame.withWatermark(frame.columns[0], "0 seconds").withColumn(f"k_{frame.columns[0]}", F.lit(1))
        for frame in (left, right)
    )
    near = "CAST(r AS BIGINT) <= CAST(l AS BIGINT) + (5) AND CAST(l AS BIGINT) <= CAST(r AS BIGINT) + (5)"
    reports = run(left.join(right, F.expr(f"k_l = k_r AND {near}")), "pairs")
    kept = [report["stateOperators"][0]["numRowsTotal"] for report in reports if report["numInputRows"]]
    assert kept == [2, 4, 4], "of six rows, two are older than the watermark and the range"
