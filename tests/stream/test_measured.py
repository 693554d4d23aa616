"""A running query measures its streams; the next start on its checkpoint plans with that."""

import json
import re
import warnings
from pathlib import Path

import pytest

import wjoin
from wjoin.measured.beside import Beside, KeptWarning
from wjoin.measured.recorder import Recorded, read_measured

pytestmark = pytest.mark.thorough

JOIN = (
    "SELECT a.k FROM a, b WINDOW = 1 SECOND WHERE a.k = b.k AND lower(a.word) = b.word AND a.ts IS NOT NULL"
    " AND a.n < 2500"
)
INSERT = f"INSERT INTO out {JOIN}"
HEAVY = "CAST(IF(id % 5 = 0, 0, 1 + id % 399) AS BIGINT)"


@pytest.fixture
def streams(session: wjoin.Session, tmp_path: Path) -> wjoin.Session:
    """Two streams of 10,000 rows over 100 s: every fifth row of a has the key 0, b has 100 keys."""
    write(session, tmp_path, 0)
    for name in "ab":
        session.sql(
            f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP, word STRING, n BIGINT) USING parquet "
            f"OPTIONS (path '{tmp_path / name}/*', maxFilesPerTrigger 1) "
            "WATERMARK ts DELAY OF INTERVAL 10 SECONDS"
        )
    session.sql(f"CREATE SINK out USING parquet OPTIONS (path '{tmp_path / 'out'}')")
    session.sql(f"SET wjoin.checkpoint = {tmp_path / 'checkpoints'}")
    return session


def write(session: wjoin.Session, folder: Path, start: int) -> None:
    """Write four files of each stream; rows are up to 0.5 s out of order."""
    for name, key in (("a", HEAVY), ("b", "id % 100")):
        for part in range(4):
            first = start + part * 2500
            rows = session.range(first, first + 2500, 1, 1).selectExpr(
                f"{key} AS k",
                "timestamp_millis(id * 10 - id % 2 * 500) AS ts",
                "'x' AS word",
                "id % 5000 AS n",
            )
            rows.write.mode("append").parquet(str(folder / name / str(first)))


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "checkpoints" / "out" / "wjoin" / "statistics").glob("*/*.txt"))


def statistics_of(text: str) -> dict[str, str]:
    lines = text[text.index("Statistics") : text.index("Stages")].splitlines()[1:]
    return dict(line.strip().split(": ", 1) for line in lines)


@pytest.mark.long
def test_the_next_start_plans_with_what_was_measured(streams: wjoin.Session, tmp_path: Path) -> None:
    assert "No statistics for a, b;" in streams.explain(f"EXPLAIN {INSERT}")
    streams.run_script(INSERT)
    found = statistics_of(streams.explain(f"EXPLAIN {INSERT}"))
    words = found["a"].replace("(measured)", "").split(", ")
    assert found["a"].count("(measured)") == 1
    assert found["b"].count("(measured)") == 1
    assert float(words[0].split()[0].replace(",", "")) == pytest.approx(100, rel=0.1)
    # The last row of a file is 10 ms before the greatest one, the next file begins with a row 500 ms back.
    assert words[2] == "470 ms out of order"
    assert words[3].strip() == "filter selectivity 0.5"
    assert float(words[4].split()[0]) == pytest.approx(400, rel=0.3)
    assert float(words[-1].split()[2]) == pytest.approx(0.2, rel=0.1)
    # Another statement, another sink, and the plain SELECT know nothing of it.
    assert "measured" not in streams.explain(JOIN)

    # What is given counts before, by its name; a reset brings back what was measured.
    streams.sql("ALTER STREAM a SET STATISTICS (rate = 7)").collect()
    assert "7 rows/s (given)" in streams.explain(f"EXPLAIN {INSERT}")
    streams.sql("ALTER STREAM a RESET STATISTICS").collect()
    assert statistics_of(streams.explain(f"EXPLAIN {INSERT}")) == found

    # The next run goes on from there, in another session as well, and Spark minds nothing beside its files.
    write(streams, tmp_path, 10_000)
    streams.run_script(INSERT)
    recorded = read_measured(Beside(streams.spark, str(tmp_path / "checkpoints" / "out")))
    assert recorded.number >= 2
    assert recorded.joins[0]["0"].rows == 15_000
    assert recorded.busy is not None
    busy = f"measured: busy {recorded.busy.utilization:.0%} of the time, at {recorded.busy.at}"
    assert busy in streams.explain(f"EXPLAIN COST {INSERT}")
    assert len(kept(tmp_path)) == 2


