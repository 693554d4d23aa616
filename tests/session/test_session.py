"""The public face: Session, enable and disable, declarations, views, scripts."""

import datetime
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import wjoin
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError
from wjoin.progress import read

pytestmark = pytest.mark.core

JOIN = """
SELECT A.obj_id, A.ts AS first, B.ts AS second FROM camera1 A, camera2 B
WINDOW (A, B) = 5 SECONDS WHERE A.obj_id = B.obj_id
"""


@pytest.fixture
def cameras(spark: SparkSession) -> SparkSession:
    """Two static cameras: object 1 is seen within 5 s, object 2 is not."""
    rows = (
        "VALUES (1, TIMESTAMP '2024-01-01 00:00:00'), (2, TIMESTAMP '2024-01-01 00:00:10') AS t(obj_id, ts)"
    )
    later = (
        "VALUES (1, TIMESTAMP '2024-01-01 00:00:05'), "
        "(2, TIMESTAMP '2024-01-01 00:00:15.000001') AS t(obj_id, ts)"
    )
    spark.sql(f"SELECT * FROM {rows}").createOrReplaceTempView("camera1")
    spark.sql(f"SELECT * FROM {later}").createOrReplaceTempView("camera2")
    return spark


def write_files(frame: DataFrame, folder: Path) -> str:
    frame.coalesce(1).write.parquet(str(folder))
    return str(folder)


@pytest.mark.long
def test_sql_gives_an_ordinary_lazy_frame(session: wjoin.Session, cameras: SparkSession) -> None:
    frame = session.sql(JOIN)
    assert isinstance(frame, DataFrame)
    assert frame.columns == ["obj_id", "first", "second"]
    assert [row.obj_id for row in frame.collect()] == [1]


def test_plain_sql_passes_through(session: wjoin.Session) -> None:
    assert session.sql("SELECT 1 AS one").collect()[0].one == 1
    assert session.sql("SELECT :x AS x", x=7).collect()[0].x == 7
    assert session.sql("SELECT :x AS x", {"x": 7}).collect()[0].x == 7
    assert session.sql("SELECT * FROM {df}", df=session.range(3)).count() == 3
    with pytest.raises(AnalysisException):
        session.sql("SELECT * FROM no_such_table")


def test_session_stands_in_for_a_spark_session(session: wjoin.Session) -> None:
    assert session.range(2).count() == 2
    assert session.version == session.spark.version
    with pytest.raises(AttributeError):
        session.no_such_thing  # noqa: B018 (to look it up is what raises)


@pytest.mark.parametrize("width", tiers(["5 seconds", datetime.timedelta(seconds=5)], long=["5 seconds"]))
def test_named_parameters(session: wjoin.Session, cameras: SparkSession, width: object) -> None:
    text = JOIN.replace("5 SECONDS", ":w") + " AND A.obj_id = :wanted"
    assert session.sql(text, w=width, wanted=1).count() == 1
    assert session.sql(text, w=width, wanted=2).count() == 0
    with pytest.raises(WJoinError, match="WJ212"):
        session.sql(text, wanted=1)


def test_enable_and_disable(cameras: SparkSession) -> None:
    wjoin.enable(cameras)
    try:
        assert cameras.sql(JOIN).count() == 1
        assert cameras.sql("SELECT {x} AS x", x=3).collect()[0].x == 3
        assert cameras.sql("SELECT :x AS x", args={"x": 3}).collect()[0].x == 3
        assert wjoin.enable(cameras) is wjoin.enable(cameras)
    finally:
        wjoin.disable(cameras)
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        cameras.sql(JOIN)
    wjoin.disable(cameras)


@pytest.mark.long
def test_view_of_a_join_is_usable_by_plain_spark(session: wjoin.Session, cameras: SparkSession) -> None:
    session.sql(f"CREATE OR REPLACE VIEW pairs AS {JOIN}")
    assert cameras.sql("SELECT count(*) AS n FROM pairs").collect()[0].n == 1
    with pytest.raises(WJoinError, match="WJ601"):
        session.sql(f"CREATE VIEW pairs AS {JOIN}")


