"""Joins of streams whose rows are held at their sites: what is asked for gives what DuckDB finds."""

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import wjoin
from tests.sites.test_joins import START, plain_row, ran, write
from wjoin.grammar.errors import WJoinError, WJoinWarning
from wjoin.testing.site import Site

pytestmark = [pytest.mark.thorough, pytest.mark.spark]

ROWS = 800
FAR = 253_402_214_400_000_000
"""A time of the year 9999, in microseconds."""

STREAM = """
[streams.{name}]
source = "{folder}"
format = "parquet"
time = "ts"
window = "1 hour"
key = [{key}]
poll = "100 ms"
"""


def seen(number: int, rows: int, delay: int = 1_900_000) -> pa.Table:
    """Return rows with keys of several types, some NULL, one hot, out of order by less than ``delay``."""
    chance = random.Random(number)
    keys = [None if n % 31 == 0 else 7 if n % 5 == 0 else chance.randrange(rows // 8) for n in range(rows)]
    times = [START + n * 50_000 + chance.randrange(delay) for n in range(rows)]
    # Dropped, by whoever reads it.
    times[rows // 2] = FAR
    days = [None if key is None else key * 3 - 400 for key in keys]
    return pa.table(
        {
            "big": pa.array(keys, pa.int64()),
            "small": pa.array(keys, pa.int32()),
            "word": pa.array([None if key is None else f"object {key} – é" for key in keys]),
            "day": pa.array(days, pa.date32()),
            "noon": pa.array(
                [None if day is None else day * 86_400_000_001 for day in days], pa.timestamp("us", "UTC")
            ),
            "even": pa.array([None if key is None else key % 2 == 0 for key in keys]),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "reading": pa.array([chance.random() if n % 11 else None for n in range(rows)]),
            "picture": [chance.randbytes(60) for _ in range(rows)],
        }
    )


@pytest.fixture(scope="module")
def cameras(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("held")
    for number in (1, 2, 3):
        write(seen(number, ROWS), root / f"camera{number}", range(4), 4)
    return root


@pytest.fixture(scope="module")
def site(cameras: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site of all three; of the second the keys have an index."""
    keys = {1: "", 2: '"big", "word"', 3: '"big"'}
    streams = "".join(
        STREAM.format(name=f"camera{n}", folder=cameras / f"camera{n}", key=key) for n, key in keys.items()
    )
    with Site(tmp_path_factory.mktemp("site"), streams) as running:
        for number in keys:
            running.wait_for(f"camera{number}", ROWS)
        yield running


def declare(session: wjoin.Session, site: Site, options: str = "", delay: str = "2 SECONDS") -> None:
    for number in (1, 2, 3):
        session.sql(f"""
            CREATE OR REPLACE STREAM camera{number} AT SITE '{site.url}' {options}
            WATERMARK ts DELAY OF INTERVAL {delay}
        """)


QUERY = """
SELECT {hint} A.big, B.ts AS b, A.ts AS a, A.picture, B.reading
FROM camera1 A, camera2 B {window} WHERE {where}
"""
NEAR = f"epoch_us(a.ts) < {FAR}"
WITHIN = f"abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 5000000 AND {NEAR}"
AFTER = f"epoch_us(b.ts) - epoch_us(a.ts) BETWEEN 0 AND 3000000 AND {NEAR}"


def oracle(root: Path, sql: str) -> Counter[tuple[object, ...]]:
    for number in (1, 2, 3):
        sql = sql.replace(f"camera{number}", f"read_parquet('{root}/camera{number}/*')")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows = connection.sql(sql).to_arrow_table().to_pylist()
    return Counter(map(plain_row, rows))


@pytest.mark.parametrize(
    ("held", "where", "window", "inside"),
    [
        ("A", "A.big = B.big", "WINDOW = 5 SECONDS", WITHIN),
        ("B", "A.big = B.big", "DWINDOW (A, B) = 3 SECONDS", AFTER),
        ("B", "A.word = B.word", "WINDOW = 5 SECONDS", WITHIN),
        ("A", "A.day = B.day AND A.reading < B.reading", "WINDOW = 5 SECONDS", WITHIN),
        ("A", "A.noon = B.noon", "WINDOW = 5 SECONDS", WITHIN),
    ],
    ids=["big", "directed", "word", "day", "noon"],
)
def test_rows_that_are_asked_for_give_what_duckdb_finds(
    session: wjoin.Session,
    cameras: Path,
    site: Site,
    tmp_path: Path,
    held: str,
    where: str,
    window: str,
    inside: str,
) -> None:
    declare(session, site, "OPTIONS (maxRowsPerTrigger '170')")
    query = QUERY.format(hint=f"/*+ SHIP({held} = HELD) */", window=window, where=where)
    assert f"{held} held" in session.explain(query)
    found = ran(session, query, tmp_path)
    assert sum(found.values()) > 100
    assert found == oracle(cameras, QUERY.format(hint="", window="", where=f"{where} AND {inside}"))


THREE = """
SELECT {hint} A.big, A.picture AS one, A.ts AS a, B.ts AS b, C.ts AS c, C.picture, B.word
FROM camera1 A, camera2 B, camera3 C
{window} WHERE {where}
"""


def test_event_time_that_is_a_number_and_a_boolean_key(session: wjoin.Session, tmp_path: Path) -> None:
    root = tmp_path / "rows"
    root.mkdir()
    for number in (1, 2):
        table = seen(number, 200).append_column("n", pa.array(range(200), pa.int64()))
        write(table, root / f"camera{number}", range(2), 2)
    streams = "".join(
        STREAM.format(name=f"camera{n}", folder=root / f"camera{n}", key='"even"') for n in (1, 2)
    )
    with Site(tmp_path / "site", streams.replace('"ts"', '"n"').replace('"1 hour"', "1000")) as site:
        for number in (1, 2):
            site.wait_for(f"camera{number}", 200)
            session.sql(f"""
                CREATE OR REPLACE STREAM camera{number} AT SITE '{site.url}' OPTIONS (maxRowsPerTrigger '60')
                WATERMARK n DELAY OF 0
            """)
        query = "SELECT {hint} A.n AS a, B.n AS b, A.word FROM camera1 A, camera2 B {window} WHERE {where}"
        hint, where = "/*+ SHIP(A = HELD) */", "A.even = B.even"
        found = ran(session, query.format(hint=hint, window="WINDOW = 5", where=where), tmp_path)
    plain = query.format(hint="", window="", where=f"{where} AND abs(a.n - b.n) <= 5")
    assert sum(found.values()) > 100
    assert found == oracle(root, plain)


@pytest.mark.parametrize(
    ("held", "where"),
    [
        ("SHIP(A = HELD)", "A.big = B.big AND B.big = C.big"),
        ("SHIP(C = HELD, A = PARTIAL)", "A.big = B.big AND B.big = C.big"),
        # Two stages: C meets pairs of A and B, by another key than these have met.
        ("SHIP(C = HELD)", "A.big = B.big AND B.day = C.day"),
        ("SHIP(A = HELD, C = HELD)", "A.big = B.big AND B.word = C.word"),
    ],
    ids=["first", "last", "second stage", "both stages"],
)
def test_three_streams(
    session: wjoin.Session, cameras: Path, site: Site, tmp_path: Path, held: str, where: str
) -> None:
    declare(session, site, "OPTIONS (maxRowsPerTrigger '250')")
    window = "WINDOW (A, B) = 2 SECONDS AND WINDOW (B, C) = 1 SECOND"
    found = ran(session, THREE.format(hint=f"/*+ {held} */", window=window, where=where), tmp_path)
    inside = (
        "abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 2000000 AND abs(epoch_us(b.ts) - epoch_us(c.ts)) <= 1000000 "
        f"AND {NEAR}"
    )
    assert sum(found.values()) > 100
    assert found == oracle(cameras, THREE.format(hint="", window="", where=f"{where} AND {inside}"))


def test_late_rows_stay_away_and_are_told_as_they_are_of_whole_rows(
    session: wjoin.Session, cameras: Path, site: Site, tmp_path: Path
) -> None:
    """With less delay than there is, each micro-batch judges by the watermark at its start."""
    declare(session, site, "OPTIONS (maxRowsPerTrigger '90')", delay="0.5 SECONDS")
    told, found = [], []
    for way in ("FULL", "HELD"):
        query = QUERY.format(
            hint=f"/*+ SHIP(A = {way}) */", window="WINDOW = 5 SECONDS", where="A.big = B.big"
        )
        with pytest.warns(WJoinWarning, match="WJ803") as warnings:
            found.append(ran(session, query, tmp_path / way))
        late = (re.search(r"([\d,]+) late rows", str(each.message)) for each in warnings)
        told.append(sum(int(each[1].replace(",", "")) for each in late if each is not None))
    assert found[0] == found[1]
    assert (
        100
        < sum(found[0].values())
        < sum(oracle(cameras, QUERY.format(hint="", window="", where=f"A.big = B.big AND {WITHIN}")).values())
    )
    assert 10 < told[0] == told[1]


def test_a_checkpoint_keeps_where_rows_are(session: wjoin.Session, tmp_path: Path) -> None:
    """What was held by a hint goes on so without one; the state of another query has the rows itself."""
    root = tmp_path / "rows"
    root.mkdir()
    tables = {number: seen(number, 400) for number in (1, 2, 3)}
    streams = "".join(STREAM.format(name=f"camera{n}", folder=root / f"camera{n}", key="") for n in tables)
    plain = QUERY.format(hint="", window="WINDOW = 5 SECONDS", where="A.big = B.big")
    for number, table in tables.items():
        write(table, root / f"camera{number}", range(1), 4)
    with Site(tmp_path / "site", streams) as site:
        for part, hint in enumerate(("/*+ SHIP(B = HELD) */", "", "/*+ SHIP(B = HELD) */", "")):
            for number, table in tables.items():
                write(table, root / f"camera{number}", range(part, part + 1), 4)
                site.wait_for(f"camera{number}", (part + 1) * 100)
            if part == 2:
                site.kill()
                site.start()
            declare(session, site)
            query = QUERY.format(hint=hint, window="WINDOW = 5 SECONDS", where="A.big = B.big")
            found = ran(session, query, tmp_path)
        full = QUERY.format(hint="/*+ SHIP(B = FULL) */", window="WINDOW = 5 SECONDS", where="A.big = B.big")
        with pytest.raises(WJoinError, match=r"WJ504.*the checkpoint holds its rows at the site"):
            ran(session, full, tmp_path)
        ran(session, full, tmp_path / "other")
        with pytest.raises(WJoinError, match=r"WJ504.*the checkpoint holds its rows in the state"):
            ran(session, query.replace("SELECT", "SELECT /*+ SHIP(B = HELD) */"), tmp_path / "other")
    inside = f"A.big = B.big AND {WITHIN}"
    assert sum(found.values()) > 50
    assert found == oracle(root, plain.replace("WINDOW = 5 SECONDS", "").replace("A.big = B.big", inside))


def test_held_rows_are_asked_for_by_other_workers(session: wjoin.Session, tmp_path: Path) -> None:
    """State laid out anew for three workers knows which rows are held."""
    root = tmp_path / "rows"
    root.mkdir()
    tables = {number: seen(number, 400) for number in (1, 2)}
    streams = "".join(STREAM.format(name=f"camera{n}", folder=root / f"camera{n}", key="") for n in tables)
    query = QUERY.format(hint="/*+ SHIP(A = HELD) */", window="WINDOW = 5 SECONDS", where="A.big = B.big")
    before = session.spark.conf.get("spark.sql.shuffle.partitions")
    for number, table in tables.items():
        write(table, root / f"camera{number}", range(2), 4)
    try:
        with Site(tmp_path / "site", streams) as site:
            script = f"CREATE OR REPLACE SINK found USING parquet OPTIONS (path '{tmp_path}/found');"
            for number in tables:
                script += f"""CREATE OR REPLACE STREAM camera{number} AT SITE '{site.url}'
                    WATERMARK ts DELAY OF INTERVAL 2 SECONDS;"""
            script += f"INSERT INTO found {query};"
            for part, partitions in enumerate((2, 3)):
                for number, table in tables.items():
                    write(table, root / f"camera{number}", range(2, 2 + 2 * part), 4)
                    site.wait_for(f"camera{number}", 200 + 200 * part)
                if part:
                    session.repartition(script, str(tmp_path / "0"), str(tmp_path / "1"), partitions)
                session.spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
                session.run_script(script, once=True, checkpoint=str(tmp_path / str(part)))
    finally:
        session.spark.conf.set("spark.sql.shuffle.partitions", str(before))
    written = session.read.parquet(f"{tmp_path}/found").toArrow().to_pylist()
    plain = QUERY.format(hint="", window="", where=f"A.big = B.big AND {WITHIN}")
    assert Counter(map(plain_row, written)) == oracle(root, plain)


def test_few_rows_that_ask_have_the_others_held(session: wjoin.Session, site: Site, tmp_path: Path) -> None:
    """Of an INSERT INTO that begins: where few keys meet many wide rows on a slow link."""
    declare(session, site, "OPTIONS (bandwidth '2000', latency '0.001')")
    session.sql("ALTER STREAM camera1 SET STATISTICS (rate = 1000, distinct.big = 1000000, matched = 0.0001)")
    session.sql("ALTER STREAM camera2 SET STATISTICS (rate = 0.1, distinct.big = 1000000)")
    query = QUERY.format(hint="", window="WINDOW = 5 SECONDS", where="A.big = B.big")
    session.sql(f"""
        CREATE OR REPLACE SINK found USING parquet
        OPTIONS (path '{tmp_path}/found', checkpointLocation '{tmp_path}/checkpoint')
    """)
    assert "A held" in session.explain(f"INSERT INTO found {query}")
    # A SELECT does not know its checkpoint.
    assert "A held" not in session.explain(query)
