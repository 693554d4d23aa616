"""EXPLAIN MATCH over the newest windows and joins: the statement itself is the oracle of what is a result."""

import itertools
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import wjoin
from tests.asking.test_match import told
from tests.tiers import tiers

Row = dict[str, int | None]
Pair = Callable[[Row, Row, list[Row]], str | None]
"""What is told of a row of A and one of B that are no result, None where they are; with all rows of A."""


def at_most(first: Row, second: Row, _: list[Row]) -> str | None:
    apart, life = int(second["n"] or 0) - int(first["n"] or 0), first["v"]
    if life is None:
        return "A.v; that is NULL, so that nothing is inside"
    if apart < 0:
        return f"B is {-apart} earlier than A: {-apart} too early"
    if apart > 10:
        return f"B is {apart} later than A: {apart - 10} too late"
    return f"window (A, B) = A.v; B is {apart - life} too late" if apart > life else None


def alternatives(first: Row, second: Row, _: list[Row]) -> str | None:
    apart = int(second["n"] or 0) - int(first["n"] or 0)
    beyond = {"too late": max(0, apart - 3), "too early": max(0, 1 - apart)}
    other = {"too late": max(0, apart + 6), "too early": max(0, -8 - apart)}
    by, much = min((sum(each.values()), max(each, key=lambda way: each[way])) for each in (beyond, other))
    return f": {by} {much} (the nearest of 2 alternatives)" if by else None


def rows_per_key(first: Row, second: Row, every: list[Row]) -> str | None:
    begin, end = int(first["n"] or 0), max(int(first["n"] or 0), int(second["n"] or 0))
    later = [each for each in every if begin < int(each["n"] or 0) <= end and each["k"] == first["k"]]
    if abs(int(second["n"] or 0) - begin) > 9:
        return "window (A, B): 9 in both directions; B is "
    if len(later) < 2:
        return None
    count = f"{len(later)} rows of A came later, {len(later) - 1} too many"
    return f"window A: 2 rows per key; {count}, up to the last of these rows"


def since(first: Row, second: Row, every: list[Row]) -> str | None:
    begin, end = int(first["n"] or 0), max(int(first["n"] or 0), int(second["n"] or 0))
    later = sum(begin < int(each["n"] or 0) <= end and each["v"] == 1 for each in every)
    if abs(int(second["n"] or 0) - begin) > 9:
        return "window (A, B): 9 in both directions; B is "
    times = "1 time" if later == 1 else f"{later} times"
    return f"window A since (A.v = 1); it began anew {times} after this row of A" if later else None


WINDOWS: dict[str, tuple[str, Pair]] = {
    "at most": ("DWINDOW (A, B) = A.v AT MOST 10", at_most),
    "or": ("WINDOW (A, B) BETWEEN 1 AND 3 OR WINDOW (A, B) BETWEEN -8 AND -6", alternatives),
    "rows per key": ("WINDOW (A, B) = 9 AND WINDOW A = 2 ROWS PER KEY", rows_per_key),
    "since": ("WINDOW (A, B) = 9 AND WINDOW A SINCE (A.v = 1)", since),
}


LONG, THOROUGH = ([(name, count) for name in WINDOWS] for count in (8, 50))


def declare(session: wjoin.Session, name: str, rows: list[Row]) -> None:
    session.createDataFrame(rows, "id LONG, n LONG, k LONG, v LONG").createOrReplaceTempView(name)


def drawn_rows(drawn: random.Random) -> list[Row]:
    lives = (None, *range(14))
    return [
        {"id": number, "n": drawn.randrange(40), "k": drawn.randrange(2), "v": drawn.choice(lives)}
        for number in range(40)
    ]


