"""LATE ROWS INTO: in the sink is what a model of the watermarks says is late, once, and no other row."""

import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

import wjoin
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError

pytestmark = pytest.mark.filterwarnings("ignore:.*WJ80[34]")

COLUMNS = "n BIGINT, k INT, j INT, v STRING"
SCHEMA = pa.schema([("n", pa.int64()), ("k", pa.int32()), ("j", pa.int32()), ("v", pa.string())])
DELAY = 20
Row = tuple[Any, ...]


@dataclass
class Late:
    """Streams of files below a folder, each file a micro-batch, and what a model makes of their rows."""

    session: wjoin.Session
    root: Path
    chance: random.Random = field(default_factory=lambda: random.Random(11))
    files: dict[str, list[list[Row]]] = field(default_factory=lambda: {"one": [], "two": [], "three": []})

    def declare(self, more: str = "LATE ROWS INTO lost") -> None:
        """Declare the streams."""
        for name in self.files:
            (self.root / name).mkdir(exist_ok=True)
            self.session.sql(
                f"""CREATE OR REPLACE STREAM {name} ({COLUMNS}, WATERMARK FOR n AS n - {DELAY})
                    USING parquet OPTIONS (path '{self.root / name}', maxFilesPerTrigger '1') {more}"""
            )

    def declare_dated(self, more: str = "LATE ROWS INTO lost") -> None:
        """Declare the streams with a timestamp for their event time."""
        for name in self.files:
            self.session.sql(
                f"""CREATE OR REPLACE STREAM {name} ({COLUMNS}, ts AS timestamp_seconds(n))
                    USING parquet OPTIONS (path '{self.root / name}', maxFilesPerTrigger '1')
                    WATERMARK ts DELAY OF INTERVAL {DELAY} SECONDS {more}"""
            )

    def sinks(self, *names: str, more: str = "") -> None:
        """Declare a sink of Parquet files for each name."""
        for name in names:
            path = self.root / f"{name}_out"
            self.session.sql(f"CREATE OR REPLACE SINK {name} USING parquet OPTIONS (path '{path}') {more}")

    def arrive(self, count: int, rows: int = 30) -> None:
        """Write files of rows of which many are late, some without an event time or a key."""
        for name, files in self.files.items():
            for step in range(len(files), len(files) + count):
                self.put(name, [self._row(step) for _ in range(rows)])

    def put(self, name: str, rows: list[Row]) -> None:
        """Write a file of rows of a stream."""
        step = len(self.files[name])
        self.files[name].append(rows)
        path = self.root / name / f"{step:05}.parquet"
        columns = [list(values) for values in zip(*rows, strict=True)]
        pq.write_table(pa.Table.from_arrays(list(map(pa.array, columns)), schema=SCHEMA), path)
        os.utime(path, (1_700_000_000 + step, 1_700_000_000 + step))

    def _row(self, step: int) -> Row:
        chance = self.chance.random()
        number = None if chance < 0.05 else step * 30 - self.chance.randint(-30, 90)
        key = None if chance > 0.9 else self.chance.randint(0, 3)
        return number, key, self.chance.randint(0, 1), self.chance.choice("xyz")

    def judged(self, name: str, delay: int) -> Iterator[tuple[Row, int, int]]:
        """Yield each row, how far it is behind the watermark (0 where it is not), and its micro-batch."""
        seen: int | None = None
        for number, rows in enumerate(self.files[name]):
            for row in rows:
                behind = 0 if seen is None or row[0] is None else seen - delay - row[0]
                yield row, max(0, behind), number
            seen = max([*(row[0] for row in rows if row[0] is not None), *([] if seen is None else [seen])])

    def late(self, query: str, *names: str, since: int = 0, delay: int = DELAY) -> Counter[Row]:
        """Return the late rows of some streams from a micro-batch on, as a query tells them."""
        return Counter(
            (*row, behind, query, number)
            for name in names
            for row, behind, number in self.judged(name, delay)
            if behind and number >= since
        )

    def joined(self, query: str) -> Counter[Row]:
        """Return what DuckDB makes of a query over the rows that are not late."""
        with duckdb.connect() as oracle:
            for name in self.files:
                oracle.execute(f"CREATE TABLE {name} ({COLUMNS.replace('STRING', 'VARCHAR')})")
                rows = [row for row, behind, _ in self.judged(name, DELAY) if not behind]
                oracle.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", rows)
            return Counter(oracle.execute(query).fetchall())

    def run(self, text: str, checkpoint: str = "checkpoints") -> None:
        """Run a script to the end of its streams."""
        self.session.run_script(text, checkpoint=str(self.root / checkpoint))

    def found(self, name: str = "lost", *columns: str) -> Counter[Row]:
        """Return what is in a sink."""
        rows = self.session.sql(f"SELECT * FROM {name}")
        assert isinstance(rows, DataFrame)
        return Counter(tuple(row) for row in rows.select(*columns or "*").collect())


