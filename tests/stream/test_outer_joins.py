"""LEFT, RIGHT, FULL, SEMI and ANTI joins of streams and of tables have the rows that DuckDB has."""

import math
import random
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import wjoin
from tests.stream.joined import Streams, come_after_a_move, end, on_time, set_of
from tests.stream.test_alter_sets import settled
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError

SEED = 21
NEAR = "B.n - A.n BETWEEN -2 AND 5"
WINDOW = "WINDOW (A, B) BETWEEN -2 AND 5"

STATEMENTS = {
    "left": (
        f"SELECT A.n AS a, A.s, B.n AS b, B.s AS t FROM one A LEFT JOIN two B ON A.k = B.k {WINDOW}",
        f"SELECT A.n, A.s, B.n, B.s FROM one A LEFT JOIN two B ON A.k = B.k AND {NEAR}",
    ),
    "right": (
        f"SELECT A.v, B.n AS b, B.k FROM one A RIGHT OUTER JOIN two B ON B.k = A.k AND A.v > 4 {WINDOW}",
        f"SELECT A.v, B.n, B.k FROM one A RIGHT JOIN two B ON B.k = A.k AND A.v > 4 AND {NEAR}",
    ),
    # What ON says of a preserved stream keeps no row out.
    "full": (
        f"""SELECT A.n AS a, B.n AS b, A.k FROM one A FULL JOIN two B
            ON A.k = B.k AND A.v > 2 AND B.v < 8 {WINDOW}""",
        f"SELECT A.n, B.n, A.k FROM one A FULL JOIN two B ON A.k = B.k AND A.v > 2 AND B.v < 8 AND {NEAR}",
    ),
    "semi": (
        f"""SELECT A.n AS a, A.v FROM one A LEFT SEMI JOIN two B ON A.k = B.k AND A.v <= B.v {WINDOW}
            WHERE A.s <> 'x'""",
        f"""SELECT A.n, A.v FROM one A WHERE A.s <> 'x' AND EXISTS
            (SELECT * FROM two B WHERE A.k = B.k AND A.v <= B.v AND {NEAR})""",
    ),
    "anti": (
        f"SELECT * FROM one A ANTI JOIN two B ON A.k = B.k AND B.s = 'y' {WINDOW} WHERE A.v > 1",
        f"""SELECT * FROM one A WHERE A.v > 1 AND NOT EXISTS
            (SELECT * FROM two B WHERE A.k = B.k AND B.s = 'y' AND {NEAR})""",
    ),
    "banded": (
        f"""SELECT A.n AS a, B.n AS b FROM one A LEFT JOIN two B ON A.k = B.k AND abs(A.v - B.v) <= 2
            AND (A.s < B.s OR A.v / 2 > B.v OR A.j IS NULL) {WINDOW}""",
        f"""SELECT A.n, B.n FROM one A LEFT JOIN two B ON A.k = B.k AND abs(A.v - B.v) <= 2
            AND (A.s < B.s OR A.v / 2 > B.v OR A.j IS NULL) AND {NEAR}""",
    ),
    # Of one row of A and of B more than the key must be equal.
    "implied": (
        f"""SELECT A.n AS a, B.n AS b FROM one A FULL JOIN two B
            ON A.k = B.k AND A.j = B.k AND B.j = A.k {WINDOW}""",
        f"""SELECT A.n, B.n FROM one A FULL JOIN two B
            ON A.k = B.k AND A.j = B.k AND B.j = A.k AND {NEAR}""",
    ),
    # WHERE on what may be missing comes after the join.
    "later": (
        f"""SELECT A.n AS a, B.v, MATCH_TIME() AS at, MATCH_SPAN() AS wide FROM one A LEFT JOIN two B
            ON A.k = B.k AND A.j = B.j {WINDOW} WHERE B.v IS NULL OR B.v + A.v > 6""",
        f"""SELECT A.n, B.v, greatest(A.n, B.n), greatest(A.n, B.n) - least(A.n, B.n)
            FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {NEAR}
            WHERE B.v IS NULL OR B.v + A.v > 6""",
    ),
    "either": (
        """SELECT A.n AS a, B.n AS b FROM one A LEFT JOIN two B ON A.s = B.s AND A.k = B.k
           WINDOW (A, B) BETWEEN -4 AND -3 OR WINDOW (A, B) BETWEEN 2 AND 4""",
        """SELECT A.n, B.n FROM one A LEFT JOIN two B ON A.s = B.s AND A.k = B.k
           AND (B.n - A.n BETWEEN -4 AND -3 OR B.n - A.n BETWEEN 2 AND 4)""",
    ),
    "itself": (
        "SELECT A.n AS a, A.k FROM one A ANTI JOIN one B ON A.k = B.k WINDOW (A, B) BETWEEN 1 AND 6",
        """SELECT A.n, A.k FROM one A WHERE NOT EXISTS
           (SELECT * FROM one B WHERE A.k = B.k AND B.n - A.n BETWEEN 1 AND 6)""",
    ),
    # More than two streams: the others in a window join of their own.
    "nested": (
        """SELECT X.n AS a, C.n AS c FROM (
             SELECT A.n, A.k FROM one A, two B WINDOW (A, B) BETWEEN 0 AND 2 WHERE A.k = B.k AND A.j = B.j
           ) X LEFT JOIN three C ON X.k = C.k AND C.s = 'y' WINDOW (X, C) BETWEEN 0 AND 4""",
        """SELECT X.n, C.n FROM (
             SELECT A.n, A.k FROM one A, two B WHERE B.n - A.n BETWEEN 0 AND 2 AND A.k = B.k AND A.j = B.j
           ) X LEFT JOIN three C ON X.k = C.k AND C.s = 'y' AND C.n - X.n BETWEEN 0 AND 4""",
    ),
    "using": (
        f"SELECT k, A.n AS a, B.v FROM one A LEFT JOIN two B USING (k, j) {WINDOW}",
        f"SELECT A.k, A.n, B.v FROM one A LEFT JOIN two B ON A.k = B.k AND A.j = B.j AND {NEAR}",
    ),
}
"""Statements for wjoin, and what they mean to DuckDB."""


