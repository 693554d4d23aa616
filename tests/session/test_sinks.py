"""Statements about sinks and declarations, and INSERT INTO with a list of columns."""

import datetime
from pathlib import Path

import pytest

import wjoin
from tests.session.two_streams import declare_two_streams
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError

PAIRS = "FROM a A, b B WINDOW (A, B) = '1 second' WHERE A.id = B.id"


@pytest.fixture
def declared(session: wjoin.Session, tmp_path: Path) -> wjoin.Session:
    """A session with two streams of the same ten rows, a quarter of a second apart, and a sink."""
    declare_two_streams(session, tmp_path)
    session.sql(f"CREATE SINK found USING parquet OPTIONS (path '{tmp_path}/found') PARTITIONED BY (who)")
    return session


def rows(session: wjoin.Session, text: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in session.sql(text).collect()]


def refusal(session: wjoin.Session, text: str) -> WJoinError:
    with pytest.raises(WJoinError) as caught:
        session.sql(text)
    return caught.value


def test_sinks_are_shown_described_and_dropped(declared: wjoin.Session, tmp_path: Path) -> None:
    declared.sql("CREATE SINK nothing USING noop")
    found = f"{tmp_path}/found"
    assert rows(declared, "SHOW SINKS") == [
        ("found", "parquet", found, "who"),
        ("nothing", "noop", None, None),
    ]
    assert rows(declared, "DESCRIBE SINK Found") == [
        ("format", "parquet"),
        ("partitioned by", "who"),
        ("option path", found),
    ]
    assert rows(declared, "DROP SINK IF EXISTS nobody") == []
    declared.sql("DROP SINK nothing")
    assert [row[0] for row in rows(declared, "SHOW SINKS")] == ["found"]
    assert "did you mean found?" in str(refusal(declared, "DROP SINK fuond"))


@pytest.mark.parametrize(
    ("statement", "said", "remedy"),
    [
        ("DROP STREAM found", "found is a sink, not a stream", "write DROP SINK found"),
        ("DROP SINK a", "a is a stream, not a sink", "write DROP STREAM a"),
        ("DESCRIBE STREAM found", "found is a sink, not a stream", "write DESCRIBE SINK found"),
        ("DESCRIBE SINK b", "b is a stream, not a sink", "write DESCRIBE STREAM b"),
        ("SHOW CREATE SINK b", "b is a stream, not a sink", "write SHOW CREATE STREAM b"),
        ("SHOW CREATE STREAM found", "found is a sink, not a stream", "write SHOW CREATE SINK found"),
    ],
)
def test_a_name_of_the_other_kind(declared: wjoin.Session, statement: str, said: str, remedy: str) -> None:
    error = refusal(declared, statement)
    assert (error.code, error.message, error.help) == ("WJ602", said, remedy)
    assert error.span is not None and error.span.of(statement) == statement.split()[-1]


@pytest.mark.long
def test_what_show_create_gives_declares_the_same(declared: wjoin.Session) -> None:
    for kind, name in (("STREAM", "a"), ("SINK", "found")):
        before = rows(declared, f"DESCRIBE {kind} {name}")
        ((statement,),) = rows(declared, f"SHOW CREATE {kind} {name}")
        declared.sql(f"DROP {kind} {name}")
        declared.sql(str(statement))
        assert rows(declared, f"DESCRIBE {kind} {name}") == before
        assert rows(declared, f"SHOW CREATE {kind} {name}") == [(statement,)]


@pytest.mark.long
def test_show_create_of_what_no_statement_declared(declared: wjoin.Session) -> None:
    declared.stream("frame", declared.table("a"), event_time="ts")
    declared.sql(f"CREATE VIEW pairs AS SELECT A.id, A.ts {PAIRS}")
    for name in ("frame", "pairs"):
        error = refusal(declared, f"SHOW CREATE STREAM {name}")
        assert error.code == "WJ606"
        assert "was not declared by CREATE STREAM" in error.message


