"""How Spark starts and reaches its Python workers."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

import wjoin.executor.spark.workers.wjoin_daemon as daemon
from wjoin.executor.spark.sockets import LONGEST_FOLDER, socket_folder
from wjoin.spark.worker_daemon import start_daemon
from wjoin.spark.worker_sockets import socket_settings

pytestmark = [pytest.mark.long, pytest.mark.core]

SOCKETS = "spark.python.unix.domain.socket"


def in_worker(spark: SparkSession, asked: Callable[[], Any]) -> str:
    """What a function returns in a Python worker."""

    def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"value": [str(asked())] * batch.num_rows})

    row = spark.range(1).mapInArrow(answer, "value STRING").head()
    assert row is not None
    return str(row[0])


def test_workers_are_reached_without_tcp(spark: SparkSession) -> None:
    """Rests on it: wjoin/spark/worker_sockets.py. Without it every task waits 40 ms."""
    enabled = in_worker(spark, lambda: os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED"))
    folder = in_worker(spark, lambda: os.environ.get("PYTHON_WORKER_FACTORY_SOCK_DIR"))
    if socket_settings(spark.version):
        assert (enabled, folder) == ("True", str(socket_folder()))
    else:
        assert (enabled, folder) == ("None", "None")


def test_the_folder_of_sockets_has_the_length_that_spark_takes(spark: SparkSession) -> None:
    """Rests on it: wjoin/spark/worker_sockets.py, which looks for a folder that Spark does not refuse."""
    entry = spark._jvm.org.apache.spark.internal.config.ConfigEntry.findEntry(f"{SOCKETS}.dir")
    assert (entry is not None) is bool(socket_settings(spark.version))
    if entry is not None:
        assert entry.rawValueConverter().apply("x" * LONGEST_FOLDER) == "x" * LONGEST_FOLDER
        with pytest.raises(IllegalArgumentException, match="lower than"):
            entry.rawValueConverter().apply("x" * (LONGEST_FOLDER + 1))


def test_workers_find_the_compiled_pyspark_and_all_that_they_need(spark: SparkSession) -> None:
    """Rests on it: wjoin_daemon, which imports that once for all workers, from folders."""
    missing = "[name for name in names if name not in sys.modules]"
    names = list(daemon.PRELOADED)
    found = in_worker(spark, lambda: eval(missing, {"names": names, "sys": sys}))
    assert found == "[]"
    assert Path(in_worker(spark, lambda: pyspark.__file__)) == Path(pyspark.__file__)


class Parent(StatefulProcessor):
    """Tells the process that has forked its worker."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("state", "n BIGINT")

    def handleInputRows(  # noqa: N802 (Spark's name)
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803 (Spark's name)
    ) -> Iterator[pd.DataFrame]:
        list(rows)
        yield pd.DataFrame({"parent": [os.getppid()]})

    def close(self) -> None: ...


def test_all_kinds_of_workers_come_from_one_daemon(session: Any) -> None:
    """Rests on it: ``daemon_settings`` (wjoin/spark/worker_daemon.py): each daemon more imports all anew."""
    grouped = session.range(1).groupBy("id")
    # By value: a worker cannot import this module.
    with_state = grouped.transformWithStateInPandas(Parent(), "parent BIGINT", "append", "none").head()
    assert str(with_state[0]) == in_worker(session.spark, os.getppid)


class Forked(Parent):
    """Writes down, wherever it is initialized, what runs the process that has started that Python."""

    def __init__(self, file: str) -> None:
        self._file = file

    def init(self, handle: StatefulProcessorHandle) -> None:
        super().init(handle)
        with Path(self._file).open("a") as written:
            written.write(Path(f"/proc/{os.getppid()}/cmdline").read_text().replace("\0", " ") + "\n")


def test_the_python_of_a_start_is_forked(session: Any, tmp_path: Path) -> None:
    """Rests on it: executor/spark/warm.py. Without it Spark waits until PySpark is imported."""
    rows = session.readStream.format("rate").load().groupBy("value")
    grouped = rows.transformWithStateInPandas(Forked(f"{tmp_path}/by"), "parent BIGINT", "append", "none")
    query = grouped.writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    # On the driver, and in the tasks, whose workers are forked by the daemon.
    by = set((tmp_path / "by").read_text().splitlines())
    assert by and all("-m wjoin_warm" in each for each in by)


def test_what_is_started_early_ends_without_a_word(spark: SparkSession, capfd: Any) -> None:
    start_daemon(spark).join()
    assert capfd.readouterr() == ("", "")
