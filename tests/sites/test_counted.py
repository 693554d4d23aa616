"""Windows of rows over streams at sites have the rows that DuckDB has, in each way in which rows travel."""

import pytest

from tests.sites.test_outer_joins import NEAR, WINDOW, AtSite, streams
from tests.stream.test_counted import LATEST_OF_THREE, later
from tests.tiers import tiers

pytestmark = [pytest.mark.thorough, pytest.mark.spark]

__all__ = ["streams"]

STATEMENTS = {
    # What WHERE removes counts as well.
    "rows": (
        f"""SELECT {{hint}} A.wide, B.wide AS b FROM one A, two B {WINDOW} AND WINDOW A = 15 ROWS
            WHERE A.k = B.k AND A.v > 2""",
        f"""SELECT A.wide, B.wide FROM one A, two B WHERE {NEAR} AND A.k = B.k AND A.v > 2
            AND {later("one", "A")} < 15""",
    ),
    # The condition reads what neither the join nor the result does.
    "since": (
        f"""SELECT {{hint}} A.wide, B.wide AS b FROM one A, two B {WINDOW} AND WINDOW B SINCE (B.s = 'x')
            WHERE A.k = B.k""",
        f"""SELECT A.wide, B.wide FROM one A, two B WHERE {NEAR} AND A.k = B.k
            AND {later("two", "B", "x.s = 'x'")} = 0""",
    ),
    # No window in time: the site keeps what may still be in a result.
    "no_time": (
        """SELECT {hint} A.wide, B.wide AS b FROM one A, two B
           WINDOW A = 3 ROWS PER KEY AND WINDOW B = 12 ROWS WHERE A.k = B.k""",
        f"""SELECT A.wide, B.wide FROM one A, two B WHERE A.k = B.k
            AND {later("one", "A", "x.k = A.k")} < 3 AND {later("two", "B")} < 12""",
    ),
    "steps": (
        """SELECT {hint} A.wide, B.wide AS b, C.wide AS c FROM one A, two B, three C
           WINDOW (A, B) = 8 AND WINDOW (B, C) = 8 AND WINDOW A = 40 ROWS AND WINDOW B = 3 ROWS PER KEY
           WHERE A.s = B.s AND B.k = C.k AND C.v > 2""",
        f"""SELECT A.wide, B.wide, C.wide FROM one A, two B, three C
            WHERE A.s = B.s AND B.k = C.k AND C.v > 2 AND abs(A.n - B.n) <= 8 AND abs(B.n - C.n) <= 8
            AND {later("one", "A", latest=LATEST_OF_THREE)} < 40
            AND {later("two", "B", "x.s = B.s AND x.k = B.k", LATEST_OF_THREE)} < 3""",
    ),
    "left": (
        f"""SELECT {{hint}} A.wide, A.s, B.wide AS b FROM one A LEFT JOIN two B ON A.k = B.k AND B.v > 2
            {WINDOW} AND WINDOW A = 3 ROWS PER KEY AND WINDOW B = 30 ROWS""",
        f"""SELECT A.wide, A.s, B.wide FROM one A LEFT JOIN two B ON A.k = B.k AND B.v > 2 AND {NEAR}
            AND {later("one", "A", "x.k = A.k")} < 3 AND {later("two", "B")} < 30""",
    ),
    "anti": (
        f"""SELECT {{hint}} A.wide FROM one A ANTI JOIN two B ON A.k = B.k {WINDOW}
            AND WINDOW A SINCE (A.v = 5) AND WINDOW B = 2 ROWS PER KEY""",
        f"""SELECT A.wide FROM one A WHERE NOT EXISTS (SELECT * FROM two B WHERE A.k = B.k AND {NEAR}
            AND {later("one", "A", "x.v = 5")} = 0 AND {later("two", "B", "x.k = B.k")} < 2)""",
    ),
}
"""Statements for wjoin, and what they mean to DuckDB."""

HINTS = ("PLAN(SIMPLE)", "PLAN(SEMIJOIN)", "")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("names", tiers([["rows"], [*STATEMENTS]], long=[[*STATEMENTS]]), ids=" ".join)
def test_rows_come_whole_or_partially(streams: AtSite, names: list[str]) -> None:
    """What waits has come in one way, and is decided in a run that has rows come in another."""
    streams.statements = STATEMENTS
    for hint in HINTS:
        streams.arrive()
        streams.run(names, hint)
    streams.arrive()
    streams.run(names, HINTS[1], complete=True)
    for name in names:
        expected = streams.expected(name)
        assert streams.found(name) == expected, name
        assert expected.total() > 10, name


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_stream_that_is_not_counted_is_held(streams: AtSite) -> None:
    streams.statements = STATEMENTS
    for _ in range(3):
        streams.arrive()
        streams.run(["rows"], "SHIP(B = HELD)")
    streams.arrive(end=True)
    streams.run(["rows"], "SHIP(B = HELD)")
    assert streams.found("rows") == streams.expected("rows")
    assert streams.sent("two").keys() == {"reduced"}


@pytest.mark.long
@pytest.mark.timeout(600)
def test_fewer_bytes_travel_where_rows_of_results_only_fetch_their_columns(streams: AtSite) -> None:
    streams.statements, streams.width = STATEMENTS, 2000
    for _ in range(2):
        streams.arrive()
    streams.arrive(end=True)
    sent: list[float] = []
    for hint in HINTS[:2]:
        before = sum(streams.sent("one").values())
        streams.run(["rows"], hint, folder=f"{hint}/")
        sent.append(sum(streams.sent("one").values()) - before)
        assert streams.found("rows", f"{hint}/") == streams.expected("rows")
    results = f"SELECT DISTINCT wide FROM ({STATEMENTS['rows'][1].replace('A.wide, B.wide', 'A.wide')})"
    ((share,),) = streams.oracle.execute(
        f"SELECT sum(length(wide)) FILTER (wide IN ({results})) / sum(length(wide)) FROM one"
    ).fetchall()
    # Each row tells its key and time, too.
    assert share < 0.6 and sent[1] < (share + 0.1) * sent[0]
