"""Outer, semi and anti joins with tables that do not stream have the rows that DuckDB has."""

from collections import Counter

import pytest

import wjoin
from tests.stream.joined import Streams, end, in_runs, on_time
from tests.stream.test_join_trees import AB, AB_ON, AC, AC_ON
from tests.tiers import tiers

PAIRS = f"(one A JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON})"

STATEMENTS = {
    # Where B has no row, D has none.
    "missing": (
        f"""SELECT A.n AS a, B.n AS b, D.t, D.w FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j
            LEFT JOIN dim D ON B.v = D.x {AB}""",
        f"""SELECT A.n, B.n, D.t, D.w FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON}
            LEFT JOIN dim D ON B.v = D.x""",
    ),
    "one stream": (
        """SELECT A.n AS a, V.t, MATCH_TIME() AS at, MATCH_SPAN() AS wide FROM one A
           LEFT JOIN dated V ON A.k = V.k AND V.w > 2 AND A.v <> 3 WINDOW (A, V) BETWEEN -2 AND 4""",
        """SELECT A.n, V.t, greatest(A.n, V.m), greatest(A.n, V.m) - least(A.n, V.m) FROM one A
           LEFT JOIN dated V ON A.k = V.k AND V.w > 2 AND A.v <> 3 AND V.m - A.n BETWEEN -2 AND 4""",
    ),
    "or": (
        """SELECT A.n AS a, B.n AS b, V.t, D.w FROM one A, two B
            LEFT JOIN dated V ON A.k = V.k LEFT JOIN dim D ON B.v = D.x
            (WINDOW (A, B) = 1 OR WINDOW (A, B) BETWEEN 4 AND 5)
            AND (WINDOW (A, V) BETWEEN -2 AND 0 OR WINDOW (B, V) BETWEEN 3 AND 4)
            WHERE A.k = B.k AND A.j = B.j""",
        """SELECT A.n, B.n, V.t, D.w FROM (one A JOIN two B ON A.k = B.k AND A.j = B.j
            AND (abs(B.n - A.n) <= 1 OR B.n - A.n BETWEEN 4 AND 5))
            LEFT JOIN dated V ON A.k = V.k AND (V.m - A.n BETWEEN -2 AND 0 OR V.m - B.n BETWEEN 3 AND 4)
            LEFT JOIN dim D ON B.v = D.x""",
    ),
    "or of a left join": (
        """SELECT A.n AS a, B.n AS b, V.t FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j
            LEFT JOIN dated V ON A.k = V.k (WINDOW (A, B) = 1 OR WINDOW (A, B) BETWEEN 4 AND 5)
            AND WINDOW (A, V) BETWEEN 3 AND 2""",
        """SELECT A.n, B.n, V.t FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j
            AND (abs(B.n - A.n) <= 1 OR B.n - A.n BETWEEN 4 AND 5)
            LEFT JOIN dated V ON false""",
    ),
    "in parentheses": (
        f"""SELECT A.n AS a, B.n AS b, D.t, V.w FROM one A LEFT JOIN (two B LEFT JOIN dim D
            ON B.v = D.x AND D.w > 3 LEFT JOIN dated V ON B.k = V.k) ON A.k = B.k AND A.j = B.j
            {AB} AND WINDOW (B, V) = 2""",
        f"""SELECT A.n, B.n, D.t, V.w FROM one A LEFT JOIN (two B LEFT JOIN dim D ON B.v = D.x AND D.w > 3
            LEFT JOIN dated V ON B.k = V.k AND abs(V.m - B.n) <= 2)
            ON A.k = B.k AND A.j = B.j AND {AB_ON}""",
    ),
    "in parentheses of a full join": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c, D.t FROM one A FULL JOIN (two B JOIN three C
            ON B.k = C.k AND B.j = C.j LEFT JOIN dim D ON C.v = D.x AND B.v < D.w) ON A.k = B.k AND A.j = B.j
            {AB} AND WINDOW (B, C) = 1""",
        f"""SELECT A.n, B.n, C.n, D.t FROM one A FULL JOIN (two B JOIN three C ON B.k = C.k AND B.j = C.j
            AND abs(B.n - C.n) <= 1 LEFT JOIN dim D ON C.v = D.x AND B.v < D.w)
            ON A.k = B.k AND A.j = B.j AND {AB_ON}""",
    ),
    "left": (
        f"""SELECT A.n AS a, B.n AS b, D.t FROM one A, two B
            LEFT JOIN dim D ON A.v = D.x AND D.w > 3 AND B.v <> 4
            {AB} WHERE A.k = B.k AND A.j = B.j AND (D.t IS NULL OR D.t <> B.s)""",
        f"""SELECT A.n, B.n, D.t FROM {PAIRS} LEFT JOIN dim D ON A.v = D.x AND D.w > 3 AND B.v <> 4
            WHERE D.t IS NULL OR D.t <> B.s""",
    ),
    "semi": (
        f"""SELECT A.*, B.n AS b FROM one A JOIN two B ON A.k = B.k AND A.j = B.j
            SEMI JOIN dim D ON A.v = D.x AND B.v < D.w {AB}""",
        f"""SELECT A.*, B.n FROM {PAIRS} WHERE EXISTS
            (SELECT * FROM dim D WHERE A.v = D.x AND B.v < D.w)""",
    ),
    "anti": (
        f"""SELECT A.n AS a, B.n AS b, MATCH_TIME() AS at FROM one A
            LEFT JOIN two B ON A.k = B.k AND A.j = B.j
            ANTI JOIN dim D ON A.v = D.x AND B.v < D.w AND D.t <> 'x' {AB}""",
        f"""SELECT A.n, B.n, greatest(A.n, B.n) FROM one A
            LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON} WHERE NOT EXISTS
            (SELECT * FROM dim D WHERE A.v = D.x AND B.v < D.w AND D.t <> 'x')""",
    ),
    # Its ON links nothing, or no equality does.
    "sides": (
        f"""SELECT A.n AS a, B.n AS b, D.t, E.w FROM one A, two B LEFT JOIN dim D ON D.w > 7 AND A.v > 3
            LEFT JOIN dim E ON E.x <=> B.v OR A.v BETWEEN E.x AND E.w {AB} WHERE A.k = B.k AND A.j = B.j""",
        f"""SELECT A.n, B.n, D.t, E.w FROM {PAIRS} LEFT JOIN dim D ON D.w > 7 AND A.v > 3
            LEFT JOIN dim E ON E.x IS NOT DISTINCT FROM B.v OR A.v BETWEEN E.x AND E.w""",
    ),
    "inner before": (
        f"""SELECT A.n AS a, B.n AS b, D.t FROM one A JOIN dim D ON A.v = D.x AND A.s <> D.t
            LEFT JOIN two B ON A.k = B.k AND A.j = B.j {AB} WHERE D.w > 1""",
        f"""SELECT A.n, B.n, D.t FROM one A JOIN dim D ON A.v = D.x AND A.s <> D.t
            LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON} WHERE D.w > 1""",
    ),
    "inner of missing": (
        f"""SELECT A.n AS a, B.n AS b, D.t FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j
            JOIN dim D ON B.v = D.x AND A.v > 2 {AB}""",
        f"""SELECT A.n, B.n, D.t FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON}
            JOIN dim D ON B.v = D.x AND A.v > 2""",
    ),
    "after full": (
        f"""SELECT A.n AS a, B.n AS b, D.t, E.w FROM one A FULL JOIN two B ON A.k = B.k AND A.j = B.j
            JOIN dim D ON coalesce(A.v, B.v) = D.x LEFT JOIN dim E ON coalesce(B.v, 1) = E.x AND D.t = E.t
            {AB}""",
        f"""SELECT A.n, B.n, D.t, E.w FROM one A FULL JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON}
            JOIN dim D ON coalesce(A.v, B.v) = D.x LEFT JOIN dim E ON coalesce(B.v, 1) = E.x AND D.t = E.t""",
    ),
    "between": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c, D.t FROM one A LEFT JOIN dim D ON A.v = D.x
            LEFT JOIN two B ON A.k = B.k AND A.j = B.j ANTI JOIN dim E ON D.t = E.t AND A.v = E.w
            JOIN three C ON A.k = C.k AND A.j = C.j AND (D.w IS NULL OR D.w > C.v) {AB} AND {AC}""",
        f"""SELECT A.n, B.n, C.n, D.t FROM one A LEFT JOIN dim D ON A.v = D.x
            LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON}
            JOIN three C ON A.k = C.k AND A.j = C.j AND (D.w IS NULL OR D.w > C.v) AND {AC_ON}
            WHERE NOT EXISTS (SELECT * FROM dim E WHERE D.t = E.t AND A.v = E.w)""",
    ),
    "dated": (
        f"""SELECT A.n AS a, B.n AS b, V.t, MATCH_TIME() AS at, MATCH_START() AS since FROM one A
            LEFT JOIN two B ON A.k = B.k AND A.j = B.j LEFT JOIN dated V ON A.k = V.k AND V.w > 2
            {AB} AND WINDOW (B, V) BETWEEN -3 AND 3""",
        f"""SELECT A.n, B.n, V.t, greatest(A.n, B.n, V.m), least(A.n, B.n, V.m) FROM one A
            LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON}
            LEFT JOIN dated V ON A.k = V.k AND V.w > 2 AND V.m - B.n BETWEEN -3 AND 3""",
    ),
    "dated anti": (
        """SELECT A.n AS a, MATCH_TIME() AS at FROM one A ANTI JOIN dated V ON A.k = V.k AND A.j < V.w
           WINDOW (A, V) = 3""",
        """SELECT A.n, A.n FROM one A WHERE NOT EXISTS
           (SELECT * FROM dated V WHERE A.k = V.k AND A.j < V.w AND abs(V.m - A.n) <= 3)""",
    ),
    # Through a table that need not have a row nothing is derived of the streams.
    "derived": (
        """SELECT A.n AS a, B.n AS b, V.m FROM one A JOIN two B ON A.k = B.k AND A.j = B.j
           LEFT JOIN dated V ON A.k = V.k WINDOW (A, B) = 6 AND WINDOW (A, V) = 1 AND WINDOW (B, V) = 1""",
        """SELECT A.n, B.n, V.m FROM one A JOIN two B ON A.k = B.k AND A.j = B.j AND abs(A.n - B.n) <= 6
           LEFT JOIN dated V ON A.k = V.k AND abs(A.n - V.m) <= 1 AND abs(B.n - V.m) <= 1""",
    ),
    "of some": (
        f"""SELECT A.n AS a, B.n AS b, D.t, MATCH_SPAN() AS wide FROM one A SEMI JOIN three C ON A.k = C.k
            LEFT JOIN two B ON A.k = B.k AND A.j = B.j, dim D {AB} AND {AC}
            WHERE D.x = B.v AND A.s <> D.t""",
        f"""SELECT A.n, B.n, D.t, greatest(A.n, B.n) - least(A.n, B.n) FROM (SELECT * FROM one A WHERE EXISTS
            (SELECT * FROM three C WHERE A.k = C.k AND {AC_ON})) A
            LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {AB_ON}, dim D WHERE D.x = B.v AND A.s <> D.t""",
    ),
    "using": (
        f"""SELECT A.n AS a, D.w, C.n AS c FROM one A JOIN two B USING (k, j)
            LEFT JOIN (SELECT x AS k, w FROM dim) D USING (k)
            LEFT JOIN three C ON A.k = C.k AND A.s = C.s {AB} AND {AC}""",
        f"""SELECT A.n, D.w, C.n FROM {PAIRS} LEFT JOIN (SELECT x AS k, w FROM dim) D ON A.k = D.k
            LEFT JOIN three C ON A.k = C.k AND A.s = C.s AND {AC_ON}""",
    ),
    "path": (
        """SELECT A.n AS a, B.n AS b FROM one A, dated V, two B PATH (A, NOT V, B) WITHIN (6)
           WHERE A.k = B.k AND A.j = B.j AND A.k = V.k AND V.w < 4""",
        """SELECT A.n, B.n FROM one A, two B WHERE A.k = B.k AND A.j = B.j AND B.n - A.n BETWEEN 0 AND 6
           AND NOT EXISTS (SELECT * FROM dated V WHERE V.k = A.k AND V.w < 4 AND V.m BETWEEN A.n AND B.n)""",
    ),
}
"""Statements for wjoin, and what they mean to DuckDB."""


