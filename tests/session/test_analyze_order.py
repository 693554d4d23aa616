"""ANALYZE STREAM tells how far rows are out of order as they arrive, or nothing of it."""

import csv
import json
import os
import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wjoin
from tests.tiers import tiers
from wjoin.measured.kept_streams import kept_streams

START = datetime(2026, 1, 1, tzinfo=UTC)
UNITS = {"ms": 1, "s": 1000, "min": 60_000}
SECONDS = 9
"""How far rows are out of order, at the most."""


def write(path: Path, rows: list[tuple[int, datetime]]) -> None:
    """Write rows as the ending of the file says."""
    if path.suffix == ".parquet":
        numbers, times = zip(*rows, strict=True)
        table = {"id": pa.array(numbers, pa.int64()), "ts": pa.array(times, pa.timestamp("us", "UTC"))}
        pq.write_table(pa.table(table), path, row_group_size=500)
        return
    texts = [(number, time.isoformat().replace("+00:00", "Z")) for number, time in rows]
    with path.open("w", newline="") as file:
        if path.suffix == ".csv":
            csv.writer(file).writerows(texts)
        else:
            file.writelines(json.dumps(dict(zip(("id", "ts"), each, strict=True))) + "\n" for each in texts)


def files(folder: Path, kind: str, count: int, rows: int) -> float:
    """Write files, one stretch of time after the other, under names at random; return the disorder."""
    folder.mkdir()
    chance = random.Random(f"{kind} {count}")
    names = chance.sample(range(1000), count)
    latest, behind = datetime.min.replace(tzinfo=UTC), timedelta(0)
    for number, name in enumerate(names):
        held = rows // 2 + chance.randrange(rows)
        times = [
            START + timedelta(seconds=number * 100 + place * 100 / held - chance.random() * SECONDS)
            for place in range(held)
        ]
        path = folder / f"{name}.{kind}"
        write(path, list(enumerate(times)))
        moment = (START + timedelta(seconds=number)).timestamp()
        os.utime(path, (moment, moment))
        for time in times:
            latest = max(latest, time)
            behind = max(behind, latest - time)
    return behind.total_seconds()


def declare(session: wjoin.Session, folder: Path, kind: str, more: str = "") -> None:
    session.sql(
        f"CREATE OR REPLACE STREAM s (id BIGINT, ts TIMESTAMP) USING {kind} OPTIONS (path '{folder}'{more}) "
        "WATERMARK ts DELAY OF INTERVAL 10 SECONDS"
    )


def disorder(session: wjoin.Session, statement: str = "ANALYZE STREAM s") -> tuple[float | None, str, str]:
    found = {row.statistic: row for row in session.sql(statement).collect()}
    return found["disorder"].value, found["disorder"].unit, found["disorder"].source


@pytest.mark.parametrize("kind", tiers(["json", "csv", "parquet"], long=["json", "parquet"]))
@pytest.mark.parametrize(
    ("count", "rows", "split", "more"),
    [
        pytest.param(20, 400, None, "", id="several files a partition"),
        pytest.param(20, 400, None, ", maxFilesPerTrigger 8", id="several micro-batches"),
        pytest.param(150, 10, None, "", id="many small files", marks=pytest.mark.long),
        pytest.param(2, 6000, "16k", "", id="large files in splits", marks=pytest.mark.long),
    ],
)
def test_disorder_of_files_is_that_of_their_rows_as_they_arrive(
    session: wjoin.Session, tmp_path: Path, kind: str, count: int, rows: int, split: str | None, more: str
) -> None:
    expected = files(tmp_path / "in", kind, count, rows)
    assert expected < SECONDS
    if split is not None:
        session.conf.set("spark.sql.files.maxPartitionBytes", split)
    declare(session, tmp_path / "in", kind, more)
    value, unit, source = disorder(session)
    assert value == pytest.approx(expected, abs=1e-6)
    assert (unit, source) == ("seconds", "analyzed")