def assert_as_duckdb(streams: Streams, names: list[str]) -> None:
    for name in names:
        expected = streams.expected(STATEMENTS[name][1])
        assert streams.found(name) == expected, name
        assert expected.total() > 10, name


@pytest.mark.parametrize(
    ("home", "names"),
    [
        ("files", ["left"]),
        pytest.param("files", list(STATEMENTS), marks=pytest.mark.long),
        pytest.param("spark", list(STATEMENTS), marks=pytest.mark.long),
    ],
    ids=["some", "files", "spark"],
)
def test_all_kinds_of_joins_of_streams(streams: Streams, home: str, names: list[str]) -> None:
    """In several runs, whose rows are out of order; what has no partner comes once no partner can."""
    streams.session.context.settings.set("wjoin.state", home)
    streams.sinks(names)
    statements = {name: STATEMENTS[name][0] for name in names}
    for _ in range(2):
        on_time(streams, 2)
        streams.insert(statements)
    before = streams.found("left")
    assert before < streams.expected(STATEMENTS["left"][1])
    end(streams)
    streams.insert(statements)
    assert_as_duckdb(streams, names)


@pytest.mark.parametrize("name", tiers(STATEMENTS, long=[*STATEMENTS][1:]))
def test_tables_are_joined_by_spark(streams: Streams, name: str) -> None:
    on_time(streams, 2)
    found = streams.over_tables(STATEMENTS[name][0])
    assert found == streams.expected(STATEMENTS[name][1])
    assert "native" in streams.session.explain(streams.as_tables(STATEMENTS[name][0]))


@pytest.mark.long
def test_any_condition_can_stand_in_on_of_tables(streams: Streams) -> None:
    on_time(streams, 2)
    for table in ("one", "two"):
        rows = streams.session.spark.read.parquet(str(streams.root / table))
        rows.createOrReplaceTempView(f"table_{table}")
    tables = "table_one WATERMARK n DELAY OF 0 AS A LEFT SEMI JOIN table_two WATERMARK n DELAY OF 0 AS B"
    condition = "A.k = B.k AND upper(A.s) < upper(B.s) AND A.v + B.v > :least"
    text = f"SELECT A.n, A.s FROM {tables} ON {condition} {WINDOW}"
    found = Counter(tuple(row) for row in streams.session.sql(text, least=4).collect())
    assert found == streams.expected(
        f"""SELECT A.n, A.s FROM one A WHERE EXISTS (
            SELECT * FROM two B WHERE A.k = B.k AND upper(A.s) < upper(B.s) AND A.v + B.v > 4 AND {NEAR})"""
    )
    assert found.total() > 10