@pytest.mark.long
def test_insert_names_columns_by_position(declared: wjoin.Session, tmp_path: Path) -> None:
    declared.run_script(
        f"INSERT INTO found (`at once`, who) SELECT B.ts, A.id {PAIRS}", checkpoint=f"{tmp_path}/checkpoints"
    )
    written = declared.read.parquet(f"{tmp_path}/found")
    assert sorted(written.columns) == ["at once", "who"]
    assert sorted(row.who for row in written.collect()) == [*range(10)]
    text = f"INSERT INTO found (who, at, more) SELECT A.id, B.ts {PAIRS}"
    error = refusal(declared, text)
    assert (error.code, error.message) == ("WJ106", "the INSERT names 3 columns, its query has 2 columns")
    assert error.span is not None and error.span.of(text) == "who, at, more"


def test_insert_of_a_batch_names_columns(declared: wjoin.Session, tmp_path: Path) -> None:
    declared.sql("INSERT INTO found (who, n) SELECT 1, 2")
    assert [row.asDict() for row in declared.read.parquet(f"{tmp_path}/found").collect()] == [
        {"n": 2, "who": 1}
    ]


@pytest.mark.long
def test_insert_into_a_table_of_spark(declared: wjoin.Session) -> None:
    declared.sql("CREATE TABLE visits (id INT, ts TIMESTAMP) USING parquet")
    try:
        declared.sql("INSERT INTO visits (ts, id) SELECT TIMESTAMP '2024-01-01', 1")
        declared.sql("INSERT INTO visits (ts, id) SELECT TIMESTAMP '2024-01-01', ?", args=[2])
        declared.sql(
            "INSERT INTO visits (ts, id) SELECT B.ts, A.id "
            "FROM (VALUES (3, TIMESTAMP '2024-01-01')) AS A(id, ts), "
            "VALUES (3, TIMESTAMP '2024-01-01 00:00:01'), (4, TIMESTAMP '2024-01-01') B(id, ts) "
            "WINDOW (A, B) = '1 second' WHERE A.id = B.id"
        )
        midnight = datetime.datetime(2024, 1, 1)
        assert sorted(rows(declared, "SELECT id, ts FROM visits")) == [
            (1, midnight),
            (2, midnight),
            (3, midnight + datetime.timedelta(seconds=1)),
        ]
        assert refusal(declared, f"INSERT INTO visits (id, ts) SELECT A.id, A.ts {PAIRS}").code == "WJ602"
        unknown = f"EXPLAIN INSERT INTO fuond SELECT A.id, A.ts {PAIRS}"
        assert "did you mean found?" in str(refusal(declared, unknown))
    finally:
        declared.sql("DROP TABLE visits")


@pytest.mark.long
def test_stream_of_a_table_streams(declared: wjoin.Session) -> None:
    declared.sql("CREATE TABLE visits USING parquet AS SELECT 1 AS id, TIMESTAMP '2024-01-01' AS ts")
    try:
        for spelling in ("STREAM visits", "STREAM(visits)"):
            late = f"{spelling} WATERMARK ts DELAY OF '1 s'"
            text = f"SELECT A.id FROM {late} V, STREAM a AS A WINDOW (V, A) = '1 s' WHERE A.id = V.id"
            assert declared.sql(text).isStreaming
        both = f"SELECT V.id FROM visits AS V, {late} AS W WINDOW = '1 second' WHERE V.id = W.id"
        assert declared.sql(both).isStreaming
    finally:
        declared.sql("DROP TABLE visits")


