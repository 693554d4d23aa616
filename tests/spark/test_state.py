"""What wjoin takes for granted of ``transformWithState``: its calls, and what of a state survives."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark import TaskContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from wjoin.executor.spark.processor import JoinProcessor
from wjoin.executor.workers import worker_ids
from wjoin.settings.options import SESSION_SETTINGS

pytestmark = [pytest.mark.long, pytest.mark.core]

ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"

CALLS = "worker INT, attempt STRING, called INT, rows INT, before STRING, place INT, kinds STRING"
WORKERS = worker_ids(2)
ROWS = 25
LEAST = -(1 << 62)
COLUMNS = (
    "worker",
    "CAST('x' AS BINARY) AS block",
    "CAST(NULL AS BINARY) AS nothing",
    f"array(worker, CAST({LEAST} AS BIGINT) - 1) AS counts",
    "CAST(NULL AS ARRAY<BIGINT>) AS uncounted",
)


class Notes(StatefulProcessor):
    """Tells what it is called with; its state holds the number of the call, and the attempt that wrote it."""

    def __init__(self, attempt: str, folder: Path) -> None:
        self._attempt = attempt
        self._folder = folder

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getMapState("state", "name STRING", "data BINARY")
        context = TaskContext.get()
        where = "driver" if context is None else "task"
        (self._folder / f"init-{where}-{os.getpid()}").touch()

    def handleInputRows(  # noqa: N802 (Spark's name)
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803 (Spark's name)
    ) -> Iterator[pd.DataFrame]:
        frames = list(rows)
        stored = self._state.getValue(("count",))
        before = "" if stored is None else bytes(stored[0]).decode()
        called = 1 + (int(before.split()[0]) if before else 0)
        self._state.updateValue(("count",), (f"{called} {self._attempt}".encode(),))
        self._state.updateValue((str(called),), (b"\0" * 3,))
        self._state.removeKey((str(called - 1),))
        assert self._state.getValue((str(called - 1),)) is None
        first = frames[0].to_dict("records")[0]
        kinds = [type(first[each]).__name__ for each in ("block", "nothing", "counts", "uncounted")]
        kinds += [str(int(each)) for each in first["counts"]]
        yield pd.DataFrame(columns=[each.split()[0] for each in CALLS.split(", ")])
        context = TaskContext.get()
        yield pd.DataFrame(
            {
                "worker": [int(key[0])],
                "attempt": [self._attempt],
                "called": [called],
                "rows": [sum(map(len, frames))],
                "before": [before],
                "place": [-1 if context is None else context.partitionId()],
                "kinds": [" ".join(kinds)],
            }
        )

    def close(self) -> None:
        pass


class Noted:
    """A query whose operator is called with ``ROWS`` rows of each worker in every micro-batch."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root = spark, root
        (root / "in").mkdir()

    def run(self, attempt: str, files: int) -> None:
        """Add files, each a micro-batch, and work them off."""
        for _ in range(files):
            number = len(list((self.root / "in").iterdir()))
            rows = [json.dumps({"worker": worker}) for worker in WORKERS for _ in range(ROWS)]
            path = self.root / "in" / str(number)
            path.write_text("\n".join(rows) + "\n")
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        reader = self.spark.readStream.schema("worker INT").option("maxFilesPerTrigger", 1)
        rows = reader.json(str(self.root / "in")).selectExpr(*COLUMNS)
        noted = rows.groupBy("worker").transformWithStateInPandas(
            Notes(attempt, self.root), CALLS, "append", "none"
        )
        writer = noted.writeStream.format("json").option("checkpointLocation", str(self.root / "checkpoint"))
        writer.trigger(availableNow=True).start(str(self.root / f"out-{attempt}")).awaitTermination()

    def forget_last_commit(self) -> None:
        """Leave the checkpoint as a crash does, after the state was written and before the commit."""
        commits = self.root / "checkpoint" / "commits"
        last = max(
            (path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name)
        )
        last.unlink()
        last.with_name(f".{last.name}.crc").unlink(missing_ok=True)

    def calls(self, attempt: str) -> list[dict[str, Any]]:
        """What the calls of an attempt told, in the order of the micro-batches."""
        # Its list begins where the attempt did, and Spark misses those before.
        shutil.rmtree(self.root / f"out-{attempt}" / "_spark_metadata", ignore_errors=True)
        rows = self.spark.read.schema(CALLS).json(str(self.root / f"out-{attempt}")).collect()
        return sorted((row.asDict() for row in rows), key=lambda row: (row["worker"], row["called"]))


