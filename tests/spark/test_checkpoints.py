"""What wjoin takes for granted of Spark's checkpoints, of its sources of files and of its sinks of files."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wjoin.checkpoints.committed import committed_files
from wjoin.measured.beside import Beside, exists

pytestmark = [pytest.mark.long, pytest.mark.sparks]


@pytest.fixture(autouse=True)
def _clean(session: Any) -> None:
    """Leave nothing in the shared Spark."""


def write(folder: Path, name: str, *ids: int, made: int = 1_700_000_000) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("".join(json.dumps({"id": number}) + "\n" for number in ids))
    os.utime(path, (made, made))


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", 1).json(str(folder))


def run(frame: DataFrame, root: Path, out: str = "out", checkpoint: str = "checkpoint") -> list[Any]:
    writer = frame.writeStream.format("json").option("checkpointLocation", str(root / checkpoint))
    query = writer.trigger(availableNow=True).start(str(root / out))
    query.awaitTermination()
    return list(query.recentProgress)


def test_a_checkpoint_tells_that_it_has_begun_and_what_is_committed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Rests on it: ``Beside.begun`` and ``Beside.committed`` (wjoin/measured/beside.py), by which the first
    start of a query is told from others: its sequence of stages is chosen, its identity written, WJ609 and
    WJ611 are judged.
    """
    beside = Beside(spark, str(tmp_path / "checkpoint"))
    assert not beside.begun()
    write(tmp_path / "in", "0", 1)
    run(stream(spark, tmp_path / "in"), tmp_path)
    found = {path.name for path in (tmp_path / "checkpoint").iterdir()}
    assert {"metadata", "offsets", "commits", "sources"} <= found
    assert (tmp_path / "checkpoint" / "commits" / "0").is_file()
    assert beside.begun()
    assert beside.committed()


def test_spark_leaves_a_folder_of_others_in_a_checkpoint_alone(spark: SparkSession, tmp_path: Path) -> None:
    """Rests on it: wjoin/measured/beside.py keeps its texts in such a folder, before Spark has written
    anything there.
    """
    beside = Beside(spark, str(tmp_path / "checkpoint"))
    beside.write("words", 1, ["one"])
    write(tmp_path / "in", "0", 1)
    run(stream(spark, tmp_path / "in"), tmp_path)
    beside.write("words", 2, ["two"])
    write(tmp_path / "in", "1", 2)
    run(stream(spark, tmp_path / "in"), tmp_path)
    assert beside.read("words") == (2, ["two"])
    assert spark.read.json(str(tmp_path / "out")).count() == 2


def test_sources_have_the_numbers_of_their_places_in_the_plan(spark: SparkSession, tmp_path: Path) -> None:
    """Rests on it: the rule of planner/choose/layouts.py, that the stages of a query keep their sequence for
    the life of its checkpoint: in another one Spark would give a stream the offsets of its neighbour.
    """
    write(tmp_path / "first", "0", 1)
    write(tmp_path / "second", "0", 2)
    run(stream(spark, tmp_path / "second").union(stream(spark, tmp_path / "first")), tmp_path)
    sources = [(tmp_path / "checkpoint" / "sources" / number / "0").read_text() for number in "01"]
    assert ["/second/" in sources[0], "/first/" in sources[1]] == [True, True]


def test_files_come_in_the_order_of_their_modification(spark: SparkSession, tmp_path: Path) -> None:
    """Rests on it: executor/spark/arrival.py (disorder), wjoin/testing/harness.py (cuts into micro-
    batches).
    """
    for name, number, made in (("a", 3, 30), ("b", 1, 10), ("c", 2, 20)):
        write(tmp_path / "in", name, number, made=1_700_000_000 + made)
    run(stream(spark, tmp_path / "in"), tmp_path)
    batches = [(tmp_path / "checkpoint" / "sources" / "0" / number).read_text() for number in "012"]
    assert [name for batch, name in zip(batches, "bca", strict=True) if f"/in/{name}" in batch] == [
        "b",
        "c",
        "a",
    ]