NUMBERS = "n BIGINT, k INT, f FLOAT, d DOUBLE, m DECIMAL(10,2), w DECIMAL(24,6)"
BESIDE = {
    "left": "LEFT JOIN two B ON A.k = B.k AND A.f <= B.d AND A.m * 2 > B.w - 0.5",
    "full": "FULL JOIN two B ON A.f = B.d",
    "anti": "ANTI JOIN two B ON A.m = B.w AND A.d >= B.f",
    "asof": "LEFT ASOF JOIN two B MATCH_CONDITION (A.n >= B.n) ON A.k = B.k AND A.f - B.f < 0 AND A.w > B.m",
    "semi": "SEMI JOIN two B ON A.m = B.m AND (A.d = B.d OR greatest(A.f, B.f) > least(A.d, B.d))",
}


def fractions(streams: Streams, rows: int, step: int) -> list[tuple[Any, ...]]:
    """Return rows with numbers that are hard to compare."""
    nan, infinite, choice = math.nan, math.inf, streams.chance.choice
    found = []
    for _ in range(rows):
        single = choice([None, nan, infinite, -infinite, 0.0, -0.0, 0.5, 0.25, 1.0])
        double = choice([None, nan, infinite, 0.0, -0.0, 0.5, 0.1, 1.0])
        money = choice([None, Decimal("0.10"), Decimal("0.50"), Decimal("1.00"), Decimal("-99999999.99")])
        wide = choice([None, *map(Decimal, ("0.1", "0.100001", "1", "123456789012345678.000001"))])
        found.append(
            (step * 15 + streams.chance.randint(0, 20), choice([1, 2, None]), single, double, money, wide)
        )
    return found


@pytest.mark.long
@pytest.mark.parametrize("home", ["files", "spark"])
def test_fractions_and_decimals_are_compared_as_spark_does(
    session: wjoin.Session, tmp_path: Path, home: str
) -> None:
    """NaN is itself, and above all numbers; two zeros are equal; no decimal is rounded."""
    streams, spark, names = Streams(session, tmp_path, random.Random(5), delay=20), session.spark, [*BESIDE]
    session.context.settings.set("wjoin.state", home)
    for name in ("one", "two"):
        session.sql(
            f"""CREATE OR REPLACE STREAM {name} ({NUMBERS}, WATERMARK FOR n AS n - 20)
                USING parquet OPTIONS (path '{tmp_path / name}', maxFilesPerTrigger '1')"""
        )
    streams.sinks(names)
    shown = {
        name: "A.*" if name in ("anti", "semi") else "A.*, B.n AS o, B.f AS g, B.d AS e" for name in names
    }
    texts = {name: f"SELECT {shown[name]} FROM one A {BESIDE[name]} {WINDOW}" for name in names}
    script = "; ".join(f"INSERT INTO {name} {text}" for name, text in texts.items())
    for step in range(3):
        for name in ("one", "two"):
            rows = fractions(streams, 25, step) if step < 2 else [(1_000_000, 90 + len(name), *[None] * 4)]
            frame = spark.createDataFrame(rows, NUMBERS).coalesce(1)
            frame.write.mode("append").parquet(str(tmp_path / name))
        session.run_script(script, checkpoint=str(tmp_path / "checkpoints"))
    for name, text in texts.items():
        for table in ("one", "two"):
            rows = spark.read.parquet(str(tmp_path / table)).filter("n < 1000000")
            rows.createOrReplaceTempView(f"table_{table}")
            text = re.sub(rf"\b{table} ([AB])\b", rf"table_{table} WATERMARK n DELAY OF 0 AS \1", text)
        expected = Counter(map(str, session.sql(text).collect()))
        found = spark.read.parquet(str(tmp_path / f"{name}_out")).collect()
        # The rows that end the streams may come, too.
        assert Counter(str(row) for row in found if 1_000_000 not in tuple(row)) == expected, name
        assert expected.total() > 10, name


@pytest.mark.parametrize(
    ("home", "names"),
    [
        pytest.param("files", ["left", "full", "semi", "anti", "banded"], marks=pytest.mark.long),
        pytest.param("spark", ["left", "full", "semi", "anti", "banded"], marks=pytest.mark.long),
    ],
    ids=["files", "spark"],
)
def test_marks_stay_where_another_kernel_goes_on(streams: Streams, home: str, names: list[str]) -> None:
    """Each start has another kernel, whose rows lie in another order."""
    streams.session.context.settings.set("wjoin.state", home)
    streams.sinks(names)
    for kernel in ("MW", "HW", "ADAPTIVE", "NLW"):
        hints = dict.fromkeys(names, f"SELECT /*+ ALGORITHM({kernel}) */")
        if kernel == "HW" and "banded" in names:
            hints["banded"] = "SELECT /*+ ALGORITHM(ORDERED) */"
        texts = {name: STATEMENTS[name][0].replace("SELECT", hints[name], 1) for name in names}
        if kernel == "NLW":
            end(streams)
        else:
            on_time(streams, 1)
        streams.insert(texts)
    assert_as_duckdb(streams, names)


