"""How Spark starts and reaches its Python workers."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from wjoin.worker_sockets import LONGEST_FOLDER, socket_folder, socket_settings

SOCKETS = "spark.python.unix.domain.socket"


def in_worker(spark: SparkSession, asked: str) -> str:
    """What the environment of a Python worker says."""

    def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            value = os.environ.get(asked, "nothing")
            yield pa.RecordBatch.from_pydict({"value": [value] * batch.num_rows})

    row = spark.range(1).mapInArrow(answer, "value STRING").head()
    assert row is not None
    return str(row[0])


def test_workers_are_reached_without_tcp(spark: SparkSession) -> None:
    """Rests on it: wjoin/worker_sockets.py. Without it every task waits 40 ms."""
    if socket_settings(spark.version):
        assert in_worker(spark, "PYTHON_UNIX_DOMAIN_ENABLED").lower() == "true"
        assert Path(in_worker(spark, "PYTHON_WORKER_FACTORY_SOCK_DIR")) == socket_folder()
    else:
        assert in_worker(spark, "PYTHON_UNIX_DOMAIN_ENABLED") == "nothing"


def test_the_folder_of_sockets_has_the_length_that_spark_takes(spark: SparkSession) -> None:
    """Rests on it: wjoin/worker_sockets.py, which looks for a folder that Spark does not refuse."""
    entry = spark._jvm.org.apache.spark.internal.config.ConfigEntry.findEntry(f"{SOCKETS}.dir")
    assert (entry is not None) is bool(socket_settings(spark.version))
    if entry is not None:
        assert entry.rawValueConverter().apply("x" * LONGEST_FOLDER) == "x" * LONGEST_FOLDER
        with pytest.raises(IllegalArgumentException, match="lower than"):
            entry.rawValueConverter().apply("x" * (LONGEST_FOLDER + 1))