@pytest.mark.long
def test_join_in_cte_subquery_and_of_a_join(session: wjoin.Session, cameras: SparkSession) -> None:
    assert session.sql(f"WITH pairs AS ({JOIN}) SELECT count(*) AS n FROM pairs").collect()[0].n == 1
    assert session.sql(f"SELECT p.obj_id FROM ({JOIN}) p WHERE p.obj_id = 1").count() == 1
    assert session.sql(f"SELECT 9 WHERE 1 IN (SELECT obj_id FROM ({JOIN}))").count() == 1
    outer = f"""
        WITH pairs AS (SELECT obj_id, first FROM ({JOIN})), seen AS (SELECT obj_id, ts FROM camera2)
        SELECT P.obj_id FROM pairs P, seen C WINDOW (P, C) = 1 MINUTE WHERE P.obj_id = C.obj_id
    """
    assert session.sql(outer).count() == 1


@pytest.mark.long
def test_union_of_joins(session: wjoin.Session, cameras: SparkSession) -> None:
    assert session.sql(f"({JOIN}) UNION ALL ({JOIN}) ORDER BY obj_id").count() == 2


def test_errors_point_into_the_text_as_written(session: wjoin.Session, cameras: SparkSession) -> None:
    text = f"WITH pairs AS ({JOIN})\nSELECT P.nothing FROM pairs P, camera2 C WINDOW (P, C) = 1 MINUTE"
    with pytest.raises(WJoinError) as raised:
        session.sql(text.replace("A.ts AS first, B.ts AS second", "A.ts AS first"))
    assert raised.value.code == "WJ202"
    assert raised.value.span is not None
    assert "nothing" in raised.value.render()


@pytest.mark.long
def test_spark_refusal_is_one_of_our_errors(session: wjoin.Session, cameras: SparkSession) -> None:
    with pytest.raises(WJoinError, match="WJ607"):
        session.sql(JOIN.replace("A.obj_id, A.ts", "no_such_function(A.obj_id) AS obj_id, A.ts"))
    with pytest.raises(WJoinError, match="WJ214"):
        session.sql(JOIN.replace("camera2 B", "camera9 B"))


@pytest.mark.long
def test_several_statements_need_run_script(session: wjoin.Session, cameras: SparkSession) -> None:
    with pytest.raises(WJoinError, match="run_script"):
        session.sql(f"SELECT 1; {JOIN}")
    frames = session.run_script(f"SELECT 1 AS one; {JOIN};")
    assert [frame.count() for frame in frames if isinstance(frame, DataFrame)] == [1, 1]


def test_streams_are_declared_shown_described_and_dropped(
    session: wjoin.Session, cameras: SparkSession, tmp_path: Path
) -> None:
    path = write_files(cameras.table("camera1"), tmp_path / "in")
    create = f"""CREATE STREAM cam (obj_id INT, ts TIMESTAMP) USING parquet OPTIONS (path '{path}')
        WATERMARK ts DELAY OF INTERVAL 5 SECONDS"""
    session.sql(create)
    assert session.table("cam").isStreaming
    shown = session.sql("SHOW STREAMS").collect()
    assert [(row.name, row.event_time, row.delay) for row in shown] == [("cam", "ts", "5 s")]
    described = {row.col_name: row.comment for row in session.sql("DESCRIBE STREAM cam").collect()}
    assert described["ts"] == "event time, out of order by up to 5 s"
    assert described["obj_id"] is None
    with pytest.raises(WJoinError, match="WJ601"):
        session.sql(create)
    session.sql(create.replace("CREATE STREAM", "CREATE STREAM IF NOT EXISTS"))
    session.sql(create.replace("CREATE STREAM", "CREATE OR REPLACE STREAM"))
    session.sql("CREATE TEMPORARY VIEW late AS SELECT * FROM cam WHERE obj_id > 1")
    assert [row.name for row in session.sql("SHOW STREAMS").collect()] == ["cam", "late"]
    session.sql("DROP VIEW late")
    assert [row.name for row in session.sql("SHOW STREAMS").collect()] == ["cam"]
    with pytest.raises(WJoinError, match="WJ602"):
        session.sql("DESCRIBE STREAM late")
    session.sql("DROP STREAM cam")
    with pytest.raises(WJoinError, match="WJ602"):
        session.sql("DROP STREAM cam")
    session.sql("DROP STREAM IF EXISTS cam")
    with pytest.raises(WJoinError, match=r"WJ604[\s\S]*no_such_format"):
        session.sql("CREATE STREAM cam (a INT) USING no_such_format")
    with pytest.raises(WJoinError, match=r"WJ604[\s\S]*give its columns"):
        session.sql(f"CREATE STREAM cam USING parquet OPTIONS (path '{tmp_path}')")
    with pytest.raises(WJoinError, match=r"WJ202[\s\S]*did you mean ts"):
        session.sql(create.replace("WATERMARK ts", "WATERMARK tss"))


