"""Joins without a window clause have the rows that they have with one, and those of Spark's own join."""

import random
import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame

import wjoin
from tests.results.said import OF_THREE, STATEMENTS, Said

QUICK = ("LEFT JOIN of Spark's guide",)
BY_CLOCKS = [each for each in STATEMENTS if re.search("diff|trunc|- I.ts|DAY", each.words)]
EPOCH = datetime(2024, 3, 31, 0, 59, 55, tzinfo=UTC)
STEP = timedelta(milliseconds=500)


def rows(seed: int, first: int) -> list[tuple[int | None, int | None, int]]:
    """Return rows with a key, steps of time and a number; some have the time of others, or none."""
    drawn = random.Random(seed)
    times = (None if drawn.random() < 0.1 else drawn.choice(range(24)) for _ in range(40))
    return [(drawn.choice([1, 2, 3, None]), time, first + n) for n, time in enumerate(times)]


@pytest.fixture
def declared(session: wjoin.Session) -> wjoin.Session:
    for seed, name in enumerate(("imp", "clk", "buy")):
        found = [
            (key, None if time is None else EPOCH + time * STEP + seed * timedelta(microseconds=time % 2), n)
            for key, time, n in rows(seed, 100 * seed)
        ]
        session.stream(name, session.createDataFrame(found, "id INT, ts TIMESTAMP, n INT"))
        session.stream(f"{name}_n", session.sql(f"SELECT id, CAST(ts AS TIMESTAMP_NTZ) AS ts, n FROM {name}"))
    for seed, name in enumerate(("ta", "tb"), 7):
        found = rows(seed, 100 * seed)
        session.stream(name, session.createDataFrame(found, "id INT, t BIGINT, n INT"), event_time="t")
    return session


def by_spark(session: wjoin.Session, words: str) -> Counter[tuple[object, ...]]:
    """Return what Spark makes of a statement, without the rows that a window join drops: of no time."""
    session.sql("SET wjoin.windows_from_where = off")
    try:
        assert not session.explain(words).described
        found = bag(session.sql(words))
    finally:
        session.sql("SET wjoin.windows_from_where = on")
    untimed = {row.n for row in session.sql("SELECT n FROM imp WHERE ts IS NULL").collect()}
    assert untimed
    kept = "LEFT" in words or "NOT EXISTS" in words
    return Counter({row: count for row, count in found.items() if not (kept and row[0] in untimed)})


def bag(found: DataFrame) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row) for row in found.collect())


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(each, id=each.name, marks=[] if each.name in QUICK else [pytest.mark.long])
        for each in (*STATEMENTS, OF_THREE)
    ],
)
def test_rows(declared: wjoin.Session, said: Said) -> None:
    assert declared.explain(said.words).described, "the statement is Spark's"
    found = bag(declared.sql(said.words))
    assert found == bag(declared.sql(said.form))
    assert found
    if said.sparks:
        assert found == by_spark(declared, said.words)


@pytest.mark.long
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Pacific/Apia"])
def test_clocks_that_are_put_forward(declared: wjoin.Session, zone: str) -> None:
    declared.spark.conf.set("spark.sql.session.timeZone", zone)
    for said in BY_CLOCKS:
        assert bag(declared.sql(said.words)) == by_spark(declared, said.words), said.name