SEED = 31


@pytest.fixture
def streams(streams: Streams) -> Streams:
    dim = [(x % 7 if x else None, x % 10, "xyz"[x % 3]) for x in range(12)]
    dated = [(10 + n, n % 4, n % 6, "xyz"[n % 3]) for n in range(60)]
    for name, columns, rows in (
        ("dim", "x INT, w INT, t STRING", dim),
        ("dated", "m BIGINT, k INT, w INT, t STRING", dated),
    ):
        streams.session.spark.createDataFrame(rows, columns).createOrReplaceTempView(name)
        streams.oracle.execute(f"CREATE TABLE {name} ({columns.replace('STRING', 'VARCHAR')})")
        places = ", ".join("?" * len(rows[0]))
        streams.oracle.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
    return streams


def declared(text: str) -> str:
    return text.replace("dated V", "dated WATERMARK m DELAY OF 0 AS V")


@pytest.mark.parametrize(
    ("home", "names"),
    [
        ("auto", ["missing"]),
        pytest.param("auto", list(STATEMENTS), marks=pytest.mark.long),
        pytest.param("spark", list(STATEMENTS), marks=pytest.mark.long),
    ],
    ids=["some", "all", "spark"],
)
def test_joins_of_streams_with_tables(streams: Streams, home: str, names: list[str]) -> None:
    """In several runs, whose rows are out of order."""
    asked = {name: declared(STATEMENTS[name][0]) for name in names}
    runs = 1 if len(names) < len(STATEMENTS) else 2
    for name, sink in in_runs(streams, home, asked, runs).items():
        expected = streams.expected(STATEMENTS[name][1])
        found = streams.found(sink)
        # A row that meets tables only is decided at once, also the last one.
        assert Counter({row: each for row, each in found.items() if row[0] != 1_000_000}) == expected, name
        assert expected.total() > 10, name


