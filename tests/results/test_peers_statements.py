"""Statements in the words of the tests of Spark, Flink and ksqlDB, pasted.

Their rows are DuckDB's, or their error says the line to write.
"""

import json
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

import wjoin
from tests.results.peers import PAID, PASTED, REFUSED, SEEN, SENT, Pasted, Row
from wjoin.grammar.errors import WJoinError, WJoinWarning

STREAMS = {"sent": SENT, "seen": SEEN, "paid": PAID}
NAMES = [("x", "ex"), ("y", "why"), ("z", "zed")]
BEGIN = datetime(2024, 6, 1, tzinfo=UTC)
TYPES = "k STRING, ts TIMESTAMP, n INT, id STRING, st STRUCT<c: INT>, tags ARRAY<STRING>"
QUICK = (
    "spark: FULL with a range of time",
    "flink: FULL, with a condition on both",
    "ksqldb: a field of a struct",
)
QUICKLY_REFUSED = ("flink: TUMBLE", "ksqldb: two left joins")
STREAMED = (
    "spark: LEFT SEMI with a range of time",
    "spark: RIGHT with a condition on the result",
    "spark: INNER of a stream with itself",
    "flink: NULL is not distinct from NULL",
    "flink: no equality",
    "flink: FULL of an empty interval",
    "ksqldb: CASE",
    "ksqldb: three streams, each with a width",
    "ksqldb: LEFT join of two streams, then a table",
    "ksqldb: two left joins, with the line that the error says",
)
"""One of each kind; all others differ from these in their conditions."""

Bag = Counter[tuple[object, ...]]


def moment(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def values(rows: Sequence[Row]) -> list[tuple[object, ...]]:
    """Return rows with their times, and with their number in a struct and in an array."""
    return [(k, moment(at), n, id, (n,), [f"s{n}"]) for k, at, n, id in rows]


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    """DuckDB with the streams as tables."""
    found = duckdb.connect()
    found.execute("SET TimeZone = 'UTC'")
    for name, rows in STREAMS.items():
        found.execute(f"CREATE TABLE {name} (k VARCHAR, us BIGINT, n INT, id VARCHAR)")
        stored = [(k, round(moment(at).timestamp() * 1_000_000), n, id) for k, at, n, id in rows]
        found.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", stored)
    found.execute("CREATE TABLE names (k VARCHAR, word VARCHAR)")
    found.executemany("INSERT INTO names VALUES (?, ?)", NAMES)
    return found


@pytest.fixture
def declared(session: wjoin.Session) -> wjoin.Session:
    """The streams, complete."""
    for name, rows in STREAMS.items():
        session.stream(name, session.createDataFrame(values(rows), TYPES))
    session.createDataFrame(NAMES, "k STRING, word STRING").createOrReplaceTempView("names")
    return session


@pytest.fixture
def arriving(session: wjoin.Session, tmp_path: Path) -> wjoin.Session:
    """The streams in files, three of each, in the order of their times."""
    for name, rows in STREAMS.items():
        (tmp_path / name).mkdir()
        third = -(-len(rows) // 3)
        for number in range(3):
            lines = [
                {"k": k, "ts": moment(at).isoformat(), "n": n, "id": id, "st": {"c": n}, "tags": [f"s{n}"]}
                for k, at, n, id in rows[number * third : number * third + third]
            ]
            (tmp_path / name / f"{number}.json").write_text(
                "".join(f"{json.dumps(each)}\n" for each in lines)
            )
            # Spark reads files in the order of their times, in milliseconds.
            time.sleep(0.002)
        session.sql(
            f"""CREATE STREAM {name} ({TYPES}) USING json
                OPTIONS (path '{tmp_path}/{name}', maxFilesPerTrigger '1')
                WATERMARK ts DELAY OF INTERVAL 1 SECOND"""
        )
    session.createDataFrame(NAMES, "k STRING, word STRING").createOrReplaceTempView("names")
    return session


def told(oracle: duckdb.DuckDBPyConnection, pasted: Pasted) -> Bag:
    """Return what DuckDB makes of a statement."""
    return Counter(tuple(map(_plain, row)) for row in oracle.execute(pasted.oracle).fetchall())


def _plain(value: object) -> object:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


@pytest.mark.parametrize(
    "pasted",
    [
        pytest.param(each, id=each.name, marks=[] if each.name in QUICK else [pytest.mark.long])
        for each in PASTED
    ],
)
def test_rows(declared: wjoin.Session, oracle: duckdb.DuckDBPyConnection, pasted: Pasted) -> None:
    assert bool(declared.explain(pasted.words).described) == pasted.ours
    found = Counter(tuple(map(_plain, row)) for row in declared.sql(pasted.words).collect())
    assert found == told(oracle, pasted)
    assert found


@pytest.mark.long
def test_rows_of_streams(arriving: wjoin.Session, oracle: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    chosen = {f"out{n}": each for n, each in enumerate(each for each in PASTED if each.name in STREAMED)}
    assert len(chosen) == len(STREAMED)
    for sink in chosen:
        arriving.sql(f"CREATE SINK {sink} USING parquet OPTIONS (path '{tmp_path}/{sink}')")
    script = "; ".join(f"INSERT INTO {sink} {_named(each)}" for sink, each in chosen.items())
    arriving.run_script(script, checkpoint=str(tmp_path / "checkpoints"), complete=True)
    for sink, each in chosen.items():
        found = Counter(map(tuple, arriving.read.parquet(str(tmp_path / sink)).collect()))
        assert found == told(oracle, each), each.name


def _named(pasted: Pasted) -> str:
    """Return a statement whose columns have different names, as a file needs."""
    count = pasted.words.partition(" FROM ")[0].count(",") + 1
    return f"SELECT * FROM ({pasted.words}) AS pasted({', '.join(f'c{n}' for n in range(count))})"


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICKLY_REFUSED else [pytest.mark.long]) for name in REFUSED],
)
def test_what_cannot_pass_says_the_line_to_write(arriving: wjoin.Session, name: str) -> None:
    words, line = REFUSED[name]
    with pytest.raises(WJoinError) as refused:
        arriving.sql(words)
    assert line in (refused.value.help or "")


@pytest.mark.long
def test_joins_without_any_time_are_sparks_with_a_warning(arriving: wjoin.Session) -> None:
    """Spark's own tests join by keys alone; their state only grows."""
    for words in (
        "SELECT a.id FROM sent a JOIN seen b ON a.k = b.k",
        "SELECT a.id FROM sent a JOIN seen b ON a.k = b.k JOIN paid c ON c.k = b.k",
    ):
        with pytest.warns(WJoinWarning, match="WJ802") as warned:
            assert arriving.sql(words).isStreaming
        assert "WINDOW (a, b) = 10 SECONDS" in str(warned[0].message)
