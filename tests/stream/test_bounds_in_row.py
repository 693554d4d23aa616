"""Windows whose bound each row says itself, up to a limit, have the rows that DuckDB has."""

from datetime import UTC, datetime, timedelta

import pytest

import wjoin
from tests.stream.joined import Streams, assert_as_duckdb, on_time
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError

SEED = 50

STATEMENTS = {
    # Of v some are NULL, and less 2 some are below zero.
    "inner": (
        """SELECT A.n AS a, B.n AS b, A.v FROM one A, two B DWINDOW (A, B) = A.v - 2 AT MOST 4
           WHERE A.k = B.k AND A.s <> 'x'""",
        """SELECT A.n, B.n, A.v FROM one A, two B
           WHERE A.k = B.k AND A.s <> 'x' AND B.n BETWEEN A.n AND A.n + least(A.v - 2, 4)
           AND A.v IS NOT NULL""",
    ),
    "left": (
        """SELECT A.n AS a, B.n AS b FROM one A LEFT JOIN two B ON A.k = B.k
           DWINDOW (A, B) = A.v - 2 AT MOST 4""",
        """SELECT A.n, B.n FROM one A LEFT JOIN two B ON A.k = B.k AND B.n - A.n BETWEEN 0 AND 4
           AND B.n - A.n <= A.v - 2""",
    ),
    "both ways": (
        "SELECT A.n AS a, B.n AS b FROM one A FULL JOIN two B ON A.k = B.k WINDOW (A, B) = B.v AT MOST 5",
        """SELECT A.n, B.n FROM one A FULL JOIN two B ON A.k = B.k AND abs(A.n - B.n) <= B.v
           AND abs(A.n - B.n) <= 5""",
    ),
    "before": (
        """SELECT A.n AS a, A.v FROM one A ANTI JOIN two B ON A.k = B.k
           DWINDOW (A, B) = B.n - (B.n - B.v) AT MOST 5 AND WINDOW (A, B) = 4""",
        """SELECT A.n, A.v FROM one A WHERE NOT EXISTS
           (SELECT * FROM two B WHERE A.k = B.k AND B.n - A.n BETWEEN 0 AND 4 AND B.n - A.n <= B.v)""",
    ),
    "exists": (
        """SELECT A.n AS a, A.v FROM one A WHERE EXISTS
           (SELECT 1 FROM two B DWINDOW (A, B) = A.v - A.j AT MOST 5 WHERE A.k = B.k)""",
        """SELECT A.n, A.v FROM one A WHERE EXISTS
           (SELECT * FROM two B WHERE A.k = B.k AND B.n - A.n BETWEEN 0 AND 5 AND B.n - A.n <= A.v - A.j)""",
    ),
    # Each of both pairs has its own.
    "three": (
        """SELECT A.n AS a, B.n AS b, C.n AS c FROM one A, two B, three C
           DWINDOW (A, B) = A.v AT MOST 4 AND DWINDOW (C, B) = C.v - C.j AT MOST 3
           WHERE A.k = B.k AND B.k = C.k""",
        """SELECT A.n, B.n, C.n FROM one A, two B, three C WHERE A.k = B.k AND B.k = C.k
           AND B.n - A.n BETWEEN 0 AND 4 AND B.n - A.n <= A.v
           AND B.n - C.n BETWEEN 0 AND 3 AND B.n - C.n <= C.v - C.j""",
    ),
    "tree": (
        """SELECT A.n AS a, B.n AS b, C.n AS c FROM one A LEFT JOIN two B ON A.k = B.k
           LEFT JOIN three C ON B.k = C.k AND C.s = 'y'
           WINDOW (A, B) = A.v AT MOST 4 AND DWINDOW (B, C) = B.v AT MOST 3""",
        """SELECT A.n, B.n, C.n FROM one A LEFT JOIN two B ON A.k = B.k AND abs(A.n - B.n) <= 4
           AND abs(A.n - B.n) <= A.v
           LEFT JOIN three C ON B.k = C.k AND C.s = 'y' AND C.n - B.n BETWEEN 0 AND 3
           AND C.n - B.n <= B.v""",
    ),
}