@pytest.mark.long
def test_a_stream_from_python_keeps_the_order_of_its_files(session: wjoin.Session, tmp_path: Path) -> None:
    expected = files(tmp_path / "in", "json", 10, 50)
    reader = session.readStream.format("json").schema("id BIGINT, ts TIMESTAMP")
    read = reader.load(str(tmp_path / "in")).selectExpr("id + 1 AS k", "ts")
    session.stream("s", read, "ts", "10 seconds")
    assert disorder(session)[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.long
def test_nothing_is_claimed_where_the_order_is_not_known(session: wjoin.Session, tmp_path: Path) -> None:
    files(tmp_path / "in", "json", 6, 200)
    unknown = (None, "seconds", "unknown")
    declare(session, tmp_path / "in", "json", ", latestFirst 'true'")
    assert disorder(session) == unknown
    declare(session, tmp_path / "in", "json")
    assert disorder(session, "ANALYZE STREAM s SAMPLE 100 ROWS") == unknown
    read = session.readStream.format("json").schema("id BIGINT, ts TIMESTAMP").load(str(tmp_path / "in"))
    session.stream("s", read.repartition(4), "ts", "10 seconds")
    assert disorder(session) == unknown
    rate = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
    session.stream("s", rate, "timestamp")
    assert disorder(session) == unknown
    # Rows of a table come all at once.
    session.stream("s", session.read.schema("id BIGINT, ts TIMESTAMP").json(str(tmp_path / "in")), "ts")
    assert "disorder" not in {row.statistic for row in session.sql("ANALYZE STREAM s").collect()}


@pytest.mark.long
def test_rows_of_a_log_are_in_the_order_of_their_offsets(session: wjoin.Session) -> None:
    """A source with Kafka's columns: two partitions, one of them hours ahead of the other."""
    reader = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 200)
    rows = reader.option("numPartitions", 2).load().selectExpr(
        "'t' AS topic",
        "CAST(value % 2 AS INT) AS partition",
        "value AS offset",
        "timestamp_seconds(value % 2 * 10000 + value - IF(value % 20 >= 18, 7, 0)) AS ts",
    )  # fmt: skip
    session.stream("s", rows, "ts", "10 seconds")
    # A row of 18 is 7 s back, behind that of 16 in its partition; the next two are 9 s and 7 s after it.
    assert disorder(session) == (5, "seconds", "analyzed")


def test_whole_number_time_is_told_in_its_own_unit(session: wjoin.Session, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    large = 1 << 60
    lines = [{"step": large + step, "id": (1 << 62) + step} for step in (1, 5, 2, 9)]
    (tmp_path / "in" / "a.json").write_text("".join(json.dumps(each) + "\n" for each in lines))
    session.sql(
        f"CREATE OR REPLACE STREAM s (id BIGINT, step BIGINT) USING json OPTIONS (path '{tmp_path / 'in'}') "
        "WATERMARK step DELAY OF 5"
    )
    assert disorder(session) == (3, "units", "analyzed")


@pytest.mark.long
def test_a_delay_is_proposed_where_the_declared_one_loses_rows(
    session: wjoin.Session, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    lines = [{"step": step} for step in (1, 1250, 2, 9000)]
    (tmp_path / "in" / "a.json").write_text("".join(json.dumps(each) + "\n" for each in lines))
    for delay, proposed in ((1247, [(1300.0, "units", "proposed")]), (1248, [])):
        session.sql(
            f"CREATE OR REPLACE STREAM s (step BIGINT) USING json OPTIONS (path '{tmp_path / 'in'}') "
            f"WATERMARK step DELAY OF {delay}"
        )
        rows = session.sql("ANALYZE STREAM s").collect()
        assert [tuple(row)[1:] for row in rows if row.statistic == "delay"] == proposed


@pytest.mark.long
@pytest.mark.parametrize("form", ["millis", "text"])
def test_explain_delay_counts_as_a_model_does(session: wjoin.Session, tmp_path: Path, form: str) -> None:
    """Rows behind by up to a minute, some of them twice, between lines that are none."""
    chance, at, behind, latest = random.Random(form), 1_700_000_000_000, [], 0
    (tmp_path / "in").mkdir()
    for number in range(4):
        lines = ['{"id": 1, "at": ', "no line of JSON", '{"id": 2}']
        for _ in range(200):
            at += chance.randrange(2000)
            time = at - int(chance.paretovariate(1) * 1000) % 120_000
            for _ in range(1 + (chance.random() < 0.2)):
                latest = max(latest, time)
                behind.append(latest - time)
                told = datetime.fromtimestamp(time / 1000, UTC).isoformat() if form == "text" else time
                lines.append(json.dumps({"id": chance.choice([7, 7, 7, number]), "at": told}))
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(lines))
        os.utime(tmp_path / "in" / f"{number}.json", (number, number))
    kind, read = ("BIGINT", "timestamp_millis(at)") if form == "millis" else ("STRING", "to_timestamp(at)")
    session.sql(
        f"""CREATE OR REPLACE STREAM s (id BIGINT, at {kind}, ts AS {read}) USING json
        OPTIONS (path '{tmp_path / "in"}') WATERMARK ts DELAY OF INTERVAL 10.5 SECONDS"""
    )
    told = session.sql("EXPLAIN DELAY s").collect()[0][0].splitlines()
    assert told[0].startswith(f"s: {len(behind):,} rows with ts")
    rows = [line for line in told[2:] if line.startswith("  ")]
    assert len(rows) > 4
    for line in rows:
        found = re.match(r"  ((?:\d+ [a-z]+ ?)+)(?:\(declared\))? +([\d,]+) ", line)
        assert found is not None, line
        words = found[1].split()
        delay = sum(int(many) * UNITS[unit] for many, unit in zip(words[::2], words[1::2], strict=True))
        assert int(found[2].replace(",", "")) == sum(each > delay for each in behind), line
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "0.json").write_text("no line of JSON\n")
    declare(session, tmp_path / "none", "json")
    assert "or it has none" in session.sql("EXPLAIN DELAY s").collect()[0][0]


