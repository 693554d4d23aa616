"""What a Spark session needs for wjoin."""

import os
import sys

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from wjoin.grammar.errors import WJoinError
from wjoin.spark.extensions import COLUMNS, EXTENSIONS, STATEMENTS

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

SESSION_SETTINGS = {
    # transformWithState keeps its state in RocksDB only.
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    # Uploads what changed instead of whole snapshots at every commit.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Batches between the JVM and Python that fit into memory also where rows, or blocks of them, are wide.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "512",
    # Else Spark plans each micro-batch again between its two jobs, and a join gains nothing by that: it has a
    # task for each worker. Before 4.1 Spark planned the micro-batches of all streams once.
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
}
"""Runtime settings that wjoin sets where the session has not set them itself."""

SETTINGS_OF_ROWS = {
    # Without a limit: Spark would measure a batch after each row, half of what reading the row takes.
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
}
"""Those of a session that sends Python rows, not blocks of columns (``COLUMNS``)."""


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Set on a SparkSession builder what wjoin needs, and return the builder.

    Spark's Python workers use the interpreter of this process, unless ``PYSPARK_PYTHON`` says
    another. Settings given to the builder afterwards win.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for name, value in SESSION_SETTINGS.items():
        builder = builder.config(name, value)
    return builder.config("spark.pyspark.python", os.environ["PYSPARK_PYTHON"])


def prepare(spark: SparkSession) -> None:
    """Set on a running session what it can still be given and has not set itself.

    In a file of a declarative pipeline nothing can be set: there the specification must say it.
    """
    extended = set(str(spark.conf.get(EXTENSIONS, "")).split(",")) & {COLUMNS, STATEMENTS}
    for name, value in {**SESSION_SETTINGS, **({} if extended else SETTINGS_OF_ROWS)}.items():
        if not _set_by_user(spark, name):
            try:
                spark.conf.set(name, value)
            except PySparkException as error:
                if not in_pipeline(error):
                    raise


def in_pipeline(error: PySparkException) -> bool:
    """Return whether Spark refused to change a session because a declarative pipeline is being defined."""
    return "SESSION_MUTATION_IN_DECLARATIVE_PIPELINE" in str(error)


def _set_by_user(spark: SparkSession, name: str) -> bool:
    # Spark names the default in the description of the setting only, so the value that an
    # untouched session reports is compared.
    defaults = {
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": None,
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        "spark.sql.adaptive.streaming.stateless.enabled": "true",
        # Spark shows sizes with their unit.
        "spark.sql.execution.arrow.maxBytesPerBatch": "67108864b",
    }
    return spark.conf.get(name, None) not in (None, defaults[name])


def require_streaming(spark: SparkSession) -> None:
    """Refuse settings under which a streaming join cannot run, or would lose rows.

    Raises WJoinError WJ605.
    """
    provider = spark.conf.get("spark.sql.streaming.stateStore.providerClass", "")
    if provider != ROCKSDB:
        raise WJoinError(
            "WJ605",
            f"a streaming join needs the RocksDB state store, and this session has {provider}",
            help=f"spark.conf.set('spark.sql.streaming.stateStore.providerClass', '{ROCKSDB}')",
        )
    multiple = "spark.sql.streaming.statefulOperator.allowMultiple"
    if str(spark.conf.get(multiple, "true")).lower() == "false":
        raise WJoinError(
            "WJ605",
            f"{multiple} is false: Spark then drops rows between stateful operators",
            help=f"spark.conf.unset('{multiple}')",
        )


def require_operator(rows: DataFrame) -> None:
    """Refuse a stateful operator in Python to a session that has none. Raises WJoinError WJ606."""
    if not hasattr(rows.groupBy(), "transformWithStateInPandas"):
        raise WJoinError(
            "WJ606",
            "Spark Connect clients can run a streaming join from Spark 4.1 on, "
            f"and this one is {rows.sparkSession.version}",
            help="use the hint PLAN(NATIVE), or let the server plan its clients' statements: "
            f"set {EXTENSIONS} = {STATEMENTS} there",
        )