@pytest.mark.parametrize(
    ("name", "asked"),
    tiers([("since", 2), *LONG, *THOROUGH], long=LONG, thorough=THOROUGH),
)
def test_what_windows_say_of_a_pair(session: wjoin.Session, name: str, asked: int) -> None:
    drawn, (window, pair) = random.Random(f"{name} {asked}"), WINDOWS[name]
    first, second = drawn_rows(drawn), drawn_rows(drawn)
    declare(session, "newest_a", first)
    declare(session, "newest_b", second)
    # Of integral event times a table says which they are.
    select = f"""SELECT A.id AS a, B.id AS b FROM newest_a WATERMARK n DELAY OF 0 AS A,
        newest_b WATERMARK n DELAY OF 0 AS B {window} WHERE A.k = B.k"""
    results = {(row.a, row.b) for row in session.sql(select).collect()}
    pairs = [(one, other) for one in first for other in second if one["k"] == other["k"]]
    assert results == {(one["id"], other["id"]) for one, other in pairs if pair(one, other, first) is None}
    near = [each for each in pairs if abs(int(each[1]["n"] or 0) - int(each[0]["n"] or 0)) < 14]
    for one, other in drawn.sample(near, asked):
        cause = pair(one, other, first)
        found = told(session, f"EXPLAIN MATCH A(id = {one['id']}), B(id = {other['id']}) {select}")
        assert found.startswith("These rows are no result:" if cause else "These rows are a result:"), found
        assert (cause or "Satisfied: ") in found


MATCHES = {
    "MATCH_TIME() < 25": lambda one, other: max(one, other),
    "MATCH_START() > 9": lambda one, other: min(one, other),
    "MATCH_SPAN() % 2 = 0": lambda one, other: abs(one - other),
}
HOLDS = [lambda value: value < 25, lambda value: value > 9, lambda value: value % 2 == 0]


@pytest.mark.parametrize("asked", tiers([1, 12, 100], long=[12], thorough=[100]))
def test_what_conditions_on_match_functions_say_of_a_pair(session: wjoin.Session, asked: int) -> None:
    drawn = random.Random(asked)
    first, second = drawn_rows(drawn), drawn_rows(drawn)
    declare(session, "newest_a", first)
    declare(session, "newest_b", second)
    select = f"""SELECT A.id AS a, B.id AS b FROM newest_a WATERMARK n DELAY OF 0 AS A
        JOIN newest_b WATERMARK n DELAY OF 0 AS B ON A.k = B.k AND MATCH_TIME() < 25
        WINDOW (A, B) = 20 WHERE {" AND ".join([*MATCHES][1:])}"""
    results = {(row.a, row.b) for row in session.sql(select).collect()}
    pairs = [(one, other) for one in first for other in second if one["k"] == other["k"]]
    near = [each for each in pairs if abs(int(each[1]["n"] or 0) - int(each[0]["n"] or 0)) <= 20]
    for one, other in drawn.sample(near, asked):
        times = int(one["n"] or 0), int(other["n"] or 0)
        values = {text: value(*times) for text, value in MATCHES.items()}
        wrong = [
            f"{text} is not true; {text[: text.index(')') + 1]} is {value}."
            for (text, value), holds in zip(values.items(), HOLDS, strict=True)
            if not holds(value)
        ]
        assert bool(wrong) == ((one["id"], other["id"]) not in results)
        found = told(session, f"EXPLAIN MATCH A(id = {one['id']}), B(id = {other['id']}) {select}")
        assert found.startswith("These rows are no result:" if wrong else "These rows are a result:"), found
        assert "Not judged" not in found
        for text in wrong or ["MATCH_SPAN() % 2 = 0"]:
            assert text in found