def test_files_have_a_hidden_column_that_tells_the_place_of_a_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Rests on it: ``order_of`` (executor/spark/arrival.py), for the disorder that ANALYZE STREAM
    measures.
    """
    write(tmp_path / "in", "0", 1, made=1_700_000_000)
    rows = stream(spark, tmp_path / "in")
    hidden = rows.metadataColumn("_metadata")
    place = rows.select(
        hidden.getField("file_path").alias("name"),
        F.unix_micros(hidden.getField("file_modification_time")).alias("made"),
        hidden.getField("file_block_start").alias("start"),
    )
    run(place, tmp_path)
    (found,) = spark.read.json(str(tmp_path / "out")).collect()
    assert found.name.endswith(f"{tmp_path}/in/0")
    assert (found.made, found.start) == (1_700_000_000_000_000, 0)


def test_other_sources_have_no_such_column(spark: SparkSession) -> None:
    """Rests on it: ``order_of`` (executor/spark/arrival.py), which then claims no order."""
    rates = spark.readStream.format("rate").load()
    with pytest.raises(AnalysisException):
        rates.select(rates.metadataColumn("_metadata").getField("file_path")).columns  # noqa: B018 (analyses)


def test_a_sink_of_files_lists_what_is_committed(spark: SparkSession, tmp_path: Path) -> None:
    """Rests on it: wjoin/checkpoints/committed.py, and ``_refuse_checkpoint`` (wjoin/statements/inserts.py).

    Lists of several micro-batches are put together now and then, under a name of their own.
    """
    spark.conf.set("spark.sql.streaming.fileSink.log.compactInterval", "2")
    for number in range(4):
        write(tmp_path / "in", str(number), number, made=1_700_000_000 + number)
    run(stream(spark, tmp_path / "in"), tmp_path)
    log = {path.name for path in (tmp_path / "out" / "_spark_metadata").iterdir() if path.name[0] != "."}
    assert {"2", "3.compact"} <= log
    lines = (tmp_path / "out" / "_spark_metadata" / "2").read_text().splitlines()
    assert lines[0] == "v1"
    entry = json.loads(lines[1])
    assert entry["action"] == "add"
    assert entry["path"].startswith(f"file://{tmp_path}/out/part-")
    (tmp_path / "out" / "part-of-a-crash.json").write_text('{"id": 99}\n')
    files = committed_files(tmp_path / "out")
    assert sorted(json.loads(Path(path).read_text())["id"] for path in files) == [0, 1, 2, 3]
    assert exists(spark, f"{tmp_path}/out/_spark_metadata/[0-9]*")
    assert not exists(spark, f"{tmp_path}/in/_spark_metadata/[0-9]*")


def test_a_sink_of_files_leaves_out_a_micro_batch_whose_number_it_has(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Rests on it: exactly once after a crash, and WJ609 and WJ611 (wjoin/statements/inserts.py)."""
    write(tmp_path / "in", "0", 1)
    run(stream(spark, tmp_path / "in"), tmp_path, checkpoint="one")
    run(stream(spark, tmp_path / "in"), tmp_path, checkpoint="two")
    assert spark.read.json(str(tmp_path / "out")).count() == 1


def test_a_path_that_is_not_there_is_told_by_a_condition(spark: SparkSession, tmp_path: Path) -> None:
    """Rests on it: ``exists`` (wjoin/measured/beside.py), by which a checkpoint that has begun is told from
    a new one.
    """
    path = str(tmp_path / "none")
    with pytest.raises(AnalysisException, match="PATH_NOT_FOUND"):
        spark.read.text([path, path]).columns  # noqa: B018 (to ask lists the paths)
    assert not exists(spark, path)
    assert exists(spark, str(tmp_path))
