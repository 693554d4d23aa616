"""``spark.sql.extensions``: W-join SQL in Sparks that wjoin has not started."""

import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.compat.shells import beeline, options, shell, staying, thrift_server
from tests.kit.tables import events
from tests.programs import run_python
from tests.tiers import tiers
from wjoin.commands.spark_shells import extension_settings
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_script

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

JOIN = "SELECT A.id, B.id AS other FROM a A, b B WINDOW (A, B) = 4 SECONDS WHERE A.k = B.k"
WRONG = JOIN.replace("SECONDS", "SECNDS")
OVER_STREAMS = JOIN.replace("FROM a A, b B", "FROM sa A, sb B")
DECLARED = "(id BIGINT, k BIGINT, ts TIMESTAMP) USING parquet OPTIONS (path '{}')"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Two folders of 20 rows a second apart, of four keys: 52 pairs are inside a window of four seconds."""
    write_rows(tmp_path)
    return tmp_path


def write_rows(folder: Path) -> None:
    for name in "ab":
        (folder / name).mkdir()
        table = events([(n, n * 1_000_000, n % 4) for n in range(20)], "k", time=pa.timestamp("us", "UTC"))
        pq.write_table(table, folder / name / "rows.parquet")


def spark_sql(
    folder: Path, statements: list[str], *arguments: str, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run statements in Spark's own shell, as `wjoin spark-sql -f` does."""
    script = folder / "script.sql"
    script.write_text(";\n".join(statements) + ";\n")
    return shell(folder, "spark-sql", "-S", *options(**settings), *arguments, "-f", str(script))


def views(folder: Path) -> list[str]:
    return [f"CREATE TEMPORARY VIEW {name} USING parquet OPTIONS (path '{folder / name}')" for name in "ab"]


def streams_of(folder: Path) -> list[str]:
    return [
        f"CREATE STREAM s{name} {DECLARED.format(folder / name)} WATERMARK ts DELAY OF '1 second'"
        for name in "ab"
    ]


def refusal(text: str) -> str:
    with pytest.raises(WJoinError) as refused:
        parse_script(text)
    return str(refused.value)


@pytest.mark.long
@pytest.mark.core
def test_every_kind_of_statement_in_spark_sql(rows: Path) -> None:
    commit = rows / "checkpoints" / "out" / "commits" / "0"
    (rows / "wait.sh").write_text(f"until [ -e '{commit}' ]; do sleep 0.2; done\nsleep 3\n")
    done = spark_sql(
        rows,
        [
            # Known before any join has called it.
            "SELECT 'distance', edit_distance('abc', 'b')",
            *views(rows),
            f"SELECT 'rows', count(*), sum(id + other) FROM ({JOIN})",
            # Spark's own clause of that name.
            "SELECT 'spark', max(r) FROM (SELECT rank() OVER w AS r FROM a WINDOW w AS (ORDER BY id))",
            *streams_of(rows),
            "CREATE TEMPORARY VIEW some AS SELECT id, k, ts FROM sa WHERE id > 3",
            "SHOW STREAMS",
            "DROP TABLE sa",
            "DROP VIEW IF EXISTS sa",
            "ALTER TABLE sa RENAME TO sc",
            "DROP VIEW some",
            f"CREATE STREAM loose {DECLARED.format(rows / 'a')}",
            "EXPLAIN SELECT A.id FROM loose A, sb B WINDOW = 1 SECOND WHERE A.k = B.k",
            "ALTER STREAM sa SET STATISTICS (rate = 7)",
            f"EXPLAIN {OVER_STREAMS}",
            f"CREATE TEMPORARY VIEW pairs AS {JOIN}",
            "SELECT 'view', count(*) FROM pairs",
            f"CREATE SINK out USING parquet OPTIONS (path '{rows / 'out'}')",
            f"SET wjoin.checkpoint = {rows / 'checkpoints'}",
            f"INSERT INTO out {OVER_STREAMS}",
            # A command of the operating system: until the first micro-batch is done.
            "!sh wait.sh",
            f"SELECT 'written', count(*) FROM parquet.`{rows / 'out'}`",
            "SHOW QUERIES",
            "STOP QUERY out",
            "DESCRIBE QUERY out",
            "DROP SINK out",
            f"CREATE SINK late USING parquet OPTIONS (path '{rows / 'late'}')",
            f"INSERT INTO late {OVER_STREAMS}",
            OVER_STREAMS,
            "SELECT * FROM sa",
            "WITH known AS (SELECT id FROM sb) SELECT count(*) FROM known",
            "SELECT 'none' FROM a WHERE id IN (SELECT id FROM sa)",
            WRONG,
        ],
        "--hiveconf",
        "hive.cli.errors.ignore=true",
    )
    said = done.stdout.splitlines()
    assert "distance\t2.0" in said
    assert "rows\t52\t988" in said
    assert "spark\t20" in said
    assert "sa\tparquet\tts\t1 s" in said
    assert "some\tview\tts\t1 s" in said, "a view has the delay of the stream that it reads"
    assert "\nwarning[WJ801]: loose has no declared delay" in done.stderr
    assert "WJoinWarning" not in done.stderr
    assert "rate\t7.0\trows/s\tgiven" in said
    assert "  1: A [A.k] x B [B.k] on class 1" in said
    assert "view\t52" in said
    (written,) = [line for line in said if line.startswith("written")]
    assert int(written.split()[1]) > 20
    (shown,) = [line.split("\t") for line in said if line.startswith("out\t") and line.count("\t") == 8]
    assert shown[1] in ("running", "idle") and shown[4] == "40"
    (stopped,) = [line for line in said if line.startswith("out\t40 rows in (A 20, B 20)")]
    assert "results of the join" in stopped
    assert "state\tstopped" in said
    assert "warning[WJ812]: the application has ended, and its running queries with it: late\n" in done.stderr
    assert done.stderr.count("error[WJ602]: sa is a stream, not a ") == 3
    assert done.stderr.count("help: write DROP STREAM sa") == 2
    assert done.stderr.count("error[WJ606]: a SELECT over streams never ends") == 4
    # What a query was doing that ends with its application Spark logs as it breaks it off.
    before, _ = re.split(r"warning\[WJ812\]|because SparkContext was shut down", done.stderr, maxsplit=1)
    assert "\tat " not in before
    assert "at wjoin.sql" not in done.stderr
    assert done.returncode != 0, "the last statement is wrong"
    # The shell of Spark 4.0 hands a statement on with the end of the line before it.
    assert any(refusal(before + WRONG) in done.stderr for before in ("", "\n"))


