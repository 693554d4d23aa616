"""Outer, semi, anti and ASOF joins without an equality have the rows that DuckDB has."""

import itertools
import re
from pathlib import Path

import pytest

from tests.stream.joined import Streams, end, on_time
from tests.stream.test_asof_joins import nearest
from tests.tiers import tiers

AB, BC = "WINDOW (A, B) BETWEEN -2 AND 3", "WINDOW (B, C) BETWEEN 0 AND 4"
AB_ON, BC_ON = "B.n - A.n BETWEEN -2 AND 3", "C.n - B.n BETWEEN 0 AND 4"
END = 1_000_000
"""The time of the rows that end the streams."""

SPREAD = "/*+ PLAN(ATR, 3) */"

STATEMENTS = {
    "left": (
        f"SELECT {SPREAD} A.n AS a, A.s, B.n AS b, B.s AS t FROM one A LEFT JOIN two B ON A.v < B.v {AB}",
        f"SELECT A.n, A.s, B.n, B.s FROM one A LEFT JOIN two B ON A.v < B.v AND {AB_ON}",
    ),
    "any": (
        f"SELECT A.n AS a, B.s FROM one A LEFT JOIN two B {AB} WHERE B.s IS NULL OR B.s = 'x'",
        f"SELECT A.n, B.s FROM one A LEFT JOIN two B ON {AB_ON} WHERE B.s IS NULL OR B.s = 'x'",
    ),
    "band": (
        f"""SELECT {SPREAD} A.n AS a, B.n AS b, B.k FROM one A RIGHT JOIN two B
            ON B.v BETWEEN A.j AND A.k AND A.s <> 'x' AND B.j > 0 {AB}""",
        f"""SELECT A.n, B.n, B.k FROM one A RIGHT JOIN two B
            ON B.v BETWEEN A.j AND A.k AND A.s <> 'x' AND B.j > 0 AND {AB_ON}""",
    ),
    "full": (
        f"""SELECT /*+ ALGORITHM(ORDERED) */ A.n AS a, B.n AS b FROM one A FULL JOIN two B
            ON abs(A.v - B.v) <= 1 AND B.s <> 'z' {AB}""",
        f"SELECT A.n, B.n FROM one A FULL JOIN two B ON abs(A.v - B.v) <= 1 AND B.s <> 'z' AND {AB_ON}",
    ),
    # Nothing is equal, and all in the window of no row: each is without a partner.
    "none": (
        f"SELECT A.n AS a, B.n AS b FROM one A FULL JOIN two B ON 1 = 0 {AB}",
        "SELECT A.n, B.n FROM one A FULL JOIN two B ON 1 = 0",
    ),
    "semi": (
        f"SELECT {SPREAD} A.n AS a, A.v FROM one A SEMI JOIN two B ON A.v > B.v + B.k {AB}",
        f"SELECT A.n, A.v FROM one A WHERE EXISTS (SELECT * FROM two B WHERE A.v > B.v + B.k AND {AB_ON})",
    ),
    "exists": (
        f"""SELECT {SPREAD} A.n AS a, A.s FROM one A WHERE NOT EXISTS
            (SELECT * FROM two B {AB} WHERE A.s <= B.s AND A.v > B.v)""",
        f"""SELECT A.n, A.s FROM one A WHERE NOT EXISTS
            (SELECT * FROM two B WHERE A.s <= B.s AND A.v > B.v AND {AB_ON})""",
    ),
    "path": (
        """SELECT A.n AS a, B.n AS b FROM one A, two B, three C PATH (A, NOT C, B) WITHIN (2)
           WHERE A.k = B.k AND A.j = B.j AND C.v > 6""",
        """SELECT A.n, B.n FROM one A, two B WHERE A.k = B.k AND A.j = B.j AND B.n - A.n BETWEEN 0 AND 2
           AND NOT EXISTS (SELECT * FROM three C WHERE C.v > 6 AND C.n BETWEEN A.n AND B.n)""",
    ),
    "key, then none": (
        f"""SELECT {SPREAD} A.n AS a, B.n AS b, C.n AS c FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j
            LEFT JOIN three C ON B.v < C.v AND A.s = 'x' {AB} AND {BC}""",
        f"""SELECT A.n, B.n, C.n FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON}
            LEFT JOIN three C ON B.v < C.v AND A.s = 'x' AND {BC_ON}""",
    ),
    "none, then key": (
        f"""SELECT {SPREAD} A.n AS a, B.n AS b, C.n AS c FROM one A LEFT JOIN two B ON A.v < B.v - 5
            LEFT JOIN three C ON B.k = C.k AND B.j = C.j {AB} AND {BC}""",
        f"""SELECT A.n, B.n, C.n FROM one A LEFT JOIN two B ON A.v < B.v - 5 AND {AB_ON}
            LEFT JOIN three C ON B.k = C.k AND B.j = C.j AND {BC_ON}""",
    ),
    # Of a key the rows of A are in slices, and those of B wherever they reach one.
    "hot": (
        f"SELECT {SPREAD} A.n AS a, B.n AS b FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j {AB}",
        f"SELECT A.n, B.n FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON}",
    ),
}
"""Statements for wjoin, and what they mean to DuckDB."""