@pytest.mark.long
def test_insert_runs_as_a_stream_with_its_own_checkpoint(
    session: wjoin.Session, cameras: SparkSession, tmp_path: Path
) -> None:
    for name in ("camera1", "camera2"):
        path = write_files(cameras.table(name), tmp_path / name)
        session.sql(
            f"CREATE STREAM s_{name} (obj_id INT, ts TIMESTAMP) USING parquet OPTIONS (path '{path}')"
        )
    join = JOIN.replace("camera1", "s_camera1").replace("camera2", "s_camera2")
    session.sql(f"CREATE SINK tracked USING parquet OPTIONS (path '{tmp_path / 'out'}')")
    with pytest.raises(WJoinError, match="checkpoint"):
        session.sql(f"INSERT INTO tracked {join}")
    with pytest.raises(WJoinError, match="WJ602"):
        session.sql(f"INSERT INTO traked {join}")
    (query,) = session.run_script(f"INSERT INTO tracked {join}", checkpoint=str(tmp_path / "checkpoints"))
    assert not isinstance(query, DataFrame)
    assert [row.obj_id for row in cameras.read.parquet(str(tmp_path / "out")).collect()] == [1]
    assert (tmp_path / "checkpoints" / "tracked" / "commits" / "0").exists()
    progress = read(query.recentProgress[0])
    assert progress.rows_in == {"A": 2, "B": 2}
    assert progress.matches == 1
    assert progress.comparisons == 1
    assert progress.late == {"A": 0, "B": 0}
    assert progress.watermarks["A"] == 1_704_067_210_000_000


@pytest.mark.long
def test_a_script_that_is_run_again_goes_on_where_it_stopped(
    session: wjoin.Session, cameras: SparkSession, tmp_path: Path
) -> None:
    """Also in one session; and the results of a new checkpoint are not lost in an old folder."""
    for name in ("camera1", "camera2"):
        write_files(cameras.table(name), tmp_path / name / "first")
        source = f"USING parquet OPTIONS (path '{tmp_path / name}/*')"
        delay = "WATERMARK ts DELAY OF INTERVAL 1 HOUR"
        session.sql(f"CREATE STREAM s_{name} (obj_id INT, ts TIMESTAMP) {source} {delay}")
    join = JOIN.replace("camera1", "s_camera1").replace("camera2", "s_camera2")
    script = f"""CREATE OR REPLACE SINK tracked USING parquet OPTIONS (path '{tmp_path / "out"}');
                 INSERT INTO tracked {join}"""

    def found() -> int:
        return cameras.read.parquet(str(tmp_path / "out")).count()

    session.run_script(script, checkpoint=str(tmp_path / "one"))
    assert found() == 1
    for name in ("camera1", "camera2"):
        write_files(cameras.table(name), tmp_path / name / "second")
    session.run_script(script, checkpoint=str(tmp_path / "one"))
    assert found() == 4
    with pytest.raises(WJoinError, match=r"WJ609[\s\S]*new folder"):
        session.run_script(script, checkpoint=str(tmp_path / "two"))
    twice = f"{script}; INSERT INTO tracked {join}"
    with pytest.raises(WJoinError, match=r"WJ609[\s\S]*tracked-2 is new"):
        session.run_script(twice, checkpoint=str(tmp_path / "one"))
    assert found() == 4


def test_stream_registers_a_frame(session: wjoin.Session, cameras: SparkSession) -> None:
    two = cameras.sql("SELECT obj_id, ts, ts + INTERVAL 1 HOUR AS other FROM camera2")
    with pytest.raises(WJoinError, match=r"WJ202[\s\S]*did you mean other"):
        session.stream("two", two, event_time="othr")
    session.stream("two", two, event_time="ts", delay="2 seconds")
    assert session.sql(JOIN.replace("camera2", "two")).count() == 1
    session.stream("two", two)
    with pytest.raises(WJoinError, match="WJ206"):
        session.sql(JOIN.replace("camera2", "two"))


