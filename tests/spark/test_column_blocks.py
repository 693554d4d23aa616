"""Rows go to the functions of a join as blocks of columns: what comes is what Spark's own way brings."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wjoin.executor.spark.column_blocks import COLUMN, column_batches
from wjoin.executor.spark.task import named
from wjoin.settings.options import prepare

ROWS = 10_000

VALUES = {
    "n": "id",
    "boolean": "id % 3 = 0",
    "tiny": "CAST(id % 100 AS TINYINT)",
    "small": "CAST(id AS SMALLINT)",
    "whole": "CAST(id * 7 AS INT)",
    "great": "(id - 5000) * 1844674407370955",
    "single": "CASE WHEN id % 5 = 0 THEN CAST('NaN' AS FLOAT) ELSE CAST(id / 7 AS FLOAT) END",
    "real": "CASE WHEN id % 5 = 0 THEN CAST('-Infinity' AS DOUBLE) ELSE id / 7 END",
    "money": "CAST(id / 3 AS DECIMAL(12, 3))",
    "vast": "CAST(id AS DECIMAL(38, 10)) * 1234567890123456789",
    "day": "date_add(DATE'1969-06-01', CAST(id AS INT))",
    "moment": "timestamp_micros(id * 1234567891 - 5000000000000)",
    "local": "CAST(timestamp_micros(id * 1234567891) AS TIMESTAMP_NTZ)",
    "span": "make_dt_interval(0, 0, 0, id / 1000)",
    "few": "concat('word ', id % 7)",
    "text": "CASE WHEN id % 4 = 0 THEN '' ELSE repeat(concat('ß', id), CAST(id % 9 AS INT)) END",
    "bytes": "CAST(concat('b', id) AS BINARY)",
    "list": "array(id, NULL, id + 1)",
    "record": "named_struct('a', id, 'b', CAST(id AS STRING))",
}
"""A column of each kind, over the numbers of ``range``."""


def through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give back what comes, in blocks or not."""
    yield from column_batches(batches)


def in_blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Tell how many blocks a batch has, and how many rows these have."""
    for batch in batches:
        known = batch.schema.names == [COLUMN]
        rows = [sum(each.num_rows for each in column_batches(iter([batch])))] if known else []
        yield pa.RecordBatch.from_pydict({"blocks": [batch.num_rows] * len(rows), "rows": rows})


def gone_through(rows: DataFrame) -> DataFrame:
    """Return rows after they have been in Python, sent as blocks."""
    return rows.mapInArrow(named(through, "wjoin_test_rows0"), rows.schema)


def blocks_node(rows: DataFrame) -> str:
    """Return the part of a plan from the node of blocks on, empty where it has none."""
    text = rows._jdf.queryExecution().executedPlan().toString()
    return str(text[text.index("Blocks") :]) if "Blocks" in text else ""


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the values, of each column some missing, in Parquet and ORC."""
    folder = tmp_path_factory.mktemp("columns")
    rows = spark.range(ROWS).select(
        *(
            F.expr(f"CASE WHEN id % 11 <> {n} THEN {each} END").alias(name)
            for n, (name, each) in enumerate(VALUES.items())
        ),
        F.expr("CAST(NULL AS BIGINT)").alias("nothing"),
        F.expr("id % 2").alias("part"),
    )
    rows.write.partitionBy("part").parquet(str(folder / "parquet"))
    rows.drop("span").write.orc(str(folder / "orc"))
    return folder


def assert_same(found: DataFrame, wanted: DataFrame) -> None:
    assert found.schema == wanted.schema
    as_text = [F.to_json(F.struct("*")).alias("row")]
    # NaN is not itself, and Python has no dates before the year 1.
    assert sorted(found.select(as_text).collect()) == sorted(wanted.select(as_text).collect())


