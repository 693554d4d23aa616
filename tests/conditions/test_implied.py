"""Which conditions imply another one; what is said to follow is compared with DuckDB."""

import itertools

import duckdb
import pytest

from wjoin.planner.conditions.implied import implied

CONDITIONS = (
    *(
        "A.v > 3",
        "A.v >= 3",
        "4 <= A.v",
        "A.v < 6",
        "A.v <= 5",
        "A.v = 4",
        "A.v <> 4",
        "A.v != 7",
        "-1 < A.v",
    ),
    *("A.v BETWEEN 3 AND 5", "A.v > 3 AND A.v < 6", "(A.v > 3) OR (A.k = 1)", "A.k = 1 OR A.v > 4"),
    *("NOT A.v > 3", "A.v IS NOT NULL", "A.k = 1", "((A.k = 1)) AND A.v = 4", "A.v + 1 > 3", "-1 < A.v"),
)


@pytest.fixture(scope="module")
def rows() -> duckdb.DuckDBPyConnection:
    found = duckdb.connect()
    found.execute("CREATE TABLE a AS FROM range(-3, 10) v(v), range(0, 3) k(k)")
    found.execute("INSERT INTO a VALUES (NULL, 1), (4, NULL), (NULL, NULL)")
    return found


def test_what_follows_follows_for_every_row(rows: duckdb.DuckDBPyConnection) -> None:
    seen = missed = 0
    pairs = zip(CONDITIONS, (*CONDITIONS[5:], *CONDITIONS[:5]), strict=True)
    for (first, second), wanted in itertools.product(pairs, CONDITIONS):
        (against,) = rows.execute(
            f"SELECT count(*) FROM a AS A WHERE ({first}) AND ({second}) AND ({wanted}) IS NOT TRUE"
        ).fetchall()[0]
        found = implied(wanted, [first, second], {"v", "k"})
        assert not (found and against), (first, second, wanted)
        seen, missed = seen + found, missed + (not found and not against)
    # Some pairs leave no row, from which everything follows.
    assert seen > missed


def test_only_numbers_are_compared_as_such() -> None:
    assert not implied("A.s > 3", ["A.s > 5"], {"v"})
    assert implied("a.s <> 'y'", ["A.v > 5", "A.`s` != 'y'"], {"v"})
    assert not implied("A.s = 'Y'", ["A.s = 'y'"], {"v"})


def test_a_backslash_is_compared_as_it_is_written() -> None:
    assert implied(r"A.s LIKE 'a\\d'", [r"a.s  LIKE 'a\\d'"], set())
    assert not implied(r"A.s = 'a\\d'", [r"A.s = r'a\\d'"], set())
