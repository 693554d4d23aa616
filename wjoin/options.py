"""What a Spark session needs for wjoin."""

import os
import sys
import zipfile
from pathlib import Path

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from wjoin.grammar.errors import WJoinError

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

SESSION_SETTINGS = {
    # transformWithState keeps its state in RocksDB only.
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    # Uploads what changed instead of whole snapshots at every commit.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Fewer, larger batches between the JVM and Python.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "262144",
    # Of wide rows, and of blocks of rows, so many would be more than fits into memory.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(1 << 26),
}
"""Runtime settings that wjoin sets where the session has not set them itself."""

_EMBEDDED_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    # The shuffle of a local Spark crosses no network.
    "spark.shuffle.compress": "false",
    # Throughput counts here; on few cores the concurrent threads of G1 compete with the tasks.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
}
"""Further settings of the local Spark that ``connect()`` starts."""

_CHECKPOINT_MANAGER = "FileSystemBasedCheckpointFileManager"


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
    for name, value in SESSION_SETTINGS.items():
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
        # As Spark 4.1 has it; it shows sizes with their unit.
        "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647b",
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
            f"the state store of this session is {provider}, and a streaming join needs RocksDB",
            help=f"spark.conf.set('spark.sql.streaming.stateStore.providerClass', '{ROCKSDB}')",
        )
    multiple = "spark.sql.streaming.statefulOperator.allowMultiple"
    if str(spark.conf.get(multiple, "true")).lower() == "false":
        raise WJoinError(
            "WJ605",
            f"{multiple} is false: Spark then drops rows between stateful operators",
            help=f"spark.conf.unset('{multiple}')",
        )


def embedded_settings() -> dict[str, str]:
    """Return the further settings of the local Spark that ``connect()`` starts, by the Spark installed.

    Hadoop starts a process for every permission that it sets on a local file, far fewer by its
    FileSystem than by its FileContext, Spark's first choice; both rename files atomically. By its
    FileSystem, what a first attempt wrote of a version of the state is kept when the attempt is
    repeated: slices therefore have the same names in both (see ``executor.state.manifest``).
    """
    settings = dict(_EMBEDDED_SETTINGS)
    settings["spark.driver.memory"] = _driver_memory()
    for jar in (Path(pyspark.__file__).parent / "jars").glob("spark-sql_*.jar"):
        with zipfile.ZipFile(jar) as classes:
            for name in classes.namelist():
                if name.endswith(f"/{_CHECKPOINT_MANAGER}.class"):
                    manager = name.removesuffix(".class").replace("/", ".")
                    settings["spark.sql.streaming.checkpointFileManagerClass"] = manager
    return settings


def _driver_memory() -> str:
    """Return the memory of an embedded driver: a quarter of the machine's, 1 to 8 GiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{max(1, min(8, total // 4 // 1024**3))}g"
