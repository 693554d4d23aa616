"""The same three-stream join, as wjoin runs it and as an expert chains Spark's own joins."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streams import DISORDER, STREAMS

DELAY = f"{DISORDER // 1_000_000} seconds"

_STATE = "spark.sql.streaming.stateStore"
_ROCKSDB = {
    f"{_STATE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
}
_TUNED = {
    **_ROCKSDB,
    f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.join.stateFormatVersion": "4",
}


@dataclass(frozen=True)
class System:
    """One way to run the join: a title, its session settings, and the query for a window in seconds."""

    title: str
    query: Callable[[SparkSession, Path, int], DataFrame]
    settings: dict[str, str] = field(default_factory=dict)


def source(spark: SparkSession, folder: Path, stream: str) -> DataFrame:
    """Return a stream that reads one file a micro-batch."""
    files = spark.readStream.schema("id BIGINT, ts TIMESTAMP, payload STRING")
    return files.option("maxFilesPerTrigger", 1).parquet(str(folder / stream))


def spark_chain(spark: SparkSession, folder: Path, window: int) -> DataFrame:
    """Return the join as a chain of two stream-stream joins, each bounded by time.

    An intermediate may have one event-time column only, so the time of b goes on as a number
    and its distance to c is an integer comparison.
    """
    a, b, c = (
        source(spark, folder, stream)
        .select(*(F.col(name).alias(f"{stream}_{name}") for name in ("id", "ts", "payload")))
        .withWatermark(f"{stream}_ts", DELAY)
        for stream in STREAMS
    )
    span = f"INTERVAL {window} SECONDS"
    first = a.join(b, F.expr(f"a_id = b_id AND b_ts BETWEEN a_ts - {span} AND a_ts + {span}")).select(
        "a_id", "a_ts", F.expr("unix_micros(b_ts)").alias("b_micros"), "a_payload", "b_payload"
    )
    second = first.join(
        c,
        F.expr(
            f"a_id = c_id AND c_ts BETWEEN a_ts - {span} AND a_ts + {span} "
            f"AND abs(unix_micros(c_ts) - b_micros) <= {window * 1_000_000}"
        ),
    )
    return second.selectExpr(
        "a_id AS id", "a_ts", "timestamp_micros(b_micros) AS b_ts", "c_ts", "a_payload", "b_payload", "c_payload"
    )


def wjoin_query(spark: SparkSession, folder: Path, window: int) -> DataFrame:
    """Return the join as one W-join statement."""
    from handmade import joined

    return joined(spark, [source(spark, folder, stream) for stream in STREAMS], window)


SYSTEMS = {
    "wjoin": System("wjoin", wjoin_query, {**_ROCKSDB}),
    "hdfs": System("Spark chain, HDFS-backed store", spark_chain),
    "rocksdb": System("Spark chain, RocksDB", spark_chain, _ROCKSDB),
    "tuned": System("Spark chain, RocksDB, changelog, join format 4", spark_chain, _TUNED),
}