@pytest.mark.long
@pytest.mark.core
@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_columns_are_copied(spark: SparkSession, table: Path, kind: str) -> None:
    rows = spark.read.format(kind).load(str(table / kind))
    found = gone_through(rows)
    assert_same(found, rows)
    # Nested columns are read by row.
    flat = gone_through(rows.drop("list", "record"))
    assert "ColumnarToRow" not in blocks_node(flat)
    assert "Scan" in blocks_node(flat)
    assert_same(flat, rows.drop("list", "record"))


@pytest.mark.long
@pytest.mark.core
def test_expressions_are_computed_beside_copies(spark: SparkSession, table: Path) -> None:
    rows = spark.read.parquet(str(table / "parquet"))
    wanted = rows.select(
        "n", (F.col("great") % 1000).alias("rest"), F.col("text").alias("other"), "money", "part"
    )
    found = gone_through(wanted)
    assert "ColumnarToRow" not in blocks_node(found)
    assert_same(found, wanted)


def test_what_a_filter_removes_is_not_evaluated(spark: SparkSession, table: Path) -> None:
    """A column as it is may come, for nobody reads it."""
    rows = spark.read.parquet(str(table / "parquet")).where("n IS NOT NULL")
    judged = rows.select("*", F.expr("n % 97 <> 0 AND xxhash64(n, text) <> 1").alias("__wjoin_keep"))
    kept = F.col("__wjoin_keep")
    wanted = judged.select(
        F.when(kept, F.col("n")).alias("n"), F.when(kept, F.expr("1000 DIV (n % 97)")).alias("ratio"), kept
    )
    found = gone_through(wanted)
    assert_same(found.where("__wjoin_keep"), wanted.where("__wjoin_keep"))
    assert found.where("NOT __wjoin_keep AND ratio IS NOT NULL").isEmpty()


@pytest.mark.long
@pytest.mark.core
@pytest.mark.parametrize("partitions", [1, 3])
def test_other_rows_are_written_as_columns(spark: SparkSession, partitions: int) -> None:
    rows = (
        spark.range(ROWS)
        .repartition(partitions)
        .selectExpr(*(f"{each} AS {name}" for name, each in VALUES.items()))
    )
    assert_same(gone_through(rows), rows)
    told = rows.mapInArrow(named(in_blocks, "wjoin_test_rows1"), "blocks BIGINT, rows BIGINT").collect()
    assert sum(each.rows for each in told) == ROWS


def test_rows_that_spark_makes_anew_for_each_question_are_asked_for_once(spark: SparkSession) -> None:
    rows = spark.range(ROWS).withColumn("random", F.rand(7))
    assert_same(gone_through(rows), rows)


@pytest.mark.long
@pytest.mark.core
def test_blocks_are_bounded_by_bytes(spark: SparkSession, tmp_path: Path) -> None:
    """Of rows of 100 kB a batch has 64 MB, and hardly more, in a session as wjoin has it."""
    prepare(spark)
    spark.range(2000).selectExpr("id", "repeat(CAST(id % 10 AS STRING), 100000) AS wide").coalesce(
        1
    ).write.parquet(str(tmp_path / "wide"))
    rows = spark.read.parquet(str(tmp_path / "wide"))
    told = rows.mapInArrow(named(in_blocks, "wjoin_test_rows1"), "blocks BIGINT, rows BIGINT").collect()
    assert sum(each.rows for each in told) == 2000
    # Spark 4.0 bounds a batch by its rows alone.
    assert max(each.blocks for each in told) <= (512 if spark.version.startswith("4.0.") else 65)
    assert max(each.rows for each in told) <= 800


def test_no_rows_make_no_blocks(spark: SparkSession, table: Path) -> None:
    rows = spark.read.parquet(str(table / "parquet"))
    assert gone_through(rows.where("n < 0")).isEmpty()
    assert gone_through(spark.range(0)).isEmpty()


def test_functions_of_users_get_rows_as_ever(spark: SparkSession, table: Path) -> None:
    rows = spark.read.parquet(str(table / "parquet"))

    def own(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"names": [",".join(batch.schema.names)]})

    ((names,),) = rows.select("n", "text").mapInArrow(own, "names STRING").distinct().collect()
    assert names == "n,text"
