"""LEFT, RIGHT, FULL, SEMI, ANTI and ASOF joins of streams at sites have the rows that DuckDB has."""

import random
import re
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import wjoin
from tests.sites.test_joins import put
from tests.tiers import tiers
from wjoin.testing.site import Site
from wjoin.testing.waiting import free_ports

pytestmark = [pytest.mark.thorough, pytest.mark.spark]

NAMES = ("one", "two", "three")

STREAM = """
[streams.{name}]
source = "{folder}"
format = "parquet"
time = "n"
window = {window}
key = ["k"]
poll = "50 ms"
"""

COLUMNS = {
    "n": pa.int64(),
    "k": pa.int32(),
    "j": pa.int32(),
    "v": pa.int32(),
    "s": pa.string(),
    "wide": pa.string(),
}

NEAR = "B.n - A.n BETWEEN -2 AND 5"
WINDOW = "WINDOW (A, B) BETWEEN -2 AND 5"

STATEMENTS = {
    "left_outer": (
        f"SELECT {{hint}} A.wide, A.s, B.wide AS b FROM one A LEFT JOIN two B ON A.k = B.k {WINDOW}",
        f"SELECT A.wide, A.s, B.wide FROM one A LEFT JOIN two B ON A.k = B.k AND {NEAR}",
    ),
    # What ON says of a preserved stream keeps no row out: it is read of each row that comes partially.
    "full_outer": (
        f"""SELECT {{hint}} A.wide, B.n AS b, B.wide AS other FROM one A FULL JOIN two B
            ON A.k = B.k AND A.v > 2 AND B.s <> 'x' {WINDOW}""",
        f"""SELECT A.wide, B.n, B.wide FROM one A FULL JOIN two B
            ON A.k = B.k AND A.v > 2 AND B.s <> 'x' AND {NEAR}""",
    ),
    "right_outer": (
        f"""SELECT {{hint}} A.wide, A.v, B.wide AS b FROM one A RIGHT JOIN two B
            ON A.k = B.k AND A.j = B.j {WINDOW}""",
        f"SELECT A.wide, A.v, B.wide FROM one A RIGHT JOIN two B ON A.k = B.k AND A.j = B.j AND {NEAR}",
    ),
    "semi": (
        f"""SELECT {{hint}} A.wide, A.s FROM one A LEFT SEMI JOIN two B ON A.k = B.k AND A.v <= B.v {WINDOW}
            WHERE A.j < 2""",
        f"""SELECT A.wide, A.s FROM one A WHERE A.j < 2 AND EXISTS
            (SELECT * FROM two B WHERE A.k = B.k AND A.v <= B.v AND {NEAR})""",
    ),
    "anti": (
        f"SELECT {{hint}} A.* FROM one A ANTI JOIN two B ON A.k = B.k AND B.s = 'y' {WINDOW}",
        f"""SELECT A.* FROM one A WHERE NOT EXISTS
            (SELECT * FROM two B WHERE A.k = B.k AND B.s = 'y' AND {NEAR})""",
    ),
    "alone": (
        f"SELECT {{hint}} A.wide, A.v FROM one A ANTI JOIN two B ON A.k = B.k {WINDOW}",
        f"""SELECT A.wide, A.v FROM one A WHERE NOT EXISTS
            (SELECT * FROM two B WHERE A.k = B.k AND {NEAR})""",
    ),
    "nearest": (
        """SELECT {hint} A.wide, B.wide AS b, B.v FROM one A LEFT ASOF JOIN two B
            MATCH_CONDITION (A.n >= B.n) ON A.k = B.k WINDOW (A, B) = 6""",
        """SELECT wide, b, v FROM (SELECT A.wide, B.wide AS b, B.v, row_number() OVER
               (PARTITION BY A.wide ORDER BY B.n DESC NULLS LAST, B.k, B.j, B.v NULLS FIRST, B.s, B.wide)
               AS place
             FROM one A LEFT JOIN two B ON A.k = B.k AND A.n - B.n BETWEEN 0 AND 6) WHERE place = 1""",
    ),
    "tree": (
        """SELECT {hint} A.wide, B.wide AS b, C.wide AS c FROM one A LEFT JOIN two B ON A.k = B.k
           FULL JOIN three C ON A.j = C.j AND A.k = C.k
           WINDOW (A, B) BETWEEN 0 AND 7 AND WINDOW (A, C) BETWEEN -3 AND 1""",
        """SELECT A.wide, B.wide, C.wide FROM one A LEFT JOIN two B ON A.k = B.k AND B.n - A.n BETWEEN 0 AND 7
           FULL JOIN three C ON A.j = C.j AND A.k = C.k AND C.n - A.n BETWEEN -3 AND 1""",
    ),
    # B has windows with both others: what it implies of C holds only where it has a row.
    "chain": (
        """SELECT {hint} A.wide, B.wide AS b, C.wide AS c FROM one A LEFT JOIN two B ON A.k = B.k
           LEFT JOIN three C ON B.k = C.k WINDOW (A, B) BETWEEN 0 AND 4 AND WINDOW (B, C) BETWEEN 0 AND 3""",
        """SELECT A.wide, B.wide, C.wide FROM one A LEFT JOIN two B ON A.k = B.k AND B.n - A.n BETWEEN 0 AND 4
           LEFT JOIN three C ON B.k = C.k AND C.n - B.n BETWEEN 0 AND 3""",
    ),
    # The inner join is made first.
    "base": (
        """SELECT {hint} A.wide, B.wide AS b, C.wide AS c FROM one A JOIN two B ON A.k = B.k
           LEFT JOIN three C ON A.j = C.j WINDOW (A, B) BETWEEN -2 AND 5 AND WINDOW (A, C) BETWEEN 0 AND 1""",
        f"""SELECT A.wide, B.wide, C.wide FROM one A JOIN two B ON A.k = B.k AND {NEAR}
           LEFT JOIN three C ON A.j = C.j AND C.n - A.n BETWEEN 0 AND 1""",
    ),
    "path": (
        """SELECT {hint} A.wide, B.wide AS b FROM one A, two B, three C PATH (A, NOT C, B) WITHIN (6)
           WHERE A.k = B.k AND A.k = C.k""",
        """SELECT A.wide, B.wide FROM one A, two B WHERE A.k = B.k AND B.n - A.n BETWEEN 0 AND 6
           AND NOT EXISTS (SELECT * FROM three C WHERE A.k = C.k AND C.n BETWEEN A.n AND B.n)""",
    ),
}
"""Statements for wjoin, and what they mean to DuckDB."""

