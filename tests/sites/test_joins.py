"""Joins of streams at sites: whole rows, partial tuples first, mixes; every way gives what DuckDB finds."""

import itertools
import random
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

import wjoin
from tests.tiers import tiers
from wjoin.executor.spark.site_source import SiteSource
from wjoin.grammar.errors import WJoinError
from wjoin.testing.site import Site
from wjoin.testing.waiting import free_ports, until

pytestmark = [pytest.mark.thorough, pytest.mark.spark]

START = 1_714_557_600_000_000

STREAM = """
[streams.{name}]
source = "{folder}"
format = "parquet"
time = "ts"
window = "1 hour"
key = ["obj_id"]
poll = "100 ms"
"""


def frames(seed: int, rows: int) -> pa.Table:
    """Return what a camera has seen, out of order by less than two seconds, with a picture of each object."""
    chance = random.Random(seed)
    times = [START + n * 50_000 + chance.randrange(1_900_000) for n in range(rows)]
    return pa.table(
        {
            "obj_id": pa.array([chance.randrange(rows // 10) for _ in range(rows)], pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "frame": [chance.randbytes(100 + n % 50) for n in range(rows)],
            "note": [None if n % 7 == 0 else f"{seed}-{n}" for n in range(rows)],
            "label": [None if n % 5 == 0 else "label " * (n % 4) for n in range(rows)],
        }
    )


def write(rows: pa.Table, folder: Path, files: range, of: int) -> None:
    """Write some of the files among which the rows are divided, in order."""
    size = -(-rows.num_rows // of)
    for number in files:
        put(rows.slice(number * size, size), folder, number)


def put(rows: pa.Table, folder: Path, number: int) -> None:
    """Write a file that appears whole."""
    folder.mkdir(exist_ok=True)
    part = folder / f".{number:04}"
    pq.write_table(rows, part)
    part.rename(folder / f"{number:04}.parquet")


ROWS = 600


@pytest.fixture(scope="module")
def cameras(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three cameras' files."""
    root = tmp_path_factory.mktemp("cameras")
    for number in (1, 2, 3):
        write(frames(number, ROWS), root / f"camera{number}", range(4), 4)
    return root


@pytest.fixture(scope="module")
def sites(cameras: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Site]]:
    """A site for two of the cameras, and one for the third."""
    folder = tmp_path_factory.mktemp("sites")
    declared = [[1, 2], [3]]
    running = [
        Site(
            folder / str(number),
            "".join(STREAM.format(name=f"camera{n}", folder=cameras / f"camera{n}") for n in own),
        )
        for number, own in enumerate(declared)
    ]
    try:
        for site, own in zip(running, declared, strict=True):
            site.start()
            for number in own:
                site.wait_for(f"camera{number}", ROWS)
        yield running
    finally:
        for site in running:
            site.kill()


def declare(session: wjoin.Session, sites: list[Site], options: str = "") -> None:
    for number, site in ((1, sites[0]), (2, sites[0]), (3, sites[1])):
        session.sql(f"""
            CREATE OR REPLACE STREAM camera{number} AT SITE '{site.url}' {options}
            WATERMARK ts DELAY OF INTERVAL 2 SECONDS
        """)


THREE = """
SELECT {hint} A.obj_id, A.ts AS a, B.ts AS b, C.ts AS c, A.frame AS one, A.label, C.frame AS three, B.note
FROM camera1 A, camera2 B, camera3 C
WINDOW (A, B) = 5 SECONDS AND WINDOW (B, C) = 10 SECONDS
WHERE A.obj_id = B.obj_id AND B.obj_id = C.obj_id AND A.note IS NOT NULL AND length(A.frame) > 105
"""

ORACLE = """
SELECT a.obj_id, a.ts AS a, b.ts AS b, c.ts AS c, a.frame AS one, a.label, c.frame AS three, b.note
FROM read_parquet('{root}/camera1/*') a, read_parquet('{root}/camera2/*') b,
     read_parquet('{root}/camera3/*') c
WHERE a.obj_id = b.obj_id AND b.obj_id = c.obj_id AND a.note IS NOT NULL AND octet_length(a.frame) > 105
AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 5000000 AND abs(epoch_us(b.ts) - epoch_us(c.ts)) <= 10000000
"""


def expected(root: Path, oracle: str = ORACLE) -> Counter[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows = connection.sql(oracle.format(root=root)).to_arrow_table().to_pylist()
    return Counter(map(plain_row, rows))


def plain_row(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(each.timestamp() if hasattr(each, "timestamp") else each for each in row.values())


def ran(session: wjoin.Session, query: str, folder: Path) -> Counter[tuple[object, ...]]:
    """Return what a query makes of all that the sites have now; a folder is gone on with."""
    sink = f"CREATE OR REPLACE SINK found USING parquet OPTIONS (path '{folder}/found')"
    session.run_script(
        f"{sink}; INSERT INTO found {query}",
        once=True,
        checkpoint=str(folder / "checkpoints"),
    )
    return found_in(session, folder)


def found_in(session: wjoin.Session, folder: Path) -> Counter[tuple[object, ...]]:
    """Return the results that are written in a folder."""
    return Counter(map(plain_row, session.read.parquet(f"{folder}/found").toArrow().to_pylist()))


HINTS = ["", "PLAN(SIMPLE)", "PLAN(SEMIJOIN)", "SHIP(A = PARTIAL, B = FULL, C = PARTIAL)"]


@pytest.mark.parametrize("hint", tiers(HINTS, quick=["PLAN(SEMIJOIN)"], core=["PLAN(SEMIJOIN)"]))
def test_every_way_gives_what_duckdb_finds(
    session: wjoin.Session, cameras: Path, sites: list[Site], tmp_path: Path, hint: str
) -> None:
    declare(session, sites, "OPTIONS (maxRowsPerTrigger '200')")
    found = ran(session, THREE.format(hint=f"/*+ {hint} */" if hint else ""), tmp_path)
    assert sum(found.values()) > 100
    assert found == expected(cameras)


def test_a_checkpoint_goes_on_in_another_way(session: wjoin.Session, tmp_path: Path) -> None:
    """Rows of the state that have come whole, and others that have come partially, are in one result."""
    rows = {number: frames(number, 300) for number in (1, 2, 3)}
    root = tmp_path / "rows"
    root.mkdir()
    streams = "".join(STREAM.format(name=f"camera{n}", folder=root / f"camera{n}") for n in rows)
    for number, table in rows.items():
        write(table, root / f"camera{number}", range(1), 4)
    with Site(tmp_path / "site", streams) as site:
        for part, hint in enumerate(itertools.islice(itertools.cycle(HINTS[1:]), 4)):
            for number, table in rows.items():
                write(table, root / f"camera{number}", range(part, part + 1), 4)
                site.wait_for(f"camera{number}", (part + 1) * 75)
            declare(session, [site, site])
            found = ran(session, THREE.format(hint=f"/*+ {hint} */"), tmp_path)
    assert sum(found.values()) > 50
    assert found == expected(root)


def test_streams_at_a_site_and_others_in_one_join(
    session: wjoin.Session, cameras: Path, sites: list[Site], tmp_path: Path
) -> None:
    declare(session, sites)
    session.sql(f"""
        CREATE OR REPLACE STREAM camera2 (obj_id BIGINT, ts TIMESTAMP, frame BINARY, note STRING)
        USING parquet OPTIONS (path '{cameras}/camera2') WATERMARK ts DELAY OF INTERVAL 2 SECONDS
    """)
    query = THREE.format(hint="/*+ PLAN(SEMIJOIN) */")
    explained = session.explain(query)
    assert "A partial: obj_id, ts, frame, note of every row, label only of rows in results" in explained
    assert "B full" not in explained
    assert "B partial" not in explained
    assert ran(session, query, tmp_path) == expected(cameras)


def commits(root: Path) -> int:
    """Return how many micro-batches a query with its checkpoints there has finished."""
    folder = root / "checkpoints" / "found" / "commits"
    return sum(path.name.isdecimal() for path in folder.glob("*"))


def restart_within(site: Site, root: Path, batches: int) -> None:
    """Kill a site once a query has finished some micro-batches, and start it again a second later."""
    until(lambda: commits(root) >= batches, f"{batches} micro-batches")
    site.kill()
    time.sleep(1)
    site.start()


@pytest.fixture(scope="module")
def four_sites(cameras: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Site]]:
    """Two sites with each other row of the first camera, and one for each of the other cameras."""
    folder = tmp_path_factory.mktemp("four")
    first = pq.read_table(cameras / "camera1")
    for half in range(2):
        put(first.take(list(range(half, ROWS, 2))), folder / f"half{half}", 0)
    sources = [folder / "half0", folder / "half1", cameras / "camera2", cameras / "camera3"]
    numbers = (1, 1, 2, 3)
    running = [
        Site(folder / f"site{place}", STREAM.format(name=f"camera{number}", folder=source))
        for place, (number, source) in enumerate(zip(numbers, sources, strict=True))
    ]
    try:
        for site, number in zip(running, numbers, strict=True):
            site.start()
            site.wait_for(f"camera{number}", ROWS // 2 if number == 1 else ROWS)
        yield running
    finally:
        for site in running:
            site.kill()


MIXES = [*HINTS[1:], "SHIP(A = FULL, B = PARTIAL, C = PARTIAL)"]


@pytest.mark.parametrize(("killed", "hint"), [*enumerate(MIXES)])
def test_streams_of_four_sites_of_which_one_begins_again(
    session: wjoin.Session, cameras: Path, four_sites: list[Site], tmp_path: Path, hint: str, killed: int
) -> None:
    """One stream comes from two of the sites; each of the four is killed in one of the runs."""
    for number, own in ((1, four_sites[:2]), (2, four_sites[2:3]), (3, four_sites[3:])):
        addresses = ", ".join(f"'{each.url}'" for each in own)
        session.sql(f"""
            CREATE OR REPLACE STREAM camera{number} AT SITES ({addresses})
            OPTIONS (maxRowsPerTrigger '60') WATERMARK ts DELAY OF INTERVAL 2 SECONDS
        """)
    with ThreadPoolExecutor(1) as pool:
        again = pool.submit(restart_within, four_sites[killed], tmp_path, 3)
        found = ran(session, THREE.format(hint=f"/*+ {hint} */"), tmp_path)
        # The site was away in the middle, and not behind the end.
        assert again.done()
        again.result()
    assert commits(tmp_path) >= 10
    assert found == expected(cameras)


def test_a_site_that_is_not_there_is_an_error_of_the_statement(session: wjoin.Session) -> None:
    with pytest.raises(WJoinError, match=r"WJ604.*127\.0\.0\.1:1"):
        session.sql("CREATE STREAM nobody AT SITE 'grpc://127.0.0.1:1' OPTIONS (patience '1')")


def test_by_itself_it_is_a_format_of_spark(session: wjoin.Session, cameras: Path, sites: list[Site]) -> None:
    """All columns as the site has them; a batch has what is there now."""
    session.spark.dataSource.register(SiteSource)
    source = session.read.format("wjoin_site").option("site", sites[1].url).option("stream", "camera3")
    found = source.load().orderBy("ts", "note").toArrow().to_pylist()
    rows = pq.read_table(cameras / "camera3").sort_by([("ts", "ascending"), ("note", "ascending")])

    def key(row: dict[str, object]) -> tuple[object, str]:
        return row["ts"], str(row["note"])

    assert sorted(found, key=key) == sorted(rows.to_pylist(), key=key)


def test_a_stream_travels_in_another_way_where_that_costs_less_by_now(
    session: wjoin.Session, tmp_path: Path
) -> None:
    """Hardly a row matches at first, then each does: full tuples are asked for no more, rows come whole."""
    rows = tmp_path / "rows"
    rows.mkdir()
    for number in (1, 2):
        table = frames(number, 4000)
        ids = [n if n > 2000 else n + 10_000 * number for n in range(4000)]
        put(table.set_column(0, "obj_id", pa.array(ids, pa.int64())), rows / f"camera{number}", 0)
    streams = "".join(STREAM.format(name=f"camera{n}", folder=rows / f"camera{n}") for n in (1, 2))
    (port,) = free_ports(1)
    with Site(tmp_path / "site", streams, f'metrics = "127.0.0.1:{port}"') as site:
        for number in (1, 2):
            site.wait_for(f"camera{number}", 4000)
            session.sql(f"""
                CREATE OR REPLACE STREAM camera{number} AT SITE '{site.url}'
                OPTIONS (maxRowsPerTrigger '100', bandwidth '20000', latency '0')
                WATERMARK ts DELAY OF INTERVAL 2 SECONDS
            """)
            session.sql(f"ALTER STREAM camera{number} SET STATISTICS (distinct.obj_id = 100000)")
        query = """SELECT A.obj_id, A.frame, B.frame AS other FROM camera1 A, camera2 B
            WINDOW = 10 SECONDS WHERE A.obj_id = B.obj_id"""
        assert "A partial" in session.explain(query)
        session.run_script(
            f"""CREATE OR REPLACE SINK found USING parquet OPTIONS (path '{tmp_path}/found');
            INSERT INTO found {query}""",
            once=True,
            checkpoint=f"{tmp_path}/checkpoints",
        )
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            metrics = answer.read().decode()
    found = session.read.parquet(f"{tmp_path}/found").toArrow()
    assert sorted(found["obj_id"].to_pylist()) == list(range(2001, 4000))
    pictures = {n: pq.read_table(rows / f"camera{n}") for n in (1, 2)}
    for column, number in (("frame", 1), ("other", 2)):
        own = dict(zip(*(pictures[number][name].to_pylist() for name in ("obj_id", "frame")), strict=True))
        assert all(own[row["obj_id"]] == row[column] for row in found.to_pylist())
    fetched = re.search(r'sent_rows_total\{kind="full",stream="camera1"\} ([\d.]+)', metrics)
    assert fetched is not None
    assert 0 < float(fetched[1]) < 1500


@pytest.mark.long
def test_a_silent_site_lets_others_go_on(session: wjoin.Session, tmp_path: Path) -> None:
    """Once it sends again, what is behind the others is late, and goes to its sink with all columns."""
    rows = tmp_path / "rows"
    rows.mkdir()
    streams = "".join(STREAM.format(name=f"camera{n}", folder=rows / f"camera{n}") for n in (1, 2))
    query = """INSERT INTO found SELECT A.obj_id, A.note, B.note AS other FROM camera1 A, camera2 B
        WINDOW = 10 SECONDS WHERE A.obj_id = B.obj_id"""
    for sink in ("found", "lost"):
        session.sql(f"CREATE OR REPLACE SINK {sink} USING parquet OPTIONS (path '{tmp_path}/{sink}')")

    def see(camera: int, second: int, number: int) -> None:
        columns = {
            "obj_id": pa.array([7], pa.int64()),
            "ts": pa.array([START + second * 1_000_000], pa.timestamp("us", "UTC")),
            "frame": [b"\x01"],
            "note": [f"{camera}-{second}"],
            "label": pa.array([None], pa.string()),
        }
        put(pa.table(columns), rows / f"camera{camera}", number)

    def run() -> list[tuple[str, str]]:
        session.run_script(query, checkpoint=str(tmp_path / "checkpoints"))
        found = session.read.parquet(str(tmp_path / "found")).collect()
        return sorted((row.note, row.other) for row in found)

    see(1, 0, 0)
    see(2, 0, 0)
    with Site(tmp_path / "site", streams) as site:
        for camera in (1, 2):
            site.wait_for(f"camera{camera}", 1)
            session.sql(f"""
                CREATE OR REPLACE STREAM camera{camera} AT SITE '{site.url}'
                WATERMARK ts DELAY OF INTERVAL 2 SECONDS IDLE AFTER 1 MILLISECOND LATE ROWS INTO lost
            """)
        assert run() == [("1-0", "2-0")]
        see(1, 100, 1)
        site.wait_for("camera1", 2)
        assert run() == [("1-0", "2-0")]
        see(2, 0, 1)
        see(2, 100, 2)
        site.wait_for("camera2", 3)
        with pytest.warns(wjoin.WJoinWarning, match=r"WJ803.*1 late row \(1 of B\)"):
            assert run() == [("1-0", "2-0"), ("1-100", "2-100")]
        lost = session.sql("SELECT obj_id, note, frame, label, late_for FROM lost")
        assert isinstance(lost, DataFrame)
        assert lost.toArrow().to_pylist() == [
            {"obj_id": 7, "note": "2-0", "frame": b"\x01", "label": None, "late_for": "found"}
        ]


@pytest.mark.long
@pytest.mark.core
def test_a_later_run_reads_all_there_is_though_a_micro_batch_takes_little(
    session: wjoin.Session, tmp_path: Path
) -> None:
    rows = tmp_path / "rows"
    rows.mkdir()
    streams = "".join(STREAM.format(name=f"camera{n}", folder=rows / f"camera{n}") for n in (1, 2))
    session.sql(f"CREATE SINK found USING parquet OPTIONS (path '{tmp_path}/found')")
    tables = {number: frames(number, 200) for number in (1, 2)}
    for number, table in tables.items():
        put(table.slice(0, 100), rows / f"camera{number}", 0)
    with Site(tmp_path / "site", streams) as site:
        for number in tables:
            site.wait_for(f"camera{number}", 100)
            session.sql(f"""
                CREATE STREAM camera{number} AT SITE '{site.url}' OPTIONS (maxRowsPerTrigger '40')
                WATERMARK ts DELAY OF INTERVAL 2 SECONDS
            """)
        for run in range(2):
            if run:
                for number, table in tables.items():
                    put(table.slice(100), rows / f"camera{number}", 1)
                    site.wait_for(f"camera{number}", 200)
            session.run_script(
                """INSERT INTO found SELECT A.obj_id, A.ts AS a, B.ts AS b FROM camera1 A, camera2 B
                   WINDOW = 10 SECONDS WHERE A.obj_id = B.obj_id""",
                checkpoint=str(tmp_path / "checkpoints"),
            )
    with duckdb.connect() as oracle:
        oracle.register("found", session.read.parquet(str(tmp_path / "found")).toArrow())
        for number, table in tables.items():
            oracle.register(f"camera{number}", table)
        meant = oracle.execute("""SELECT A.obj_id, A.ts, B.ts FROM camera1 A, camera2 B
            WHERE A.obj_id = B.obj_id AND abs(epoch_us(A.ts) - epoch_us(B.ts)) <= 10000000""").fetchall()
        assert Counter(oracle.execute("FROM found").fetchall()) == Counter(meant)
    assert len(meant) > 100
