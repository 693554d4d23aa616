"""The pages about real data say what is true: their statements run, in order, on files as they describe."""

import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

import wjoin
from tests.packages import ROOT
from wjoin.executor.spark.once import collect_once

pytestmark = pytest.mark.long

_BLOCK = re.compile(r"^```(sql|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_KAFKA = re.compile(r"USING kafka OPTIONS \(.*?\)", re.DOTALL)


def lines(*rows: object) -> str:
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)


@pytest.fixture
def page(session: wjoin.Session, tmp_path: Path) -> Callable[[str], None]:
    """Runs a page in a folder of its own, its Kafka as files with the columns of Kafka."""

    def run(name: str) -> None:
        text = (ROOT / "docs" / name).read_text("utf-8")
        for language, block in _BLOCK.findall(text):
            placed = re.sub(r"""(['"])(data|out)/""", rf"\1{tmp_path}/\2/", block)
            placed = _KAFKA.sub(f"USING json OPTIONS (path '{tmp_path}/data/kafka')", placed)
            placed = placed.replace("STREAM orders (", "STREAM orders (value STRING, timestamp TIMESTAMP, ")
            if language == "python":
                exec(placed, {"session": session})
            else:
                session.run_script(placed, checkpoint=f"{tmp_path}/checkpoints")

    return run


def write(folder: Path, name: str, text: str) -> None:
    (folder / "data" / name).mkdir(parents=True)
    (folder / "data" / name / "1").write_text(text)


def found(session: wjoin.Session, folder: Path, name: str, *columns: str) -> list[tuple[object, ...]]:
    rows = session.read.format("parquet").load(f"{folder}/out/{name}").selectExpr(*columns).collect()
    return sorted(map(tuple, rows))


BEGIN = 1_714_557_600  # 2024-05-01T10:00:00Z


def test_event_time(session: wjoin.Session, tmp_path: Path, page: Callable[[str], None]) -> None:
    clicks = [{"customer": 7, "ms": BEGIN * 1000 + 250}, {"customer": 8, "ms": BEGIN * 1000}]
    write(tmp_path, "clicks", lines(*clicks))
    payments = [(7, BEGIN + 5), (7, BEGIN + 6), (8, BEGIN + 5), (8, BEGIN - 1)]
    write(tmp_path, "payments", lines(*({"customer": c, "s": s, "amount": 1.5} for c, s in payments)))
    times = [
        "2024-05-01T10:00:00Z",
        "2024-05-01T12:09:00.5+02:00",
        "2024-05-01 10:20:00.5",
        "yesterday",
        None,
    ]
    write(tmp_path, "visits", lines(*({"customer": n, "t": t} for n, t in enumerate(times))))
    write(tmp_path, "calls", "customer,at\n" + "".join(f"{n},01.05.2024 10:10:00\n" for n in range(5)))
    scans = "a,2024-05-01,23:30:00\na,2024-05-02,00:30:00\na,2024-05-02,00:30:00.5\nb,2024-05-01,10:00:00\n"
    write(tmp_path, "scans", "item,day,clock\n" + scans)
    sent = [json.dumps({"customer": 7, "ms": BEGIN * 1000 + 60_250}), "nothing", json.dumps({"customer": 8})]
    write(tmp_path, "kafka", lines(*({"value": v, "timestamp": "2024-05-01T11:00:00Z"} for v in sent)))
    session.sql(f"SELECT 7L AS customer, {BEGIN}L AS s").createOrReplaceTempView("logins")
    page("event-time.md")
    seconds = [
        (7, "2024-05-01 10:00:00.25", "2024-05-01 10:00:05"),
        (8, "2024-05-01 10:00:00", "2024-05-01 10:00:05"),
    ]
    assert found(session, tmp_path, "bought", "customer", "string(clicked)", "string(paid)") == seconds
    assert found(session, tmp_path, "called", "customer", "string(visited)") == [
        (0, "2024-05-01 10:00:00"),
        (1, "2024-05-01 10:09:00.5"),
    ]
    assert found(session, tmp_path, "twice", "item", "string(first)", "string(second)") == [
        ("a", "2024-05-01 23:30:00", "2024-05-02 00:30:00"),
        ("a", "2024-05-02 00:30:00", "2024-05-02 00:30:00.5"),
    ]
    assert found(session, tmp_path, "ordered", "customer", "string(ordered)") == [
        (7, "2024-05-01 10:01:00.25")
    ]
    assert [row.at.second for row in session.table("logins_in_time").collect()] == [0]