@pytest.mark.long
def test_joins_of_streams_without_a_window_clause_in_spark_sql(rows: Path) -> None:
    words = "FROM sa A JOIN sb B ON A.k = B.k AND abs(timestampdiff(SECOND, A.ts, B.ts))"
    commit = rows / "checkpoints" / "out" / "commits" / "0"
    (rows / "wait.sh").write_text(f"until [ -e '{commit}' ]; do sleep 0.2; done\n")
    done = spark_sql(
        rows,
        [
            *streams_of(rows),
            f"EXPLAIN SELECT A.id, B.id AS other {words} <= 4",
            f"SELECT A.id {words} <= 4",
            f"EXPLAIN SELECT A.id {words} >= 4 AND A.ts <= B.ts",
            f"CREATE SINK out USING parquet OPTIONS (path '{rows / 'out'}')",
            f"SET wjoin.checkpoint = {rows / 'checkpoints'}",
            f"INSERT INTO out SELECT A.id, B.id AS other {words} <= 4",
            "!sh wait.sh",
            f"SELECT 'written', count(*) FROM parquet.`{rows / 'out'}`",
        ],
        "--hiveconf",
        "hive.cli.errors.ignore=true",
        **{"spark.sql.session.timeZone": "UTC"},
    )
    assert "|B - A| <= 4 s 999 ms 999 us  [given by abs(timestampdiff" in done.stdout
    assert "written\t52" in done.stdout.splitlines()
    assert "error[WJ606]: a SELECT over streams never ends" in done.stderr
    assert "error[WJ308]: B can be any time after A" in done.stderr


KEY = "CASE WHEN A.k = 1 THEN 'one' ELSE 'other' END AS key"
SET = f"""EXECUTE STATEMENT SET cameras ON FAILURE KEEP OTHERS BEGIN
  INSERT INTO near {OVER_STREAMS.replace("4 SECONDS", "1 SECOND")}; -- a semicolon; and the word END
  INSERT INTO far {OVER_STREAMS.replace("A.id, B.id AS other", KEY)};
END"""
"""Written as a user writes it: shells of Spark's divide it at its semicolons."""


