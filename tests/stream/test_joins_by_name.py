"""NATURAL JOIN, USING in any join, and EXISTS with a window clause have the rows that DuckDB has."""

import pytest

import wjoin
from tests.stream.joined import Streams, assert_as_duckdb, on_time
from tests.tiers import tiers

OTHER = "(SELECT k, j, v AS w, n AS m FROM two) WATERMARK m DELAY OF 20 AS B"
FIRST = "(SELECT n AS a, k, j, s AS t FROM one) WATERMARK a DELAY OF 20 AS A"
THIRD = "(SELECT k, n AS c FROM three) WATERMARK c DELAY OF 20 AS C"
PLAIN = "(SELECT k, j, v AS w, n AS m FROM two) B"
WINDOW, NEAR = "WINDOW (A, B) BETWEEN -2 AND 5", "BETWEEN -2 AND 5"

STATEMENTS = {
    "natural": (
        f"SELECT * FROM one A NATURAL JOIN {OTHER} {WINDOW} WHERE j < 2",
        f"""SELECT A.k, A.j, A.n, A.v, A.s, B.w, B.m FROM one A JOIN {PLAIN}
            ON A.k = B.k AND A.j = B.j AND B.m - A.n {NEAR} WHERE A.j < 2""",
    ),
    "natural full": (
        f"""SELECT *, j + 1 AS next, A.k AS own FROM one A NATURAL FULL OUTER JOIN {OTHER} {WINDOW}
            WHERE k IS NULL OR k + j > 1""",
        f"""SELECT coalesce(A.k, B.k), coalesce(A.j, B.j), A.n, A.v, A.s, B.w, B.m,
            coalesce(A.j, B.j) + 1, A.k
            FROM one A FULL JOIN {PLAIN} ON A.k = B.k AND A.j = B.j AND B.m - A.n {NEAR}
            WHERE coalesce(A.k, B.k) IS NULL OR coalesce(A.k, B.k) + coalesce(A.j, B.j) > 1""",
    ),
    "natural right": (
        f"SELECT * EXCEPT (s), k * 2 AS twice FROM one A NATURAL RIGHT JOIN {OTHER} {WINDOW}",
        f"""SELECT B.k, B.j, A.n, A.v, B.w, B.m, B.k * 2 FROM one A RIGHT JOIN {PLAIN}
            ON A.k = B.k AND A.j = B.j AND B.m - A.n {NEAR}""",
    ),
    "natural anti": (
        f"SELECT * FROM one A NATURAL ANTI JOIN {OTHER} {WINDOW} WHERE v > 1",
        f"""SELECT A.k, A.j, A.n, A.v, A.s FROM one A WHERE A.v > 1 AND NOT EXISTS
            (SELECT * FROM {PLAIN} WHERE A.k = B.k AND A.j = B.j AND B.m - A.n {NEAR})""",
    ),
    # Only the time of a row is that of its partners.
    "natural time": (
        """SELECT k, n, A.s FROM one A
           NATURAL LEFT JOIN (SELECT k, n, s AS t FROM two) WATERMARK n DELAY OF 20 AS B WINDOW (A, B) = 5""",
        "SELECT A.k, A.n, A.s FROM one A LEFT JOIN (SELECT k, n FROM two) B ON A.k = B.k AND A.n = B.n",
    ),
    "using full": (
        f"""SELECT k, A.n AS a, B.n AS b, k IS NULL AS none, A.k AS first
            FROM one A FULL JOIN two B USING (k, j) {WINDOW} WHERE j <> 1""",
        f"""SELECT coalesce(A.k, B.k), A.n, B.n, A.k IS NULL AND B.k IS NULL, A.k FROM one A FULL JOIN two B
            ON A.k = B.k AND A.j = B.j AND B.n - A.n {NEAR} WHERE coalesce(A.j, B.j) <> 1""",
    ),
    "using right": (
        f"""SELECT k, A.j, C.s FROM one A JOIN two B USING (k, j) RIGHT JOIN three C USING (k)
            {WINDOW} AND WINDOW (A, C) = 4""",
        f"""SELECT C.k, A.j, C.s FROM (one A JOIN two B ON A.k = B.k AND A.j = B.j AND B.n - A.n {NEAR})
            RIGHT JOIN three C ON A.k = C.k AND abs(C.n - A.n) <= 4""",
    ),
    "in parentheses": (
        f"""SELECT * FROM {FIRST} FULL JOIN ({OTHER} JOIN {THIRD} USING (k)) USING (j, k)
            WINDOW (A, B) BETWEEN -2 AND 5 AND WINDOW (B, C) = 1""",
        """SELECT coalesce(A.j, B.j), coalesce(A.k, B.k), A.a, A.t, B.w, B.m, C.c
           FROM (SELECT n AS a, k, j, s AS t FROM one) A
           FULL JOIN ((SELECT k, j, v AS w, n AS m FROM two) B JOIN (SELECT k, n AS c FROM three) C
               ON B.k = C.k AND abs(C.c - B.m) <= 1)
           ON A.j = B.j AND A.k = B.k AND B.m - A.a BETWEEN -2 AND 5""",
    ),
    "natural in parentheses": (
        f"""SELECT * FROM {FIRST} NATURAL RIGHT JOIN ({OTHER} JOIN {THIRD} USING (k))
            WINDOW (A, B) BETWEEN -2 AND 5 AND WINDOW (B, C) = 1""",
        """SELECT B.k, B.j, A.a, A.t, B.w, B.m, C.c
           FROM (SELECT n AS a, k, j, s AS t FROM one) A
           RIGHT JOIN ((SELECT k, j, v AS w, n AS m FROM two) B JOIN (SELECT k, n AS c FROM three) C
               ON B.k = C.k AND abs(C.c - B.m) <= 1)
           ON A.j = B.j AND A.k = B.k AND B.m - A.a BETWEEN -2 AND 5""",
    ),
    "exists": (
        f"""SELECT * FROM one A WHERE v > 0 AND EXISTS
            (SELECT 1 FROM two B {WINDOW} WHERE A.k = B.k AND s <> 'y' AND A.v <= v)""",
        f"""SELECT * FROM one A WHERE v > 0 AND EXISTS
            (SELECT 1 FROM two B WHERE B.n - A.n {NEAR} AND A.k = B.k AND s <> 'y' AND A.v <= v)""",
    ),
    "not exists": (
        f"""SELECT A.n AS a, j FROM one A WHERE NOT EXISTS
            (SELECT B.v, j FROM two B WHERE A.k = B.k AND A.j = j AND B.v > 2 AND A.v < 8 {WINDOW})""",
        f"""SELECT A.n, j FROM one A WHERE NOT EXISTS
            (SELECT * FROM two B WHERE A.k = B.k AND A.j = j AND B.v > 2 AND A.v < 8 AND B.n - A.n {NEAR})""",
    ),
    "beside a join": (
        f"""SELECT A.n AS a, C.s FROM one A, three C WINDOW (A, C) BETWEEN -1 AND 6
            WHERE A.k = C.k AND A.j = C.j AND C.v > 0
            AND NOT (EXISTS (SELECT * FROM two B {WINDOW} AND WINDOW (C, B) BETWEEN -6 AND 4
                             WHERE B.k = C.k AND B.v > A.v))
            AND EXISTS (SELECT * FROM one D WINDOW (C, D) = 3 WHERE D.k = A.k AND D.s = C.s)""",
        f"""SELECT A.n, C.s FROM one A, three C WHERE C.n - A.n BETWEEN -1 AND 6
            AND A.k = C.k AND A.j = C.j AND C.v > 0
            AND NOT EXISTS (SELECT * FROM two B WHERE B.n - A.n {NEAR} AND B.n - C.n BETWEEN -6 AND 4
                            AND B.k = C.k AND B.v > A.v)
            AND EXISTS (SELECT * FROM one D WHERE abs(D.n - C.n) <= 3 AND D.k = A.k AND D.s = C.s)""",
    ),
    # What may be missing has no partner either.
    "after a left join": (
        f"""SELECT A.n AS a, B.n AS b, B.s FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j {WINDOW}
            WHERE NOT EXISTS (SELECT * FROM three C WINDOW = 4 AND DWINDOW (B, C) = 2 WHERE B.k = C.k)""",
        f"""SELECT A.n, B.n, B.s FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND B.n - A.n {NEAR}
            WHERE NOT EXISTS (SELECT * FROM three C WHERE abs(C.n - A.n) <= 4 AND C.n - B.n BETWEEN 0 AND 2
                              AND B.k = C.k)""",
    ),
    "nested": (
        f"""SELECT A.n AS a, A.s FROM one A WHERE EXISTS (SELECT * FROM (
              SELECT X.k, X.n FROM two X, three Y WINDOW (X, Y) = 2 WHERE X.k = Y.k AND X.j = Y.j) B
            {WINDOW} WHERE A.k = B.k)""",
        f"""SELECT A.n, A.s FROM one A WHERE EXISTS (SELECT * FROM two X, three Y WHERE abs(X.n - Y.n) <= 2
            AND X.k = Y.k AND X.j = Y.j AND A.k = X.k AND X.n - A.n {NEAR})""",
    ),
}
"""Statements for wjoin, and what they mean to DuckDB."""

QUICK = {"exists"}


SEED = 41


@pytest.mark.filterwarnings("ignore::wjoin.WJoinWarning")
@pytest.mark.parametrize("name", tiers(STATEMENTS, long=set(STATEMENTS) - QUICK))
def test_tables(streams: Streams, name: str) -> None:
    on_time(streams, 2)
    expected = streams.expected(STATEMENTS[name][1])
    assert streams.over_tables(STATEMENTS[name][0]) == expected
    assert expected.total() > 10


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::wjoin.WJoinWarning")
def test_streams(streams: Streams) -> None:
    assert_as_duckdb(streams, "auto", STATEMENTS)


def test_what_explain_tells(streams: Streams) -> None:
    explained = streams.session.explain(STATEMENTS["not exists"][0])
    assert "a LEFT ANTI JOIN" in explained
    assert "a row of A without a partner is returned when B's watermark passes n + 5" in explained
    with pytest.warns(wjoin.WJoinWarning, match=r"WJ824.*only rows of one instant, A\.n = B\.n, meet"):
        streams.session.explain("SELECT A.n FROM one A NATURAL JOIN two B WINDOW = 5")
