"""Windows of rows and landmarks, of streams and of tables, have the rows that DuckDB has."""

import pytest

from tests.stream.joined import COLUMNS, Streams, end, moved, on_time
from tests.tiers import tiers

NEAR = "B.n - A.n BETWEEN -4 AND 12"
WINDOW = "WINDOW (A, B) BETWEEN -4 AND 12"
LATEST, LATEST_OF_THREE = "greatest(A.n, B.n)", "greatest(A.n, B.n, C.n)"


def later(stream: str, alias: str, only: str = "true", latest: str = LATEST) -> str:
    """Return in SQL how many rows of a stream are later than that of a result, and not than the result."""
    counted = f"x.n > {alias}.n AND x.n <= {latest} AND ({only})"
    return f"(SELECT count(*) FROM {stream} x WHERE {counted})"


STATEMENTS = {
    "rows": (
        f"SELECT A.n AS a, A.s, B.n AS b FROM one A, two B {WINDOW} AND WINDOW A = 15 ROWS WHERE A.k = B.k",
        f"SELECT A.n, A.s, B.n FROM one A, two B WHERE {NEAR} AND A.k = B.k AND {later('one', 'A')} < 15",
    ),
    # What WHERE removes counts as well.
    "per_key": (
        f"""SELECT A.n AS a, B.v FROM one A, two B {WINDOW} AND WINDOW A = 3 ROWS PER KEY
            WHERE A.k = B.k AND A.v > 4""",
        f"""SELECT A.n, B.v FROM one A, two B WHERE {NEAR} AND A.k = B.k AND A.v > 4
            AND {later("one", "A", "x.k = A.k")} < 3""",
    ),
    "since": (
        f"""SELECT A.n AS a, B.n AS b FROM one A, two B {WINDOW} AND WINDOW B SINCE (B.s = 'x' AND B.v > :v)
            WHERE A.k = B.k AND B.s <> 'x'""".replace(":v", "5"),
        f"""SELECT A.n, B.n FROM one A, two B WHERE {NEAR} AND A.k = B.k AND B.s <> 'x'
            AND {later("two", "B", "x.s = 'x' AND x.v > 5")} = 0""",
    ),
    # Keys that are hashed, and other columns than those of the join.
    "strings": (
        f"""SELECT A.v, MATCH_TIME() AS at FROM one A, two B
            WINDOW B = 2 ROWS PER KEY AND WINDOW A = 40 ROWS AND {WINDOW} WHERE A.s = B.s AND A.j = B.j""",
        f"""SELECT A.v, {LATEST} FROM one A, two B WHERE {NEAR} AND A.s = B.s AND A.j = B.j
            AND {later("two", "B", "x.s = B.s AND x.j = B.j")} < 2 AND {later("one", "A")} < 40""",
    ),
    "either": (
        """SELECT A.n AS a, B.n AS b FROM one A, two B WHERE A.k = B.k
           WINDOW (A, B) BETWEEN 0 AND 1 OR (WINDOW (A, B) BETWEEN 0 AND 12 AND WINDOW A = 10 ROWS)""",
        f"""SELECT A.n, B.n FROM one A, two B WHERE A.k = B.k AND (B.n - A.n BETWEEN 0 AND 1
            OR (B.n - A.n BETWEEN 0 AND 12 AND {later("one", "A")} < 10))""",
    ),
    "no_key": (
        """SELECT A.n AS a, B.n AS b FROM one A, two B
           WINDOW (A, B) BETWEEN 0 AND 6 AND WINDOW A = 4 ROWS WHERE A.v < B.v""",
        f"""SELECT A.n, B.n FROM one A, two B WHERE B.n - A.n BETWEEN 0 AND 6 AND A.v < B.v
            AND {later("one", "A")} < 4""",
    ),
    "no_time": (
        """SELECT A.n AS a, B.n AS b FROM one A, two B WINDOW A = 3 ROWS PER KEY AND WINDOW B = 12 ROWS
           WHERE A.k = B.k""",
        f"""SELECT A.n, B.n FROM one A, two B WHERE A.k = B.k
            AND {later("one", "A", "x.k = A.k")} < 3 AND {later("two", "B")} < 12""",
    ),
    # In two steps, with hashed keys; one is both of two streams.
    "steps": (
        """SELECT A.n AS a, B.n AS b, C.n AS c, B.s FROM one A, two B, three C
           WINDOW (A, B) = 8 AND WINDOW (B, C) = 8 AND WINDOW A = 40 ROWS AND WINDOW B = 3 ROWS PER KEY
           AND WINDOW C = 8 ROWS PER KEY WHERE A.s = B.s AND B.k = C.k AND C.v > 2""",
        f"""SELECT A.n, B.n, C.n, B.s FROM one A, two B, three C WHERE A.s = B.s AND B.k = C.k AND C.v > 2
            AND abs(A.n - B.n) <= 8 AND abs(B.n - C.n) <= 8
            AND {later("one", "A", latest=LATEST_OF_THREE)} < 40
            AND {later("two", "B", "x.s = B.s AND x.k = B.k", LATEST_OF_THREE)} < 3
            AND {later("three", "C", "x.k = C.k", LATEST_OF_THREE)} < 8""",
    ),
    "three_either": (
        """SELECT A.n AS a, B.n AS b, C.n AS c FROM one A, two B, three C WHERE A.k = B.k AND B.k = C.k
           WINDOW (A, B) = 6 AND (WINDOW (B, C) = 2 OR (WINDOW (B, C) = 7 AND WINDOW A = 2 ROWS PER KEY))""",
        f"""SELECT A.n, B.n, C.n FROM one A, two B, three C WHERE A.k = B.k AND B.k = C.k
            AND abs(A.n - B.n) <= 6 AND (abs(B.n - C.n) <= 2 OR (abs(B.n - C.n) <= 7
            AND {later("one", "A", "x.k = A.k", LATEST_OF_THREE)} < 2))""",
    ),
    "three": (
        """SELECT A.n AS a, B.n AS b, C.n AS c FROM one A, two B, three C
           WINDOW = 6 AND WINDOW B = 2 ROWS PER KEY AND WINDOW C SINCE (C.v = 9)
           WHERE A.k = B.k AND B.k = C.k AND A.v < 5""",
        f"""SELECT A.n, B.n, C.n FROM one A, two B, three C WHERE A.k = B.k AND B.k = C.k AND A.v < 5
            AND abs(A.n - B.n) <= 6 AND abs(B.n - C.n) <= 6 AND abs(A.n - C.n) <= 6
            AND {later("two", "B", "x.k = B.k", "greatest(A.n, B.n, C.n)")} < 2
            AND {later("three", "C", "x.v = 9", "greatest(A.n, B.n, C.n)")} = 0""",
    ),
}
"""Statements for wjoin, and what they mean to DuckDB."""

