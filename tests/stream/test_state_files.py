"""Queries whose state is in files: those of INSERT INTO, and those that a user starts."""

import shutil
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

import wjoin
from tests.faults.child import COLUMNS
from tests.faults.killing import ORACLE, write_streams
from wjoin.grammar.errors import WJoinError

CAMERAS = ("camera1", "camera2", "camera3")

JOIN = """
SELECT A.row_id AS a, B.row_id AS b, C.row_id AS c FROM camera1 A, camera2 B, camera3 C
WINDOW (A, B) = 5 SECONDS AND WINDOW (B, C) = 10 SECONDS WHERE A.obj_id = B.obj_id AND B.obj_id = C.obj_id
"""


@pytest.fixture
def cameras(session: wjoin.Session, tmp_path: Path) -> wjoin.Session:
    """Three streams with four files each, and a sink."""
    write_streams(tmp_path, 4)
    for name in CAMERAS:
        session.sql(
            f"CREATE STREAM {name} {COLUMNS} USING parquet OPTIONS (path '{tmp_path}/{name}', "
            "maxFilesPerTrigger '1') WATERMARK ts DELAY OF INTERVAL 2 SECONDS"
        )
    session.sql(f"CREATE SINK found USING parquet OPTIONS (path '{tmp_path}/found')")
    return session


def expected(root: Path) -> Counter[Any]:
    return Counter(duckdb.sql(ORACLE.format(root=root)).fetchall())


def written(root: Path) -> Counter[Any]:
    files = wjoin.committed_files(root / "found")
    return Counter(tuple(row.values()) for row in pq.read_table(files).to_pylist())


def last_files(root: Path, what: str) -> None:
    """Take the last file of each stream away, or put it back."""
    for name in CAMERAS:
        there, away = root / name / "00003.parquet", root / f"{name}.parquet"
        there.rename(away) if what == "taken away" else away.rename(there)


def insert(session: wjoin.Session, root: Path, select: str = JOIN) -> None:
    session.run_script(f"INSERT INTO found {select}", once=True, checkpoint=str(root / "checkpoints"))


def start(rows: DataFrame, checkpoint: Path) -> Counter[Any]:
    """Run a query that a user starts, and return its rows."""
    found: Counter[Any] = Counter()

    def collect(batch: DataFrame, number: int) -> None:
        found.update(tuple(row) for row in batch.collect())

    writer = rows.writeStream.foreachBatch(collect).option("checkpointLocation", str(checkpoint))
    assert writer.trigger(availableNow=True).start().awaitTermination(120)
    return found


def test_an_insert_keeps_its_state_in_files_and_goes_on(cameras: wjoin.Session, tmp_path: Path) -> None:
    last_files(tmp_path, "taken away")
    context = cameras.spark._jsc.sc()
    before = context.dagScheduler().numTotalJobs()
    insert(cameras, tmp_path)
    jobs = map(context.statusStore().job, range(before, context.dagScheduler().numTotalJobs()))
    # Spark plans nothing again inside a micro-batch, which is one job.
    assert sum(job.name().startswith("start") for job in jobs) == 3
    checkpoint = tmp_path / "checkpoints" / "found"
    assert not (checkpoint / "state").exists()
    assert list((checkpoint / "wjoin" / "state" / "0" / "0").glob("*/2.manifest"))
    last_files(tmp_path, "put back")
    insert(cameras, tmp_path)
    assert written(tmp_path) == expected(tmp_path)


@pytest.mark.long
def test_explain_tells_where_the_state_is(cameras: wjoin.Session, tmp_path: Path) -> None:
    cameras.sql("SET wjoin.state = auto")

    def told() -> str:
        return cameras.explain(f"INSERT INTO found {JOIN}").splitlines()[-1]

    assert told() == "State: Spark's state store (the checkpoint is not known before the query starts)"
    cameras.sql(f"SET wjoin.checkpoint = '{tmp_path}/checkpoints'")
    assert told() == "State: files beside the checkpoint (all workers reach the folder of the checkpoint)"
    cameras.sql("SET wjoin.state = spark")
    assert told() == "State: Spark's state store (wjoin.state is spark)"
    cameras.sql("SET wjoin.state = files")
    assert told() == "State: files beside the checkpoint (wjoin.state is files)"
    with pytest.raises(WJoinError, match="WJ603"):
        cameras.sql("SET wjoin.state = disk")


@pytest.mark.long
@pytest.mark.parametrize("home", ["files", "auto"])
def test_a_query_that_keeps_no_state_goes_on(session: wjoin.Session, tmp_path: Path, home: str) -> None:
    """Of a stream and a table the join has no stages."""
    write_streams(tmp_path, 2)
    session.sql(f"SET wjoin.state = {home}")
    session.sql(
        f"CREATE STREAM camera1 {COLUMNS} USING parquet OPTIONS (path '{tmp_path}/camera1', "
        "maxFilesPerTrigger '1') WATERMARK ts DELAY OF INTERVAL 2 SECONDS"
    )
    session.sql(f"CREATE SINK found USING parquet OPTIONS (path '{tmp_path}/found')")
    session.spark.read.parquet(f"{tmp_path}/camera2").createOrReplaceTempView("seen")
    select = """SELECT A.row_id AS a, B.row_id AS b FROM camera1 A, seen B WINDOW (A, B) = 5 SECONDS
        WHERE A.obj_id = B.obj_id"""
    last, away = tmp_path / "camera1" / "00001.parquet", tmp_path / "00001.parquet"
    last.rename(away)
    insert(session, tmp_path, select)
    away.rename(last)
    insert(session, tmp_path, select)
    oracle = f"""SELECT a.row_id, b.row_id FROM read_parquet('{tmp_path}/camera1/*') a,
        read_parquet('{tmp_path}/camera2/*') b
        WHERE a.obj_id = b.obj_id AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 5000000"""
    assert written(tmp_path) == Counter(duckdb.sql(oracle).fetchall())