@pytest.mark.long
def test_explain_delay_tells_the_results_that_late_rows_lose(session: wjoin.Session, tmp_path: Path) -> None:
    for name in ("p", "q"):
        (tmp_path / name).mkdir()
        chance = random.Random(name)
        rows = [{"id": each % 5, "n": each * 3 - chance.randrange(20)} for each in range(100)]
        (tmp_path / name / "0.json").write_text("".join(json.dumps(each) + "\n" for each in rows))
        session.sql(
            f"CREATE OR REPLACE STREAM {name} (id BIGINT, n BIGINT) USING json OPTIONS "
            f"(path '{tmp_path / name}') WATERMARK n DELAY OF 20"
        )
    session.sql(
        f"CREATE OR REPLACE SINK found USING parquet OPTIONS (path '{tmp_path}/out', "
        f"checkpointLocation '{tmp_path}/kept')"
    )
    insert = "INSERT INTO found SELECT P.n FROM p P, q Q WINDOW (P, Q) = 30 WHERE P.id = Q.id"
    session.run_script(insert, once=True)
    results = session.read.parquet(str(tmp_path / "out")).count()
    lines = session.sql("EXPLAIN DELAY p").collect()[0][0].splitlines()
    heads = ["delay", "late", "rows", "of", "all", "lost", "of", "found", "state", "of", "found"]
    assert lines[1].split() == heads
    late, lost = int(lines[2].split()[1]), float(lines[2].split()[4].replace(",", ""))
    assert lost == pytest.approx(late * results / 100, rel=0.01)
    # Rows of Q are kept for 30, and for as long as P is late.
    for line in (each for each in lines[2:] if each.startswith("  ")):
        delay, shown, unit = int(line.split()[0]), *line.rstrip(" █").split()[-2:]
        of_q = whole_of(session, "Q") * (30 + delay) / (30 + 20)
        size = float(shown.replace(",", "")) * {"bytes": 1, "kB": 1e3}[unit]
        assert size == pytest.approx(whole_of(session, "P") + of_q, rel=0.02), line
    # Another session knows the query by its checkpoint, and estimates its state.
    other = wjoin.connect(session.spark.newSession())
    for name in ("p", "q"):
        other.sql(
            f"CREATE OR REPLACE STREAM {name} (id BIGINT, n BIGINT) USING json OPTIONS "
            f"(path '{tmp_path / name}') WATERMARK n DELAY OF 20"
        )
    other.sql(
        f"CREATE OR REPLACE SINK found USING parquet OPTIONS (path '{tmp_path}/out', "
        f"checkpointLocation '{tmp_path}/kept')"
    )
    again = other.sql("EXPLAIN DELAY p").collect()[0][0].splitlines()
    assert again[1].split() == heads
    assert again[2].split()[:5] == lines[2].split()[:5]


def whole_of(session: wjoin.Session, alias: str) -> float:
    """The bytes that a query keeps of a stream, once all is there that is to come."""
    (planned,), done = session.running[-1].planned, session.running[-1].totals.total
    (found,) = (each for each in kept_streams(planned, done) if each.alias == alias)
    return found.bytes + (found.to_come or 0.0)


def test_explain_delay_counts_late_rows(session: wjoin.Session, tmp_path: Path) -> None:
    assert files(tmp_path / "in", "json", 5, 100) < 10
    declare(session, tmp_path / "in", "json")
    lines = session.sql("EXPLAIN DELAY s").collect()[0][0].splitlines()
    assert lines[2].split()[:2] == ["0", "s"] and int(lines[2].split()[2]) > 0
    assert "  10 s (declared)             0       none" in lines
    with pytest.raises(wjoin.WJoinError, match="WJ602"):
        session.sql("EXPLAIN DELAY no_such_stream")