NEAREST = {
    "last": (
        f"""SELECT {SPREAD} A.n AS a, B.n AS b, B.v FROM one A LEFT ASOF JOIN two B
            MATCH_CONDITION (A.n > B.n) WINDOW (A, B) = 4 WHERE A.v > 2""",
        f"""SELECT A.n, B.n, B.v FROM one A
            LEFT JOIN {nearest("B.n BETWEEN A.n - 4 AND A.n - 1")} ON true WHERE A.v > 2""",
    ),
    "either": (
        f"""SELECT {SPREAD} A.n AS a, B.* FROM one A ASOF JOIN two B MATCH_CONDITION (NEAREST)
            ON A.v < B.v AND B.s <> 'y' WINDOW (A, B) = 6""",
        f"""SELECT A.n, B.* FROM one A
            JOIN {nearest("A.v < B.v AND B.s <> 'y' AND abs(A.n - B.n) <= 6")} ON true""",
    ),
    "first": (
        """SELECT A.n AS a, B.n AS b FROM one A LEFT ASOF JOIN two B MATCH_CONDITION (A.n <= B.n)
           ON true WINDOW (A, B) = 5""",
        f"""SELECT A.n, B.n FROM one A LEFT JOIN {nearest("B.n BETWEEN A.n AND A.n + 5")} ON true""",
    ),
}
"""ASOF joins, as ``STATEMENTS``."""

EVERY = STATEMENTS | NEAREST


SEED = 22


def sink_of(name: str) -> str:
    """Return the name of the sink of a statement."""
    return re.sub(r"\W+", "_", name)


@pytest.mark.parametrize(
    ("home", "names", "runs"),
    [
        ("files", ["band"], 1),
        pytest.param("files", list(EVERY), 2, marks=pytest.mark.long),
        pytest.param("spark", list(EVERY), 2, marks=pytest.mark.long),
    ],
    ids=["some", "files", "spark"],
)
def test_all_kinds_of_joins_without_a_key(streams: Streams, home: str, names: list[str], runs: int) -> None:
    """In several runs, whose rows are out of order; rows that wait lie on one worker, or on several."""
    streams.session.context.settings.set("wjoin.state", home)
    streams.sinks([sink_of(name) for name in names])
    statements = {sink_of(name): EVERY[name][0] for name in names}
    for _ in range(runs):
        on_time(streams, 1)
        streams.insert(statements)
    first = names[0]
    assert streams.found(sink_of(first)) < streams.expected(EVERY[first][1])
    end(streams)
    streams.insert(statements)
    for name in names:
        expected = streams.expected(EVERY[name][1])
        found = streams.found(sink_of(name))
        # The rows that end the streams may meet.
        for row in [row for row in found if END in row]:
            del found[row]
        assert found == expected, name
        assert expected.total() > 5, name


@pytest.mark.parametrize("name", tiers(NEAREST, long=[*NEAREST][1:]))
def test_asof_joins_of_tables_without_a_key(streams: Streams, name: str) -> None:
    on_time(streams, 2)
    found = streams.over_tables(NEAREST[name][0])
    assert found == streams.expected(NEAREST[name][1])


@pytest.mark.long
@pytest.mark.parametrize("home", ["files", "spark"])
def test_marks_go_to_other_workers(streams: Streams, home: str, tmp_path: Path) -> None:
    """A row that has had a partner is none without one after its state has moved, and comes once."""
    names = ["left", "semi", "exists", "last"]
    session = streams.session
    session.context.settings.set("wjoin.state", home)
    streams.sinks(names)
    script = "; ".join(f"INSERT INTO {name} {EVERY[name][0]}" for name in names)
    folders = [str(tmp_path / f"with-{each}") for each in (2, 3, 1)]
    session.spark.conf.set("spark.sql.shuffle.partitions", 2)
    for (old, new), partitions in zip(itertools.pairwise(folders), (3, 1), strict=True):
        on_time(streams, 1)
        session.run_script(script, checkpoint=old)
        session.repartition(script, old, new, partitions)
        session.spark.conf.set("spark.sql.shuffle.partitions", partitions)
    end(streams)
    session.run_script(script, checkpoint=folders[-1])
    for name in names:
        assert streams.found(name) == streams.expected(EVERY[name][1]), name


@pytest.mark.long
def test_the_end_decides_on_all_workers(streams: Streams) -> None:
    names = ["left", "band", "full", "exists", "last"]
    streams.sinks(names)
    script = "; ".join(f"INSERT INTO {name} {EVERY[name][0]}" for name in names)
    on_time(streams, 2)
    streams.session.run_script(script, checkpoint=str(streams.root / "checkpoints"), complete=True)
    for name in names:
        assert streams.found(name) == streams.expected(EVERY[name][1]), name