def test_what_cannot_be_read_is_told_and_the_one_before_is_used(
    streams: wjoin.Session, tmp_path: Path
) -> None:
    streams.run_script(INSERT)
    write(streams, tmp_path, 10_000)
    streams.run_script(INSERT)
    older, newer = sorted(kept(tmp_path), key=number_of)
    before = number_of(older)
    assert number_of(newer) == before + 1
    beside = Beside(streams.spark, str(tmp_path / "checkpoints" / "out"))
    break_off(newer)
    assert read_measured(beside).number == before
    break_off(older)
    with pytest.warns(KeptWarning, match="cannot be read"):
        assert read_measured(beside) == Recorded()
    with pytest.warns(KeptWarning, match="cannot be read"):
        write(streams, tmp_path, 20_000)
        streams.run_script(INSERT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_measured(beside).number >= 1


def number_of(path: Path) -> int:
    return int(json.loads(path.read_text())["number"])


def break_off(path: Path) -> None:
    """Leave half of a file, as a crash without an atomic rename would."""
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    checksum = path.with_name(f".{path.name}.crc")
    checksum.unlink()


def test_a_folder_that_cannot_be_written_is_told_and_the_query_runs_on(
    streams: wjoin.Session, tmp_path: Path
) -> None:
    folder = tmp_path / "checkpoints" / "out" / "wjoin"
    folder.mkdir(parents=True)
    (folder / "statistics").write_text("a file in the place of the folder")
    with pytest.warns(KeptWarning) as told:
        streams.run_script(INSERT)
    words = [str(each.message) for each in told]
    assert any("cannot be read" in each for each in words)
    assert any("cannot be saved" in each for each in words)
    assert not any("\n" in each for each in words), "no stack of Java's"
    assert streams.spark.read.parquet(str(tmp_path / "out")).count() > 0


def test_a_stream_read_twice_is_measured_under_each_alias(streams: wjoin.Session, tmp_path: Path) -> None:
    insert = (
        "INSERT INTO out SELECT x.k FROM a AS x, a AS y DWINDOW (x, y) = 1 SECOND "
        "WHERE x.k = y.k AND x.n < 500 AND y.n < 1000"
    )
    streams.run_script(insert)
    found = statistics_of(streams.explain(f"EXPLAIN {insert}"))
    assert "filter selectivity 0.1" in found["x"]
    assert "filter selectivity 0.2" in found["y"]


def test_keys_that_live_for_a_short_time_are_estimated_by_what_the_join_did(
    session: wjoin.Session, tmp_path: Path
) -> None:
    """Every second has ten keys of its own: of a thousand keys, ten are alive at a time."""
    for stream in "abc":
        for part in range(4):
            rows = session.range(part * 2500, part * 2500 + 2500, 1, 1).selectExpr(
                f"id div 100 * 10 + pmod(xxhash64(id, '{stream}'), 10) AS k",
                "timestamp_millis(id * 10) AS ts",
            )
            rows.write.parquet(str(tmp_path / stream / str(part)))
        session.sql(
            f"CREATE STREAM {stream} (k BIGINT, ts TIMESTAMP) USING parquet OPTIONS "
            f"(path '{tmp_path / stream}/*', maxFilesPerTrigger 1) WATERMARK ts DELAY OF INTERVAL 1 SECOND"
        )
    session.sql(f"CREATE SINK out USING parquet OPTIONS (path '{tmp_path / 'out'}')")
    session.sql(f"SET wjoin.checkpoint = {tmp_path / 'checkpoints'}")
    insert = (
        "INSERT INTO out SELECT a.k FROM a, b, c PATH (a, b, c) WITHIN (1 SECOND, 1 SECOND) "
        "WHERE a.k = b.k AND b.k = c.k"
    )
    assert "assumes that keys and times are independent" in session.explain(f"EXPLAIN {insert}")
    session.run_script(insert)
    rate = session.spark.read.parquet(str(tmp_path / "out")).count() / 100
    explained = session.explain(f"EXPLAIN {insert}")
    found = statistics_of(explained)
    agreeing = r"keys agree \d+(\.\d+)? times as often as if independent of time \(measured\)"
    assert re.fullmatch(agreeing, found["a, b, c"])
    assert float(found["a, b, c"].split()[2]) > 5
    assert explained.documents[0]["chosen"]["results"] == pytest.approx(rate, rel=0.15)
