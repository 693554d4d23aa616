"""ASOF joins of streams and of tables have the rows that DuckDB finds by sorting."""

import random
from collections import Counter
from datetime import date
from decimal import Decimal

import pytest

import wjoin
from tests.stream.joined import Streams, come_after_a_move, end, on_time
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError


def nearest(condition: str, by: str = "abs(B.n - A.n), B.n", among: str = "two") -> str:
    """Return the nearest row of a table to a row of A in DuckDB, of several of one instant the least one."""
    columns = ", ".join(f"B.{name} NULLS FIRST" for name in "nkjvs")
    return f"LATERAL (SELECT * FROM {among} B WHERE {condition} ORDER BY {by}, {columns} LIMIT 1) B"


SEED = 21
STATEMENTS = {
    "last": (
        """SELECT A.n AS a, A.s, B.n AS b, B.v FROM one A LEFT ASOF JOIN two B MATCH_CONDITION (A.n >= B.n)
           ON A.k = B.k WINDOW (A, B) = 6""",
        f"""SELECT A.n, A.s, B.n, B.v FROM one A
            LEFT JOIN {nearest("A.k = B.k AND B.n BETWEEN A.n - 6 AND A.n")} ON true""",
    ),
    # The names of a key are compared as they are, not by their hashes alone.
    "first": (
        """SELECT A.n AS a, B.* FROM one A ASOF JOIN two B MATCH_CONDITION (B.n > A.n)
           ON A.s = B.s AND A.k = B.k WINDOW (A, B) = 9""",
        f"""SELECT A.n, B.* FROM one A
            JOIN {nearest("A.s = B.s AND A.k = B.k AND B.n BETWEEN A.n + 1 AND A.n + 9")} ON true""",
    ),
    # What ON says of both picks among the rows; what it says of A alone leaves no row out of a LEFT join.
    "either": (
        """SELECT A.n AS a, B.n AS b, B.s FROM one A LEFT ASOF JOIN two B MATCH_CONDITION (NEAREST)
           ON A.k = B.k AND A.v <= B.v AND (A.s < B.s OR A.v / 2 > B.j) AND A.j > 0 WINDOW (A, B) = 8""",
        f"""SELECT A.n, B.n, B.s FROM one A LEFT JOIN {
            nearest(
                '''A.k = B.k AND A.v <= B.v AND (A.s < B.s OR A.v / 2 > B.j) AND A.j > 0
                   AND abs(A.n - B.n) <= 8'''
            )
        } ON true""",
    ),
    # WHERE on the row that is taken comes after it is.
    "later": (
        """SELECT A.n AS a, B.v, MATCH_TIME() AS at, MATCH_SPAN() AS wide FROM one A ASOF JOIN two B
           MATCH_CONDITION (A.n > B.n) ON A.j = B.j WINDOW (A, B) = 20 WHERE B.v > 2 AND A.v > 1
           AND A.v + B.v > 6""",
        f"""SELECT A.n, B.v, A.n, A.n - B.n FROM one A
            JOIN {nearest("A.j = B.j AND B.n BETWEEN A.n - 20 AND A.n - 1")} ON true
            WHERE B.v > 2 AND A.v > 1 AND A.v + B.v > 6""",
    ),
    "alternatives": (
        """SELECT A.n AS a, B.n AS b FROM one A LEFT OUTER ASOF JOIN two B MATCH_CONDITION (A.n <= B.n)
           USING (k, j) WINDOW (A, B) BETWEEN 2 AND 4 OR WINDOW (A, B) BETWEEN 8 AND 9""",
        f"""SELECT A.n, B.n FROM one A LEFT JOIN {
            nearest("A.k = B.k AND A.j = B.j AND (B.n - A.n BETWEEN 2 AND 4 OR B.n - A.n BETWEEN 8 AND 9)")
        } ON true""",
    ),
    "itself": (
        """SELECT A.n AS a, B.n AS b, B.v FROM one A INNER ASOF JOIN one B MATCH_CONDITION (A.n > B.n)
           ON A.k = B.k AND A.v <> B.v WINDOW (A, B) = 5""",
        f"""SELECT A.n, B.n, B.v FROM one A JOIN {
            nearest("A.k = B.k AND A.v <> B.v AND B.n BETWEEN A.n - 5 AND A.n - 1", among="one")
        } ON true""",
    ),
    "nested": (
        """SELECT X.n AS a, C.n AS c, C.s FROM (
             SELECT A.n, A.k FROM one A, two B WINDOW (A, B) BETWEEN 0 AND 2 WHERE A.k = B.k AND A.j = B.j
           ) X LEFT ASOF JOIN three C MATCH_CONDITION (X.n >= C.n) ON X.k = C.k WINDOW (X, C) = 4""",
        f"""SELECT A.n, B.n, B.s FROM (
             SELECT A.n, A.k FROM one A, two B WHERE B.n - A.n BETWEEN 0 AND 2 AND A.k = B.k AND A.j = B.j
           ) A LEFT JOIN {nearest("A.k = B.k AND B.n BETWEEN A.n - 4 AND A.n", among="three")} ON true""",
    ),
}
"""Statements for wjoin, and what they mean to DuckDB."""


def assert_as_duckdb(streams: Streams, names: list[str]) -> None:
    for name in names:
        expected = streams.expected(STATEMENTS[name][1])
        assert streams.found(name) == expected, name
        assert expected.total() > 10, name


