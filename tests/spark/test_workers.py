"""What wjoin takes for granted of Spark's Python workers, and of the values that Spark hands to them."""

import gc
import os
import platform
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from wjoin.executor.spark.task import phase, unbroken
from wjoin.executor.workers import worker_ids
from wjoin.settings.options import SESSION_SETTINGS

pytestmark = [pytest.mark.long, pytest.mark.sparks]

ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


class Folders:
    """Tells Spark's local folders, from inside of a task."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            folders = os.environ["SPARK_LOCAL_DIRS"]
            there = all(Path(folder).is_dir() for folder in folders.split(","))
            yield pa.RecordBatch.from_pydict(
                {"folders": [folders] * batch.num_rows, "there": [there] * batch.num_rows}
            )


def test_workers_are_told_folders_of_their_application_to_write_to(spark: SparkSession) -> None:
    """Rests on it: executor/spark/cache.py. Else slices would be cached nowhere, or by each worker alone, or
    be left behind: Spark removes these folders when the application ends.

    It also needs that Spark takes a bound ``__call__`` as the function of ``mapInArrow``
    (executor/spark/compile.py).
    """
    found = spark.range(4, numPartitions=4).mapInArrow(Folders().__call__, "folders STRING, there BOOLEAN")
    ((folders, there),) = found.distinct().collect()
    assert there
    assert all(os.access(folder, os.W_OK) for folder in folders.split(","))
    assert all(Path(folder).name.startswith("blockmgr-") for folder in folders.split(","))


def test_a_worker_process_is_used_again_and_collects_garbage_after_each_task(spark: SparkSession) -> None:
    """Rests on it: executor/spark/task.py, which exempts the loaded modules once for a process.

    Were processes not used again, freezing would cost each task a collection of its own; if Spark collected
    no more, freezing would be for nothing.
    """

    def count(collected: list[int], phase: str, told: dict[str, int]) -> None:
        collected[told["generation"]] += phase == "stop"

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            # Kept with the process: a function comes to each task anew, with what it refers to.
            if "wjoin_collected" not in vars(gc):
                collected = vars(gc)["wjoin_collected"] = [0, 0, 0]
                gc.callbacks.append(partial(count, collected))
            whole = vars(gc)["wjoin_collected"][2]
            yield pa.RecordBatch.from_pydict({"pid": [os.getpid()], "whole": [whole]})

    found: dict[int, int] = {}
    # Idle processes stand in a queue, those of the tests before, too.
    for _ in range(50):
        for pid, whole in (
            spark.range(1, numPartitions=1).mapInArrow(look, "pid BIGINT, whole BIGINT").collect()
        ):
            if pid in found:
                assert whole > found[pid]
                return
            found[pid] = whole
    pytest.fail(f"all tasks ran in processes of their own: {found}")


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc has mallopt; with others nothing is set"
)
def test_a_worker_keeps_the_memory_that_numpy_frees(spark: SparkSession) -> None:
    """Else the system clears the pages of every array anew, in any session: 1,000 pages for each of these."""

    @phase
    def faults(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            ones = np.ones(1 << 19)
            for _ in range(20):
                ones = ones + 1
            after = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            yield pa.RecordBatch.from_pydict({"faults": [after - before]})

    rows = spark.range(1, numPartitions=1).mapInArrow(faults, "faults BIGINT").collect()
    assert rows[0].faults < 5_000


TYPES = {
    "true": pa.bool_(),
    "1Y": pa.int8(),
    "1S": pa.int16(),
    "1": pa.int32(),
    "1L": pa.int64(),
    "1F": pa.float32(),
    "1D": pa.float64(),
    "1.5BD": pa.decimal128(2, 1),
    "DATE '2026-01-01'": pa.date32(),
    "TIMESTAMP '2026-01-01'": pa.timestamp("us", tz="Asia/Kathmandu"),
    "TIMESTAMP_NTZ '2026-01-01'": pa.timestamp("us"),
    "INTERVAL 1 SECOND": pa.duration("us"),
    "'a'": pa.string(),
    "X'00'": pa.binary(),
    "array(1)": pa.list_(pa.field("element", pa.int32(), nullable=False)),
}


def test_arrow_types_of_the_columns_that_a_worker_gets(spark: SparkSession) -> None:
    """Rests on it: executor/spark/pack.py takes times and codes as int64 without a copy, and a block's
    columns are stored with the types that they come with. Another type would be another state format.
    """

    def kinds(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"kind": [str(field.type) for field in batch.schema]})

    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    try:
        rows = spark.range(1).selectExpr(*(f"{value} AS c{n}" for n, value in enumerate(TYPES)))
        found = [row.kind for row in rows.mapInArrow(kinds, "kind STRING").collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert dict(zip(TYPES, found, strict=True)) == {value: str(kind) for value, kind in TYPES.items()}


def test_timestamps_come_back_in_any_time_zone_of_arrow(spark: SparkSession) -> None:
    """Rests on it: executor/spark/unpack.py gives times in UTC, whatever the session's time zone is."""

    def times(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"ts": pa.array([1_000_000], pa.timestamp("us", tz="UTC"))})

    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    try:
        rows = spark.range(1).mapInArrow(times, "ts TIMESTAMP").selectExpr("unix_micros(ts) AS us")
        assert rows.collect() == [(1_000_000,)]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_a_grouped_map_gets_the_whole_group_as_one_table(spark: SparkSession) -> None:
    """Rests on it: ``Operator.batch`` (executor/spark/operator.py). Else a worker would join parts of its
    rows.

    A plain function of one argument gets the table without its key.
    """
    spark.conf.set(ARROW_ROWS, "10")
    try:
        rows = spark.range(100).selectExpr("CAST(id % 2 AS INT) AS worker", "CAST('x' AS BINARY) AS block")
        counted = rows.groupBy("worker").applyInArrow(
            lambda group: pa.table({"kind": [type(group).__name__], "rows": [group.num_rows]}),
            "kind STRING, rows BIGINT",
        )
        assert counted.collect() == [("Table", 50), ("Table", 50)]
    finally:
        spark.conf.set(ARROW_ROWS, SESSION_SETTINGS[ARROW_ROWS])


