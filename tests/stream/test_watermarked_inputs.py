"""Streams that come with a watermark of Spark's own: deduplicated ones, and window joins of window joins."""

import json
import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

import wjoin
from wjoin.executor.spark.once import collect_once

pytestmark = pytest.mark.thorough

START = 1_714_564_800
IDS = range(400)
"""One row a second in each stream; every third row comes twice."""


@pytest.fixture
def raw(session: wjoin.Session, tmp_path: Path) -> DataFrame:
    """Four files, each read by a micro-batch of its own."""
    for number in range(4):
        lines = []
        for i in IDS[number * 100 : number * 100 + 100]:
            row = json.dumps({"id": i, "ts": datetime.fromtimestamp(START + i, UTC).isoformat()})
            lines += [row] * (2 if i % 3 == 0 else 1)
        path = tmp_path / f"{number}.json"
        path.write_text("\n".join(lines))
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
    return (
        session.readStream.schema("id BIGINT, ts TIMESTAMP")
        .option("maxFilesPerTrigger", 1)
        .json(str(tmp_path))
    )


def rows(session: wjoin.Session, statement: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in session.spark.table(collect_once(session.sql(statement))).collect()]


def seconds(time: object) -> int:
    assert isinstance(time, datetime)
    return round(time.timestamp()) - START


JOIN = "FROM ma A, mb B WINDOW = 5 SECONDS WHERE A.id = B.id"


@pytest.mark.parametrize("both", [True, False])
def test_a_deduplicated_stream_is_joined_and_aggregated_by_match_time(
    session: wjoin.Session, raw: DataFrame, both: bool
) -> None:
    session.stream("ma", raw.withWatermark("ts", "10 seconds").dropDuplicatesWithinWatermark(["id"]))
    if both:
        session.stream("mb", raw.withWatermark("ts", "10 seconds").dropDuplicates(["id", "ts"]))
    else:
        session.stream("mb", raw, delay="10 seconds")
    copies = Counter({i: 1 if both or i % 3 else 2 for i in IDS})
    found = rows(session, f"SELECT A.id, MATCH_TIME() AS at {JOIN}")
    assert Counter(i for i, _ in found) == copies
    assert all(seconds(at) == i for i, at in found)
    window = "window(MATCH_TIME(), '20 seconds')"
    counted = rows(session, f"SELECT {window}.start AS start, count(*) AS n {JOIN} GROUP BY {window}")
    expected: Counter[int] = Counter()
    for i, n in copies.items():
        expected[i // 20 * 20] += n
    # What the watermark, 10 s behind 399 s, has not passed yet stays open.
    assert {seconds(start): n for start, n in counted} == {
        start: n for start, n in expected.items() if start + 20 <= 389
    }
    assert "delay 10 s" in session.explain(f"SELECT A.id {JOIN}")


def test_a_window_join_of_a_window_join_is_aggregated_by_match_time(
    session: wjoin.Session, raw: DataFrame
) -> None:
    for name in ("ma", "mb", "mc"):
        session.stream(name, raw, delay="10 seconds")
    session.sql(f"CREATE VIEW pairs AS SELECT A.id, MATCH_TIME() AS at {JOIN}")
    window = "window(MATCH_TIME(), '20 seconds')"
    outer = "FROM pairs P, mc C WINDOW = 5 SECONDS WHERE P.id = C.id"
    counted = rows(session, f"SELECT {window}.start AS start, count(*) AS n {outer} GROUP BY {window}")
    expected = Counter(
        {start: sum(1 if i % 3 else 8 for i in range(start, start + 20)) for start in range(0, 400, 20)}
    )
    found = {seconds(start): n for start, n in counted}
    assert len(found) > 15
    assert found == {start: expected[start] for start in found}
    assert max(found) + 20 <= 389


def test_a_watermark_on_another_column_is_told(session: wjoin.Session, raw: DataFrame) -> None:
    twice = raw.selectExpr("id", "ts", "ts AS arrived").withWatermark("arrived", "1 second")
    session.stream("ma", twice.dropDuplicates(["id", "arrived"]), "ts", "5 seconds")
    session.stream("mb", raw, delay="5 seconds")
    reason = "A has a Spark watermark, but not on ts"
    assert reason in session.explain(f"SELECT MATCH_TIME() {JOIN}")
    found = rows(session, f"SELECT A.id, MATCH_TIME() AS at {JOIN}")
    assert {i for i, _ in found} == set(IDS)
    session.sql("CREATE SINK counts USING noop")
    window = "window(MATCH_TIME(), '20 seconds')"
    with pytest.raises(wjoin.WJoinError) as told:
        session.sql(f"INSERT INTO counts SELECT {window}.start, count(*) {JOIN} GROUP BY {window}")
    assert told.value.code == "WJ607"
    assert reason in told.value.help