@pytest.mark.parametrize("name", tiers(STATEMENTS, long=[*STATEMENTS][1:]))
def test_joins_of_tables(streams: Streams, name: str) -> None:
    on_time(streams, 2)
    found = streams.over_tables(declared(STATEMENTS[name][0]))
    assert found == streams.expected(STATEMENTS[name][1])


@pytest.mark.long
def test_a_table_without_rows_does_not_cut_the_streams_off(streams: Streams) -> None:
    """Without generated code, Spark's hash join does not even read what stands beside an empty table."""
    streams.session.spark.conf.set("spark.sql.codegen.wholeStage", "false")
    streams.session.sql("CREATE OR REPLACE TEMP VIEW dim AS SELECT 1 AS x, 2 AS w, 'x' AS t WHERE false")
    streams.oracle.execute("DELETE FROM dim")
    names = ["missing", "left", "anti", "sides"]
    streams.sinks(names)
    statements = {name: STATEMENTS[name][0] for name in names}
    try:
        for _ in range(2):
            on_time(streams, 2)
            streams.insert(statements)
        end(streams)
        streams.insert(statements)
    finally:
        streams.session.spark.conf.unset("spark.sql.codegen.wholeStage")
    for name in names:
        assert streams.found(name) == streams.expected(STATEMENTS[name][1]), name