def test_settings(session: wjoin.Session) -> None:
    session.sql("SET wjoin.checkpoint = '/somewhere'")
    assert session.settings["wjoin.checkpoint"] == "/somewhere"
    for name in ("camera1", "camera2"):
        session.sql(f"CREATE TEMP VIEW {name} AS SELECT 1L AS obj_id, TIMESTAMP '2026-01-01' AS ts")
    session.sql("SET wjoin.algorithm = mw")
    assert "kernel mw" in session.explain(JOIN)
    assert "kernel nlw" in session.explain(JOIN.replace("SELECT", "SELECT /*+ ALGORITHM(NLW) */", 1))
    with pytest.raises(WJoinError, match=r"WJ603[\s\S]*known: hw, mw, nlw"):
        session.sql("SET wjoin.algorithm = fast")
    # A default does not matter to streams that are not at a site; a hint would be refused.
    session.sql("SET wjoin.plan = semijoin")
    assert "kernel mw" in session.explain(JOIN)
    with pytest.raises(WJoinError, match="WJ603"):
        session.sql("SET wjoin.plan = semi")
    with pytest.raises(WJoinError, match="WJ603"):
        session.sql("SET wjoin.nothing = 1")
    with pytest.raises(WJoinError, match=r"did you mean wjoin\.checkpoint\? known: "):
        session.sql("SET wjoin.chekpoint = '/somewhere'")


def test_explain(session: wjoin.Session, cameras: SparkSession) -> None:
    text = session.explain(JOIN)
    assert "camera" in text or "A" in text
    plan = session.sql(f"EXPLAIN FORMATTED {JOIN}").collect()[0].plan
    assert "MapInArrow" in plan
    assert session.sql(f"EXPLAIN {JOIN}").collect()[0].plan == text
    with pytest.raises(WJoinError, match="WJ503"):
        session.sql(f"EXPLAIN CODEGEN {JOIN}")


@pytest.mark.long
def test_braces_of_the_user_reach_spark(session: wjoin.Session, cameras: SparkSession) -> None:
    frame = session.sql(JOIN.replace("A.obj_id,", "'{x}' AS braces, A.obj_id,"))
    assert frame.collect()[0].braces == "{x}"


@pytest.mark.long
def test_settings_that_lose_rows_are_refused(session: wjoin.Session, cameras: SparkSession) -> None:
    streaming = cameras.readStream.format("rate").load().selectExpr("value AS obj_id", "timestamp AS ts")
    session.stream("live", streaming)
    join = JOIN.replace("camera1", "live").replace("camera2", "live")
    assert session.sql(join).isStreaming
    assert "running StreamingQuery" in session.explain(f"EXPLAIN FORMATTED {join}")
    cameras.conf.set("spark.sql.streaming.statefulOperator.allowMultiple", "false")
    with pytest.raises(WJoinError, match="WJ605"):
        session.sql(join)
    cameras.conf.unset("spark.sql.streaming.statefulOperator.allowMultiple")
    cameras.conf.unset("spark.sql.streaming.stateStore.providerClass")
    with pytest.raises(WJoinError, match="WJ605"):
        session.sql(join)


def test_settings_are_taken_by_connect(cameras: SparkSession) -> None:
    assert wjoin.connect(cameras, **{"wjoin.checkpoint": "/there"}).settings == {"wjoin.checkpoint": "/there"}
    with pytest.raises(WJoinError, match="WJ603"):
        wjoin.connect(cameras, **{"wjoin.nothing": "1"})


@pytest.mark.parametrize(
    "text", tiers([JOIN, "/* all */ WITH x AS (SELECT * FROM live1) SELECT * FROM x"], long=[JOIN])
)
def test_rows_of_a_stream_that_are_asked_for_at_once_say_what_to_do(
    session: wjoin.Session, cameras: SparkSession, tmp_path: Path, text: str
) -> None:
    for number in (1, 2):
        folder = write_files(session.table(f"camera{number}"), tmp_path / str(number))
        session.sql(
            f"CREATE STREAM live{number} (obj_id INT, ts TIMESTAMP) USING parquet OPTIONS (path '{folder}')"
            " WATERMARK ts DELAY OF INTERVAL 5 SECONDS"
        )
    rows = session.sql(text.replace("camera", "live"))
    for action in (rows.show, rows.collect, rows.head, rows.toPandas, rows.count):
        with pytest.raises(WJoinError, match=r"WJ621.*\n.*INSERT INTO a sink, or \.writeStream") as caught:
            action()
    # What it says is to be tried as it stands.
    way = caught.value.help.partition("there now: ")[2].partition(", then ")
    assert way[2] == "session.table('seen').count()"
    eval(f"rows{way[0]}", {"rows": rows})
    assert eval(way[2], {"session": session}) == (1 if text == JOIN else 2)
    session.sql("DROP VIEW seen")
    # What is not its rows is as ever.
    assert rows.isStreaming
    assert rows.limit(1).columns == rows.columns
    assert rows.schema == session.sql(text.replace("camera", "live")).schema
