"""The same three-stream join, as wjoin runs it and as an expert chains Spark's own joins."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streams import DISORDER, STREAMS

import wjoin

DELAY = f"{DISORDER // 1_000_000} seconds"

_STORE = "spark.sql.streaming.stateStore"
_ROCKSDB = {
    f"{_STORE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
}
_TUNED = {
    **_ROCKSDB,
    f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    # Counting rows reads a key before it writes it; the number of rows in state is then unknown.
    f"{_STORE}.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.streaming.join.stateFormatVersion": "4",
}


@dataclass(frozen=True)
class System:
    """One way to run the join: its title, how its session starts, and its query."""

    title: str
    start: Callable[[Mapping[str, str]], SparkSession]
    query: Callable[[SparkSession, Path, int], DataFrame]
    settings: Mapping[str, str] = field(default_factory=dict)


def source(spark: SparkSession, folder: Path, stream: str) -> DataFrame:
    """Return a stream that reads one file a micro-batch."""
    files = spark.readStream.schema("id BIGINT, ts TIMESTAMP, payload STRING")
    return files.option("maxFilesPerTrigger", 1).parquet(str(folder / stream))


def plain_session(settings: Mapping[str, str]) -> SparkSession:
    """Start Spark with the given settings and nothing else."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def wjoin_session(settings: Mapping[str, str]) -> SparkSession:
    """Start the embedded Spark of wjoin."""
    return wjoin.connect(**settings).spark


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
    first = a.join(b, F.expr(f"a_id = b_id AND b_ts BETWEEN a_ts - {span} AND a_ts + {span}")).selectExpr(
        "a_id", "a_ts", "unix_micros(b_ts) AS b_micros", "a_payload", "b_payload"
    )
    near_both = (
        f"a_id = c_id AND c_ts BETWEEN a_ts - {span} AND a_ts + {span} "
        f"AND abs(unix_micros(c_ts) - b_micros) <= {window * 1_000_000}"
    )
    return first.join(c, F.expr(near_both)).selectExpr(
        "a_id AS id",
        "a_ts",
        "timestamp_micros(b_micros) AS b_ts",
        "c_ts",
        "a_payload",
        "b_payload",
        "c_payload",
    )


def wjoin_query(spark: SparkSession, folder: Path, window: int, hint: str = "") -> DataFrame:
    """Return the join as one W-join statement."""
    session = wjoin.connect(spark)
    for stream in STREAMS:
        session.stream(stream, source(spark, folder, stream), "ts", DELAY)
    return session.sql(
        f"""
        SELECT {hint} a.id, a.ts AS a_ts, b.ts AS b_ts, c.ts AS c_ts,
               a.payload AS a_payload, b.payload AS b_payload, c.payload AS c_payload
        FROM a, b, c WINDOW = :window
        WHERE a.id = b.id AND b.id = c.id
        """,
        window=f"{window} seconds",
    )


SYSTEMS = {
    "wjoin": System("wjoin", wjoin_session, wjoin_query),
    "native": System("wjoin, PLAN(NATIVE)", wjoin_session, partial(wjoin_query, hint="/*+ PLAN(NATIVE) */")),
    "hdfs": System("Spark chain, HDFS-backed", plain_session, spark_chain),
    "rocksdb": System("Spark chain, RocksDB", plain_session, spark_chain, _ROCKSDB),
    "tuned": System("Spark chain, RocksDB tuned", plain_session, spark_chain, _TUNED),
}