def test_a_window_of_a_row_that_is_not_there_does_not_hold(session: wjoin.Session) -> None:
    """Also where the times of both are far from the ends of 64 bits, beyond which every bound holds."""
    for name, second in (("first", 0), ("second", 99), ("third", 1)):
        session.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT 1 AS k, timestamp_seconds({second}) AS ts")
    found = session.sql(
        """SELECT B.k, C.k AS c FROM first A LEFT JOIN second B ON A.k = B.k LEFT JOIN third C ON A.k = C.k
           WINDOW (A, B) = 5 SECONDS AND WINDOW (B, C) = 5 SECONDS"""
    )
    assert [tuple(row) for row in found.collect()] == [(None, None)]


@pytest.mark.long
def test_a_table_that_a_join_of_streams_reads_is_joined_in_a_subquery(streams: Streams) -> None:
    streams.sinks(["read"])
    text = f"""SELECT A.n AS a, A.t, B.n AS b FROM (SELECT A.*, D.t FROM one A JOIN dim D ON A.v = D.x) A
               LEFT JOIN two B ON A.k = B.k AND A.t = B.s {AB}"""
    on_time(streams, 2)
    end(streams)
    streams.insert({"read": text})
    expected = streams.expected(
        f"""SELECT A.n, D.t, B.n FROM one A JOIN dim D ON A.v = D.x
            LEFT JOIN two B ON A.k = B.k AND D.t = B.s AND {AB_ON} WHERE A.n < 1000000"""
    )
    found = streams.found("read")
    assert Counter({row: each for row, each in found.items() if row[0] != 1_000_000}) == expected
    assert expected.total() > 10