def sinks_of_set(rows: Path) -> list[str]:
    return [
        *(f"CREATE SINK {name} USING parquet OPTIONS (path '{rows / name}')" for name in ("near", "far")),
        f"SET wjoin.checkpoint = {rows / 'checkpoints'}",
    ]


def assert_set(rows: Path) -> None:
    """Assert that each sink of the set has its rows."""
    found = {name: pq.ParquetDataset(rows / name).read() for name in ("near", "far")}
    assert {name: table.num_rows for name, table in found.items()} == {"near": 20, "far": 52}
    assert Counter(found["far"]["key"].to_pylist()) == {"one": 13, "other": 39}


@pytest.mark.long
@pytest.mark.core
def test_a_statement_set_in_spark_sql(rows: Path) -> None:
    commit = rows / "checkpoints" / "cameras" / "commits" / "0"
    (rows / "wait.sh").write_text(f"until [ -e '{commit}' ]; do sleep 0.2; done\n")
    bad = "EXECUTE STATEMENT SET BEGIN INSERT INTO near {}; SELECT 1; END"
    done = spark_sql(
        rows,
        [
            *streams_of(rows),
            *sinks_of_set(rows),
            SET.replace("EXECUTE STATEMENT SET cameras ON FAILURE KEEP OTHERS", "EXPLAIN STATEMENT SET"),
            SET,
            "!sh wait.sh",
            f"CREATE SINK more USING parquet OPTIONS (path '{rows / 'more'}')",
            f"ALTER STATEMENT SET cameras ADD INSERT INTO more {OVER_STREAMS}",
            "ALTER STATEMENT SET cameras DROP far",
            "STOP QUERY cameras",
            bad.format(OVER_STREAMS),
            "SELECT 'and', 'on'",
            f"EXECUTE STATEMENT SET BEGIN INSERT INTO near {OVER_STREAMS}",
        ],
        "--hiveconf",
        "hive.cli.errors.ignore=true",
    )
    said = done.stdout.splitlines()
    assert "  near, far share one window join: its streams, shuffle and state" in said
    begun = [
        said.count(f"{counted} so far; END; starts the set") for counted in ("1 statement", "2 statements")
    ]
    assert begun == [4, 2]
    sets = [line.partition("\t")[0] for line in said if re.search(r"\t[\da-f]{8}-", line)]
    assert sets == ["near, far", "near, far, more", "near, more"]
    assert "error[WJ106]: a statement set holds only INSERT INTO statements\n --> <sql>:2:1\n" in done.stderr
    assert "Syntax error at or near 'END'" in done.stderr, "what was begun is forgotten"
    assert "and\ton" in said
    assert "error[WJ106]: a statement set has no END, so nothing of it has been started\n" in done.stderr
    assert_set(rows)


@pytest.mark.long
def test_statements_of_sparks_that_hold_a_join_or_name_a_stream(rows: Path) -> None:
    done = spark_sql(
        rows,
        [
            *views(rows),
            f"CREATE STREAM sa {DECLARED.format(rows / 'a')} WATERMARK ts DELAY OF '1 second'",
            "CREATE SINK out USING noop",
            # Each is run once.
            f"CREATE TABLE kept USING parquet AS {JOIN}",
            "SELECT 'kept', count(*) FROM kept",
            f"DESCRIBE {JOIN}",
            f"EXECUTE IMMEDIATE \"SELECT 'immediate', count(*) FROM ({JOIN})\"",
            "DELETE FROM sa",
            "EXPLAIN UPDATE sa SET k = 1",
            "COMMENT ON TABLE out IS 'x'",
            "CREATE TABLE never USING parquet AS SELECT * FROM sa",
            f"CREATE TABLE never USING parquet AS {JOIN.replace('a A, b B', 'sa A, sa B')}",
            "DECLARE VARIABLE n BIGINT DEFAULT (SELECT count(*) FROM sa)",
            "CREATE TABLE never (id BIGINT) USING parquet",
        ],
        "--hiveconf",
        "hive.cli.errors.ignore=true",
    )
    said = done.stdout.splitlines()
    assert {"kept\t52", "immediate\t52"} <= set(said)
    assert [line.split()[:2] for line in said if "bigint" in line] == [["id", "bigint"], ["other", "bigint"]]
    assert done.stderr.count("error[WJ602]") == 3
    assert done.stderr.count("error[WJ621]: the statement needs all rows of a stream") == 3
    assert "ALREADY_EXISTS" not in done.stderr
    assert "\tat " not in done.stderr


