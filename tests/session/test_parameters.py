"""Named parameters in declarations: options, paths, delays and settings."""

import datetime
from pathlib import Path

import pytest

import wjoin
from wjoin.context import check_values

pytestmark = pytest.mark.spark

CREATE = """CREATE OR REPLACE STREAM s (id BIGINT, ts TIMESTAMP)
USING json OPTIONS (path :root || '/in/' || :name, maxFilesPerTrigger :most) WATERMARK ts DELAY OF :delay"""


def test_a_stream_and_a_sink_take_their_values(session: wjoin.Session, tmp_path: Path) -> None:
    (tmp_path / "in" / "s").mkdir(parents=True)
    (tmp_path / "in" / "s" / "1.json").write_text('{"id": 1, "ts": "2024-05-01T12:00:00Z"}')
    given = {"root": tmp_path, "name": "s", "most": 1, "delay": "5 seconds"}
    session.sql(CREATE, given)
    (shown,) = session.sql("SHOW CREATE STREAM s").collect()
    assert shown[0] == (
        f"CREATE STREAM s (id BIGINT, ts TIMESTAMP) USING json OPTIONS ('path' '{tmp_path}/in/s', "
        "'maxFilesPerTrigger' '1') WATERMARK ts DELAY OF 5 SECONDS"
    )
    session.sql(CREATE.replace(":delay", "INTERVAL 1 SECOND"), given)
    session.sql(CREATE, {**given, "delay": datetime.timedelta(minutes=1)})
    assert "out of order by up to 1 min" in session.sql("DESCRIBE STREAM s").collect()[1][2]
    session.sql(
        "CREATE SINK out USING parquet OPTIONS (path :root || '/out', trigger :every)",
        root=tmp_path,
        every="2 seconds",
    )
    made = session.run_script(
        "SET wjoin.checkpoint = :kept; INSERT INTO out SELECT id FROM s", kept=str(tmp_path / "kept")
    )
    assert session.spark.read.parquet(str(tmp_path / "out")).count() == 1
    assert len(made) == 2 and (tmp_path / "kept" / "out").is_dir()


@pytest.mark.parametrize(
    ("statement", "code", "message", "marked"),
    [
        (CREATE, "WJ212", "the parameter :name has no value", ":name"),
        (CREATE.replace(":delay", ":nothing"), "WJ212", "the parameter :nothing has no value", ":nothing"),
        (CREATE.replace(":delay", ":late"), "WJ110", "a delay cannot be negative", "WATERMARK"),
        ("CREATE STREAM t AT SITE :where", "WJ212", "the parameter :where has no value", ":where"),
        ("CREATE SINK k USING parquet OPTIONS (path :p)", "WJ212", "the parameter :p has no value", ":p"),
        ("SET wjoin.checkpoint = :dir", "WJ212", "the parameter :dir has no value", "SET"),
    ],
)
def test_what_has_no_value_is_told(
    session: wjoin.Session, tmp_path: Path, statement: str, code: str, message: str, marked: str
) -> None:
    given = {"root": str(tmp_path), "most": 1, "delay": "5 seconds", "late": "-1 second"}
    if ":name" not in message:
        given["name"] = ""
        (tmp_path / "in").mkdir()
    with pytest.raises(wjoin.WJoinError, match=message) as told:
        session.sql(statement, given)
    assert told.value.code == code
    assert told.value.span is not None and told.value.span.of(statement).startswith(marked)


HALF = "\ud83d"


@pytest.mark.parametrize(
    "values",
    [
        {"a": 1, "x": f"x{HALF}"},
        {"x": ["a", HALF]},
        {"x": {"a": (1, HALF)}},
        {"x": {HALF: 1}},
        {"x": Path(HALF)},
        {"x": "\udcff"},
    ],
)
def test_a_value_with_half_of_a_surrogate_pair_is_told(values: dict[str, object]) -> None:
    text = "SELECT :a, ':x' FROM t WHERE y = :x"
    with pytest.raises(wjoin.WJoinError, match="the value of the parameter x has half") as told:
        check_values(text, values)
    assert told.value.code == "WJ115" and "U+D" in str(told.value)
    assert told.value.span is not None and told.value.span.of(text) == ":x"
    assert told.value.span.start == text.rindex(":x")


def test_values_by_position_and_whole_characters() -> None:
    with pytest.raises(wjoin.WJoinError, match="the value of the parameter 2 has half") as told:
        check_values("SELECT ?, ?", ["a", HALF])
    assert told.value.span is None
    check_values("SELECT :x", {"x": "\U0001f600", "y": None, "z": [1.5, b"x"]})
    check_values("SELECT 1", None)


def test_every_way_to_give_a_value_looks_at_it(session: wjoin.Session) -> None:
    join = "SELECT 1 FROM s A, s B WINDOW = 1 SECOND WHERE A.x = :x"
    for ask in (
        lambda: session.sql("SELECT :x", {"x": HALF}),
        lambda: session.sql("SELECT :x", x=HALF),
        lambda: session.sql("SELECT ?", [HALF]),
        lambda: session.sql(join, {"x": HALF}),
        lambda: session.explain(join, x=HALF),
        lambda: session.run_script(f"SELECT :x; {join}", x=HALF),
        lambda: session.sql("CREATE SINK k USING parquet OPTIONS (path :x)", x=HALF),
    ):
        with pytest.raises(wjoin.WJoinError) as told:
            ask()
        assert told.value.code == "WJ115"


@pytest.mark.parametrize("conf", [{"spark.app.name": f"x{HALF}"}, {HALF: "x"}, {"wjoin.algorithm": HALF}])
def test_a_setting_with_half_of_a_surrogate_pair_is_told(conf: dict[str, str]) -> None:
    with pytest.raises(wjoin.WJoinError, match=r"the setting .+ has half") as told:
        wjoin.connect(**conf)
    assert told.value.code == "WJ115"