@pytest.mark.long
def test_match_functions_of_timestamps_and_what_is_not_the_same_twice(session: wjoin.Session) -> None:
    at = "timestamp_seconds(1700000000 + n) AS ts"
    session.sql(f"SELECT 1 AS id, {at} FROM VALUES (0) AS t(n)").createOrReplaceTempView("newest_a")
    session.sql(f"SELECT n AS id, {at} FROM VALUES (0), (8) AS t(n)").createOrReplaceTempView("newest_b")
    begin = "FROM newest_a A, newest_b B WINDOW (A, B) = 9 SECONDS WHERE MATCH_SPAN()"
    select = f"SELECT 1 {begin} < INTERVAL 5 SECONDS"
    found = told(session, f"EXPLAIN MATCH A(id = 1), B(id = 8) {select}")
    assert "MATCH_SPAN() < INTERVAL 5 SECONDS is not true; MATCH_SPAN() is INTERVAL '0 00:00:08" in found
    assert told(session, f"EXPLAIN MATCH A(id = 1), B(id = 0) {select}").startswith("These rows are a result")
    lines = told(session, f"EXPLAIN MATCH {select}").splitlines()
    assert lines[-1] == "  1 combination with MATCH_SPAN() < INTERVAL 5 SECONDS"
    never = told(session, f"EXPLAIN MATCH A(id = 1), B(id = 0) {select} AND 1 = 2")
    assert "First thing that fails: 1 = 2 is not true." in never
    unsure = told(session, f"EXPLAIN MATCH A(id = 1), B(id = 0) {select} AND rand() < 0.5")
    assert "Not judged: rand() < 0.5 (it is not the same twice)." in unsure


@pytest.mark.long
def test_rows_of_a_home_are_counted_by_its_value(session: wjoin.Session, tmp_path: Path) -> None:
    """A home that is NULL is one, too."""
    rows = "VALUES (1, 1, 0, 'x'), (2, 2, 0, NULL), (3, 3, 0, 'x'), (4, 4, 0, NULL) AS t(id, n, k, v)"
    for name in ("a", "b"):
        session.sql(f"SELECT * FROM {rows}").coalesce(1).write.parquet(str(tmp_path / name))
        session.sql(
            f"CREATE OR REPLACE STREAM homed_{name} (id INT, n INT, k INT, v STRING) USING parquet "
            f"OPTIONS (path '{tmp_path / name}') WATERMARK n DELAY OF 0 HOME BY v"
        )
    select = """SELECT A.id AS a, B.id AS b FROM homed_a A, homed_b B
        WINDOW (A, B) = 9 AND WINDOW A = 1 ROWS PER HOME WHERE A.k = B.k"""
    lost = told(session, f"EXPLAIN MATCH A(id = 1), B(id = 4) {select}")
    assert "window A: 1 row per home; 1 row of A came later, 1 too many" in lost, lost
    for one, other in ((1, 2), (2, 3), (3, 4), (4, 4)):
        found = told(session, f"EXPLAIN MATCH A(id = {one}), B(id = {other}) {select}")
        assert found.startswith("These rows are a result"), found
    assert "1 too many" in told(session, f"EXPLAIN MATCH A(id = 2), B(id = 4) {select}")


COUNTED = {
    "left": ("A LEFT JOIN {B} ON A.k = B.k", "WINDOW (A, B) = 9 AND WINDOW A = 2 ROWS PER KEY"),
    "or": ("A FULL JOIN {B} ON A.k = B.k", "WINDOW (A, B) = 2 OR (WINDOW (A, B) = 9 AND WINDOW B = 3 ROWS)"),
    "since": ("A RIGHT JOIN {B} ON A.k = B.k", "WINDOW (A, B) = 9 AND WINDOW B SINCE (B.v = 1)"),
    "three": (
        "A LEFT JOIN {B} ON A.k = B.k LEFT JOIN {C} ON A.k = C.k",
        "WINDOW (A, B) = 9 AND WINDOW (A, C) = 9 AND WINDOW A = 5 ROWS AND WINDOW B = 3 ROWS PER KEY",
    ),
    "a choice": (
        "A LEFT JOIN {B} ON A.k = B.k LEFT JOIN {C} ON A.k = C.k",
        "WINDOW (A, B) = 9 AND WINDOW (A, C) = 9 AND (WINDOW (A, B) = 3 OR WINDOW B = 3 ROWS PER KEY)",
    ),
}