def test_a_python_that_cannot_plan_is_one_clear_line(rows: Path) -> None:
    python = rows / "python"
    none = spark_sql(rows, [*views(rows), JOIN], **{"spark.wjoin.python": str(python)})
    assert f"error[WJ615]: wjoin cannot plan the statement: there is no Python at {python}" in none.stderr
    assert "at wjoin.sql" not in none.stderr
    grouped = "SELECT 'good', count(*) FROM a GROUP BY window(ts, '1 day')"
    without = spark_sql(rows, [*views(rows), grouped, JOIN], **{"spark.wjoin.python": "/bin/false"})
    assert "good\t20" in without.stdout, "Spark's own statements work"
    assert "/bin/false -m wjoin.bridge ended with status 1" in without.stderr


def test_users_of_jdbc_have_streams_of_their_own(rows: Path) -> None:
    """Spark's Thrift server, and beeline as two users."""
    with thrift_server(rows) as port:
        mine = [*views(rows), f"CREATE STREAM mine {DECLARED.format(rows / 'a')}", JOIN, "SHOW STREAMS"]
        first = beeline(rows, port, "one", mine, "--outputformat=csv2")
        second = beeline(rows, port, "two", ["SHOW STREAMS", WRONG], "--outputformat=csv2")
    assert len(re.findall(r"^\d+,\d+$", first.stdout, re.MULTILINE)) == 52
    assert "mine,parquet,ts," in first.stdout
    assert "mine" not in second.stdout
    assert refusal(WRONG) in second.stderr


def test_a_statement_set_by_jdbc(rows: Path) -> None:
    with thrift_server(rows) as port:
        asked = [*streams_of(rows), *sinks_of_set(rows), SET]
        done = beeline(rows, port, "one", asked, "--outputformat=csv2")
        assert re.search(r"near, far\W+[\da-f]{8}-", done.stdout), done.stdout + done.stderr
        ends = time.monotonic() + 60
        while not (rows / "checkpoints" / "cameras" / "commits" / "0").exists():
            assert time.monotonic() < ends
            time.sleep(0.2)
    assert_set(rows)


HELD = "SELECT java_method('wjoin.sql.Planner', 'held')"


@pytest.mark.thorough
def test_what_users_of_jdbc_have_declared_is_let_go_once_they_have_left(rows: Path) -> None:
    """Also of one whose first statement began before the planner did, and never of one who is still there."""
    mine = [*views(rows), f"CREATE STREAM mine {DECLARED.format(rows / 'a')}", JOIN]
    query = [
        f"CREATE SINK out USING parquet OPTIONS (path '{rows / 'out'}')",
        f"SET wjoin.checkpoint = {rows / 'checkpoints'}",
        "INSERT INTO out SELECT A.id FROM STREAM mine A, mine B WINDOW = 1 SECOND WHERE A.k = B.k",
    ]
    with thrift_server(rows) as port, staying(rows, port, "stays") as ask:
        done = beeline(rows, port, "first", mine, "--outputformat=csv2")
        assert len(re.findall(r"^\d+,\d+$", done.stdout, re.MULTILINE)) == 52
        await_answer(ask, "0")
        ask(f"CREATE STREAM kept {DECLARED.format(rows / 'a')}")
        for user in ("one", "two"):
            beeline(rows, port, user, mine)
            await_answer(ask, "1")
        beeline(rows, port, "runs on", [*mine, *query])
        assert ask(HELD) == ["2"], "a query runs until it ends, and with it what it rests on"
        assert [line.split(",")[0] for line in ask("SHOW STREAMS")] == ["kept"]
        assert ask("SHOW QUERIES") == [], "it is somebody else's"
        again = ["SHOW QUERIES", "DESCRIBE QUERY out", "STOP QUERY out", "SHOW QUERIES"]
        stopped = beeline(rows, port, "runs on", again, "--outputformat=csv2").stdout
        assert len(re.findall(r"out,(?:starting|running|idle),\d{4}-", stopped)) == 1
        assert "sink,out" in stopped
        await_answer(ask, "1")
    told = re.findall(r"wjoin plans for (\d) sessions", (rows / "server.log").read_text())
    assert told[:8] == list("10121212")


def await_answer(ask: Callable[[str], list[str]], expected: str) -> None:
    """Wait until as many sessions are held."""
    ends = time.monotonic() + 60
    while (found := ask(HELD)) != [expected] and time.monotonic() < ends:
        time.sleep(0.5)
    assert found == [expected]


