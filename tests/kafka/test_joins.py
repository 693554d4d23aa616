"""Joins of topics: old records and new ones, idle partitions, restarts, a broker that goes away."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

import wjoin
from tests.kafka.conftest import Topics
from wjoin.grammar.errors import WJoinWarning
from wjoin.progress import Progress, read
from wjoin.testing.broker import Broker
from wjoin.testing.waiting import until

pytestmark = pytest.mark.thorough


def sightings(first: int, last: int) -> list[dict[str, Any]]:
    """Return sightings of fifty objects, one in ten milliseconds, each out of order by less than a second."""
    return [
        {
            "row_id": n,
            "obj_id": n * 7919 % 50,
            "us": 1_714_557_600_000_000 + n * 10_000 + n * 37 % 97 * 10_000,
        }
        for n in range(first, last)
    ]


def as_json(rows: list[dict[str, Any]]) -> list[str]:
    return [json.dumps({**row, "ts": _instant(row["us"])}) for row in rows]


def _instant(us: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(us // 1_000_000)) + f".{us % 1_000_000:06}Z"


def streams(topics: Topics, names: dict[str, str], options: str = "") -> str:
    return "".join(
        f"""CREATE OR REPLACE STREAM {name} (row_id BIGINT, obj_id BIGINT, ts TIMESTAMP) USING kafka
        OPTIONS ({topics.options}, subscribe '{topic}'{options}) FORMAT JSON
        WATERMARK ts DELAY OF INTERVAL 2 SECONDS;\n"""
        for name, topic in names.items()
    )


PAIRS = """SELECT concat_ws('-', A.row_id, B.row_id) AS id, A.row_id AS a, B.row_id AS b
FROM camera1 A, camera2 B WINDOW (A, B) = 500 MILLISECONDS WHERE A.obj_id = B.obj_id"""


SET = "EXECUTE STATEMENT SET cameras BEGIN"


def expected(
    first: list[dict[str, Any]], second: list[dict[str, Any]], tmp_path: Path
) -> Counter[tuple[int, int]]:
    """Return what DuckDB finds in the same records, written to files."""
    for name, rows in (("one", first), ("two", second)):
        (tmp_path / f"{name}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = duckdb.sql(f"""
        SELECT a.row_id, b.row_id FROM read_json('{tmp_path}/one.json') a, read_json('{tmp_path}/two.json') b
        WHERE a.obj_id = b.obj_id AND abs(a.us - b.us) <= 500000
    """).fetchall()
    return Counter((a, b) for a, b in found)


def written(session: wjoin.Session, folder: Path) -> Counter[tuple[int, int]]:
    return Counter((row.a, row.b) for row in session.read.parquet(str(folder)).collect())


def command(jars: Path, folder: Path, text: str, *options: str) -> list[str]:
    """Return a command line that runs a script with Kafka on its class path."""
    (folder / "script.sql").write_text(text)
    settings = {
        "spark.jars": ",".join(map(str, sorted((jars / "connector").glob("*.jar")))),
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
    }
    sets = [each for name, value in settings.items() for each in ("--set", f"{name}={value}")]
    run = [sys.executable, "-m", "wjoin.cli", "run", str(folder / "script.sql")]
    return [*run, "--checkpoint", str(folder / "checkpoints"), *sets, *options]


@pytest.mark.quick
def test_a_second_run_goes_on_with_what_has_come_since(
    session: wjoin.Session, topics: Topics, tmp_path: Path
) -> None:
    names = {name: topics.name(name) for name in ("camera1", "camera2")}
    first, second = sightings(0, 600), sightings(200, 800)
    sink = f"CREATE OR REPLACE SINK pairs USING parquet OPTIONS (path '{tmp_path}/pairs');"
    text = f"{streams(topics, names)} {sink} INSERT INTO pairs {PAIRS};"
    for begun, end in ((0, 400), (400, 600)):
        for topic, rows in zip(names.values(), (first, second), strict=True):
            topics.write(topic, as_json(rows[begun:end]), partition=0)
        session.run_script(text, once=True, checkpoint=str(tmp_path / "checkpoints"))
    found = written(session, tmp_path / "pairs")
    assert len(found) > 100
    assert found == expected(first, second, tmp_path)


@pytest.mark.timeout(600)
def test_twenty_thousand_records_on_the_command_line(
    session: wjoin.Session, topics: Topics, jars: Path, tmp_path: Path
) -> None:
    """Two topics of old data, worked off by ``wjoin run``; a second run goes on with what has come since."""
    names = {name: topics.name(name) for name in ("camera1", "camera2")}
    first, second = sightings(0, 10_000), sightings(20_000, 30_000)
    second = [{**row, "us": row["us"] - 200_000_000} for row in second]
    for topic, rows in zip(names.values(), (first, second), strict=True):
        topics.write(topic, as_json(rows[:9_000]))
    sink = f"CREATE SINK pairs USING parquet OPTIONS (path '{tmp_path}/pairs');"
    text = f"{streams(topics, names)} {sink} INSERT INTO pairs {PAIRS};"
    run = command(jars, tmp_path, text, "--once")
    for began in (0, 9_000):
        done = subprocess.run(run, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert "0 late, 0 without event time" in done.stdout + done.stderr
        if began == 0:
            # On a checkpoint there is what was read: the rest joins the state.
            for topic, rows in zip(names.values(), (first, second), strict=True):
                topics.write(topic, as_json(rows[9_000:]))
    found = written(session, tmp_path / "pairs")
    assert len(found) > 5_000
    assert found == expected(first, second, tmp_path)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("begin", "end", "queries"),
    [("", "", ["out", "pairs"]), (SET, "END", ["cameras"])],
    ids=["alone", "in a set"],
)
def test_killed_and_started_again(
    session: wjoin.Session,
    topics: Topics,
    jars: Path,
    tmp_path: Path,
    begin: str,
    end: str,
    queries: Sequence[str],
) -> None:
    """Nothing is lost; a file sink has nothing twice, a topic has what a broken micro-batch wrote twice."""
    names = {name: topics.name(name) for name in ("camera1", "camera2")}
    out = topics.name("out")
    first, second = sightings(0, 6_000), sightings(0, 6_000)
    for topic, rows in zip(names.values(), (first, second), strict=True):
        topics.write(topic, as_json(rows), partition=0)
    text = streams(topics, names, ", maxOffsetsPerTrigger '300'")
    text += f"""
        CREATE SINK pairs USING parquet OPTIONS (path '{tmp_path}/pairs');
        CREATE SINK out USING kafka OPTIONS ({topics.options}, topic '{out}') FORMAT JSON KEY (id);
        {begin} INSERT INTO out {PAIRS}; INSERT INTO pairs {PAIRS}; {end}
    """
    commits = [tmp_path / "checkpoints" / name / "commits" for name in queries]

    def done() -> int:
        return min(len(list(folder.glob("[0-9]*"))) for folder in commits)

    def goes_on(child: subprocess.Popen[bytes], micro_batches: int) -> bool:
        return child.poll() is not None or done() >= micro_batches

    for _ in range(2):
        before = done()
        with (tmp_path / "log").open("wb") as log:
            child = subprocess.Popen(
                command(jars, tmp_path, text), start_new_session=True, stdout=log, stderr=log
            )
        try:
            until(partial(goes_on, child, before + 2), "two micro-batches")
            assert child.poll() is None, (tmp_path / "log").read_text()
        finally:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    ended = subprocess.run(
        command(jars, tmp_path, text, "--once"), capture_output=True, text=True, timeout=400
    )
    assert ended.returncode == 0, ended.stderr
    wanted = expected(first, second, tmp_path)
    assert written(session, tmp_path / "pairs") == wanted
    records = [(key, json.loads(value or "")) for key, value in topics.read(out)]
    assert all(key == value["id"] for key, value in records)
    found = Counter((value["a"], value["b"]) for _, value in records)
    assert found.keys() == wanted.keys()
    # A reader tells doubles by the key: it says which records have met.
    assert max(found.values()) <= 3
    assert sum(found.values()) < 2 * sum(wanted.values())


def progress(query: Any) -> list[Progress]:
    return [read(each) for each in query.recentProgress]


def has_read(query: Any, rows: int) -> bool:
    return sum(sum(each.rows_in.values()) for each in progress(query)) == rows


@pytest.mark.timeout(600)
@pytest.mark.long
def test_an_idle_partition_holds_nothing_back(session: wjoin.Session, topics: Topics, tmp_path: Path) -> None:
    """Of three partitions only one has records: results come, watermarks move, state goes."""
    names = {name: topics.name(name) for name in ("camera1", "camera2")}
    first = sightings(0, 4_000)
    for topic in names.values():
        topics.write(topic, as_json(first[:1]), partition=1)
    session.run_script(
        streams(topics, names) + f"CREATE SINK pairs USING parquet OPTIONS (path '{tmp_path}/pairs')"
    )
    (query,) = session.run_script(
        f"INSERT INTO pairs {PAIRS}", once=False, checkpoint=str(tmp_path / "checkpoints")
    )
    try:
        for start in range(1, 4_000, 1_333):
            rows = first[start : start + 1_333]
            for topic in names.values():
                topics.write(topic, as_json(rows), partition=1)
            until(partial(has_read, query, 2 * (start + len(rows))), "all records are read")
        last = [each for each in progress(query) if each.rows_in][-1]
    finally:
        query.stop()
    assert written(session, tmp_path / "pairs") == expected(first, first, tmp_path)
    # A window of half a second and a delay of two, of a hundred rows a second.
    assert max(last.state_rows.values()) < 1_333
    assert max(first[-1]["us"] - 2_000_000 - each for each in last.watermarks.values()) < 1_000_000


@pytest.mark.timeout(600)
@pytest.mark.long
def test_a_silent_topic_lets_others_go_on(session: wjoin.Session, topics: Topics, tmp_path: Path) -> None:
    """Two of its three partitions are empty; once it sends again, what is behind the others is late."""
    names = {name: topics.name(name) for name in ("camera1", "camera2")}
    on = "camera1 A LEFT JOIN camera2 B ON A.obj_id = B.obj_id WINDOW (A, B) = 500 MILLISECONDS"
    query = f"INSERT INTO pairs SELECT A.row_id AS a, B.row_id AS b FROM {on}"

    def send(name: str, *rows: tuple[int, int, int]) -> None:
        found = [
            {"row_id": n, "obj_id": k, "us": (1_714_557_600 + second) * 1_000_000} for n, k, second in rows
        ]
        topics.write(names[name], as_json(found), partition=1)

    def run() -> Counter[tuple[int, int]]:
        session.run_script(query, checkpoint=str(tmp_path / "checkpoints"))
        return written(session, tmp_path / "pairs")

    send("camera1", (1, 1, 0), (2, 2, 0))
    send("camera2", (11, 1, 0))
    silent = "2 SECONDS IDLE AFTER 1 MILLISECOND;"
    session.run_script(
        streams(topics, names).replace("2 SECONDS;", silent)
        + f"CREATE SINK pairs USING parquet OPTIONS (path '{tmp_path}/pairs')"
    )
    assert run() == Counter([(1, 11)])
    send("camera1", (3, 3, 100))
    assert run() == Counter([(1, 11), (2, None)])
    send("camera2", (12, 2, 0), (13, 3, 100))
    with pytest.warns(WJoinWarning, match=r"WJ803.*1 late row \(1 of B\)"):
        assert run() == Counter([(1, 11), (2, None), (3, 13)])


@pytest.mark.timeout(600)
def test_a_broker_goes_away_and_comes_back(session: wjoin.Session, jars: Path, tmp_path: Path) -> None:
    """The query waits for it, and goes on."""
    broker = Broker(jars / "broker", tmp_path / "broker")
    topics, rows = Topics(session.spark, broker.servers), sightings(0, 400)
    names = {name: topics.name(name) for name in ("camera1", "camera2")}
    try:
        broker.start()
        for topic in names.values():
            topics.write(topic, as_json(rows[:200]), partition=0)
        declared = f"CREATE SINK pairs USING parquet OPTIONS (path '{tmp_path}/pairs')"
        session.run_script(streams(topics, names) + declared)
        (query,) = session.run_script(
            f"INSERT INTO pairs {PAIRS}", once=False, checkpoint=str(tmp_path / "checkpoints")
        )
        until(lambda: has_read(query, 400), "the first records are read")
        broker.kill()
        time.sleep(5)
        assert query.isActive
        broker.start()
        for topic in names.values():
            topics.write(topic, as_json(rows[200:]), partition=0)
        until(lambda: has_read(query, 800), "the rest is read")
        query.stop()
        assert written(session, tmp_path / "pairs") == expected(rows, rows, tmp_path)
    finally:
        for each in session.streams.active:
            each.stop()
        broker.kill()


@pytest.mark.timeout(400)
def test_records_that_are_gone(session: wjoin.Session, topics: Topics, tmp_path: Path) -> None:
    """They end a query, or are counted and told of, as ``failOnDataLoss`` says."""
    topic, rows = topics.name("short"), sightings(0, 30)
    topics.write(topic, as_json(rows[:10]), partition=0)

    def run(option: str = "") -> None:
        session.run_script(
            streams(topics, {"camera1": topic, "camera2": topic}, option)
            + f"""CREATE OR REPLACE SINK pairs USING parquet OPTIONS (path '{tmp_path}/pairs');
            INSERT INTO pairs {PAIRS} AND A.row_id = B.row_id""",
            checkpoint=str(tmp_path / "checkpoints"),
        )

    run()
    topics.write(topic, as_json(rows[10:]), partition=0)
    remove(topics, topic, before=17)
    with pytest.raises(wjoin.WJoinError, match="Some data may have been lost") as failed:
        run()
    assert failed.value.code == "WJ704"
    assert "failOnDataLoss" in str(failed.value.help)
    with pytest.warns(wjoin.WJoinWarning, match="WJ810") as told:
        run(", failOnDataLoss 'false'")
    assert any("the query pairs has not found 7 records" in str(each.message) for each in told)
    assert sorted(written(session, tmp_path / "pairs")) == [(n, n) for n in range(30) if not 10 <= n < 17]


def remove(topics: Topics, topic: str, before: int) -> None:
    """Remove the first records of a topic's first partition, as its retention would."""
    java: Any = topics.spark._jvm
    settings = java.java.util.HashMap()
    settings["bootstrap.servers"] = topics.servers
    partition = java.org.apache.kafka.common.TopicPartition(topic, 0)
    # A method of an object has the same name, which is the one that Py4J finds.
    gateway: Any = topics.spark.sparkContext._gateway
    types, values = gateway.new_array(java.Class, 1), gateway.new_array(java.Object, 1)
    types[0], values[0] = java.Long.TYPE, before
    kind = java.Class.forName("org.apache.kafka.clients.admin.RecordsToDelete")
    removed = java.java.util.HashMap()
    removed[partition] = kind.getMethod("beforeOffset", types).invoke(None, values)
    client = java.org.apache.kafka.clients.admin.AdminClient.create(settings)
    client.deleteRecords(removed).all().get()
    client.close()