@pytest.fixture
def late(session: wjoin.Session, tmp_path: Path) -> Late:
    found = Late(session, tmp_path)
    found.declare()
    found.sinks("lost", "near")
    return found


NEAR = """INSERT INTO near SELECT A.n AS a, B.n AS b FROM one A, two B
    WINDOW (A, B) = 9 WHERE A.k = B.k AND A.v <> 'x'"""
NEAR_MEANS = "SELECT A.n, B.n FROM one A, two B WHERE abs(A.n - B.n) <= 9 AND A.k = B.k AND A.v <> 'x'"

SETS = {
    "one": [NEAR],
    "shared": [NEAR, "INSERT INTO far SELECT X.v, Y.n FROM two X, one Y WINDOW (X, Y) = 30 WHERE X.k = Y.k"],
    "apart": [
        NEAR,
        """INSERT INTO far SELECT A.n AS a, B.n AS b, C.n AS c FROM one A, two B, three C
        WINDOW (A, B) = 5 AND WINDOW (B, C) = 5 WHERE A.k = B.k AND B.j = C.j""",
        "INSERT INTO keyless SELECT /*+ PLAN(PSP) */ A.n AS a, B.n AS b FROM one A, two B WINDOW (A, B) = 1",
        "INSERT INTO outer SELECT B.n AS b, C.n AS c FROM two B FULL JOIN three C ON B.k = C.k WINDOW = 1",
    ],
}
"""Statement sets, by how their statements share the streams."""


@pytest.mark.parametrize("state", tiers(["files", "spark"], long=["spark"]))
@pytest.mark.parametrize("kind", tiers(SETS, long=["one", "shared"]))
def test_each_late_row_is_in_the_sink_once(late: Late, kind: str, state: str) -> None:
    """However many joins of the query drop it, and in whatever stage its stream enters."""
    late.sinks("far", "keyless", "outer")
    late.session.sql(f"SET wjoin.state = {state}")
    text = f"EXECUTE STATEMENT SET many BEGIN {'; '.join(SETS[kind])}; END"
    names = ("one", "two", "three") if kind == "apart" else ("one", "two")
    if kind == "one":
        # What is on its way to a sink waits on disk, too.
        late.session.sql("SET wjoin.stretch = '4096'")
    for files in (2, 1):
        late.arrive(files)
        late.run(text)
        assert late.found() == late.late("many", *names)
        assert late.found("near") == late.joined(NEAR_MEANS)
    assert len(late.found()) > 40


@pytest.mark.long
@pytest.mark.parametrize("fails", ["near", "lost"])
def test_a_failure_between_the_sinks_loses_and_doubles_nothing(late: Late, fails: str) -> None:
    """The other sink has the micro-batch already, and leaves it out when it comes again."""
    late.sinks(fails, more="PARTITIONED BY (v)")
    insert = NEAR.replace("B.n AS b", "B.n AS b, A.v")
    late.arrive(2)
    late.run(insert)
    folders = {"near": late.root / "near_out", "lost": late.root / "lost_out" / "late_for=near"}
    part, away = folders[fails] / "v=y", late.root / "away"
    shutil.move(part, away)
    part.touch()
    late.arrive(2)
    with pytest.raises(WJoinError, match=rf"the sink {fails} could not be written: .*v=y") as failed:
        late.run(insert)
    assert failed.value.code == "WJ704"
    assert {name for name in folders if last_written(folders[name]) == 2} == {*folders} - {fails}
    part.unlink()
    shutil.move(away, part)
    late.run(insert)
    assert late.found("lost", *SCHEMA.names, "late_by", "late_for", "micro_batch") == late.late(
        "near", "one", "two"
    )
    assert late.found("near", "a", "b") == late.joined(NEAR_MEANS)


def last_written(folder: Path) -> int:
    return max(int(each.name) for each in (folder / "_spark_metadata").glob("[0-9]*"))