@pytest.mark.parametrize(
    ("name", "asked"),
    tiers(
        [("three", 1), *((each, 4) for each in COUNTED), *((each, 60) for each in COUNTED)],
        long=[(each, 4) for each in COUNTED],
        thorough=[(each, 60) for each in COUNTED],
    ),
)
def test_windows_of_rows_say_which_rows_are_partners(session: wjoin.Session, name: str, asked: int) -> None:
    """The statement itself is the oracle: partners are together in a result."""
    drawn, (joins, windows) = random.Random(f"{name} {asked}"), COUNTED[name]
    aliases = [each for each in "ABC" if each == "A" or f"{{{each}}}" in joins]
    rows = {alias: drawn_rows(drawn) for alias in aliases}
    tables = {alias: f"newest_{alias.lower()} WATERMARK n DELAY OF 0 AS {alias}" for alias in aliases}
    for alias in aliases:
        declare(session, f"newest_{alias.lower()}", rows[alias])
    listed = ", ".join(f"{alias}.id AS {alias.lower()}" for alias in aliases)
    items = f"{tables['A']} {joins.removeprefix('A ').format(**tables)}"
    select = f"SELECT {listed} FROM {items} {windows}"
    results = {tuple(row) for row in session.sql(select).collect()}
    together = [each for each in itertools.product(*rows.values()) if _close(each)]
    partners = [each for each in together if _ids(each) in results]
    others = [each for each in together if _ids(each) not in results]
    assert partners and others
    for each in [*drawn.sample(partners, min(asked, len(partners))), *drawn.sample(others, asked)]:
        meant = ", ".join(f"{alias}(id = {row['id']})" for alias, row in zip(aliases, each, strict=True))
        found = told(session, f"EXPLAIN MATCH {meant} {select}")
        no = "" if _ids(each) in results else "no "
        assert found.startswith(f"These rows are {no}partners:"), (each, found)
        assert "Not judged" not in found


def _ids(rows: Sequence[Row]) -> tuple[int | None, ...]:
    return tuple(each["id"] for each in rows)


def _close(rows: Sequence[Row]) -> bool:
    """Whether all conditions but windows of rows may hold."""
    first, *others = rows
    return all(
        each["k"] == first["k"] and abs(int(each["n"] or 0) - int(first["n"] or 0)) <= 9 for each in others
    )


JOINS = {
    "LEFT": "A row of A without a partner is a result alone.",
    "FULL": "A row of A or of B without a partner is a result alone.",
    "LEFT SEMI": "A row of A with a partner in B is a result, once.",
    "LEFT ANTI": "A row of A with a partner in B is no result.",
}


@pytest.mark.long
@pytest.mark.parametrize("kind", JOINS)
def test_partners_of_outer_joins(session: wjoin.Session, kind: str) -> None:
    drawn = random.Random(kind)
    first, second = drawn_rows(drawn), drawn_rows(drawn)
    declare(session, "newest_a", first)
    declare(session, "newest_b", second)
    select = f"""SELECT A.id FROM newest_a WATERMARK n DELAY OF 0 AS A {kind} JOIN
        newest_b WATERMARK n DELAY OF 0 AS B ON A.k = B.k AND B.v > 3 WINDOW (A, B) BETWEEN 0 AND 5
        OR WINDOW (A, B) BETWEEN -9 AND -7"""
    for one, other in drawn.sample([(one, other) for one in first for other in second], 6):
        apart = int(other["n"] or 0) - int(one["n"] or 0)
        partners = one["k"] == other["k"] and (other["v"] or 0) > 3 and (0 <= apart <= 5 or -9 <= apart <= -7)
        found = told(session, f"EXPLAIN MATCH A(id = {one['id']}), B(id = {other['id']}) {select}")
        assert found.startswith(f"These rows are {'' if partners else 'no '}partners:"), (one, other, found)
        assert JOINS[kind] in found