@pytest.mark.parametrize("partitions", [1, 2, 3, 8, 200])
def test_every_partition_has_one_worker_by_sparks_hash(spark: SparkSession, partitions: int) -> None:
    """Rests on it: ``worker_ids`` (executor/workers.py), which computes Murmur3 with the seed 42 itself.

    Else two workers would share a partition, and others would be idle.
    """
    ids = worker_ids(partitions)
    rows = spark.createDataFrame([(number,) for number in ids], "id INT")
    found = rows.selectExpr(f"pmod(hash(id), {partitions}) AS partition").distinct().count()
    assert found == len(ids) == partitions
    assert ids[0] == 0


def test_an_int_is_grouped_by_murmur3_of_it(spark: SparkSession) -> None:
    """Rests on it: executor/workers.py, as the test above."""

    def place(group: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"worker": group["worker"], "place": [_partition()] * len(group)})

    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        ids = [*worker_ids(2), 4, 5, 6, 7]
        rows = spark.createDataFrame([(number,) for number in ids], "worker INT")
        grouped = rows.groupBy("worker").applyInPandas(place, "worker INT, place INT")
        found = grouped.selectExpr("place", "pmod(hash(worker), 2) AS computed").collect()
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    assert [row.place for row in found] == [row.computed for row in found]
    assert {row.place for row in found} == {0, 1}


def _partition() -> Any:
    context = TaskContext.get()
    return None if context is None else context.partitionId()


HASHES = {
    "'shop-1'": 6965241253666512222,
    "''": -7444071767201028348,
    "1.5BD": 3132713209420183794,
    "'a', 1L": -1010403264180844141,
}


@pytest.mark.parametrize("values", HASHES)
def test_xxhash64_gives_what_it_gave(spark: SparkSession, values: str) -> None:
    """Rests on it: the codes of keys (executor/spark/compile.py), which lie in checkpoints.

    Else rows of a state that an older Spark has written would no longer meet new ones.
    """
    assert spark.sql(f"SELECT xxhash64({values}) AS code").head() == (HASHES[values],)


@dataclass(frozen=True)
class Reader:
    """Tells in a file how many rows it has read, with or without making sure that these are all."""

    told: Path
    sure: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in unbroken(batches) if self.sure else batches:
            rows += batch.num_rows
            # Spark is ahead, and breaks off while some of what it has sent is not yet read.
            time.sleep(0.01)
        self.told.write_text(str(rows))
        yield batch


@pytest.mark.parametrize("sure", [False, True])
def test_rows_that_break_off_are_not_taken_for_all(spark: SparkSession, tmp_path: Path, sure: bool) -> None:
    """Rests on it: executor/spark/operator.py. Else a worker would keep a part of its new rows as the state
    of the micro-batch, and the next attempt would leave it at that: rows would be lost without a word."""
    rows = spark.range(400_000, numPartitions=1)
    broken = F.when(F.col("id") == 305_000, F.raise_error(F.lit("lost")).cast("long")).otherwise(F.col("id"))
    told = tmp_path / "told"
    read = Reader(told, sure).__call__
    spark.conf.set(ARROW_ROWS, "10000")
    try:
        rows.mapInArrow(read, "id BIGINT").collect()
        assert told.read_text() == "400000"
        told.unlink()
        with pytest.raises(PySparkException, match="lost"):
            rows.select(broken.alias("id")).mapInArrow(read, "id BIGINT").collect()
    finally:
        spark.conf.set(ARROW_ROWS, SESSION_SETTINGS[ARROW_ROWS])
    deadline = time.monotonic() + 2
    while not told.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert told.exists() != sure
    assert sure or 0 < int(told.read_text()) <= 305_000