@pytest.mark.long
def test_a_join_that_a_statement_reads_twice_is_in_sparks_store(
    cameras: wjoin.Session, tmp_path: Path
) -> None:
    cameras.sql("SET wjoin.state = files")
    twice = f"WITH j AS ({JOIN}) SELECT * FROM j UNION ALL SELECT * FROM j"
    with pytest.raises(WJoinError, match="WJ720"):
        insert(cameras, tmp_path, twice)
    cameras.sql("SET wjoin.state = auto")
    insert(cameras, tmp_path, twice)
    assert (tmp_path / "checkpoints" / "found" / "state").is_dir()
    assert written(tmp_path) == expected(tmp_path) + expected(tmp_path)
    cameras.sql("SET wjoin.state = files")
    rows = cameras.sql(JOIN)
    with pytest.raises(
        StreamingQueryException, match=r"WJ720[\s\S]*the query reads one window join in several places"
    ):
        start(rows.union(rows), tmp_path / "other")
    with pytest.raises(StreamingQueryException, match=r"WJ720[\s\S]*in several places"):
        start(rows.union(cameras.sql(JOIN)), tmp_path / "another")


@pytest.mark.long
def test_queries_that_a_user_starts(cameras: wjoin.Session, tmp_path: Path) -> None:
    checkpoint = tmp_path / "own"
    last_files(tmp_path, "taken away")
    cameras.sql("SET wjoin.state = files")
    found = start(cameras.sql(JOIN), checkpoint)
    assert not (checkpoint / "state").exists()
    last_files(tmp_path, "put back")
    shutil.copytree(checkpoint, tmp_path / "copy")
    # The same join, otherwise planned, in another query with one of Spark's own operators above it.
    found += start(cameras.sql(JOIN.replace("SELECT", "SELECT /*+ BOUNDS(GCA) */", 1)), checkpoint)
    assert found == expected(tmp_path)
    folders = list((tmp_path / "copy" / "wjoin" / "state").glob("*/*/0"))
    shutil.rmtree(folders[0])
    with pytest.raises(StreamingQueryException, match=r"WJ719[\s\S]*cannot be read"):
        start(cameras.sql(JOIN), tmp_path / "copy")


@pytest.mark.long
def test_a_checkpoint_goes_on_where_its_state_is(cameras: wjoin.Session, tmp_path: Path) -> None:
    last_files(tmp_path, "taken away")
    for home in ("files", "spark"):
        cameras.sql(f"SET wjoin.state = {home}")
        start(cameras.sql(JOIN), tmp_path / home)
    last_files(tmp_path, "put back")
    cameras.sql("SET wjoin.state = files")
    # Spark compares the operators with those of the checkpoint before any task runs.
    with pytest.raises(StreamingQueryException, match=r"NOT_MATCH_IN_STATE_METADATA|WJ720"):
        start(cameras.sql(JOIN), tmp_path / "spark")
    cameras.sql("SET wjoin.state = spark")
    with pytest.raises(StreamingQueryException, match=r"MISSING_STATE|FAILED_TO_READ_OPERATOR|WJ720"):
        start(cameras.sql(JOIN), tmp_path / "files")


@pytest.mark.thorough
def test_a_checkpoint_that_is_copied_while_its_query_runs(cameras: wjoin.Session, tmp_path: Path) -> None:
    """A copy goes on as the query would have, or says what it lacks: it never loses or doubles a row."""
    cameras.sql("SET wjoin.state = files")
    shutil.rmtree(tmp_path / "camera1")
    shutil.rmtree(tmp_path / "camera2")
    shutil.rmtree(tmp_path / "camera3")
    write_streams(tmp_path, 24, 100)
    checkpoint, emitted, copies = tmp_path / "own", {}, []

    def collect(batch: DataFrame, number: int) -> None:
        emitted[number] = Counter(tuple(row) for row in batch.collect())

    def copy() -> None:
        for number in range(8):
            time.sleep(0.5)
            try:
                shutil.copytree(checkpoint, tmp_path / f"copy-{number}")
            except (shutil.Error, OSError):
                continue
            copies.append(tmp_path / f"copy-{number}")

    copying = threading.Thread(target=copy)
    writer = cameras.sql(JOIN).writeStream.foreachBatch(collect)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    copying.start()
    assert query.awaitTermination(180)
    copying.join()
    assert sum(emitted.values(), Counter()) == expected(tmp_path)
    went_on = 0
    for each in copies:
        done = [int(path.name) for path in (each / "commits").glob("*") if path.name.isdigit()]
        try:
            found = start(cameras.sql(JOIN), each)
        except StreamingQueryException as error:
            assert "WJ720" in str(error) or "WJ719" in str(error) or "CONCURRENT" in str(error), error
            continue
        went_on += 1
        later = (rows for number, rows in emitted.items() if number > max(done, default=-1))
        assert found == sum(later, Counter())
    print(f"{len(copies)} whole copies, {went_on} went on")
    assert copies