@pytest.mark.long
def test_a_set_loses_an_outer_join_and_gets_it_back(streams: Streams) -> None:
    """Its rows go on to be marked: what has had a partner meanwhile is not told as without one."""
    names = ["left", "anti"]
    streams.sinks(names)
    on_time(streams, 2)
    inserts = {name: f"INSERT INTO {name} {STATEMENTS[name][0]}" for name in names}
    checkpoint = str(streams.root / "checkpoints")
    streams.session.run_script(set_of([*inserts.values()], "both"), once=False, checkpoint=checkpoint)
    settled(streams)
    streams.session.sql("ALTER STATEMENT SET both DROP anti")
    on_time(streams, 2)
    settled(streams)
    streams.session.sql(f"ALTER STATEMENT SET both ADD {inserts['anti']}")
    end(streams)
    settled(streams)
    assert_as_duckdb(streams, ["left"])
    found, expected = streams.found("anti"), streams.expected(STATEMENTS["anti"][1])
    assert found <= expected
    assert found.total() > 10


@pytest.mark.long
@pytest.mark.parametrize("home", ["files", "spark"])
def test_marks_move_to_other_workers(streams: Streams, home: str) -> None:
    names = ["full", "semi"]
    come_after_a_move(streams, home, {name: STATEMENTS[name][0] for name in names})
    assert_as_duckdb(streams, names)


def test_explain_says_when_a_row_is_decided(streams: Streams) -> None:
    explained = streams.session.explain(STATEMENTS["full"][0])
    assert "a FULL OUTER JOIN" in explained
    assert "a row of A without a partner is returned when B's watermark passes n + 5" in explained
    assert "a row of B without a partner is returned when A's watermark passes n + 2" in explained
    assert "is returned with its first partner, and dropped when" in streams.session.explain(
        STATEMENTS["semi"][0]
    )


@pytest.mark.long
def test_a_late_row_is_dropped_and_counted_and_no_result_by_itself(streams: Streams) -> None:
    streams.sinks(["left"])
    insert = f"INSERT INTO left {STATEMENTS['left'][0]}"
    on_time(streams, 2)
    streams.session.run_script(insert, checkpoint=str(streams.root / "checkpoints"))
    late = [(-500, 1, 1, 1, "late"), (-500, None, 1, 1, "late")]
    streams.write("one", late)
    streams.write("two", [(60, 1, 1, 1, "x")])
    with pytest.warns(wjoin.WJoinWarning, match="2 of A"):
        streams.session.run_script(insert, checkpoint=str(streams.root / "checkpoints"))
    assert all("late" not in row for row in streams.found("left"))


@pytest.mark.long
def test_a_statement_set_keeps_an_outer_join_apart(streams: Streams) -> None:
    names = ["left", "anti"]
    streams.sinks(names)
    on_time(streams, 3)
    end(streams)
    streams.run([f"INSERT INTO {name} {STATEMENTS[name][0]}" for name in names])
    assert_as_duckdb(streams, names)


def test_what_cannot_be_is_refused(streams: Streams) -> None:
    streams.sinks(["left"])
    text = f"SELECT count(*) AS c FROM one A LEFT JOIN two B ON A.k = B.k {WINDOW} GROUP BY MATCH_TIME()"
    with pytest.raises(WJoinError, match="aggregat"):
        streams.session.run_script(f"INSERT INTO left {text}", checkpoint=str(streams.root / "checkpoints"))
    # A row without a partner comes as late as the other stream lets it wait.
    inner = f"SELECT A.k, MATCH_TIME() AS ts FROM one A LEFT JOIN two B ON A.k = B.k {WINDOW}"
    with pytest.raises(WJoinError, match="the delay of X by ts is not bounded"):
        streams.session.sql(f"SELECT X.k FROM ({inner}) X JOIN one C ON X.k = C.k WINDOW (X, C) = 5")