CHAIN = """INSERT INTO near SELECT X.a, X.b, C.n AS c
    FROM (SELECT A.n AS a, B.n AS b, A.n, A.k FROM one A, two B WINDOW (A, B) = 9 WHERE A.k = B.k)
    WATERMARK n DELAY OF 50 AS X, three C WINDOW (X, C) = 5 WHERE X.k = C.k"""
CHAIN_MEANS = """SELECT A.n, B.n, C.n FROM one A, two B, three C
    WHERE abs(A.n - B.n) <= 9 AND A.k = B.k AND abs(A.n - C.n) <= 5 AND A.k = C.k"""


@pytest.mark.long
@pytest.mark.parametrize("state", ["files", "spark"])
@pytest.mark.parametrize("killed", [False, True])
def test_late_rows_of_joins_over_joins(late: Late, killed: bool, state: str) -> None:
    """They are told of the streams, by the join that reads them, and once where the query starts again."""
    late.session.sql(f"SET wjoin.state = {state}")
    for files in (2, 1):
        late.arrive(files)
        late.run(CHAIN)
        if killed:
            # As after a crash between the sinks.
            take_back(late.root / "checkpoints" / "near" / "commits")
            take_back(late.root / "lost_out" / "late_for=near" / "_spark_metadata")
            late.run(CHAIN)
        assert late.found() == late.late("near", "one", "two", "three")
        assert late.found("near") == late.joined(CHAIN_MEANS)
    assert len(late.found()) > 40
    assert "X = " in late.session.explain(CHAIN)
    if state == "spark":
        old, new = (str(late.root / each) for each in ("checkpoints", "moved"))
        with pytest.raises(WJoinError, match=r"WJ711.*late rows of near are told by a state of their own"):
            late.session.repartition(CHAIN, old, new, 3)


@pytest.mark.long
@pytest.mark.parametrize("state", ["files", "spark"])
def test_late_rows_of_streams_that_were_silent_or_have_ended(late: Late, state: str) -> None:
    """They are those that the join drops, by a watermark that has gone on with those of the others."""
    late.session.sql(f"SET wjoin.state = {state}")
    late.declare("IDLE AFTER 1 MILLISECOND LATE ROWS INTO lost")
    outer = CHAIN.replace("three C WINDOW", "three C ON X.k = C.k WINDOW").replace(" WHERE X.k = C.k", "")
    text = outer.replace("AS X, three", "AS X LEFT JOIN three")
    for name in late.files:
        late.put(name, [(1, 1, 1, "x")])
    late.run(text)
    late.put("one", [(1000, 1, 1, "x")])
    late.run(text)
    late.put("two", [(500, 2, 2, "late"), (979, 2, 2, "late"), (980, 2, 2, "in time")])
    late.run(text)
    expected = Counter([(500, 480), (979, 1)])
    assert late.found("lost", "n", "late_by") == expected
    late.session.run_script(text, checkpoint=str(late.root / "checkpoints"), complete=True)
    late.put("three", [(2, 3, 3, "late")])
    late.run(text)
    rows = late.session.sql("SELECT n, v, late_for FROM lost")
    assert isinstance(rows, DataFrame)
    found = Counter(tuple(each) for each in rows.collect())
    assert found == Counter([(n, "late", "near") for n in (500, 979, 2)])


def take_back(log: Path) -> None:
    """Take back that the last micro-batch is in a log."""
    last = max(int(each.name) for each in log.glob("[0-9]*"))
    (log / str(last)).unlink()
    (log / f".{last}.crc").unlink(missing_ok=True)


GROUPS = """INSERT INTO near SELECT window(MATCH_TIME(), '15 seconds').start AS w, count(*) AS c
    FROM one A, two B WINDOW (A, B) = 9 SECONDS WHERE A.k = B.k GROUP BY window(MATCH_TIME(), '15 seconds')"""
GROUPS_MEAN = """SELECT to_timestamp(15 * (greatest(A.n, B.n) // 15))::TIMESTAMP, count(*) FROM one A, two B
    WHERE abs(A.n - B.n) <= 9 AND A.k = B.k GROUP BY 1"""