@pytest.mark.parametrize(
    ("query", "column"),
    [
        pytest.param(
            f"SELECT window(A.ts, '1 minute').end, count(*) AS n {PAIRS} GROUP BY window(A.ts, '1 minute')",
            "A.ts",
            marks=pytest.mark.long,
        ),
        pytest.param(
            f"SELECT window(ts, '1 minute').start AS s, count(*) AS n FROM (SELECT A.ts {PAIRS}) "
            "GROUP BY window(ts, '1 minute')",
            "ts",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_group_by_a_streams_own_time(
    declared: wjoin.Session, tmp_path: Path, query: str, column: str
) -> None:
    declared.sql(f"CREATE SINK counted USING parquet OPTIONS (path '{tmp_path}/counted')")
    declared.sql(f"SET wjoin.checkpoint = {tmp_path}/checkpoints")
    text = f"INSERT INTO counted {query}"
    error = refusal(declared, text)
    assert error.code == "WJ606"
    assert error.span is not None and error.span.of(text) == f"window({column}, '1 minute')"
    assert "write window(MATCH_TIME(), …)" in error.help
    # What it says works, in the same folder, which the refused query has touched.
    declared.run_script(
        f"INSERT INTO counted SELECT window(MATCH_TIME(), '1 minute').start AS s, count(*) AS n {PAIRS} "
        "GROUP BY window(MATCH_TIME(), '1 minute')",
        checkpoint=f"{tmp_path}/checkpoints",
    )


@pytest.mark.parametrize(
    ("query", "remedy"),
    [
        (f"SELECT A.id, count(*) AS n {PAIRS} GROUP BY A.id", "group by window(MATCH_TIME(), …) as well"),
        (
            "SELECT A.id FROM (SELECT DISTINCT id, ts FROM a) WATERMARK ts DELAY OF '1 minute' A, b B "
            "WINDOW (A, B) = '1 second' WHERE A.id = B.id",
            "docs/deduplication.md has ways",
        ),
    ],
)
def test_aggregates_without_a_bound(declared: wjoin.Session, tmp_path: Path, query: str, remedy: str) -> None:
    declared.sql(f"CREATE SINK counted USING parquet OPTIONS (path '{tmp_path}/counted')")
    declared.sql(f"SET wjoin.checkpoint = {tmp_path}/checkpoints")
    error = refusal(declared, f"INSERT INTO counted {query}")
    assert error.code == "WJ607"
    assert remedy in error.help


@pytest.mark.long
def test_group_by_time_in_a_batch(session: wjoin.Session) -> None:
    found = rows(
        session,
        "SELECT count(*) FROM VALUES (1, TIMESTAMP '2024-01-01') AS A(id, ts), "
        "VALUES (1, TIMESTAMP '2024-01-01 00:00:01') AS B(id, ts) WINDOW (A, B) = '1 second' "
        "WHERE A.id = B.id GROUP BY window(A.ts, '1 minute')",
    )
    assert found == [(1,)]


@pytest.mark.long
@pytest.mark.spark
def test_two_columns_of_one_name_are_refused(session: wjoin.Session, tmp_path: Path) -> None:
    for name in ("left_rows", "right_rows"):
        session.sql(f"CREATE TEMP VIEW {name} AS SELECT 1 AS k, TIMESTAMP '2024-05-01 12:00:00' AS at")
    session.sql(f"CREATE SINK doubled USING parquet OPTIONS (path '{tmp_path / 'doubled'}')")
    join = "FROM left_rows L, right_rows R WINDOW = 1 SECOND WHERE L.k = R.k"
    for columns in ("L.at, R.at", "L.at, R.k AS AT", "*"):
        with pytest.raises(wjoin.WJoinError, match="more than one column named") as told:
            session.sql(f"INSERT INTO doubled SELECT {columns} {join}")
        assert told.value.code == "WJ613"
    session.sql(f"INSERT INTO doubled (at, at_2) SELECT L.at, R.at {join}")
    assert session.read.parquet(str(tmp_path / "doubled")).columns == ["at", "at_2"]


@pytest.mark.parametrize(
    ("statement", "remedy"),
    [
        ("DROP TABLE found", "write DROP SINK found"),
        ("ALTER TABLE found RENAME TO other", "write CREATE OR REPLACE SINK found …"),
        ("SHOW CREATE TABLE found", "write SHOW CREATE SINK found, or DESCRIBE SINK found"),
        ("DESCRIBE TABLE found", "write DESCRIBE SINK found"),
        ("INSERT OVERWRITE found SELECT 1", "SELECT …, or INSERT INTO found (x, y) SELECT …"),
        ("DELETE FROM found", "SELECT * FROM parquet.`{}/found`"),
        ("EXPLAIN UPDATE found SET id = 1", "SELECT * FROM parquet.`{}/found`"),
        ("SELECT count(*) FROM found", "SELECT * FROM parquet.`{}/found`"),
        ("WITH f AS (TABLE Found) SELECT * FROM f", "SELECT * FROM parquet.`{}/found`"),
    ],
)
def test_a_sink_is_no_table(declared: wjoin.Session, tmp_path: Path, statement: str, remedy: str) -> None:
    refused = refusal(declared, statement)
    assert (refused.code, refused.message) == ("WJ602", "found is a sink, not a table")
    assert refused.help.endswith(remedy.format(tmp_path))
    assert refused.span is not None and refused.span.of(statement).lower() == "found"


def test_a_table_of_the_name_of_a_sink_is_sparks(declared: wjoin.Session) -> None:
    declared.sql("CREATE TABLE found (id BIGINT) USING parquet")
    declared.sql("INSERT OVERWRITE found VALUES (1)")
    assert rows(declared, "SELECT * FROM found") == [(1,)]
    declared.sql("DROP TABLE found")


BEGINS = [
    f"WITH pairs AS (SELECT A.id, 'x' AS who {PAIRS}) INSERT INTO found SELECT * FROM pairs",
    f"WITH few AS (SELECT * FROM a WHERE id < 20) INSERT INTO found (id, who) SELECT A.id, 'x' "
    f"{PAIRS.replace('a A', 'few A')}",
    f"FROM (SELECT A.id {PAIRS}) INSERT INTO found SELECT id, 'x' AS who",
    f"INSERT INTO found WITH pairs AS (SELECT A.id, 'x' AS who {PAIRS}) SELECT * FROM pairs",
]


@pytest.mark.parametrize("statement", tiers(BEGINS, long=BEGINS[1:]))
def test_a_query_may_begin_before_its_insert(declared: wjoin.Session, tmp_path: Path, statement: str) -> None:
    explained = declared.sql(f"EXPLAIN {statement}").first()
    assert explained is not None and "A = " in explained[0]
    declared.run_script(statement, checkpoint=str(tmp_path / "checkpoints"))
    found = declared.spark.read.parquet(str(tmp_path / "found"))
    assert sorted(map(tuple, found.select("id", "who").collect())) == [(each, "x") for each in range(10)]


def test_parameters_by_position_are_sparks(declared: wjoin.Session) -> None:
    assert declared.sql("SELECT ? + 1", [1]).first() == (2,)
    for statement in (
        f"SELECT A.id {PAIRS} AND A.id > ?",
        "INSERT INTO found SELECT id, 'x' FROM a WHERE id > ?",
    ):
        with pytest.raises(WJoinError, match="parameters by position are for Spark's own") as refused:
            declared.sql(statement, [1])
        assert refused.value.code == "WJ212"
        assert refused.value.span is not None and refused.value.span.of(statement) == "?"


def test_an_aggregate_of_one_stream_says_what_it_lacks(declared: wjoin.Session, tmp_path: Path) -> None:
    options = f"path '{tmp_path}/counts', CHECKPOINTLOCATION '{tmp_path}/kept'"
    declared.sql(f"CREATE SINK counts USING parquet OPTIONS ({options})")
    with pytest.raises(WJoinError, match="Spark refused to start the query") as refused:
        declared.sql("INSERT INTO counts SELECT window(ts, '1 minute'), count(*) FROM a GROUP BY 1")
    assert "WATERMARK time DELAY OF INTERVAL" in refused.value.help
    assert (tmp_path / "kept").is_dir()