@pytest.mark.parametrize(
    ("written", "computed"),
    [
        ("1714557600 AS t", "timestamp_seconds(t)"),
        ("1714557600.25D AS t", "timestamp_seconds(t)"),
        ("1714557600250 AS t", "timestamp_millis(t)"),
        ("1714557600250000 AS t", "timestamp_micros(t)"),
        ("1714557600250000000 AS t", "timestamp_micros(t DIV 1000)"),
        ("'2024-05-01T10:00:00.250Z' AS t", "try_to_timestamp(t)"),
        ("'01.05.2024 10:00:00' AS t", "try_to_timestamp(t, 'dd.MM.yyyy HH:mm:ss')"),
        ("DATE '2024-05-01' AS day, '10:00:00' AS clock", "to_timestamp(concat(day, ' ', clock))"),
    ],
)
def test_forms_of_event_time(session: wjoin.Session, written: str, computed: str) -> None:
    assert f"| `at AS {computed}` |" in (ROOT / "docs" / "event-time.md").read_text("utf-8")
    ((time,),) = session.sql(f"SELECT date_trunc('second', {computed}) FROM (SELECT {written})").collect()
    assert str(time) == "2024-05-01 10:00:00"


def test_broken_records(session: wjoin.Session, tmp_path: Path, page: Callable[[str], None]) -> None:
    text = (ROOT / "docs" / "broken-records.md").read_text("utf-8")
    table = re.findall(r"^\| `(.+?)` \| (\S+) \| (.+?) \|$", text, re.MULTILINE)
    write(tmp_path, "clicks", lines(*(line for line, _, _ in table)))
    page("broken-records.md")
    session.sql("CREATE SINK seen USING parquet OPTIONS (path '" + f"{tmp_path}/out/seen')")
    session.run_script("INSERT INTO seen SELECT * FROM clicks", checkpoint=f"{tmp_path}/checkpoints")
    columns = "coalesce(string(customer), 'NULL')", "coalesce(string(at), 'NULL')"
    assert found(session, tmp_path, "seen", *columns) == sorted((c, at) for _, c, at in table)

    def read(name: str) -> list[str]:
        return sorted(row.line for row in session.read.json(f"{tmp_path}/out/{name}").collect() if row.line)

    broken = [line for line, _, _ in table[1:4]]
    assert read("broken") == sorted(broken)
    assert session.read.json(f"{tmp_path}/out/broken").selectExpr("count(file)").collect()[0][0] == 3
    assert session.read.json(f"{tmp_path}/out/timeless").count() == 3
    assert read("timeless") == sorted([broken[0], broken[2]])
    assert sorted(row.customer for row in session.read.json(f"{tmp_path}/out/kept").collect()) == [1, 5]


def test_deduplication(session: wjoin.Session, tmp_path: Path, page: Callable[[str], None]) -> None:
    def click(id: str, customer: int, second: int) -> dict[str, object]:
        return {"id": id, "customer": customer, "at": f"2024-05-01T10:00:{second:02d}Z"}

    clicks = [click("a", 1, 0), click("b", 2, 3), click("b", 2, 3), click("c", 1, 2), click("a", 1, 0)]
    write(tmp_path, "clicks", lines(*clicks, click("d", 3, 30)))
    write(tmp_path, "views", lines(*clicks))
    write(tmp_path, "payments", lines(*(click("", c, s) for c, s in ((1, 4), (2, 5), (3, 31)))))
    for name in ("clicks", "payments"):
        schema = "id STRING, customer BIGINT, at TIMESTAMP"
        session.read.schema(schema).json(f"{tmp_path}/data/{name}").createOrReplaceTempView(f"old_{name}")
    page("deduplication.md")
    once = [("a", 1), ("b", 2), ("c", 1), ("d", 3)]
    assert found(session, tmp_path, "bought", "id", "customer") == once
    views = session.spark.table(collect_once(session.sql("SELECT id FROM views_once"))).collect()
    assert sorted(row.id for row in views) == ["a", "b", "c"]


def test_late_rows(session: wjoin.Session, tmp_path: Path, page: Callable[[str], None]) -> None:
    for name, shift in (("requests", 0), ("replies", 2), ("sensors", 0)):
        rows = [{"id": i, "at": f"2024-05-01T10:00:{i + shift:02}Z"} for i in range(1, 30)]
        write(tmp_path, name, lines(*rows))
    page("late-rows.md")
    statement = "SELECT R.id FROM both_ways AS R, paid AS P WINDOW (R, P) = 5 SECONDS WHERE R.id = P.id"
    with pytest.raises(wjoin.WJoinError, match="WJ215"):
        session.sql(statement)
    named = statement.replace("both_ways AS", "both_ways WATERMARK at DELAY OF INTERVAL 20 SECONDS AS")
    assert "P = paid: event time paid_at, delay 10 s" in session.explain(named)
    # Each reply meets its request and itself.
    assert session.spark.table(collect_once(session.sql(named))).count() == 58