@pytest.mark.long
@pytest.mark.parametrize("state", ["files", "spark"])
def test_late_rows_of_a_join_whose_results_are_grouped(late: Late, state: str) -> None:
    late.session.sql(f"SET wjoin.state = {state}")
    late.declare_dated()
    late.arrive(4)
    late.run(GROUPS)
    late.arrive(2)
    late.run(GROUPS)
    told = late.session.sql("SELECT *, CAST(late_by AS BIGINT) AS seconds FROM lost")
    assert isinstance(told, DataFrame)
    rows = told.select(*SCHEMA.names, "seconds", "late_for").collect()
    # Of the numbers of micro-batches some are for groups alone.
    late_rows = late.late("near", "one", "two")
    assert Counter(map(tuple, rows)) == Counter(row[:-1] for row in late_rows.elements())
    # Spark drops what is before 1970, and the last groups are open.
    expected = [row for row in sorted(late.joined(GROUPS_MEAN)) if row[0].year >= 1970]
    assert late.found("near") == Counter(expected[:-3])
    # Spark counts the places where a query reads a stream.
    late.declare_dated("")
    with pytest.raises(WJoinError, match=r"WJ702.*LATE ROWS INTO"):
        late.run(GROUPS)


@pytest.mark.long
def test_queries_share_a_sink_and_each_tells_what_it_has_dropped(late: Late) -> None:
    """One reads a stream twice: by the shorter delay more rows are late, and each is told once."""
    late.sinks("twice")
    late.arrive(3)
    twice = """INSERT INTO twice SELECT A.n AS a, B.n AS b FROM one A, one WATERMARK n DELAY OF 50 AS B
        DWINDOW (A, B) = 4 WHERE A.k = B.k"""
    for _ in range(2):
        late.run(f"{NEAR}; {twice}")
        expected = late.late("near", "one", "two") + late.late("twice", "one")
        assert late.found() == expected
        by_folder = late.session.spark.read.parquet(str(late.root / "lost_out" / "late_for=twice"))
        assert Counter(map(tuple, by_folder.collect())) == late.late("twice", "one")
        late.arrive(1)
    whole = late.session.spark.read.parquet(str(late.root / "lost_out"))
    assert {row.late_for for row in whole.select("late_for").distinct().collect()} == {"near", "twice"}


@pytest.mark.long
def test_a_query_goes_on_with_a_sink_for_late_rows_and_without_one(late: Late) -> None:
    expected: Counter[Row] = Counter()
    for more in ("", "LATE ROWS INTO lost", "", "LATE ROWS INTO lost"):
        since = len(late.files["one"])
        late.arrive(2)
        late.declare(more)
        late.run(NEAR)
        if more:
            expected += late.late("near", "one", "two", since=since)
            assert late.found() == expected
        assert late.found("near") == late.joined(NEAR_MEANS)


@pytest.mark.long
def test_late_rows_have_all_columns_of_whatever_type(late: Late) -> None:
    """Also those that the join does not read, of rows that WHERE removes or that have no key."""
    session, path = late.session, str(late.root / "typed")
    made = """SELECT k, s, timestamp_seconds(s) AS ts, CAST(s AS DECIMAL(20, 3)) AS d, array(s, NULL) AS l,
        named_struct('x', s, 'y', CAST(s AS STRING)) AS p, make_dt_interval(0, 0, 0, s) AS i,
        make_ym_interval(1, CAST(s AS INT)) AS m, DATE '2026-01-01' AS day, map('s', s) AS q,
        CAST(CAST(s AS STRING) AS BINARY) AS bytes FROM VALUES (1, {s}L), (NULL, {s}L) AS rows (k, s)"""
    late.sinks("tried")
    for second in (50, 30, 5):
        session.spark.sql(made.format(s=second)).coalesce(1).write.mode("append").parquet(path)
        if second == 50:
            columns = session.spark.read.parquet(path).schema.toDDL()
            session.sql(
                f"""CREATE STREAM typed ({columns}, twice AS 2 * s) USING parquet OPTIONS (path '{path}')
                    WATERMARK ts DELAY OF INTERVAL 10 SECONDS LATE ROWS INTO lost"""
            )
        session.run_script(
            """INSERT INTO tried SELECT A.s, B.s AS t FROM typed A, typed B WINDOW (A, B) = 3 SECONDS
               WHERE A.k = B.k AND A.s > 15 AND B.s > 15""",
            checkpoint=str(late.root / "checkpoints"),
        )
    expected = session.spark.read.parquet(path).where("s < 40").selectExpr("*", "2 * s AS twice")
    behind = "CAST(make_dt_interval(0, 0, 0, 40 - s) AS INTERVAL DAY TO SECOND) AS late_by"
    number = "CAST(IF(s = 30, 1, 2) AS BIGINT) AS micro_batch"
    expected = expected.selectExpr("*", behind, "'tried' AS late_for", number)
    found = session.sql("SELECT * FROM lost")
    assert isinstance(found, DataFrame)
    assert found.schema.simpleString() == expected.schema.simpleString()
    lines = (each.selectExpr("to_json(struct(*)) AS line").collect() for each in (found, expected))
    first, second = ([row.line for row in each] for each in lines)
    assert len(first) == 4 and sorted(first) == sorted(second)