@pytest.fixture(scope="module")
def noted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Noted:
    """Two micro-batches, of which the second was repeated by another attempt, and a third.

    Frames have 10 rows at the most.
    """
    spark.conf.set(ARROW_ROWS, "10")
    noted = Noted(spark, tmp_path_factory.mktemp("noted"))
    try:
        noted.run("first", 2)
        noted.forget_last_commit()
        noted.run("second", 1)
    finally:
        spark.conf.set(ARROW_ROWS, SESSION_SETTINGS[ARROW_ROWS])
    return noted


def test_each_worker_is_called_once_a_micro_batch_with_all_its_rows(noted: Noted) -> None:
    """Rests on it: ``JoinProcessor`` (executor/spark/processor.py) is one step of the join for each
    micro-batch.

    Called twice it would judge late rows by a newer watermark, and combinations would depend on the cut.
    """
    found = [(call["worker"], call["called"], call["rows"]) for call in noted.calls("first")]
    assert found == [(worker, number, ROWS) for worker in WORKERS for number in (1, 2)]


def test_workers_lie_in_the_partitions_that_the_hash_tells(noted: Noted) -> None:
    """Rests on it: executor/workers.py, as tests/spark/test_workers.py tells."""
    places = {call["worker"]: call["place"] for call in noted.calls("first")}
    assert sorted(places.values()) == [0, 1]


def test_bytes_come_as_bytes_arrays_as_numbers_and_null_as_none(noted: Noted) -> None:
    """Rests on it: messages (executor/spark/messages.py) have a block or counts; the other one is None.

    Numbers of an array beyond 2^53 would be others if they came as floats.
    """
    for call in noted.calls("first"):
        assert call["kinds"] == f"bytes NoneType ndarray NoneType {call['worker']} {LEAST - 1}"


def test_a_repeated_micro_batch_starts_from_the_state_before_it(noted: Noted) -> None:
    """Rests on it: exactly once (executor/spark/operator.py): the step takes the manifest that it reads for
    that of the micro-batch before. Else what a dead attempt had stored would be joined once more.
    """
    repeated = [call for call in noted.calls("second") if call["called"] == 2]
    assert [call["before"] for call in repeated] == ["1 first", "1 first"]


def test_after_a_repeated_micro_batch_the_state_is_that_of_one_attempt(noted: Noted) -> None:
    """Rests on it: slices have the same names in every attempt (executor/state/manifest.py).

    Which attempt it is Spark does not say; with the same names and rows it makes no difference.
    """
    after = [call["before"] for call in noted.calls("second") if call["called"] == 3]
    assert len(after) == 2
    assert set(after) <= {"2 first", "2 second"}


def test_the_entries_of_a_state_can_be_read(noted: Noted, spark: SparkSession) -> None:
    """Rests on it: ``wjoin checkpoint repartition`` reads slices (executor/spark/moved_state.py)."""
    reader = spark.read.format("statestore").option("operatorId", 0).option("stateVarName", "state")
    rows = reader.load(str(noted.root / "checkpoint")).select(
        "key.worker", "user_map_key.name", "user_map_value.data"
    )
    assert {(row.worker, row.name, bytes(row.data)[:1]) for row in rows.collect()} == {
        (worker, *entry) for worker in WORKERS for entry in (("count", b"3"), ("3", b"\0"))
    }


