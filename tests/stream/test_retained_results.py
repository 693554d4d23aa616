"""Sinks that keep their results for a time: snapshots in SQL, against the rows by micro-batch in DuckDB."""

import datetime
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wjoin
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError

SCHEMA = pa.schema([("id", pa.int64()), ("batch", pa.int32()), ("ts", pa.timestamp("us", "UTC"))])


@dataclass
class Shop:
    """A stream of files, one a micro-batch, and the rows in DuckDB."""

    session: wjoin.Session
    root: Path
    oracle: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    batches: int = 0

    def __post_init__(self) -> None:
        (self.root / "orders").mkdir()
        self.session.sql(
            f"""CREATE STREAM orders (id BIGINT, batch INT, ts TIMESTAMP) USING parquet
                OPTIONS (path '{self.root}/orders', maxFilesPerTrigger '1') WATERMARK ts DELAY OF 1 DAY"""
        )
        self.oracle.execute("CREATE TABLE orders (id BIGINT, batch INT, told BIGINT)")

    def sink(self, name: str, format: str, more: str) -> None:
        self.session.sql(
            f"CREATE OR REPLACE SINK {name} USING {format} OPTIONS (path '{self.root}/{name}') {more}"
        )

    def insert(self, statement: str, batches: int) -> None:
        """Write files, and run a statement to their end: one micro-batch after the other."""
        for _ in range(batches):
            rows = [
                {"id": 4 * self.batches + each, "batch": self.batches, "ts": 1_700_000_000_000_000}
                for each in range(4)
            ]
            path = self.root / "orders" / f"{self.batches:05}.parquet"
            pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path)
            os.utime(path, (1_700_000_000 + self.batches,) * 2)
            self.oracle.executemany(
                "INSERT INTO orders VALUES (?, ?, NULL)", [(row["id"], row["batch"]) for row in rows]
            )
            self.batches += 1
        self.session.run_script(statement, checkpoint=str(self.root / "checkpoints"))

    def commits(self, sink: str) -> list[int]:
        """Return when Spark's log had its entries, in milliseconds, and tell DuckDB."""
        log = self.root / sink / "_spark_metadata"
        written = {
            int(path.name.split(".")[0]): path.stat().st_mtime_ns // 1_000_000
            for path in log.iterdir()
            if path.name[0].isdigit()
        }
        for number, at in written.items():
            self.oracle.execute("UPDATE orders SET told = ? WHERE batch = ?", [at, number])
        return [written[number] for number in sorted(written)]

    def rows(self, text: str, **params: object) -> list[tuple[object, ...]]:
        return sorted(tuple(row) for row in self.session.sql(text, **params).collect())

    def expected(self, text: str) -> list[tuple[object, ...]]:
        return sorted(self.oracle.execute(text).fetchall())


@pytest.fixture
def shop(session: wjoin.Session, tmp_path: Path) -> Iterator[Shop]:
    session.conf.set("spark.sql.streaming.fileSink.log.compactInterval", "3")
    found = Shop(session, tmp_path)
    yield found
    found.oracle.close()


def stamp(at: int, micros: int = 0) -> str:
    """Return a literal in UTC, the time zone of the tests' session."""
    told = datetime.datetime.fromtimestamp(at / 1000, datetime.UTC) + datetime.timedelta(microseconds=micros)
    return f"TIMESTAMP '{told:%Y-%m-%d %H:%M:%S.%f}Z'"


INTO = "INSERT INTO kept SELECT id, batch, batch % 2 AS half FROM orders"