REFUSED = {
    "SELECT A.n FROM one A, two B WINDOW = 9 WHERE A.k = B.k": "only an INSERT INTO, or a statement set",
    "CREATE VIEW v AS SELECT A.n FROM one A, two B WINDOW = 9 WHERE A.k = B.k": "only an INSERT INTO",
    """INSERT INTO near SELECT /*+ PLAN(NATIVE) */ A.k FROM dated A, dated B
        WINDOW = 9 SECONDS WHERE A.k = B.k""": "Spark's own joins drop them",
    "INSERT INTO near SELECT A.n FROM (SELECT * FROM one) A, two B WINDOW = 9 WHERE A.k = B.k": "a subquery",
    "INSERT INTO near SELECT A.n FROM seen A, two B WINDOW = 9 WHERE A.k = B.k": "read through a view",
    "INSERT INTO lost SELECT A.n FROM one A, two B WINDOW = 9 WHERE A.k = B.k": "lost is for late rows",
    "INSERT INTO near SELECT A.n FROM one A, elsewhere B WINDOW = 9 WHERE A.k = B.k": "no sink is named gone",
    "INSERT INTO near SELECT A.n FROM one A, other B WINDOW = 9 WHERE A.k = B.k": "columns v have several",
    "INSERT INTO near SELECT A.n FROM one A, committed B WINDOW = 9 WHERE A.k = B.k": "commits of its own",
    "CREATE STREAM s (n BIGINT, late_by INT) USING parquet OPTIONS (path '{root}') LATE ROWS INTO lost": (
        "late rows have a column late_by"
    ),
    """CREATE STREAM s (n BIGINT, ts TIMESTAMP) USING parquet OPTIONS (path '{root}')
        WATERMARK ts DELAY OF INTERVAL 1 SECOND DROP DUPLICATES ON (n) LATE ROWS INTO lost""": (
        "Spark drops late rows of s as it drops duplicates"
    ),
}


def test_what_cannot_bring_late_rows_to_the_sink_is_refused(late: Late) -> None:
    session = late.session
    late.arrive(1)
    late.sinks("closed", more="COMMIT WHEN one (n > 5)")
    session.sql("CREATE VIEW seen AS SELECT * FROM one")
    for name, columns, sink in (
        ("elsewhere", COLUMNS, "gone"),
        ("committed", COLUMNS, "closed"),
        ("other", COLUMNS.replace("v STRING", "v INT"), "lost"),
        ("dated", f"{COLUMNS}, ts AS timestamp_seconds(n)", "lost"),
    ):
        time, delay = ("ts", "INTERVAL 1 SECOND") if name == "dated" else ("n", "1")
        session.sql(
            f"""CREATE STREAM {name} ({columns}, WATERMARK FOR {time} AS {time} - {delay})
                USING parquet OPTIONS (path '{late.root / "two"}') LATE ROWS INTO {sink}"""
        )
    for text, words in REFUSED.items():
        with pytest.raises(WJoinError) as refused:
            session.run_script(text.format(root=late.root / "one"), checkpoint=str(late.root / "refused"))
        assert words in str(refused.value), text
        assert refused.value.code in ("WJ602", "WJ623") and refused.value.span and refused.value.help
    assert not session.running
    # What drops no row as late is not refused.
    session.sql("CREATE SINK shown USING noop")
    session.run_script("INSERT INTO shown SELECT * FROM one WHERE n > 3", checkpoint=str(late.root / "plain"))


@pytest.mark.long
def test_a_stream_of_python_has_a_sink_for_late_rows(late: Late) -> None:
    session = late.session
    late.declare("")
    for name in ("one", "two"):
        session.stream(f"my_{name}", session.spark.table(name), "n", DELAY, late_rows_into="lost")
    late.arrive(3)
    late.run(NEAR.replace("one A, two B", "my_one A, my_two B"))
    assert late.found() == late.late("near", "one", "two")
    with pytest.raises(WJoinError, match="late rows have a column late_for besides"):
        session.stream("bad", session.spark.sql("SELECT 1L AS n, 2 AS late_for"), "n", late_rows_into="lost")
