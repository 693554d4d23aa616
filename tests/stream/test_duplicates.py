"""DROP DUPLICATES ON: the first copy of a row goes on at once. And what waits at the end of a run is told."""

import json
from collections import Counter
from pathlib import Path

import pytest

import wjoin

START = 1_714_564_800
SECONDS = 60
"""Clicks and payments of one second each; every third click comes twice, the copy up to 2 s later."""
BROKEN = 7


def streams(session: wjoin.Session, folder: Path) -> None:
    clicks = []
    for second in range(SECONDS):
        row = {"id": second, "customer": second % 5, "s": START + second}
        clicks += [row, {**row, "s": row["s"] + second // 3 % 3}] if second % 3 == 0 else [row]
    lines = [json.dumps(each) for each in clicks] + ['{"id": broken'] * BROKEN
    payments = [json.dumps({"customer": i % 5, "s": START + i}) for i in range(SECONDS)]
    for name, written in (("clicks", lines), ("payments", payments)):
        (folder / name).mkdir()
        (folder / name / "0.json").write_text("\n".join(written))
    columns = "customer BIGINT, s BIGINT, at AS timestamp_seconds(s)"
    watermark = "WATERMARK at DELAY OF '10 seconds'"
    session.run_script(f"""
        CREATE STREAM clicks (id BIGINT, {columns}) USING json OPTIONS (path '{folder}/clicks')
        {watermark} DROP DUPLICATES ON (ID);
        CREATE STREAM payments ({columns}) USING json OPTIONS (path '{folder}/payments') {watermark};
        CREATE SINK bought USING parquet OPTIONS (path '{folder}/bought');
        CREATE SINK counts USING parquet OPTIONS (path '{folder}/counts');
    """)


JOIN = "FROM clicks AS C, payments AS P DWINDOW (C, P) = 5 SECONDS WHERE C.customer = P.customer"
WINDOW = "window(MATCH_TIME(), '10 seconds')"


def bought() -> Counter[int]:
    """How many results each click has: its own second, and the one of the customer's next payment."""
    return Counter({i: 2 if i + 5 < SECONDS else 1 for i in range(SECONDS)})


def test_each_row_comes_once_and_at_once(session: wjoin.Session, tmp_path: Path) -> None:
    streams(session, tmp_path)
    with pytest.warns(wjoin.WJoinWarning, match=f"{BROKEN} rows without an event time") as told:
        session.run_script(f"INSERT INTO bought SELECT C.id {JOIN}", checkpoint=f"{tmp_path}/points")
    assert not any("WJ813" in str(each.message) or "WJ805" in str(each.message) for each in told)
    rows = session.spark.read.parquet(f"{tmp_path}/bought").collect()
    assert Counter(row.id for row in rows) == bought()
    line = session.context.queries.started[-1].line()
    assert f"{BROKEN} without event time" in line
    assert "wait" not in line
    comments = {row.col_name: row.comment for row in session.sql("DESCRIBE STREAM clicks").collect()}
    assert comments["id"] == "equal in duplicates, which are dropped"
    assert "DROP DUPLICATES ON (ID)" in session.sql("SHOW CREATE STREAM clicks").collect()[0][0]


@pytest.mark.long
def test_groups_that_wait_are_told(session: wjoin.Session, tmp_path: Path) -> None:
    """The watermark is 10 s behind 59 s: the groups that end after that wait."""
    streams(session, tmp_path)
    text = f"INSERT INTO counts SELECT {WINDOW}.start, count(*) AS n {JOIN} GROUP BY {WINDOW}"
    with pytest.warns(wjoin.WJoinWarning, match="2 groups of Spark's aggregate wait") as told:
        session.run_script(text, checkpoint=f"{tmp_path}/points")
    assert any(getattr(each.message, "code", "") == "WJ813" for each in told)
    done = session.spark.read.parquet(f"{tmp_path}/counts").collect()
    assert len(done) == 4
    # Of the first 40 s, every click was bought twice, at its own second and five seconds later.
    assert sum(row.n for row in done) == 40 + 35
    line = session.context.queries.started[-1].line()
    assert "2 groups of Spark's aggregate wait for the watermark, now at 2024-05-01 12:00:48.999" in line


@pytest.mark.parametrize(
    ("declared", "code", "message"),
    [
        ("DROP DUPLICATES ON (id)", "WJ220", "the delay of s is unknown"),
        ("WATERMARK n DELAY OF 5 DROP DUPLICATES ON (id)", "WJ220", "event time n is bigint"),
        ("WATERMARK at DELAY OF '5 seconds' DROP DUPLICATES ON (di)", "WJ202", "has no column di"),
        ("DROP DUPLICATES ON (id) DROP DUPLICATES ON (n)", "WJ106", "DROP DUPLICATES"),
    ],
)
def test_refusals(session: wjoin.Session, tmp_path: Path, declared: str, code: str, message: str) -> None:
    columns = "id STRING, n BIGINT, at TIMESTAMP"
    with pytest.raises(wjoin.WJoinError, match=message) as told:
        session.sql(f"CREATE STREAM s ({columns}) USING json OPTIONS (path '{tmp_path}') {declared}")
    assert told.value.code == code