HINTS = ["PLAN(SIMPLE)", "PLAN(SEMIJOIN)", ""]


@dataclass
class AtSite:
    """Streams at a site on this machine, whose files come part by part, and the same rows in DuckDB."""

    session: wjoin.Session
    root: Path
    site: Site
    port: int
    chance: random.Random
    oracle: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    step: int = 0
    rows: int = 0
    width: int = 40
    statements: Mapping[str, tuple[str, str]] = field(default_factory=lambda: STATEMENTS)

    def arrive(self, *, end: bool = False) -> None:
        """Have rows come that are less out of order than their delay, or one that decides all."""
        self.step += 1
        count = 1 if end else 60
        self.rows += count
        for place, name in enumerate(NAMES):
            number = range(count)
            table = pa.table(
                {
                    "n": [1_000_000 if end else self.step * 30 + self.chance.randint(0, 40) for _ in number],
                    "k": [90 + place if end else self._or_null(self.chance.randint(0, 7)) for _ in number],
                    "j": [self.chance.randint(0, 2) for _ in number],
                    "v": [self._or_null(self.chance.randint(0, 9)) for _ in number],
                    "s": [self._or_null(self.chance.choice("xyz")) for _ in number],
                    "wide": ["end" if end else self._wide(name, each) for each in number],
                },
                schema=pa.schema(COLUMNS),
            )
            put(table, self.root / name, self.step)
            if not end:
                self.oracle.register("rows", table)
                self.oracle.execute(f"INSERT INTO {name} SELECT * FROM rows")
        for name in NAMES:
            self.site.wait_for(name, self.rows)

    def _wide(self, name: str, number: int) -> str:
        """Return a text that tells of which row it is."""
        return (
            f"{name} {self.step} {number} é {self.chance.randbytes(self.chance.randint(0, self.width)).hex()}"
        )

    def _or_null(self, value: object) -> object:
        return None if self.chance.random() < 0.1 else value

    def run(self, names: list[str], hint: str, folder: str = "", *, complete: bool = False) -> None:
        """Run statements to the end of what the site has."""
        for name in NAMES:
            self.session.sql(f"""CREATE OR REPLACE STREAM {name} AT SITE '{self.site.url}'
                OPTIONS (maxRowsPerTrigger '37') WATERMARK n DELAY OF 40""")
        script = "; ".join(
            f"""CREATE OR REPLACE SINK {name} USING parquet OPTIONS (path '{self.root}/{folder}{name}_out');
            INSERT INTO {name} {self.statements[name][0].format(hint=f"/*+ {hint} */" if hint else "")}"""
            for name in names
        )
        self.session.run_script(
            script, once=True, complete=complete, checkpoint=f"{self.root}/{folder}checkpoints"
        )

    def found(self, name: str, folder: str = "") -> Counter[tuple[object, ...]]:
        """Return what the sink of a statement has, without the row behind which all is decided."""
        rows = self.session.spark.read.parquet(f"{self.root}/{folder}{name}_out").collect()
        return Counter(own for own in map(tuple, rows) if "end" not in own)

    def expected(self, name: str) -> Counter[tuple[object, ...]]:
        return Counter(self.oracle.execute(self.statements[name][1]).fetchall())

    def sent(self, stream: str) -> dict[str, float]:
        """Return the bytes that the site has sent of a stream, by kind."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
            text = answer.read().decode()
        pattern = rf'wjoin_site_sent_bytes_total{{kind="(\w+)",stream="{stream}"}} (\S+)'
        return {kind: float(value) for kind, value in re.findall(pattern, text)}


@pytest.fixture
def streams(session: wjoin.Session, tmp_path: Path) -> Iterator[AtSite]:
    declared = "".join(STREAM.format(name=name, folder=tmp_path / name, window=2_000_000) for name in NAMES)
    (port,) = free_ports(1)
    for name in NAMES:
        (tmp_path / name).mkdir()
    with Site(tmp_path / "site", declared, f'metrics = "127.0.0.1:{port}"') as site:
        found = AtSite(session, tmp_path, site, port, random.Random(5))
        for name in NAMES:
            columns = "n BIGINT, k INT, j INT, v INT, s VARCHAR, wide VARCHAR"
            found.oracle.execute(f"CREATE TABLE {name} ({columns})")
        yield found
        found.oracle.close()


GROUPS = (
    ["left_outer", "anti"],
    ["full_outer", "right_outer", "semi"],
    ["nearest", "path"],
    ["tree", "chain"],
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("names", tiers(GROUPS, long=GROUPS), ids=" ".join)
def test_each_part_comes_in_another_way(streams: AtSite, names: list[str]) -> None:
    """Rows that wait have come whole or partially, and are decided in a run that has them come otherwise."""
    for hint in HINTS:
        streams.arrive()
        streams.run(names, hint)
    streams.arrive(end=True)
    streams.run(names, HINTS[0])
    for name in names:
        expected = streams.expected(name)
        assert streams.found(name) == expected, name
        assert expected.total() > 10, name


@pytest.mark.long
def test_what_waits_at_the_end_fetches_its_columns_when_the_streams_end(streams: AtSite) -> None:
    streams.arrive()
    streams.run(["left_outer"], "PLAN(SEMIJOIN)", complete=True)
    assert streams.found("left_outer") == streams.expected("left_outer")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_side_that_is_not_preserved_is_held(streams: AtSite) -> None:
    names = ["left_outer", "semi", "alone", "base"]
    for hint in ("SHIP(B = HELD)", "SHIP(B = HELD, A = PARTIAL)", ""):
        streams.arrive()
        streams.run(names, hint)
    streams.arrive(end=True)
    streams.run(names, "")
    for name in names:
        assert streams.found(name) == streams.expected(name), name
    assert streams.sent("two").keys() == {"reduced"}


@pytest.mark.long
@pytest.mark.timeout(600)
def test_fewer_bytes_travel_where_rows_of_results_only_fetch_their_columns(streams: AtSite) -> None:
    """Of SEMI and ANTI JOIN; and of their right side nothing but its key and its time in either way."""
    streams.width = 2000
    for _ in range(2):
        streams.arrive()
    streams.arrive(end=True)
    sent: list[dict[str, float]] = []
    for hint in ("PLAN(SIMPLE)", "PLAN(SEMIJOIN)"):
        before = {stream: sum(streams.sent(stream).values()) for stream in NAMES}
        streams.run(["semi", "alone"], hint, folder=f"{hint}/")
        sent.append({stream: sum(streams.sent(stream).values()) - before[stream] for stream in NAMES})
        for name in ("semi", "alone"):
            assert streams.found(name, f"{hint}/") == streams.expected(name)
    simple, semijoin = sent
    assert semijoin["one"] < 0.8 * simple["one"]
    assert simple["two"] < 0.02 * simple["one"]
    assert "full" not in streams.sent("two")