def test_joins_without_a_key(session: wjoin.Session, tmp_path: Path, page: Callable[[str], None]) -> None:
    chance = random.Random(1)

    def seen(number: int, name: str, **more: object) -> dict[str, Any]:
        at = BEGIN + chance.randrange(3600)
        place = {"lat": 52.5 + chance.uniform(-0.03, 0.03), "lon": 13.4 + chance.uniform(-0.05, 0.05)}
        return {name: number, "second": at, **place, **more}

    vans = [seen(n, "van", speed=chance.randrange(30, 80)) for n in range(200)]
    calls = [seen(n, "call", allowed=chance.choice([30, 50, 70])) for n in range(60)]
    for name, rows in (("vans", vans), ("calls", calls)):
        rows.sort(key=lambda row: row["second"])
        stamped = [{**row, "ts": datetime.fromtimestamp(row["second"], UTC).isoformat()} for row in rows]
        write(tmp_path, name, lines(*stamped))
    page("joins-without-a-key.md")

    def pairs(condition: Callable[[dict[str, Any], dict[str, Any]], bool]) -> list[tuple[str, int]]:
        inside = ((v, c) for v in vans for c in calls if abs(v["second"] - c["second"]) <= 300)
        return sorted((str(v["van"]), c["call"]) for v, c in inside if condition(v, c))

    def kilometres(v: dict[str, Any], c: dict[str, Any]) -> float:
        north, east = math.radians(v["lat"] - c["lat"]), math.radians(v["lon"] - c["lon"])
        return 6371.0088 * math.hypot(north, east * math.cos(math.radians((v["lat"] + c["lat"]) / 2)))

    boxed = pairs(lambda v, c: abs(v["lat"] - c["lat"]) <= 0.018 and v["speed"] > c["allowed"])
    squared = pairs(lambda v, c: (v["lat"] - c["lat"]) ** 2 + (v["lon"] - c["lon"]) ** 2 * 0.37 <= 0.0003)
    near = pairs(lambda v, c: kilometres(v, c) < 2)
    assert boxed
    assert squared
    assert near
    assert found(session, tmp_path, "boxed", "van", "call") == boxed
    assert found(session, tmp_path, "squared", "van", "call") == squared
    for name in ("near", "near_psp", "near_atr", "near_range"):
        assert found(session, tmp_path, name, "van", "call") == near
    text = (ROOT / "docs" / "joins-without-a-key.md").read_text("utf-8")
    explained = re.findall(r"```sql\nEXPLAIN (.*?)```.*?```text\n(.*?)```", text, re.DOTALL)
    assert len(explained) == 1
    session.sql("SET wjoin.cores = 2")
    for statement, shown in explained:
        assert shown in str(session.explain(statement))


def test_spark_refuses_joins_of_streams_without_a_key(session: wjoin.Session) -> None:
    rate = session.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    inside = "a.timestamp BETWEEN b.timestamp - INTERVAL 5 SECONDS AND b.timestamp AND a.value < b.value"
    joined = rate.alias("a").join(rate.alias("b"), F.expr(inside))
    said = "Stream-stream join without equality predicate is not supported"
    assert said in (ROOT / "docs" / "joins-without-a-key.md").read_text("utf-8")
    with pytest.raises(StreamingQueryException, match=said):
        collect_once(joined)


@pytest.mark.parametrize("name", ["from-spark", "from-flink", "from-ksqldb"])
def test_coming_from_other_systems(session: wjoin.Session, tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    for stream in ("impressions", "clicks", "orders", "shipments"):
        rows = []
        for number in range(120):
            at = datetime.fromtimestamp(BEGIN + 60 * number + chance.uniform(0, 60), UTC).isoformat()
            times = dict.fromkeys(("ts", "order_time", "ship_time"), at)
            rows.append(
                {"id": number % 7, "order_id": number % 7, "ad": f"ad {number}", "price": 1.0, **times}
            )
        write(tmp_path, stream, lines(*rows))
    blocks = [text for language, text in _BLOCK.findall((ROOT / "docs" / f"{name}.md").read_text("utf-8"))]
    session.run_script(blocks[0].replace("'data/", f"'{tmp_path}/data/"))
    for theirs, ours in zip(blocks[1::2], blocks[2::2], strict=True):
        first, second = (
            Counter(map(tuple, session.spark.table(collect_once(session.sql(each))).collect()))
            for each in (theirs, ours)
        )
        assert first
        assert first == second
