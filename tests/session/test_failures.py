"""What fails in Spark reaches users with a code, a place and one line; never as a plan or a Java stack."""

from datetime import datetime
from pathlib import Path

import pytest

import wjoin
from wjoin.checkpoints.committed import committed_files
from wjoin.grammar.errors import WJoinError
from wjoin.progress import read

pytestmark = pytest.mark.thorough

JOIN = "FROM a A, b B WINDOW = 5 SECONDS WHERE A.k = B.k"


@pytest.fixture
def streams(session: wjoin.Session, tmp_path: Path) -> wjoin.Session:
    """Two streams of 20 rows, and a sink."""
    for name in "ab":
        rows = session.range(20).selectExpr(
            "id AS k", "concat('x', id) AS s", "timestamp_seconds(1700000000 + id) AS ts"
        )
        rows.write.parquet(str(tmp_path / name))
        session.sql(
            f"CREATE STREAM {name} (k BIGINT, s STRING, ts TIMESTAMP) USING parquet"
            f" OPTIONS (path '{tmp_path / name}') WATERMARK ts DELAY OF INTERVAL 30 SECONDS"
        )
    session.sql(f"CREATE SINK pairs USING parquet OPTIONS (path '{tmp_path / 'pairs'}')")
    return session


def refused(session: wjoin.Session, text: str, tmp_path: Path) -> WJoinError:
    with pytest.raises(WJoinError) as caught:
        session.run_script(text, checkpoint=str(tmp_path / "checkpoints"))
    shown = caught.value.message
    assert "\n" not in shown
    assert not any(inner in shown for inner in ("__wjoin", "_pyspark_", "calling o", "+-", "\tat "))
    return caught.value


@pytest.mark.parametrize(
    "statement",
    [
        f"INSERT INTO a SELECT A.k, A.s, A.ts {JOIN}",
        "INSERT INTO A VALUES (1, 'x', now())",
        "INSERT INTO a SELECT * FROM b",
    ],
)
def test_a_stream_takes_no_rows(streams: wjoin.Session, statement: str, tmp_path: Path) -> None:
    error = refused(streams, statement, tmp_path)
    assert (error.code, error.message) == ("WJ612", "a is a stream, not a sink")
    assert error.span is not None
    assert error.span.of(statement).lower() == "a"
    assert "CREATE SINK" in error.help


@pytest.mark.parametrize(
    ("statement", "code", "words", "marked"),
    [
        (f"INSERT INTO pairs SELECT A.k {JOIN} ORDER BY 1", "WJ607", "Sorting is not supported", "INSERT"),
        ("INSERT INTO nowhere SELECT 1", "WJ607", "TABLE_OR_VIEW_NOT_FOUND", "nowhere"),
        ("SELECT 1; SELEC 2", "WJ607", "PARSE_SYNTAX_ERROR", "SELEC"),
        ("INSERT OVERWRITE DIRECTORY '/proc/none' USING csv SELECT 1", "WJ704", "Mkdirs failed", "INSERT"),
        (
            f"INSERT INTO pairs SELECT cast(A.s AS INT) AS n {JOIN}",
            "WJ704",
            "into pairs failed: [CAST",
            "pairs",
        ),
        (
            f"EXPLAIN ANALYZE SELECT cast(A.s AS INT) AS n {JOIN}",
            "WJ704",
            "[CAST_INVALID_INPUT]",
            "SELECT cast",
        ),
        (f"EXPLAIN ANALYZE SELECT A.k {JOIN} ORDER BY 1", "WJ607", "Sorting is not supported", "SELECT A.k"),
    ],
)
@pytest.mark.long
def test_what_spark_raises_gets_a_code_and_a_place(
    streams: wjoin.Session, statement: str, code: str, words: str, marked: str, tmp_path: Path
) -> None:
    error = refused(streams, statement, tmp_path)
    assert error.code == code
    assert words in error.message
    assert error.span is not None
    assert error.span.of(statement).startswith(marked)
    if "pairs" in marked:
        assert str(tmp_path / "checkpoints" / "pairs") in error.help


@pytest.mark.long
def test_a_changed_statement_is_told_with_place_sink_and_remedy(
    streams: wjoin.Session, tmp_path: Path
) -> None:
    statement = f"INSERT INTO pairs SELECT A.k {JOIN}"
    streams.run_script(statement, checkpoint=str(tmp_path / "checkpoints"))
    assert len(committed_files(tmp_path / "pairs")) == len(list((tmp_path / "pairs").glob("*.parquet")))
    rows = streams.range(20, 30).selectExpr("id AS k", "'x' AS s", "timestamp_seconds(1700000000 + id) AS ts")
    rows.write.mode("append").parquet(str(tmp_path / "a"))
    error = refused(streams, statement.replace("5 SECONDS", "6 SECONDS"), tmp_path)
    assert error.code == "WJ702"
    assert "pairs" in error.message
    assert str(tmp_path / "checkpoints" / "pairs") in error.message
    assert error.help == "start from a new checkpoint folder, and a new folder for the results"
    assert error.span is not None
    assert error.span.of(statement) == "pairs"