@pytest.mark.parametrize("format", tiers(["parquet", "json"], long=["json"]))
def test_snapshots_by_commit_time(shop: Shop, format: str) -> None:
    shop.sink("kept", format, "PARTITIONED BY (half) RETAIN 1 DAY")
    shop.insert(INTO, 5)
    shop.insert(INTO, 3)  # on the same checkpoint, after a stop
    times = shop.commits("kept")
    assert len(times) == 8
    assert shop.rows("SELECT id, batch, half FROM kept") == shop.expected(
        "SELECT id, batch, batch % 2 FROM orders"
    )
    for place in (0, 2, 3, 7):
        for late, upto in ((0, "<="), (-1, "<")):
            found = shop.rows(f"SELECT id, kept.half FROM kept AS OF {stamp(times[place], late)}")
            assert found == shop.expected(
                f"SELECT id, batch % 2 FROM orders WHERE told {upto} {times[place]}"
            )
    between = f"FOR COMMIT TIME BETWEEN {stamp(times[2])} AND {stamp(times[5])}"
    assert shop.rows(f"SELECT x.batch, count(*) FROM kept {between} AS x GROUP BY ALL") == shop.expected(
        f"SELECT batch, count(*) FROM orders WHERE told BETWEEN {times[2]} AND {times[5]} GROUP BY batch"
    )
    joined = f"SELECT a.id FROM kept {between} a LEFT ANTI JOIN kept AS OF {stamp(times[3])} b ON a.id = b.id"
    assert shop.rows(joined) == shop.expected(
        f"SELECT id FROM orders WHERE told > {times[3]} AND told <= {times[5]}"
    )
    assert shop.rows("SELECT '{x}', max(batch) FROM kept AS OF :t", t=times_of(times[1])) == [("{x}", 1)]
    assert shop.rows(f"WITH c AS (SELECT * FROM kept AS OF {stamp(times[0])}) SELECT count(*) FROM c") == [
        (4,)
    ]
    assert shop.rows(f"SELECT * FROM kept AS OF {stamp(times[0] - 60_000)}") == []