OUTER = {
    "left": (
        f"""SELECT A.n AS a, B.n AS b, B.s FROM one A LEFT JOIN two B ON A.k = B.k AND B.v > 2 {WINDOW}
            AND WINDOW A = 3 ROWS PER KEY AND WINDOW B = 30 ROWS""",
        f"""SELECT A.n, B.n, B.s FROM one A LEFT JOIN two B ON A.k = B.k AND B.v > 2 AND {NEAR}
            AND {later("one", "A", "x.k = A.k")} < 3 AND {later("two", "B")} < 30""",
    ),
    "anti": (
        f"""SELECT A.n AS a, A.v FROM one A ANTI JOIN two B ON A.s = B.s AND A.k = B.k {WINDOW}
            AND WINDOW A SINCE (A.v = 5) AND WINDOW B = 2 ROWS PER KEY""",
        f"""SELECT A.n, A.v FROM one A WHERE NOT EXISTS (SELECT * FROM two B WHERE A.s = B.s AND A.k = B.k
            AND {NEAR} AND {later("one", "A", "x.v = 5")} = 0
            AND {later("two", "B", "x.s = B.s AND x.k = B.k")} < 2)""",
    ),
    "full": (
        """SELECT A.n AS a, B.n AS b FROM one A FULL JOIN two B ON A.k = B.k AND A.j = B.j
            (WINDOW (A, B) BETWEEN -4 AND 1 AND WINDOW A = 9 ROWS) OR WINDOW (A, B) BETWEEN 6 AND 8""",
        f"""SELECT A.n, B.n FROM one A FULL JOIN two B ON A.k = B.k AND A.j = B.j
            AND ((B.n - A.n BETWEEN -4 AND 1 AND {later("one", "A")} < 9) OR B.n - A.n BETWEEN 6 AND 8)""",
    ),
    # No window in time: later rows decide what has no partner.
    "without_time": (
        """SELECT A.n AS a, B.n AS b FROM one A LEFT JOIN two B ON A.k = B.k
           WINDOW A = 4 ROWS PER KEY AND WINDOW B = 2 ROWS PER KEY""",
        f"""SELECT A.n, B.n FROM one A LEFT JOIN two B ON A.k = B.k
            AND {later("one", "A", "x.k = A.k")} < 4 AND {later("two", "B", "x.k = B.k")} < 2""",
    ),
    "tree": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c FROM one A LEFT JOIN two B ON A.k = B.k
            LEFT JOIN three C ON A.j = C.j AND A.s = C.s {WINDOW} AND WINDOW (A, C) BETWEEN -3 AND 9
            AND WINDOW A = 25 ROWS AND WINDOW C = 2 ROWS PER KEY""",
        f"""SELECT A.n, B.n, C.n FROM one A LEFT JOIN two B ON A.k = B.k AND {NEAR}
            AND {later("one", "A")} < 25 LEFT JOIN three C ON A.j = C.j AND A.s = C.s
            AND C.n - A.n BETWEEN -3 AND 9 AND {later("one", "A", latest=LATEST_OF_THREE)} < 25
            AND {later("three", "C", "x.j = C.j AND x.s = C.s", LATEST_OF_THREE)} < 2""",
    ),
    # Where A has no partner among B, only the window of rows can be true for C.
    "tree_either": (
        f"""SELECT A.n AS a, B.n AS b, C.n AS c FROM one A LEFT JOIN two B ON A.k = B.k
            LEFT JOIN three C ON A.k = C.k {WINDOW} AND WINDOW (A, C) = 6
            AND (WINDOW (A, B) BETWEEN 0 AND 2 OR WINDOW A = 3 ROWS PER KEY)""",
        f"""SELECT A.n, B.n, C.n FROM one A LEFT JOIN two B ON A.k = B.k AND {NEAR}
            AND (B.n - A.n BETWEEN 0 AND 2 OR {later("one", "A", "x.k = A.k")} < 3)
            LEFT JOIN three C ON A.k = C.k AND abs(A.n - C.n) <= 6
            AND (B.n - A.n BETWEEN 0 AND 2 OR {later("one", "A", "x.k = A.k", LATEST_OF_THREE)} < 3)""",
    ),
    "asof": (
        """SELECT A.n AS a, B.n AS b FROM one A LEFT ASOF JOIN two B
           MATCH_CONDITION (A.n <= B.n) ON A.k = B.k WINDOW (A, B) BETWEEN 0 AND 9 AND WINDOW A = 10 ROWS""",
        f"""SELECT A.n, (SELECT min(B.n) FROM two B WHERE A.k = B.k AND B.n - A.n BETWEEN 0 AND 9
            AND {later("one", "A")} < 10) FROM one A""",
    ),
}
"""The same of joins that are not all inner ones."""


HOMES = {
    # A home that is NULL is one, too.
    "home": (
        f"""SELECT A.n AS a, B.n AS b FROM one A, two B {WINDOW} AND WINDOW A = 3 ROWS PER HOME
            AND WINDOW B = 6 ROWS PER HOME WHERE A.j = B.j""",
        f"""SELECT A.n, B.n FROM one A, two B WHERE {NEAR} AND A.j = B.j
            AND {later("one", "A", "x.k IS NOT DISTINCT FROM A.k")} < 3
            AND {later("two", "B", "x.s = B.s")} < 6""",
    ),
    "home_is_key": (
        f"""SELECT A.n AS a, B.n AS b FROM one A, two B {WINDOW} AND WINDOW A = 3 ROWS PER HOME
            AND WINDOW A = 5 ROWS PER KEY WHERE A.k = B.k AND A.j = B.j""",
        f"""SELECT A.n, B.n FROM one A, two B WHERE {NEAR} AND A.k = B.k AND A.j = B.j
            AND {later("one", "A", "x.k = A.k")} < 3
            AND {later("one", "A", "x.k = A.k AND x.j = A.j")} < 5""",
    ),
    "home_left": (
        """SELECT A.n AS a, B.v FROM one A LEFT JOIN two B ON A.j = B.j AND B.v > 3
           WINDOW (A, B) BETWEEN 0 AND 8 AND WINDOW A = 4 ROWS PER HOME""",
        f"""SELECT A.n, B.v FROM one A LEFT JOIN two B ON A.j = B.j AND B.v > 3 AND B.n - A.n BETWEEN 0 AND 8
            AND {later("one", "A", "x.k IS NOT DISTINCT FROM A.k")} < 4""",
    ),
    "home_of_three": (
        """SELECT A.n AS a, B.n AS b, C.n AS c FROM one A, two B, three C
           WINDOW = 6 AND WINDOW C = 3 ROWS PER HOME AND WINDOW A = 4 ROWS PER HOME
           WHERE A.s = B.s AND B.k = C.k""",
        f"""SELECT A.n, B.n, C.n FROM one A, two B, three C WHERE A.s = B.s AND B.k = C.k
            AND {LATEST_OF_THREE} - least(A.n, B.n, C.n) <= 6
            AND {later("three", "C", "x.j = C.j", LATEST_OF_THREE)} < 3
            AND {later("one", "A", "x.k IS NOT DISTINCT FROM A.k", LATEST_OF_THREE)} < 4""",
    ),
}
"""Of streams, which have homes."""


SEED = 21


def assert_as_duckdb(streams: Streams, names: list[str]) -> None:
    for name in names:
        expected = streams.expected({**STATEMENTS, **OUTER, **HOMES}[name][1])
        assert streams.found(name) == expected, name
        assert expected.total() > 10, name


@pytest.mark.parametrize(
    ("home", "names"),
    [
        ("files", ["per_key"]),
        pytest.param("files", list(STATEMENTS), marks=pytest.mark.long),
        pytest.param("spark", list(STATEMENTS), marks=pytest.mark.long),
        pytest.param("files", ["left"], marks=pytest.mark.long),
        pytest.param("files", list(OUTER), marks=pytest.mark.long),
        pytest.param("spark", list(OUTER), marks=pytest.mark.long),
        pytest.param("files", list(HOMES), marks=pytest.mark.long),
        pytest.param("spark", list(HOMES), marks=pytest.mark.long),
    ],
    ids=["some", "files", "spark", "left", "outer-files", "outer-spark", "homes-files", "homes-spark"],
)
def test_all_windows_of_rows_of_streams(streams: Streams, home: str, names: list[str]) -> None:
    """In several runs, whose rows are out of order; a result comes once its count is known.

    In between the checkpoint is written anew for more partitions.
    """
    every = {**STATEMENTS, **OUTER, **HOMES}
    streams.session.context.settings.set("wjoin.state", home)
    streams.sinks(names)
    statements = {name: every[name][0] for name in names}
    for _ in range(2):
        on_time(streams, 2)
        streams.insert(statements)
    first = names[0]
    assert streams.found(first) < streams.expected(every[first][1])
    with moved(streams, statements):
        on_time(streams, 1)
        if home == "spark":
            end(streams)
        streams.insert(statements, "moved", complete=home == "files")
    assert_as_duckdb(streams, names)


@pytest.mark.parametrize("name", tiers([*STATEMENTS, *OUTER], long=[*[*STATEMENTS][1:], *[*OUTER][1:]]))
def test_windows_of_rows_of_tables(streams: Streams, name: str) -> None:
    on_time(streams, 2)
    text, same = {**STATEMENTS, **OUTER}[name]
    found = streams.over_tables(text)
    expected = streams.expected(same)
    assert found == expected
    assert expected.total() > 10


BESIDE_TABLE = {
    # A row of the table is never the latest one of a combination; its equality is one of the key.
    "dated": (
        f"""SELECT A.n AS a, B.n AS b, V.s FROM one A, two B, seen V
            {WINDOW} AND WINDOW A = 3 ROWS PER KEY AND WINDOW B = 30 ROWS AND DWINDOW (V, A) = 40
            WHERE A.k = B.k AND A.j = V.j AND V.v > 1""",
        f"""SELECT A.n, B.n, V.s FROM one A, two B, seen V WHERE {NEAR} AND A.k = B.k AND A.j = V.j
            AND V.v > 1 AND A.n - V.n BETWEEN 0 AND 40 AND {later("two", "B")} < 30
            AND {later("one", "A", "x.k = A.k AND x.j = A.j")} < 3""",
    ),
    "dated_either": (
        f"""SELECT A.n AS a, B.n AS b, V.v FROM one A, two B, seen V
            {WINDOW} AND WINDOW A = 15 ROWS AND (DWINDOW (V, A) = 4 OR WINDOW (B, V) BETWEEN -20 AND -9)
            WHERE A.k = B.k AND A.k = V.k""",
        f"""SELECT A.n, B.n, V.v FROM one A, two B, seen V WHERE {NEAR} AND A.k = B.k AND A.k = V.k
            AND (A.n - V.n BETWEEN 0 AND 4 OR V.n - B.n BETWEEN -20 AND -9) AND {later("one", "A")} < 15""",
    ),
    "dated_left": (
        f"""SELECT A.n AS a, B.n AS b, V.s FROM one A LEFT JOIN two B ON A.k = B.k
            LEFT JOIN seen V ON A.j = V.j AND V.v > 1
            {WINDOW} AND WINDOW A = 3 ROWS PER KEY AND DWINDOW (V, A) = 15""",
        f"""SELECT A.n, B.n, V.s FROM one A LEFT JOIN two B ON A.k = B.k AND {NEAR}
            AND {later("one", "A", "x.k = A.k AND x.j = A.j")} < 3
            LEFT JOIN seen V ON A.j = V.j AND V.v > 1 AND A.n - V.n BETWEEN 0 AND 15""",
    ),
}
"""The same beside a table with an event time."""


@pytest.mark.long
def test_a_table_with_event_times_is_joined_after_the_rows_are_counted(streams: Streams) -> None:
    on_time(streams, 2)
    rows = streams.session.spark.read.parquet(str(streams.root / "three")).collect()
    streams.session.spark.createDataFrame(rows, COLUMNS).createOrReplaceTempView("seen_rows")
    streams.oracle.execute("CREATE TABLE seen AS SELECT * FROM three")
    streams.sinks([*BESIDE_TABLE])
    script = "; ".join(
        f"INSERT INTO {name} {text.replace('seen V', 'seen_rows WATERMARK n DELAY OF 0 AS V')}"
        for name, (text, _) in BESIDE_TABLE.items()
    )
    folder = str(streams.root / "checkpoints")
    for last in (False, True):
        streams.session.run_script(script, complete=last, checkpoint=folder)
        on_time(streams, 0 if last else 2)
    for name, (_, same) in BESIDE_TABLE.items():
        expected = streams.expected(same)
        assert streams.found(name) == expected, name
        assert expected.total() > 10, name