@pytest.mark.long
def test_what_is_damaged_is_named_and_goes_on_where_it_can(streams: wjoin.Session, tmp_path: Path) -> None:
    insert = f"INSERT INTO pairs SELECT A.k {JOIN}"
    streams.run_script(insert, checkpoint=str(tmp_path / "checkpoints"))
    rows = streams.range(20, 30).selectExpr("id AS k", "'x' AS s", "timestamp_seconds(1700000000 + id) AS ts")
    for name in "ab":
        rows.coalesce(1).write.mode("append").parquet(str(tmp_path / name))
    damaged = max((tmp_path / "a").glob("*.parquet"), key=lambda each: each.stat().st_mtime_ns)
    (tmp_path / "a" / f".{damaged.name}.crc").unlink()
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:100])
    error = refused(streams, insert, tmp_path)
    assert (error.code, error.help.partition(", and")[0]) == (
        "WJ704",
        f"a source is damaged, the query is not: restore or repair {damaged}",
    )
    damaged.write_bytes(whole)
    log = tmp_path / "checkpoints" / "pairs" / "offsets" / "1"
    (log.parent / f".{log.name}.crc").unlink(missing_ok=True)
    kept = log.read_bytes()
    log.write_bytes(b"junk")
    error = refused(streams, insert, tmp_path)
    assert error.help.startswith(f"the checkpoint is damaged: restore {log} from a copy")
    log.write_bytes(kept)
    identity = tmp_path / "checkpoints" / "pairs" / "metadata"
    (identity.parent / ".metadata.crc").unlink(missing_ok=True)
    kept = identity.read_bytes()
    identity.write_bytes(b"junk")
    error = refused(streams, insert, tmp_path)
    assert error.help.startswith(f"the checkpoint is damaged: restore {identity} from a copy")
    identity.write_bytes(kept)
    # What the help says is so: no row is lost.
    streams.run_script(insert, checkpoint=str(tmp_path / "checkpoints"))
    found = streams.read.parquet(str(tmp_path / "pairs"))
    assert sorted(row.k for row in found.collect()) == list(range(30))


def test_a_trigger_says_how_often_micro_batches_start(streams: wjoin.Session, tmp_path: Path) -> None:
    insert = f"INSERT INTO pairs SELECT A.k {JOIN}"
    streams.sql("SET wjoin.trigger = '3 seconds'")
    (query,) = streams.run_script(insert, once=False, checkpoint=str(tmp_path / "checkpoints"))
    query.processAllAvailable()
    rows = streams.range(20, 30).selectExpr("id AS k", "'x' AS s", "timestamp_seconds(1700000000 + id) AS ts")
    rows.write.mode("append").parquet(str(tmp_path / "a"))
    query.processAllAvailable()
    second = next(each for each in map(read, query.recentProgress) if each.batch == 1 and not each.idle)
    query.stop()
    # Spark starts micro-batches at multiples of the time.
    assert datetime.fromisoformat(second.started).timestamp() % 3 < 1
    with pytest.raises(WJoinError, match=r"wjoin\.trigger is 'soon'"):
        streams.sql("SET wjoin.trigger = 'soon'")
    sink = "CREATE SINK other USING parquet OPTIONS (path 'x', trigger 'soon')"
    error = refused(streams, sink, tmp_path)
    assert error.span is not None
    assert error.span.of(sink) == "trigger"
    misspelt = "CREATE SINK other USING parquet OPTIONS (pth 'x')"
    error = refused(streams, misspelt, tmp_path)
    assert (error.code, error.help) == ("WJ603", "did you mean path?")
    with pytest.raises(WJoinError, match="event time that a micro-batch covers"):
        streams.sql("SET wjoin.interval = 'soon'")


def test_committed_files_of_a_running_query(streams: wjoin.Session, tmp_path: Path) -> None:
    import duckdb
    import pandas as pd

    (query,) = streams.run_script(
        f"INSERT INTO pairs SELECT A.k {JOIN}", once=False, checkpoint=str(tmp_path / "checkpoints")
    )
    query.processAllAvailable()
    # What a crash leaves behind is in the folder, and is no result.
    (tmp_path / "pairs" / "part-left.parquet").write_bytes(b"half a file")
    files = wjoin.committed_files(tmp_path / "pairs")
    assert query.isActive
    found = duckdb.sql("SELECT count(*) FROM read_parquet($files)", params={"files": files}).fetchall()
    assert found == [(20,)]
    assert sorted(pd.concat(map(pd.read_parquet, files))["k"]) == list(range(20))
    query.stop()
