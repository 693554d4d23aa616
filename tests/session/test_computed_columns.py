"""Computed columns: the event times of real data, as streams of files, against DuckDB on the same files."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import duckdb
import pytest

import wjoin
from wjoin.grammar.errors import WJoinError

pytestmark = pytest.mark.thorough

SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND
# Two streams of (id, microseconds): a pair matches where it is at most a second apart.
LEFT = [(number % 5, BEGIN + number * 700_000) for number in range(40)]
RIGHT = [(number % 7, BEGIN + number * 900_000 + 123_456) for number in range(40)]


def _iso(time: int) -> str:
    return f"2023-11-14T22:{13 + (20 + (time - BEGIN) // SECOND) // 60:02d}:" + (
        f"{(20 + (time - BEGIN) // SECOND) % 60:02d}.{time % SECOND:06d}Z"
    )


def _text_pair(time: int) -> tuple[str, str]:
    date, clock = _iso(time).removesuffix("Z").split("T")
    return date, clock


FORMS: dict[str, tuple[str, str, Callable[[int], object], str]] = {
    # name: type in the file, expression in Spark, value in the file, expression in DuckDB
    "seconds": ("BIGINT", "timestamp_seconds(t)", lambda time: time // SECOND, "make_timestamp(t * 1000000)"),
    "float_seconds": (
        "DOUBLE",
        "timestamp_seconds(t)",
        lambda time: time / SECOND,
        "make_timestamp(round(t * 1e6)::BIGINT)",
    ),
    "milliseconds": ("BIGINT", "timestamp_millis(t)", lambda time: time // 1000, "make_timestamp(t * 1000)"),
    "microseconds": ("BIGINT", "timestamp_micros(t)", lambda time: time, "make_timestamp(t)"),
    "iso": ("STRING", "to_timestamp(t)", _iso, "CAST(replace(t, 'Z', '') AS TIMESTAMP)"),
}


def write_json(folder: Path, rows: Iterable[dict[str, object]]) -> str:
    """Write rows to two files of a folder."""
    lines = [json.dumps(row) + "\n" for row in rows]
    folder.mkdir(parents=True)
    for name, part in (("1", lines[: len(lines) // 2]), ("2", lines[len(lines) // 2 :])):
        (folder / f"{name}.json").write_text("".join(part))
    return str(folder)


def write_csv(folder: Path, rows: Iterable[dict[str, object]]) -> str:
    """Write rows to a file of a folder, with a header."""
    listed = list(rows)
    folder.mkdir(parents=True)
    lines = [",".join(map(str, row.values())) for row in listed]
    (folder / "1.csv").write_text("\n".join([",".join(listed[0]), *lines]) + "\n")
    return str(folder)


@pytest.mark.parametrize("source", ["json", "csv"])
@pytest.mark.parametrize("form", FORMS)
def test_event_times_of_files(session: wjoin.Session, tmp_path: Path, source: str, form: str) -> None:
    kind, expression, written, duck = FORMS[form]
    folders = {}
    for name, rows in (("lefts", LEFT), ("rights", RIGHT)):
        write = write_json if source == "json" else write_csv
        folders[name] = write(tmp_path / name, ({"id": id, "t": written(time)} for id, time in rows))
    for name, folder in folders.items():
        options = f"path '{folder}'" + (", header 'true'" if source == "csv" else "")
        clause = ", WATERMARK FOR at AS at - INTERVAL 1 MINUTE" if name == "lefts" else ""
        after = "" if clause else "WATERMARK at DELAY OF '1 minute'"
        session.sql(
            f"CREATE STREAM {name} (id BIGINT, at AS {expression}, t {kind}{clause}) "
            f"USING {source} OPTIONS ({options}) {after}"
        )
    session.sql(f"CREATE SINK found USING parquet OPTIONS (path '{tmp_path}/found')")
    session.run_script(
        "INSERT INTO found SELECT L.id, L.at AS first, R.at AS second FROM lefts L, rights R "
        "WINDOW (L, R) = '1 second' WHERE L.id = R.id",
        checkpoint=str(tmp_path / "checkpoints"),
    )
    ours = session.read.parquet(f"{tmp_path}/found").selectExpr(
        "id", "unix_micros(first)", "unix_micros(second)"
    )
    read = "read_json" if source == "json" else "read_csv"
    types = f"columns={{'id': 'BIGINT', 't': '{'VARCHAR' if kind == 'STRING' else kind}'}}"
    tables = {
        name: f"(SELECT id, {duck} AS at FROM {read}('{folder}/*', {types}))"
        for name, folder in folders.items()
    }
    theirs = duckdb.execute(
        f"SELECT L.id, epoch_us(L.at), epoch_us(R.at) FROM {tables['lefts']} L, {tables['rights']} R "
        "WHERE L.id = R.id AND abs(epoch_us(L.at) - epoch_us(R.at)) <= 1000000"
    ).fetchall()
    assert len(theirs) > 5
    assert sorted(map(tuple, ours.collect())) == sorted(theirs)


def test_columns_have_the_declared_order(session: wjoin.Session, tmp_path: Path) -> None:
    folder = write_json(tmp_path / "rows", [{"as": 3, "ms": 0, "m": {"k": 1.5}}, {"as": 4, "ms": 1, "m": {}}])
    session.sql(f"""
        CREATE STREAM s (
          double AS 2 * `as`, -- of what follows, (
          as BIGINT, ts AS timestamp_millis(ms), m MAP<STRING, DECIMAL(10,2)>, `k, k` AS m['k'],
          low AS `as` < 4, ms BIGINT
        ) USING json OPTIONS (path '{folder}') WATERMARK ts DELAY OF '1 second'
    """)
    rows = [tuple(row) for row in session.sql("DESCRIBE STREAM s").collect()]
    assert rows == [
        ("double", "bigint", "computed: 2 * `as`"),
        ("as", "bigint", None),
        ("ts", "timestamp", "event time, out of order by up to 1 s; computed: timestamp_millis(ms)"),
        ("m", "map<string,decimal(10,2)>", None),
        ("k, k", "decimal(10,2)", "computed: m['k']"),
        ("low", "boolean", "computed: `as` < 4"),
        ("ms", "bigint", None),
    ]
    session.sql(f"CREATE SINK out USING json OPTIONS (path '{tmp_path}/out')")
    session.run_script("INSERT INTO out SELECT * FROM s", checkpoint=str(tmp_path / "checkpoints"))
    seen = session.read.json(f"{tmp_path}/out").select("double", "low", "k, k").orderBy("double").collect()
    assert [tuple(row) for row in seen] == [(6, True, 1.5), (8, False, None)]


def test_source_that_knows_its_columns(session: wjoin.Session) -> None:
    session.sql(
        "CREATE STREAM ticks (ts AS timestamp + INTERVAL 1 HOUR, third AS value % 3) USING rate WATERMARK ts"
    )
    assert session.table("ticks").columns == ["timestamp", "value", "ts", "third"]
    assert "event time ts" in str(session.explain("SELECT 1 FROM ticks A, ticks B WINDOW = '1 s'"))


@pytest.mark.parametrize(
    ("columns", "marked", "said"),
    [
        ("ms BIGINT, ts AS nope(ms)", "nope(ms)", "the column ts cannot be computed: [UNRESOLVED_ROUTINE]"),
        ("ms BIGINT, ts AS timestamp_millis(mss)", "timestamp_millis(mss)", "`mss` cannot be resolved"),
        ("ms BIGINT, ts AS ms +", "ms +", "[PARSE_SYNTAX_ERROR]"),
        ("ms BIGINT, ts AS max(ms)", "max(ms)", "[MISSING_GROUP_BY]"),
        ("ms BIGINT, a AS ms + 1, b AS A + 1", "A + 1", "repeat the expression of a instead"),
        ("ms BIGINT, MS AS 1", "MS", "already has a column MS"),
        ("ms BIGINT, a AS 1, a AS 2", "a", "already has a column a"),
    ],
)
def test_errors_mark_the_expression(
    session: wjoin.Session, tmp_path: Path, columns: str, marked: str, said: str
) -> None:
    folder = write_json(tmp_path / "rows", [{"ms": 0}, {"ms": 1}])
    text = f"CREATE STREAM s ({columns}) USING json OPTIONS (path '{folder}')"
    with pytest.raises(WJoinError) as caught:
        session.sql(text)
    error = caught.value
    assert error.code == "WJ216"
    assert error.span is not None and error.span.of(text) == marked
    assert said in str(error)


def test_computed_columns_alone_need_a_source_that_knows_its_own(
    session: wjoin.Session, tmp_path: Path
) -> None:
    folder = write_json(tmp_path / "rows", [{"ms": 0}, {"ms": 1}])
    with pytest.raises(WJoinError, match="give its columns: CREATE STREAM s") as caught:
        session.sql(f"CREATE STREAM s (ts AS timestamp_millis(ms)) USING json OPTIONS (path '{folder}')")
    assert caught.value.code == "WJ604"


@pytest.mark.parametrize(
    ("columns", "watermark", "code", "said"),
    [
        ("t STRING", "t DELAY OF '5 seconds'", "WJ207", "event_time AS to_timestamp(t)"),
        ("t BIGINT", "t DELAY OF '5 seconds'", "WJ305", "event_time AS timestamp_millis(t)"),
        ("t DOUBLE", "t", "WJ207", "event_time AS timestamp_seconds(t)"),
    ],
)
def test_watermark_of_what_is_no_timestamp(
    session: wjoin.Session, tmp_path: Path, columns: str, watermark: str, code: str, said: str
) -> None:
    with pytest.raises(WJoinError) as caught:
        session.sql(
            f"CREATE STREAM s ({columns}) USING json OPTIONS (path '{tmp_path}') WATERMARK {watermark}"
        )
    assert caught.value.code == code
    assert said in str(caught.value)