def test_the_number_of_a_state_is_in_the_names_of_its_files_alone(
    session: Any, spark: SparkSession, tmp_path: Path
) -> None:
    """Rests on it: ``adopt_state`` (wjoin/checkpoints/spark_log.py), which gives state that a query of one
    micro-batch has written the number of another query's.
    """
    spark.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "false")
    spark.conf.set("spark.sql.streaming.stateStore.checkpointFormatVersion", "1")
    noted = Noted(spark, tmp_path)
    noted.run("first", 1)
    checkpoint = tmp_path / "checkpoint"
    renamed = [("commits/0", "commits/7"), ("state/0/_metadata/v2/0", "state/0/_metadata/v2/7")]
    renamed += [(f"state/0/{place}/1.zip", f"state/0/{place}/8.zip") for place in range(2)]
    for name, other in (*renamed, ("offsets/0", "offsets/6")):
        (checkpoint / name).rename(checkpoint / other)
    shutil.copy(checkpoint / "offsets" / "6", checkpoint / "offsets" / "7")
    noted.run("second", 1)
    assert [(call["called"], call["before"]) for call in noted.calls("second")] == [(2, "1 first")] * 2
    assert (checkpoint / "commits" / "8").exists()


def test_the_state_is_opened_at_the_driver_too(noted: Noted) -> None:
    """Rests on it: ``JoinProcessor.init`` (executor/spark/processor.py) opens the state and reads nothing of
    it.

    At the driver Spark asks for the names and types of the state only.
    """
    assert list(noted.root.glob("init-driver-*"))
    assert list(noted.root.glob("init-task-*"))
    assert JoinProcessor.init is not StatefulProcessor.init


def test_it_needs_rocksdb(session: Any, spark: SparkSession, tmp_path: Path) -> None:
    """Rests on it: WJ605 (``require_streaming`` in wjoin/settings/options.py) refuses other stores."""
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    )
    # The second is how Spark 4.0 says it.
    refusal = r"STORE_BACKEND_NOT_SUPPORTED_FOR_TWS|MULTIPLE_COLUMN_FAMILIES"
    with pytest.raises(StreamingQueryException, match=refusal):
        Noted(spark, tmp_path).run("first", 1)


def test_one_operator_follows_another_within_a_micro_batch(
    session: Any, spark: SparkSession, tmp_path: Path
) -> None:
    """Rests on it: the stages of a join (executor/spark/compile.py), whose results come in the micro-batch
    that completes them, and the progress that a stage hands to the next one.
    """
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0").write_text('{"worker": 1}\n')
    rows = spark.readStream.schema("worker INT").json(str(tmp_path / "in"))
    for _ in range(2):
        blocks = rows.selectExpr(*COLUMNS)
        rows = blocks.groupBy("worker").transformWithStateInPandas(
            Notes("only", tmp_path), CALLS, "append", "none"
        )
    query = rows.writeStream.format("memory").queryName("chained").trigger(availableNow=True).start()
    query.awaitTermination()
    assert [report["batchId"] for report in query.recentProgress if report["numInputRows"]] == [0]
    assert [row.called for row in spark.table("chained").collect()] == [1]


def test_a_state_that_nobody_reads_to_its_end_is_not_committed(spark: SparkSession) -> None:
    """Rests on it: the hints of executor/spark/lookup.py.

    Beside an empty broadcast relation Spark reads nothing of the other side; a shuffled one reads it all.
    """
    left = spark.range(10).selectExpr("id AS k")
    right = spark.range(10).selectExpr("id AS k")
    shuffled = left.join(right.hint("shuffle_hash"), "k")._jdf.queryExecution().executedPlan().toString()
    assert "ShuffledHashJoin" in shuffled
    broadcast = (
        left.join(right.hint("broadcast"), left.k < right.k)._jdf.queryExecution().executedPlan().toString()
    )
    assert "BroadcastNestedLoopJoin" in broadcast