def times_of(at: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(at / 1000, datetime.UTC)


@pytest.mark.long
def test_a_snapshot_in_a_window_join(shop: Shop) -> None:
    shop.sink("kept", "parquet", "RETAIN 1 DAY")
    shop.insert("INSERT INTO kept SELECT id, batch, ts FROM orders", 3)
    first, *_ = shop.commits("kept")
    found = shop.rows(
        f"""SELECT A.id FROM kept AS OF {stamp(first)} AS A, kept AS B WINDOW (A, B) = 1 SECOND
            WHERE A.id = B.id AND A.batch = 0"""
    )
    assert found == [(0,), (1,), (2,), (3,)]


@pytest.mark.long
def test_a_statement_set_keeps_results(shop: Shop) -> None:
    shop.sink("kept", "parquet", "RETAIN 1 DAY COMMIT EVERY 10 MILLISECONDS")
    shop.sink("plain", "parquet", "COMMIT EVERY 10 MILLISECONDS")
    same = "FROM orders A, orders B WINDOW = 1 SECOND WHERE A.id = B.id"
    shop.insert(
        f"""EXECUTE STATEMENT SET two BEGIN INSERT INTO kept SELECT A.id, A.batch {same};
            INSERT INTO plain SELECT A.id {same}; END""",
        3,
    )
    times = shop.commits("kept")
    found = shop.rows(f"SELECT id, batch FROM kept AS OF {stamp(times[1])}")
    assert found == shop.expected(f"SELECT id, batch FROM orders WHERE told <= {times[1]}")
    assert len(shop.rows("SELECT id FROM plain")) == 12
    with pytest.raises(WJoinError, match="does not keep its results by the time") as refused:
        shop.session.sql(f"SELECT * FROM plain AS OF {stamp(times[1])}")
    assert refused.value.code == "WJ606"


@pytest.mark.long
def test_a_sink_that_keeps_for_good_again(shop: Shop) -> None:
    shop.sink("kept", "parquet", "RETAIN 1 MILLISECOND")
    shop.insert(INTO, 4)
    assert len(shop.rows("SELECT * FROM kept")) == 4
    shop.sink("kept", "parquet", "")
    shop.insert(INTO, 2)
    assert len(shop.rows("SELECT * FROM kept")) == 24
    with pytest.raises(WJoinError, match="does not keep its results by the time"):
        shop.session.sql("SELECT * FROM kept AS OF (now())")
    shop.sink("kept", "parquet", "RETAIN 1 DAY")
    shop.insert(INTO, 2)
    assert len(shop.rows("SELECT * FROM kept AS OF (now())")) == 32


@pytest.mark.long
def test_old_results_go(shop: Shop) -> None:
    shop.sink("kept", "parquet", "RETAIN 1 SECOND GRACE 1 SECOND")
    shop.insert("INSERT INTO kept SELECT id, batch FROM orders", 2)
    first = [*(shop.root / "kept").glob("*.parquet")]
    old = shop.commits("kept")[0]
    # Spark's log forgets nothing that is younger than ten seconds.
    time.sleep(11)
    for _ in range(3):
        shop.insert("INSERT INTO kept SELECT id, batch FROM orders", 3)
        time.sleep(1.5)
    assert [path for path in first if path.exists()] == []
    with pytest.raises(WJoinError, match="are gone: the oldest that it keeps are of 20") as refused:
        shop.session.sql(f"SELECT * FROM kept AS OF {stamp(old)}")
    assert refused.value.code == "WJ622"
    assert refused.value.span is not None and refused.value.span.start == len("SELECT * FROM ")
    newest = shop.rows("SELECT DISTINCT batch FROM kept")
    assert newest[-1] == (10,) and newest[0] > (1,)
    spark = {
        tuple(row) for row in shop.session.read.parquet(str(shop.root / "kept")).select("batch").collect()
    }
    assert set(newest) <= spark
    files = wjoin.committed_files(shop.root / "kept")
    assert files and all(Path(each).exists() for each in files)


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("USING console RETAIN 1 DAY", "RETAIN is for sinks of files, and console is none"),
        ("USING delta OPTIONS (path 'x') RETAIN 1 DAY", "RETAIN is for sinks of files, and delta is none"),
        ("USING parquet RETAIN 1 DAY", "a sink with RETAIN has no path"),
        (
            "USING parquet OPTIONS (path 'x', retention '1h') RETAIN 1 DAY",
            "RETAIN and the option retention exclude each other",
        ),
        (
            "USING parquet OPTIONS (path 'x', trigger '1 second') COMMIT EVERY 1 SECOND",
            "COMMIT EVERY and the option trigger say the same",
        ),
        ("USING parquet OPTIONS (path 'x') RETAIN :t", "the parameter :t has no value"),
    ],
)
def test_declarations_that_are_refused(session: wjoin.Session, declaration: str, message: str) -> None:
    with pytest.raises(WJoinError) as refused:
        session.sql(f"CREATE SINK bad {declaration}")
    assert refused.value.message == message


def test_what_cannot_be_read(shop: Shop) -> None:
    shop.sink("kept", "parquet", "RETAIN 1 DAY")
    shop.insert(INTO, 1)
    for text, code in {
        "SELECT * FROM kept AS OF TIMESTAMP 'never'": "WJ106",
        "SELECT * FROM kept AS OF (NULL)": "WJ106",
        "SELECT * FROM kept AS OF 'never'": "WJ106",
        "SELECT * FROM kpt FOR COMMIT TIME BETWEEN '2026-01-01' AND '2026-01-02'": "WJ602",
        "CREATE TEMPORARY VIEW v AS SELECT * FROM kept": "WJ606",
        "INSERT INTO kept SELECT 1L AS id, 1 AS batch, 1 AS half": "WJ606",
    }.items():
        with pytest.raises(WJoinError) as refused:
            shop.session.sql(text)
        assert refused.value.code == code, text
    (described,) = [
        tuple(row) for row in shop.session.sql("DESCRIBE SINK kept").collect() if row[0] == "retain"
    ]
    assert described == ("retain", "1 day")
