"""Delays of streams: how they travel, who is warned, and that no row is dropped without a word."""

import datetime
import json
import os
import random
import re
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

import wjoin
from wjoin.executor.spark.once import collect_once
from wjoin.measured.followed import settle

pytestmark = pytest.mark.spark

ROWS = 400
"""Rows of each stream, one every 100 ms, out of order by less than two seconds."""


def iso(milliseconds: int) -> str:
    return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC).isoformat()


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Two streams as JSON files, with epoch milliseconds and the same time as a string."""
    chance = random.Random(7)
    made = {}
    for name in ("ma", "mb"):
        folder = made[name] = tmp_path / name
        folder.mkdir()
        rows = [(i, 1_714_564_800_000 + i * 100 + chance.randint(-900, 900)) for i in range(ROWS)]
        for number in range(4):
            chosen = rows[number * 100 : number * 100 + 100]
            lines = [json.dumps({"id": i, "t": t, "ts": iso(t)}) for i, t in chosen]
            path = folder / f"{number}.json"
            path.write_text("\n".join(lines))
            os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
    return made


def declare(session: wjoin.Session, folders: dict[str, Path], columns: str, watermark: str = "") -> None:
    for name, folder in folders.items():
        session.sql(
            f"CREATE STREAM {name} ({columns}) USING json OPTIONS (path '{folder}', maxFilesPerTrigger '1') "
            + watermark
        )


def results(session: wjoin.Session, statement: str) -> int:
    name = collect_once(session.sql(statement))
    settle()
    return session.spark.table(name).count()


JOIN = "SELECT A.id FROM {} A, {} B WINDOW = {} WHERE A.id = B.id"


@pytest.mark.long
def test_a_delay_does_not_travel_through_an_expression(
    session: wjoin.Session, folders: dict[str, Path]
) -> None:
    declare(session, folders, "id BIGINT, t BIGINT", "WATERMARK t DELAY OF 2000")
    for name in folders:
        session.sql(f"CREATE TEMP VIEW v{name} AS SELECT id, timestamp_millis(t) AS ts FROM {name}")
    with pytest.raises(wjoin.WJoinError, match="the delay of A by ts is unknown") as told:
        session.sql(JOIN.format("vma", "vmb", "2 SECONDS"))
    assert told.value.code == "WJ215"
    assert "vma WATERMARK ts DELAY OF INTERVAL" in told.value.help
    clause = "WATERMARK ts DELAY OF INTERVAL 2 SECONDS AS"
    statement = f"SELECT A.id FROM vma {clause} A, vmb {clause} B WINDOW = 2 SECONDS WHERE A.id = B.id"
    assert results(session, statement) == ROWS


@pytest.mark.long
def test_a_plain_view_of_a_stream_lives_in_the_session(
    session: wjoin.Session, folders: dict[str, Path]
) -> None:
    declare(session, folders, "id BIGINT, t BIGINT", "WATERMARK t DELAY OF 2000")
    for name in folders:
        session.sql(f"CREATE VIEW v{name} AS SELECT id, t AS at FROM {name} WHERE id >= 0")
    session.sql("CREATE VIEW IF NOT EXISTS vma AS SELECT id, t + 1 AS at FROM ma")
    session.sql("CREATE OR REPLACE VIEW w (id, at) AS SELECT id, t FROM ma")
    assert session.table("w").columns == ["id", "at"]
    explained = session.explain(JOIN.format("vma", "vmb", "2000"))
    assert "A = vma: event time at, delay 2000" in explained
    assert results(session, JOIN.format("vma", "vmb", "2000")) == ROWS
    with pytest.raises(wjoin.WJoinError, match="reads a stream, and a stream exists only in this session"):
        session.sql("CREATE VIEW default.v AS SELECT * FROM ma")


def test_a_view_that_names_a_stream_in_its_text_only_is_none_of_it(
    session: wjoin.Session, folders: dict[str, Path]
) -> None:
    declare(session, folders, "id BIGINT, ts TIMESTAMP", "WATERMARK ts DELAY OF INTERVAL 5 SECONDS")
    session.sql("CREATE TEMP VIEW v AS SELECT 1 AS id, TIMESTAMP '2024-05-01 12:00:00' AS ts, 'ma' AS ma")
    assert "v" not in session.declarations.streams
    session.sql("CREATE OR REPLACE TEMP VIEW ma AS SELECT 1 AS id, TIMESTAMP '2024-05-01 12:00:00' AS ts")
    assert "ma" not in session.declarations.streams


@pytest.mark.long
def test_a_view_made_outside_has_no_delay_that_could_be_assumed(
    session: wjoin.Session, folders: dict[str, Path]
) -> None:
    declare(session, folders, "id BIGINT, ts TIMESTAMP", "WATERMARK ts DELAY OF INTERVAL 2 SECONDS")
    session.spark.sql("CREATE TEMP VIEW by_spark AS TABLE ma")
    session.spark.sql("CREATE OR REPLACE GLOBAL TEMP VIEW by_all AS SELECT * FROM ma")
    session.table("ma").where("id >= 0").createOrReplaceTempView("by_python")
    session.sql("CREATE VIEW by_name AS SELECT * FROM IDENTIFIER(:name)", name="ma")
    session.sql("CREATE VIEW changed AS TABLE ma")
    session.sql("ALTER VIEW changed AS SELECT id, ts + INTERVAL 1 HOUR AS ts FROM ma")
    for name in ("by_spark", "global_temp.by_all", "by_python", "by_name", "changed", "IDENTIFIER('m'||'a')"):
        with pytest.raises(wjoin.WJoinError, match="the delay of A by ts") as told:
            session.explain(JOIN.format(name, "mb", "2 SECONDS"))
        assert told.value.code == "WJ215"
    session.sql("DROP VIEW global_temp.by_all")
    rows = session.readStream.schema("id BIGINT, ts TIMESTAMP").json(str(folders["ma"]))
    rows.createOrReplaceTempView("nobodys")
    with pytest.warns(wjoin.WJoinWarning, match="A has no declared delay") as warned:
        explained = session.explain(JOIN.format("nobodys", "mb", "2 SECONDS"))
    assert [each.message.code for each in warned] == ["WJ801"]
    assert "nobodys WATERMARK ts DELAY OF INTERVAL 10 SECONDS AS A" in str(warned[0].message)
    assert "delay 0 s (none declared)" in explained


def test_a_delay_comes_through_every_way_to_name_a_stream(
    session: wjoin.Session, folders: dict[str, Path]
) -> None:
    declare(session, folders, "id BIGINT, ts TIMESTAMP", "WATERMARK ts DELAY OF INTERVAL 2 SECONDS")
    session.sql("CREATE TEMPORARY VIEW v AS TABLE ma")
    session.sql("CREATE VIEW w AS FROM v |> WHERE id >= 0")
    names = ["v", "w", "`V`", "(TABLE ma)", "IDENTIFIER('ma')", "session.ma", "(FROM ma |> WHERE id >= 0)"]
    for name in names:
        assert ": event time ts, delay 2 s;" in session.explain(JOIN.format(name, "mb", "2 SECONDS")), name
    assert results(session, JOIN.format("(TABLE w)", "IDENTIFIER('mb')", "2 SECONDS")) == ROWS


@pytest.mark.long
def test_a_forgotten_watermark_is_told_and_so_are_its_late_rows(
    session: wjoin.Session, folders: dict[str, Path]
) -> None:
    declare(session, folders, "id BIGINT, ts TIMESTAMP")
    statement = JOIN.format("ma", "mb", "2 SECONDS")
    with pytest.warns(wjoin.WJoinWarning) as told:
        found = results(session, statement)
    codes = [each.message.code for each in told]
    assert codes[:2] == ["WJ801", "WJ801"]
    assert "CREATE STREAM ma … WATERMARK ts DELAY OF INTERVAL 10 SECONDS" in str(told[0].message)
    late = [str(each.message) for each in told if each.message.code == "WJ803"]
    dropped = re.search(r"dropped (\d+) late rows", late[-1])
    assert dropped is not None
    assert 0 < ROWS - found <= int(dropped[1])
    declare_again = "CREATE OR REPLACE STREAM {0} (id BIGINT, ts TIMESTAMP) USING json OPTIONS (path '{1}', "
    for name, folder in folders.items():
        session.sql(
            declare_again.format(name, folder)
            + "maxFilesPerTrigger '1') WATERMARK ts DELAY OF INTERVAL 2 SECONDS"
        )
    assert results(session, statement) == ROWS


def test_a_stream_from_python_without_a_delay_warns_once_with_the_argument(
    session: wjoin.Session, folders: dict[str, Path]
) -> None:
    for name, folder in folders.items():
        rows = session.readStream.schema("id BIGINT, ts TIMESTAMP").json(str(folder))
        session.stream(name, rows, delay=None if name == "ma" else "0 seconds")
    with pytest.warns(wjoin.WJoinWarning) as told:
        session.sql(JOIN.format("ma", "mb", "2 SECONDS"))
        session.sql(JOIN.format("ma", "mb", "3 SECONDS"))
    assert len(told) == 1
    assert "session.stream('ma', …, event_time='ts', delay='10 seconds')" in str(told[0].message)
    assert told[0].filename == __file__


@pytest.mark.long
def test_rows_without_an_event_time_are_told(session: wjoin.Session, folders: dict[str, Path]) -> None:
    (folders["ma"] / "9.json").write_text('{"id": 1, "ts": \n{"id": 2}\n')
    declare(session, folders, "id BIGINT, ts TIMESTAMP", "WATERMARK ts DELAY OF INTERVAL 2 SECONDS")
    with pytest.warns(wjoin.WJoinWarning, match=r"dropped 2 rows without an event time \(2 of A\)") as told:
        assert results(session, JOIN.format("ma", "mb", "2 SECONDS")) == ROWS
    assert {each.message.code for each in told} == {"WJ804"}


def test_streams_joined_without_a_window_are_told(session: wjoin.Session, folders: dict[str, Path]) -> None:
    declare(session, folders, "id BIGINT, ts TIMESTAMP", "WATERMARK ts DELAY OF INTERVAL 2 SECONDS")
    with pytest.warns(wjoin.WJoinWarning, match="A and B are joined without a window clause") as told:
        session.sql("SELECT A.id FROM ma A, mb B WHERE A.id = B.id")
    assert [each.message.code for each in told] == ["WJ802"]
    assert "WINDOW (A, B) = 10 SECONDS" in told[0].message.help
    session.sql("SELECT A.id FROM ma A WHERE A.id > 3")


@pytest.mark.long
def test_a_key_that_is_null_in_every_row_is_told(
    session: wjoin.Session, folders: dict[str, Path], tmp_path: Path
) -> None:
    declare(
        session, folders, "idd BIGINT, id BIGINT, ts TIMESTAMP", "WATERMARK ts DELAY OF INTERVAL 2 SECONDS"
    )
    session.sql(f"CREATE SINK out USING parquet OPTIONS (path '{tmp_path / 'out'}')")
    insert = "INSERT INTO out SELECT A.id FROM ma A, mb B WINDOW = 2 SECONDS WHERE A.idd = B.id"
    with pytest.warns(wjoin.WJoinWarning, match="the query out could join none of 400 rows of A") as told:
        session.run_script(insert, checkpoint=str(tmp_path / "checkpoints"))
    assert [each.message.code for each in told] == ["WJ806"]


WRITES = (
    "INSERT OVERWRITE ma VALUES (1, now())",
    "INSERT OVERWRITE TABLE ma SELECT 1, now()",
    "DELETE FROM ma WHERE id = 1",
    "UPDATE ma SET id = 2",
    "TRUNCATE TABLE ma",
    "MERGE INTO ma USING other ON ma.id = other.id WHEN MATCHED THEN DELETE",
    "merge with schema evolution into ma USING other ON ma.id = other.id WHEN MATCHED THEN DELETE",
    "INSERT WITH SCHEMA EVOLUTION INTO ma SELECT 1, now()",
    "INSERT WITH SCHEMA EVOLUTION OVERWRITE TABLE ma SELECT 1, now()",
    "WITH c AS (SELECT 1 AS id), d (id) AS (TABLE c) MERGE INTO ma USING d ON ma.id = d.id "
    "WHEN MATCHED THEN DELETE",
    "WITH c AS (SELECT 1) DELETE FROM ma ",
    "FROM other INSERT OVERWRITE ma SELECT id, now()",
)
READS = (
    "WITH c AS (SELECT 1 AS id) SELECT count(*) delete FROM ma ",
    "WITH c AS (SELECT 1 AS id) SELECT id update FROM ma ",
    "FROM ma SELECT id AS insert",
)
ENDLESS = (
    "CREATE TABLE t USING parquet AS {}",
    "CACHE TABLE t AS SELECT * FROM ma",
    "INSERT OVERWRITE DIRECTORY '/nowhere' USING parquet SELECT * FROM ma",
    "SET VAR n = (SELECT count(*) FROM ({}))",
    "DECLARE VARIABLE m BIGINT DEFAULT (SELECT count(*) FROM ({}))",
    "SELECT (SELECT count(*) FROM ({}))",
    "CREATE FUNCTION f() RETURNS BIGINT RETURN (SELECT count(*) FROM ma)",
    "BEGIN SELECT * FROM ma; END",
)
ONLY_READ = "its rows come from its source alone: write there, or INSERT INTO a sink"
CACHED = "a query reads a stream itself: CACHE TABLE is for tables"


def refused(session: wjoin.Session, statement: str, *, script: bool = False) -> wjoin.WJoinError:
    with pytest.raises(wjoin.WJoinError) as told:
        if script:
            session.run_script(statement)
        else:
            session.sql(statement)
    return told.value


def test_what_needs_all_rows_of_a_stream_is_told(session: wjoin.Session, folders: dict[str, Path]) -> None:
    declare(session, folders, "id BIGINT, ts TIMESTAMP", "WATERMARK ts DELAY OF INTERVAL 2 SECONDS")
    session.sql("DECLARE OR REPLACE VARIABLE n BIGINT")
    join = JOIN.format("ma", "mb", "2 SECONDS")
    for each in ENDLESS:
        for query in {"SELECT * FROM ma", join} if "{}" in each else {""}:
            told = refused(session, each.format(query))
            assert (told.code, told.span is None) == ("WJ621", False), told
            assert refused(session, each.format(query), script=True).code == "WJ621"
    # What a script does without its rows is Spark's.
    session.sql("BEGIN CREATE TEMPORARY VIEW w AS SELECT id FROM ma; END")
    assert session.sql("SELECT * FROM w").isStreaming
    session.sql("DROP TEMPORARY VARIABLE n")


def test_a_text_is_executed_as_a_statement_is(session: wjoin.Session, folders: dict[str, Path]) -> None:
    declare(session, folders, "id BIGINT, ts TIMESTAMP", "WATERMARK ts DELAY OF INTERVAL 2 SECONDS")
    join = JOIN.format("ma", "mb", "2 SECONDS")
    for text in (f"'{join}'", "'SELECT * ' || 'FROM ma'", ":x"):
        assert session.sql(f"EXECUTE IMMEDIATE {text}", x=join).isStreaming
    session.sql(f"DECLARE OR REPLACE VARIABLE query STRING DEFAULT '{join}'")
    assert session.sql("EXECUTE IMMEDIATE query").isStreaming
    session.sql("DECLARE OR REPLACE VARIABLE n INT")
    session.sql("EXECUTE IMMEDIATE 'SELECT ? + 1' INTO n USING 2")
    assert session.sql("SELECT n").first() == (3,)
    for statement in (f"'{join}' USING 1", f"'{join}' INTO n", f"'INSERT INTO nowhere {join}'"):
        told = refused(session, f"EXECUTE IMMEDIATE {statement}")
        assert (told.code, told.help) == ("WJ606", "run the statement itself")
    told = refused(session, f"EXECUTE IMMEDIATE '{join.replace('SECONDS', 'SECNDS')}'")
    assert told.code == "WJ103" and told.span is not None and told.span.of(told.text or "") == "SECNDS"
    with pytest.raises(AnalysisException):
        session.sql("EXECUTE IMMEDIATE 'SELECT nothing FROM ma'")
    session.sql("DROP TEMPORARY VARIABLE n")
    session.sql("DROP TEMPORARY VARIABLE query")


def test_a_stream_is_no_table_of_sparks(session: wjoin.Session, folders: dict[str, Path]) -> None:
    declare(session, folders, "id BIGINT, ts TIMESTAMP", "WATERMARK ts DELAY OF INTERVAL 2 SECONDS")
    session.sql("CREATE VIEW v AS TABLE ma")
    for statement, remedy in (
        ("DROP VIEW ma", "write DROP STREAM ma"),
        ("DROP VIEW IF EXISTS session.`MA`", "write DROP STREAM MA"),
        ("DROP TABLE ma", "write DROP STREAM ma"),
        ("DROP TABLE IF EXISTS ma PURGE", "write DROP STREAM ma"),
        ("ALTER TABLE ma RENAME TO other", "write CREATE OR REPLACE STREAM ma …"),
        ("ALTER VIEW ma RENAME TO other", "write CREATE OR REPLACE STREAM ma …"),
        ("ALTER VIEW ma AS SELECT 1 AS id", "write CREATE OR REPLACE STREAM ma …"),
        ("DROP STREAM v", "write DROP VIEW v"),
        ("DROP STREAM IF EXISTS v", "write DROP VIEW v"),
        ("DROP SINK IF EXISTS ma", "write DROP STREAM ma"),
        ("ANALYZE TABLE ma COMPUTE STATISTICS", "write ANALYZE STREAM ma"),
        ("ANALYZE TABLE v COMPUTE STATISTICS", "write ANALYZE STREAM v"),
        ("SHOW CREATE TABLE ma", "write SHOW CREATE STREAM ma, or DESCRIBE STREAM ma"),
        ("SHOW PARTITIONS v", "write SHOW CREATE STREAM v, or DESCRIBE STREAM v"),
        ("COMMENT ON TABLE ma IS 'x'", "a stream keeps no comment; write one on the table that it reads"),
        *((f"EXPLAIN {each}", ONLY_READ) for each in WRITES),
        ("EXPLAIN EXTENDED DELETE FROM ma", ONLY_READ),
        ("EXECUTE IMMEDIATE 'DELETE FROM ma'", ONLY_READ),
        *((each, ONLY_READ) for each in WRITES),
        *((each.replace(" ma ", " v ").replace("TABLE ma", "TABLE v"), ONLY_READ) for each in WRITES),
        ("CACHE LAZY TABLE ma", CACHED),
        ("CACHE TABLE v AS SELECT 1", CACHED),
    ):
        with pytest.raises(wjoin.WJoinError) as told:
            session.sql(statement)
        assert (told.value.code, told.value.help) == ("WJ602", remedy)
    for statement in (
        "WITH c AS (SELECT 1, now()) INSERT INTO ma TABLE c",
        "FROM other INSERT INTO ma SELECT id, now()",
    ):
        assert refused(session, statement).code == "WJ612"
    for statement in READS:
        assert session.sql(statement).isStreaming
    for statement in ("DESCRIBE ma", "SHOW COLUMNS IN ma"):
        assert [row[0] for row in session.sql(statement).collect()] == ["id", "ts"]
    for statement in ("REFRESH TABLE ma", "UNCACHE TABLE ma", "SHOW TBLPROPERTIES ma"):
        assert session.sql(statement).collect() == []
    told = refused(session, "SELECT 1; SELECT 2;\nDELETE FROM ma", script=True)
    assert told.span is not None and told.text is not None and told.span.start == told.text.index("ma")
    session.sql("DROP VIEW v")
    session.sql("DROP STREAM ma")
    assert [row.name for row in session.sql("SHOW STREAMS").collect()] == ["mb"]
    session.spark.catalog.dropTempView("mb")
    declare(session, folders, "id BIGINT, ts TIMESTAMP")


@pytest.mark.long
def test_a_view_keeps_its_delays_under_another_name_and_loses_them_with_its_rows(
    session: wjoin.Session, folders: dict[str, Path]
) -> None:
    declare(session, folders, "id BIGINT, ts TIMESTAMP", "WATERMARK ts DELAY OF INTERVAL 2 SECONDS")

    def delays() -> dict[str, str]:
        return {row.name: row.delay for row in session.sql("SHOW STREAMS").collect()}

    declared = delays()
    session.sql("CREATE VIEW v AS TABLE ma")
    session.sql("ALTER VIEW v RENAME TO w")
    assert delays() == {**declared, "w": "2 s"}
    session.sql(f"CREATE OR REPLACE TEMP VIEW w USING json OPTIONS (path '{folders['ma']}')")
    assert delays() == declared
    session.sql("CREATE VIEW v AS TABLE ma")
    session.sql("CREATE OR REPLACE VIEW v AS SELECT 1 AS id")
    assert delays() == declared
    assert [row.id for row in session.sql("SELECT * FROM v").collect()] == [1]
    # One that outlives the session lies behind the stream of its name.
    session.sql("CREATE VIEW ma AS SELECT 1 AS id")
    session.sql("DROP VIEW default.ma")
    assert delays() == declared


def test_every_session_on_a_spark_knows_its_streams(session: wjoin.Session, folders: dict[str, Path]) -> None:
    declare(session, folders, "id BIGINT, ts TIMESTAMP", "WATERMARK ts DELAY OF INTERVAL 2 SECONDS")
    wjoin.enable(session.spark)
    assert [row.name for row in session.spark.sql("SHOW STREAMS").collect()] == ["ma", "mb"]
    other = wjoin.connect(session.spark)
    assert "A = ma: event time ts, delay 2 s;" in other.explain(JOIN.format("ma", "mb", "2 SECONDS"))