@pytest.mark.parametrize(
    ("home", "names"),
    [
        ("files", ["left"]),
        pytest.param("files", list(STATEMENTS), marks=pytest.mark.long),
        pytest.param("spark", list(STATEMENTS), marks=pytest.mark.long),
    ],
    ids=["some", "files", "spark"],
)
def test_streams(streams: Streams, home: str, names: list[str]) -> None:
    assert_as_duckdb(streams, home, {name: STATEMENTS[name] for name in names})


@pytest.mark.parametrize("name", tiers(STATEMENTS, long=[*STATEMENTS][1:]))
def test_tables(streams: Streams, name: str) -> None:
    on_time(streams, 2)
    expected = streams.expected(STATEMENTS[name][1])
    assert streams.over_tables(STATEMENTS[name][0]) == expected
    assert expected


@pytest.mark.parametrize("kind", tiers(["TIMESTAMP", "TIMESTAMP_NTZ"], long=["TIMESTAMP_NTZ"]))
def test_times(session: wjoin.Session, kind: str) -> None:
    """The end of a row is the time that it says, also where its clock is put forward meanwhile."""
    session.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin" if kind == "TIMESTAMP" else "UTC")
    start = datetime(2024, 3, 31, 0, 59, 55, tzinfo=UTC)
    ends = [4, 10, None, -5, 7200]
    opened = [
        (n, start, None if end is None else start + timedelta(seconds=end), end) for n, end in enumerate(ends)
    ]
    bids = [(n, start + timedelta(seconds=at)) for n in range(len(ends)) for at in (0, 4, 5, 10, 3600, 3601)]
    for name, rows, columns in (
        ("opened", opened, "id INT, ts {0}, until {0}, secs INT"),
        ("bids", bids, "id INT, ts {0}"),
    ):
        found = session.createDataFrame(rows, columns.format("TIMESTAMP"))
        listed = [f"CAST({each} AS {kind if 't' in each else 'INT'}) AS {each}" for each in found.columns]
        session.stream(name, found.selectExpr(*listed), event_time="ts")
    select = "SELECT A.id, unix_seconds(CAST(B.ts AS TIMESTAMP)) - {} AS s FROM opened A, bids B"
    select = select.format(int(start.timestamp()))
    near = [(0, 0), (0, 4), (1, 0), (1, 4), (1, 5), (1, 10)]
    for bound in ("A.until - A.ts", "(A.until - A.ts)", "make_dt_interval(0, 0, 0, A.secs)"):
        joined = f"{select} DWINDOW (A, B) = {bound} AT MOST 1 HOUR WHERE A.id = B.id"
        found = sorted(tuple(row) for row in session.sql(joined).collect())
        assert found == [*near, *((4, at) for at in (0, 4, 5, 10, 3600))], bound


def test_what_says_no_length_is_refused(session: wjoin.Session) -> None:
    for name in ("a", "b"):
        session.stream(name, session.createDataFrame([], "id INT, ts TIMESTAMP, n INT, s STRING"))
    for bound, words in {
        "A.n": "the bound is of type INT, not an interval",
        "A.s": "the bound is of type STRING, not an interval",
        "A.ts": "the bound is of type TIMESTAMP, not an interval",
        "B.ts - A.ts": "the bound must use columns of A or of B alone",
        "INTERVAL 5 SECONDS": "the bound must use columns of A or of B alone",
        "current_timestamp() - A.ts": "the bound must use columns",
    }.items():
        with pytest.raises(WJoinError, match=words) as refused:
            session.sql(f"SELECT A.n FROM a A, b B DWINDOW (A, B) = {bound} AT MOST 1 HOUR WHERE A.id = B.id")
        assert refused.value.code == "WJ310"
