"""The same join, as wjoin runs it and as an expert chains Spark's own joins; and what reading alone costs."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from pathlib import Path

from bare import bare_stages, mapped, shuffled
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streams import DISORDER, SCHEMA, Load

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
    """One way to run the join, or to read only: its title, how its session starts, and its query.

    ``passes``: whether its results are all rows that it reads.
    """

    title: str
    start: Callable[[Mapping[str, str]], SparkSession]
    query: Callable[[SparkSession, Path, Load], DataFrame]
    settings: Mapping[str, str] = field(default_factory=dict)
    joins: bool = True
    passes: bool = False


def source(spark: SparkSession, folder: Path, stream: str) -> DataFrame:
    """Return a stream that reads one file a micro-batch."""
    files = spark.readStream.schema(SCHEMA)
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


def spark_chain(spark: SparkSession, folder: Path, load: Load) -> DataFrame:
    """Return the join of three streams as a chain of two stream-stream joins, each bounded by time.

    An intermediate may have one event-time column only, so the time of b goes on as a number
    and its distance to c is an integer comparison.
    """
    if (load.streams, load.stages) != (3, 1):
        raise ValueError("the chain joins three streams on one key")
    a, b, c = (
        source(spark, folder, stream)
        .select(*(F.col(name).alias(f"{stream}_{name}") for name in ("id", "ts", "payload")))
        .withWatermark(f"{stream}_ts", DELAY)
        for stream in load.names
    )
    span = f"INTERVAL {load.window} SECONDS"
    first = a.join(b, F.expr(f"a_id = b_id AND b_ts BETWEEN a_ts - {span} AND a_ts + {span}")).selectExpr(
        "a_id", "a_ts", "unix_micros(b_ts) AS b_micros", "a_payload", "b_payload"
    )
    near_both = (
        f"a_id = c_id AND c_ts BETWEEN a_ts - {span} AND a_ts + {span} "
        f"AND abs(unix_micros(c_ts) - b_micros) <= {load.window * 1_000_000}"
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


def wjoin_query(
    spark: SparkSession, folder: Path, load: Load, hint: str = "", state: str = "files"
) -> DataFrame:
    """Return the join as one W-join statement; by default its state is where INSERT INTO has it."""
    session = wjoin.connect(spark)
    session.sql(f"SET wjoin.state = {state}")
    for stream in load.names:
        session.stream(stream, source(spark, folder, stream), "ts", DELAY)
    columns = [f"{stream}.{name} AS {stream}_{name}" for name in ("ts", "payload") for stream in load.names]
    return session.sql(
        f"""
        SELECT {hint} a.id, {", ".join(columns)}
        FROM {", ".join(load.names)} WINDOW = :window
        WHERE {" AND ".join(equalities(load))}
        """,
        window=f"{load.window} seconds",
    )


def equalities(load: Load) -> list[str]:
    """Return the conditions of a load between neighbouring streams."""
    pairs = list(zip(load.names, load.names[1:], strict=False))
    keys = ["id"] * len(pairs) if load.stages == 1 else ["id", *["other"] * (len(pairs) - 1)]
    return [f"{left}.{key} = {right}.{key}" for (left, right), key in zip(pairs, keys, strict=True)]


def read_only(spark: SparkSession, folder: Path, load: Load) -> DataFrame:
    """Return the rows of all streams: no shuffle, no state, every column that the join reads."""
    return reduce(DataFrame.union, _columns(spark, folder, load))


def layers(
    spark: SparkSession, folder: Path, load: Load, upto: Callable[[list[DataFrame]], DataFrame]
) -> DataFrame:
    """Return what Spark's own engine makes in the shape of a join, up to one of its layers."""
    return upto(list(_columns(spark, folder, load)))


def _columns(spark: SparkSession, folder: Path, load: Load) -> Iterator[DataFrame]:
    columns = ["id", *(["other"] if load.stages > 1 else []), "ts", "payload"]
    return (source(spark, folder, stream).select(*columns) for stream in load.names)


SYSTEMS = {
    "wjoin": System("wjoin", wjoin_session, wjoin_query),
    "store": System("wjoin, state in Spark's store", wjoin_session, partial(wjoin_query, state="spark")),
    "native": System("wjoin, PLAN(NATIVE)", wjoin_session, partial(wjoin_query, hint="/*+ PLAN(NATIVE) */")),
    "hdfs": System("Spark chain, HDFS-backed", plain_session, spark_chain),
    "rocksdb": System("Spark chain, RocksDB", plain_session, spark_chain, _ROCKSDB),
    "tuned": System("Spark chain, RocksDB tuned", plain_session, spark_chain, _TUNED),
    # With the settings that make micro-batches of wjoin cheaper, so that none of its gain is Spark's.
    "drop": System("Spark reading and dropping", wjoin_session, read_only, joins=False, passes=True),
    "mapped": System("+ an empty map in Python", wjoin_session, partial(layers, upto=mapped), joins=False),
    "shuffled": System(
        "+ a shuffle and a second map", wjoin_session, partial(layers, upto=shuffled), joins=False
    ),
    "bare": System("Spark's engine, no join", wjoin_session, partial(layers, upto=bare_stages), joins=False),
}