PROGRAM = """
import datetime
import sys
import time
from pyspark.sql import SparkSession

builder = SparkSession.builder.{start}.config("spark.sql.shuffle.partitions", "2")
for name, value in {settings}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
for name in "ab":
    spark.read.parquet(name).createOrReplaceTempView(name)
joined = spark.sql({join!r})
print(joined.count(), joined.filter("id = other").count())
if tuple(map(int, spark.version.split(".")[:2])) >= (4, 3):
    # Older versions bind parameters in the plan that they get.
    for width in ("4 seconds", datetime.timedelta(seconds=4)):
        text = {join!r}.replace("4 SECONDS", ":width") + " AND A.ts < :before"
        given = {{"width": width, "before": datetime.datetime(2100, 1, 1)}}
        assert spark.sql(text, given).count() == 52
assert spark.sql({declared!r}).collect() == []
print([row[0] for row in spark.sql("SHOW STREAMS").collect()])
try:
    spark.sql({wrong!r}).collect()
except Exception as error:
    print(error)
assert "wjoin" not in sys.modules
if "connect" in type(spark).__module__:
    held = "SELECT java_method('wjoin.sql.Planner', 'held')"
    other = SparkSession.builder.remote("sc://localhost:15002").create()
    assert other.sql("SHOW STREAMS").collect() == []
    assert spark.sql(held).collect()[0][0] == "2"
    other.client.release_session()
    # At its exit it would look for the server, which has stopped by then, for ten minutes.
    other.client.close()
    ends = time.monotonic() + 30
    while spark.sql(held).collect()[0][0] != "1":
        assert time.monotonic() < ends
        time.sleep(0.2)
    assert [row[0] for row in spark.sql("SHOW STREAMS").collect()] == ["sa"]
spark.stop()
"""


KILLED = """
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
for name, value in {settings}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
for name in "ab":
    spark.read.parquet(name).createOrReplaceTempView(name)


def count(seconds):
    return spark.sql({join!r}.replace("4 SECONDS", f"{{seconds}} SECONDS")).count()


def planners():
    found = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", jvm], capture_output=True, text=True)
    return [int(each.split()[0]) for each in found.stdout.splitlines() if "wjoin.bridge" in each]


jvm = str(spark._jvm.java.lang.ProcessHandle.current().pid())
expected = [count(seconds) for seconds in range(9)]
before = planners()
for each in before:
    os.kill(each, signal.SIGINT)
time.sleep(1)
print(count(4), planners() == before)
for each in before:
    os.kill(each, signal.SIGKILL)
with ThreadPoolExecutor(20) as pool:
    found = list(pool.map(count, [number % 9 for number in range(200)]))
print(len(before), set(before) & set(planners()), found == [expected[n % 9] for n in range(200)], expected[4])
hanging = planners()
for each in hanging:
    os.kill(each, signal.SIGSTOP)
print(count(4), len(hanging), set(hanging) & set(planners()))
"""


def test_a_planner_that_is_killed_or_hangs_is_started_anew_and_plans_many_at_once(rows: Path) -> None:
    done = run_python(rows, "-c", KILLED.format(settings=extension_settings(), join=JOIN))
    # The Ctrl-C of a terminal, which reaches it as well, does not end it.
    assert done.stdout.splitlines() == ["52 True", "1 set() True 52", "52 1 set()"], done.stderr[-3000:]


@pytest.mark.usefixtures("only_server")
@pytest.mark.parametrize(
    "start",
    tiers(
        ['master("local[2]")', 'remote("local[2]")'],
        long=['master("local[2]")', 'remote("local[2]")'],
        core=['remote("local[2]")'],
    ),
    ids=["pyspark", "connect"],
)
def test_clients_that_do_not_know_of_it(rows: Path, start: str) -> None:
    """PySpark without enable(), and a client of Spark Connect, whose server has the setting."""
    declared = f"CREATE STREAM sa {DECLARED.format(rows / 'a')}"
    program = PROGRAM.format(
        start=start, settings=extension_settings(), join=JOIN, wrong=WRONG, declared=declared
    )
    done = run_python(rows, "-c", program)
    assert done.returncode == 0, done.stderr[-3000:]
    first, second, *error = done.stdout.splitlines()
    assert (first, second) == ("52 20", "['sa']")
    assert refusal(WRONG) in "\n".join(error)