@pytest.mark.parametrize(
    ("home", "names", "runs"),
    [
        ("files", ["either"], 1),
        pytest.param("files", list(STATEMENTS), 2, marks=pytest.mark.long),
        pytest.param("spark", list(STATEMENTS), 2, marks=pytest.mark.long),
    ],
    ids=["some", "files", "spark"],
)
def test_asof_joins_of_streams(streams: Streams, home: str, names: list[str], runs: int) -> None:
    """In several runs, whose rows are out of order; each row comes once it is decided."""
    streams.session.context.settings.set("wjoin.state", home)
    streams.sinks(names)
    statements = {name: STATEMENTS[name][0] for name in names}
    for _ in range(runs):
        on_time(streams, 2)
        streams.insert(statements)
    assert streams.found("either") < streams.expected(STATEMENTS["either"][1])
    end(streams)
    streams.insert(statements)
    assert_as_duckdb(streams, names)


@pytest.mark.parametrize("name", tiers(STATEMENTS, long=[*STATEMENTS][1:]))
def test_asof_joins_of_tables(streams: Streams, name: str) -> None:
    on_time(streams, 3)
    found = streams.over_tables(STATEMENTS[name][0])
    assert found == streams.expected(STATEMENTS[name][1])
    assert found.total() > 10


def test_tables_need_no_window(streams: Streams) -> None:
    on_time(streams, 3)
    for table in ("one", "two"):
        rows = streams.session.spark.read.parquet(str(streams.root / table))
        rows.createOrReplaceTempView(f"table_{table}")
    rows = streams.session.sql(
        """SELECT A.n AS a, B.n AS b, A.v + B.v FROM table_one WATERMARK n DELAY OF 0 AS A
           LEFT ASOF JOIN table_two WATERMARK n DELAY OF 0 AS B MATCH_CONDITION (A.n >= B.n) ON A.k = B.k"""
    )
    expected = streams.expected(
        f"SELECT A.n, B.n, A.v + B.v FROM one A LEFT JOIN {nearest('A.k = B.k AND B.n <= A.n')} ON true"
    )
    assert Counter(tuple(row) for row in rows.collect()) == expected
    assert rows.columns == ["a", "b", "(v + v)"]
    with pytest.raises(WJoinError, match="of streams needs a window") as refused:
        streams.session.sql("SELECT A.n FROM one A ASOF JOIN two B MATCH_CONDITION (A.n > B.n) ON A.k = B.k")
    assert refused.value.code == "WJ107"


@pytest.mark.long
def test_a_late_row_is_dropped_and_counted(streams: Streams) -> None:
    streams.sinks(["last"])
    insert = f"INSERT INTO last {STATEMENTS['last'][0]}"
    on_time(streams, 2)
    streams.session.run_script(insert, checkpoint=str(streams.root / "checkpoints"))
    streams.write("one", [(-500, 1, 1, 1, "late"), (-500, None, 1, 1, "late")])
    streams.write("two", [(60, 1, 1, 1, "x")])
    with pytest.warns(wjoin.WJoinWarning, match="2 of A"):
        streams.session.run_script(insert, checkpoint=str(streams.root / "checkpoints"))
    assert all("late" not in row for row in streams.found("last"))


@pytest.mark.long
@pytest.mark.parametrize("home", ["files", "spark"])
def test_waiting_rows_move_to_other_workers(streams: Streams, home: str) -> None:
    names = ["last", "either"]
    come_after_a_move(streams, home, {name: STATEMENTS[name][0] for name in names})
    assert_as_duckdb(streams, names)


def test_explain_says_what_is_taken_and_when(streams: Streams) -> None:
    explained = streams.session.explain(STATEMENTS["last"][0])
    assert "a LEFT ASOF JOIN: each row of A with the last row of B that is not later" in explained
    assert "a row of A is returned when B's watermark passes n" in explained
    assert "B: kept until A's watermark passes n + 6 and B's watermark passes n + 6" in explained
    assert "an ASOF JOIN: each row of A with the last row" in streams.session.explain(STATEMENTS["later"][0])


@pytest.mark.long
def test_of_rows_of_one_instant_the_least_is_taken_as_spark_orders_them(session: wjoin.Session) -> None:
    chance = random.Random(5)
    values = {
        "d DOUBLE": [None, float("nan"), -0.5, 2.0, float("-inf")],
        "s STRING": [None, "", "a", "Z", "é"],
        "b BOOLEAN": [None, True, False],
        "x DECIMAL(5, 2)": [None, Decimal("-1.50"), Decimal("2.00")],
        "y DATE": [None, date(1960, 1, 2), date(2024, 1, 1)],
        "z BINARY": [None, b"", b"\x00\xff"],
        "i INT": [None, -3, 7],
    }
    rows = [(n % 40, 0, *(chance.choice(each) for each in values.values())) for n in range(2000)]
    session.spark.createDataFrame(rows, f"k INT, t BIGINT, {', '.join(values)}").createOrReplaceTempView(
        "ties"
    )
    session.spark.range(40).selectExpr("int(id) AS k", "0L AS t").createOrReplaceTempView("keys")
    found = session.sql(
        """SELECT B.* FROM keys WATERMARK t DELAY OF 0 AS A ASOF JOIN ties WATERMARK t DELAY OF 0 AS B
           MATCH_CONDITION (A.t >= B.t) ON A.k = B.k ORDER BY B.k"""
    )
    least = session.spark.sql("SELECT min(struct(*)) AS least FROM ties GROUP BY k ORDER BY least.k")
    assert repr(found.collect()) == repr(least.select("least.*").collect())
