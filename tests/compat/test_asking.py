"""STATE OF QUERY, EXPLAIN MATCH and EXPLAIN DELAY where others have started Spark: spark-sql and JDBC."""

from pathlib import Path

import pytest

from tests.compat.shells import staying, thrift_server
from tests.compat.test_extensions import OVER_STREAMS, spark_sql, streams_of, write_rows

pytestmark = [pytest.mark.thorough, pytest.mark.long, pytest.mark.timeout(600)]

# Of the rows of 20 seconds the watermarks, a second behind, let go those that are more than 4 s older.
WAITING = "SELECT 'waiting', stream, count(*), min({0}.ts) FROM STATE OF QUERY {1} WHERE size(waits_for) > 0 "
INSERT = f"INSERT INTO out {OVER_STREAMS}"
ASKED = [
    f"EXPLAIN MATCH A(id = 1), B(id = 9) {INSERT}",
    f"EXPLAIN MATCH A(id = 19), B(id = 19) {INSERT}",
    f"EXPLAIN MATCH {INSERT}",
    "EXPLAIN DELAY sa",
]
ANSWERS = [
    "window (A, B): 4 s in both directions; B is 8 s later than A: 4 s too late.",
    "These rows are a result:",
    "52 combinations inside window (A, B): 4 s in both directions",
    "sa: 20 rows with ts, in order of arrival",
]


def waiting(alias: str, query: str) -> str:
    return WAITING.format(alias, query) + f"AND stream = '{alias}' GROUP BY stream"


def prepared(folder: Path) -> list[str]:
    return [
        *streams_of(folder),
        f"CREATE SINK out USING parquet OPTIONS (path '{folder / 'out'}')",
        f"SET wjoin.checkpoint = {folder / 'checkpoints'}",
        INSERT,
    ]


def test_a_query_is_asked_in_spark_sql(tmp_path: Path) -> None:
    write_rows(tmp_path)
    commit = tmp_path / "checkpoints" / "out" / "commits" / "0"
    (tmp_path / "wait.sh").write_text(f"until [ -e '{commit}' ]; do sleep 0.2; done\nsleep 3\n")
    folder = f"'{tmp_path / 'checkpoints' / 'out'}'"
    asked = [waiting("A", "out"), "STOP QUERY out", waiting("A", "out"), waiting("B", folder), *ASKED]
    done = spark_sql(tmp_path, [*prepared(tmp_path), "!sh wait.sh", *asked])
    said = done.stdout
    assert done.returncode == 0, done.stderr
    assert [line.split("\t")[1:3] for line in said.splitlines() if line.startswith("waiting")] == [
        ["A", "6"],
        ["A", "6"],
        ["B", "6"],
    ]
    for answer in ANSWERS:
        assert answer in said
    later = spark_sql(tmp_path, [f"SET wjoin.checkpoint = {tmp_path / 'checkpoints'}", waiting("A", "out")])
    assert "waiting\tA\t6" in later.stdout, later.stderr


def test_a_query_is_asked_by_jdbc(tmp_path: Path) -> None:
    write_rows(tmp_path)
    commit = tmp_path / "checkpoints" / "out" / "commits" / "0"
    with thrift_server(tmp_path) as port, staying(tmp_path, port, "one") as ask:
        for statement in prepared(tmp_path):
            ask(statement)
        while not commit.exists():
            ask("SELECT 1")
        assert ask(waiting("A", "out"))[0].startswith("waiting,A,6,")
        answers = [" ".join(ask(statement)) for statement in ASKED]
        for answer, told in zip(ANSWERS, answers, strict=True):
            assert answer in told
        ask("STOP QUERY out")
        assert ask(waiting("B", f"'{tmp_path / 'checkpoints' / 'out'}'"))[0].startswith("waiting,B,6,")
