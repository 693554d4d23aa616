"""EXPLAIN MATCH over topics: which micro-batch read a record, while the query runs and after its end."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

import wjoin
from tests.kafka.conftest import Topics
from wjoin.testing.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore:.*WJ80[346]")]

DELAY = 5
PAIRS = "INSERT INTO pairs SELECT A.n FROM one A, two B WINDOW (A, B) = 9 WHERE A.k = B.k"


def told(session: wjoin.Session, text: str, **values: object) -> str:
    return str(session.sql(text, values).collect()[0][0])


def declare(session: wjoin.Session, topics: Topics, folder: Path, options: str = "") -> dict[str, str]:
    names = {name: topics.name(name) for name in ("one", "two")}
    for name, topic in names.items():
        topics.write(topic, [json.dumps({"n": 0, "k": -1})], partition=2)
        session.sql(
            f"""CREATE OR REPLACE STREAM {name} (n BIGINT, k INT, WATERMARK FOR n AS n - {DELAY}) USING kafka
            OPTIONS ({topics.options}, subscribe '{topic}'{options}) FORMAT JSON"""
        )
    session.sql(
        f"""CREATE OR REPLACE SINK pairs USING parquet
        OPTIONS (path '{folder}/out', checkpointLocation '{folder}/kept')"""
    )
    return names


def test_each_record_is_judged_by_the_micro_batch_that_read_it(
    session: wjoin.Session, topics: Topics, tmp_path: Path
) -> None:
    """Each run is a micro-batch; a model knows the watermark before each."""
    chance, names = random.Random(7), declare(session, topics, tmp_path)
    expected: dict[tuple[str, int], str] = {}
    seen, key = dict.fromkeys(names, 0), 0
    for run in range(3):
        session.run_script(PAIRS, once=True)
        for name, topic in names.items():
            rows = []
            for _ in range(6):
                key += 1
                rows.append((40 * run + chance.randint(-20, 40), key))
                by = seen[name] - DELAY - rows[-1][0]
                late = f"{'A' if name == 'one' else 'B'} came late, by {by}: micro-batch {run + 1} read it"
                expected[name, key] = late if by > 0 else ""
            for partition in (0, 1):
                records = [json.dumps({"n": n, "k": k}) for n, k in rows[partition::2]]
                topics.write(topic, records, partition=partition)
            seen[name] = max(seen[name], *(n for n, _ in rows))
    session.run_script(PAIRS, once=True)
    assert sum(each != "" for each in expected.values()) > 5
    asked = chance.sample([each for each in expected if expected[each]], 5)
    for name, own in [*asked, *chance.sample([each for each in expected if not expected[each]], 3)]:
        late = expected[name, own]
        alias, other = ("A", "B") if name == "one" else ("B", "A")
        found = told(session, f"EXPLAIN MATCH {alias}(k = {own}), {other}(k = -1) {PAIRS}")
        assert late in found
        assert ("came late" in found) == bool(late), found
    topics.write(names["one"], [json.dumps({"n": 500, "k": 77})], partition=1)
    unread = told(session, f"EXPLAIN MATCH A(k = 77), B(k = -1) {PAIRS}")
    place = f"offset 9 of partition 1 of {names['one']}"
    assert f"A has not been read yet: no micro-batch has {place}" in unread
    lines = told(session, f"EXPLAIN MATCH {PAIRS}")
    in_time = 19 - sum(late != "" for (name, _), late in expected.items() if name == "one")
    for line in ("A: 20 rows", "A: 19 rows that the query has read", f"A: {in_time} rows in time"):
        assert f"  {line}\n" in lines


def test_a_running_query_and_one_that_began_behind_records(
    session: wjoin.Session, topics: Topics, tmp_path: Path
) -> None:
    names = declare(session, topics, tmp_path, ", startingOffsets 'latest'")
    session.sql("SET wjoin.trigger = 100 milliseconds")
    session.sql(PAIRS)
    query = session.running[-1].query
    until(lambda: len([*tmp_path.glob("kept/sources/*/0")]) == 2, "where it begins")

    def bring(name: str, *rows: tuple[int, int]) -> None:
        topics.write(names[name], [json.dumps({"n": n, "k": k}) for n, k in rows], partition=0)
        query.processAllAvailable()

    bring("one", (10, 1), (100, 2))
    bring("two", (11, 3))
    bring("one", (90, 4))
    found = told(session, f"EXPLAIN MATCH A(k = 4), B(k = 3) {PAIRS}")
    assert "A came late, by 5: micro-batch " in found
    never = told(session, f"EXPLAIN MATCH A(k = -1), B(k = 3) {PAIRS}")
    assert f"A is never read: the query began behind offset 0 of partition 2 of {names['one']}" in never
    assert "B is kept until A's watermark passes" not in never
    query.stop()
    assert told(session, f"EXPLAIN MATCH A(k = 4), B(k = 3) {PAIRS}") == found


@pytest.mark.timeout(600)
def test_why_over_a_file_of_statements(
    session: wjoin.Session, topics: Topics, jars: Path, tmp_path: Path
) -> None:
    """As somebody asks it who has a script: before its query has begun, and with the checkpoint after it."""
    topic = {name: topics.name(name) for name in ("one", "two")}
    for place, name in enumerate(topic):
        rows = [{"n": 10 * each + 90 * place, "k": f"{each}{' ' * place}"} for each in range(5)]
        topics.write(topic[name], [json.dumps(each) for each in rows], partition=0)
    script = "".join(
        f"""CREATE STREAM {name} (n BIGINT, k STRING, WATERMARK FOR n AS n - {DELAY}) USING kafka
        OPTIONS ({topics.options}, subscribe '{own}') FORMAT JSON;"""
        for name, own in topic.items()
    )
    script += f"CREATE SINK pairs USING parquet OPTIONS (path '{tmp_path}/out');"
    (tmp_path / "keys.sql").write_text(f"{script}{PAIRS};")
    (tmp_path / "windows.sql").write_text(f"{script}{PAIRS.replace('B.k', 'trim(B.k)')};")

    def wjoin_cli(command: str, file: str, *options: str) -> str:
        packages = ",".join(map(str, (jars / "connector").glob("*.jar")))
        line = [sys.executable, "-m", "wjoin.cli", command, str(tmp_path / file), *options]
        done = subprocess.run(
            [*line, "--set", f"spark.jars={packages}"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    keys = wjoin_cli("why", "keys.sql")
    assert "  A: 5 rows\n  B: 5 rows\n" in keys
    assert "0 combinations with A.k = B.k   ← no rows are left" in keys
    assert "they differ only in spaces" in keys
    kept = ("--checkpoint", f"{tmp_path}/kept")
    wjoin_cli("run", "windows.sql", "--once", *kept)
    topics.write(topic["one"], [json.dumps({"n": 1, "k": "9"})], partition=0)
    wjoin_cli("run", "windows.sql", "--once", *kept)
    topics.write(topic["one"], [json.dumps({"n": 500, "k": "9"})], partition=0)
    lines = wjoin_cli("why", "windows.sql", *kept)
    for line in ("A: 7 rows", "A: 6 rows that the query has read", "A: 5 rows in time"):
        assert f"  {line}\n" in lines
    assert "0 combinations inside window (A, B): 9 in both directions   ← no rows are left" in lines
    assert "the nearest is 81 outside" in lines
