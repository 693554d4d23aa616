"""EXPLAIN MATCH over tables and streams: the cause that a model knows is the one that is told."""

import json
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import wjoin
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError

JOIN = """SELECT A.id FROM asked_a A, asked_b B WINDOW (A, B) BETWEEN 0 SECONDS AND 5 SECONDS
WHERE A.name = B.name AND A.v > 3 AND A.v < B.v"""
START = 1_700_000_000


def told(session: wjoin.Session, text: str, **values: object) -> str:
    return str(session.sql(text, values).collect()[0][0])


def near_miss(drawn: random.Random, number: int) -> tuple[dict[str, object], dict[str, object], str]:
    """Return a row of A and one of B that lack one thing, and how EXPLAIN tells it."""
    at, apart = START + 1_000 * number, drawn.randrange(6)
    first: dict[str, object] = {"id": number, "at": at, "name": f"n{number}", "v": 5}
    second: dict[str, object] = {"id": number, "at": at + apart, "name": f"n{number}", "v": 9}
    by = drawn.randrange(1, 60)
    match drawn.choice(["late", "early", "key", "case", "null", "filter", "condition", "nothing"]):
        case "late":
            second["at"] = at + 5 + by
            return first, second, f"B is {_span(5 + by)} later than A: {_span(by)} too late"
        case "early":
            second["at"] = at - by
            return first, second, f"B is {_span(by)} earlier than A: {_span(by)} too early"
        case "key":
            second["name"] = f"m{number}"
            return first, second, f"A.name = B.name: 'n{number}' is not 'm{number}'."
        case "case":
            second["name"] = f" N{number}"
            return first, second, "they differ only in upper and lower case"
        case "null":
            second["name"] = None
            return first, second, "B.name is NULL, which equals nothing"
        case "filter":
            first["v"] = 3
            return first, second, "First thing that fails: A.v > 3 is not true"
        case "condition":
            second["v"] = 5
            return first, second, "First thing that fails: A.v < B.v is not true"
    return first, second, "These rows are a result:"


def _span(seconds: int) -> str:
    minutes, left = divmod(seconds, 60)
    return " ".join([f"{minutes} min"] * (minutes > 0) + [f"{left} s"] * (left > 0))


def declare(session: wjoin.Session, name: str, rows: list[dict[str, object]]) -> None:
    frame = session.createDataFrame(rows, "id LONG, at LONG, name STRING, v LONG")
    frame.selectExpr("id", "timestamp_seconds(at) AS ts", "name", "v").createOrReplaceTempView(name)


@pytest.mark.parametrize("count", tiers([3, 40, 200], long=[40], thorough=[200]))
def test_the_cause_of_a_near_miss(session: wjoin.Session, count: int) -> None:
    drawn = random.Random(count)
    made = [near_miss(drawn, number) for number in range(count)]
    declare(session, "asked_a", [first for first, _, _ in made])
    declare(session, "asked_b", [second for _, second, _ in made])
    for number, (_, _, cause) in enumerate(made):
        found = told(session, f"EXPLAIN MATCH A(id = {number}), B(id = {number}) {JOIN}")
        assert cause in found, (number, found)


def test_rows_that_are_not_there_and_rows_that_nobody_names(session: wjoin.Session) -> None:
    declare(session, "asked_a", [{"id": 1, "at": START, "name": "n", "v": 5}])
    declare(session, "asked_b", [{"id": each, "at": START + each, "name": "n", "v": 9} for each in (7, 9)])
    found = told(session, f"EXPLAIN MATCH A(id = :id AND name = 'n'), B(id = 7) {JOIN}", id=2)
    assert found == (
        "No row of A satisfies id = :id AND name = 'n'. A has 1 row:\n  id = :id: no row\n  name = 'n': 1 row"
    )
    nearest = told(session, f"EXPLAIN MATCH A(id = 1) {JOIN}")
    assert "(the nearest of 2 rows)" in nearest
    assert "B is 7 s later than A: 2 s too late" in nearest
    for text, code in [
        (f"EXPLAIN MATCH C(id = 1) {JOIN}", "WJ201"),
        (f"EXPLAIN MATCH A(no_such = 1) {JOIN}", "WJ607"),
        (f"EXPLAIN MATCH A(id = 1), A(id = 2) {JOIN}", "WJ503"),
        ("EXPLAIN MATCH A(id = 1) SELECT 1", "WJ503"),
    ]:
        with pytest.raises(WJoinError) as caught:
            session.sql(text)
        assert caught.value.code == code


@pytest.mark.long
def test_where_all_rows_are_lost(session: wjoin.Session) -> None:
    rows = [{"id": each, "at": START + each, "name": f"n{each}", "v": 5} for each in range(10)]
    declare(session, "asked_a", rows)
    declare(session, "asked_b", [{**each, "at": each["at"] + 3600, "v": 9} for each in rows])
    lines = told(session, f"EXPLAIN MATCH {JOIN}").splitlines()
    assert lines[:3] == ["Rows", "  A: 10 rows", "  B: 10 rows"]
    assert lines[4] == "  10 combinations with A.name = B.name"
    assert lines[5].startswith("  0 combinations inside window (A, B)") and "no rows are left" in lines[5]
    assert lines[7].endswith("Moved by 1 h it would be inside: are both in one time zone?")
    declare(session, "asked_b", [{**each, "name": f"N{each['id']} ", "v": 9} for each in rows])
    assert "they differ only in upper and lower case" in told(session, f"EXPLAIN MATCH {JOIN}")


@pytest.mark.long
def test_what_may_be_the_reason(session: wjoin.Session) -> None:
    rows = [{"id": each, "at": START + each, "name": f"{each % 3}", "v": 5} for each in range(10)]

    def reason(moved: int = 0, **changed: object) -> str:
        declare(session, "asked_b", [{**each, "at": each["at"] + moved, "v": 9, **changed} for each in rows])
        return told(session, f"EXPLAIN MATCH {JOIN}").splitlines()[-1].strip()

    declare(session, "asked_a", rows)
    assert reason(-20) == "Is it too small? 11 s more would admit a combination."
    assert reason(-14).startswith("With A and B exchanged it would be inside")
    assert reason(365 * 86_400) == "Moved by 365 d it would be inside: are both of one date?"
    assert reason(-7200) == "Moved by 2 h it would be inside: are both in one time zone?"
    assert reason(START * 999).startswith("The time of B is 1,000 times that of A")
    number = "A.name = B.name: '1' is not '01': both are one number, so compare them as numbers."
    assert reason(name="01") == number
    declare(session, "asked_a", [{**each, "v": 3} for each in rows])
    assert reason() == "A: A.v is 3 in all rows"


@pytest.mark.long
def test_a_stream_tells_what_it_has_read_and_what_was_late(session: wjoin.Session, tmp_path: Path) -> None:
    def bring(name: str, file: int, *rows: tuple[int, int]) -> None:
        lines = (json.dumps({"id": number, "ts": START + at}) for number, at in rows)
        (tmp_path / f".{name}{file}").write_text("\n".join(lines))
        (tmp_path / f".{name}{file}").rename(tmp_path / name / f"{file}.json")

    script = ""
    for name in ("ap", "aq"):
        (tmp_path / name).mkdir()
        script += f"""CREATE OR REPLACE STREAM {name} (id BIGINT, ts BIGINT) USING json
            OPTIONS (path '{tmp_path / name}') WATERMARK ts DELAY OF 2;"""
    script += f"""CREATE OR REPLACE SINK asked_pairs USING parquet
        OPTIONS (path '{tmp_path / "out"}', checkpointLocation '{tmp_path / "kept"}');"""
    insert = "INSERT INTO asked_pairs SELECT P.id FROM ap P, aq Q WINDOW (P, Q) = 5 WHERE P.id = Q.id"
    bring("ap", 1, (1, 0), (2, 20))
    bring("aq", 1, (1, 1), (9, 20))
    session.run_script(script + insert, once=True)
    bring("aq", 2, (2, 15), (9, 30))
    session.run_script(insert, once=True)
    bring("aq", 3, (2, 21))
    assert told(session, f"EXPLAIN MATCH P(id = 1), Q(id = 1) {insert}").startswith("These rows are a result")
    pasted = "SELECT P.id FROM ap P JOIN aq Q ON P.id = Q.id AND Q.ts BETWEEN P.ts AND P.ts + 5"
    found = told(session, f"EXPLAIN MATCH P(id = 1), Q(id = 1) {pasted}")
    assert found.startswith("These rows are a result")
    assert (
        told(session, f"EXPLAIN MATCH {pasted}").splitlines()[-1].startswith("Rows are left after all steps")
    )
    late = told(session, f"EXPLAIN MATCH P(id = 2), Q(ts = {START + 15}) {insert}")
    assert "Q came late, by 3: micro-batch 1 read it, and rows more than 2 newer" in late
    unread = told(session, f"EXPLAIN MATCH P(id = 2), Q(ts = {START + 21}) {insert}")
    assert "Q has not been read yet: no micro-batch has its file" in unread
    (tmp_path / "script.sql").write_text(script + insert)
    command = [sys.executable, "-m", "wjoin.cli", "why", str(tmp_path / "script.sql")]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for line in (
        "Q: 5 rows",
        "Q: 4 rows that the query has read",
        "Q: 3 rows in time",
        "Q:   1 row came late",
    ):
        assert line in found
    assert "Rows are left after all steps" not in found


@pytest.mark.long
def test_which_copy_is_dropped_is_not_judged(session: wjoin.Session, tmp_path: Path) -> None:
    for name, rows in {"dp": [(1, 5), (1, 6), (2, 7)], "dq": [(1, 6), (2, 6)]}.items():
        (tmp_path / name).mkdir()
        lines = (json.dumps({"id": number, "at": START + at}) for number, at in rows)
        (tmp_path / name / "0.json").write_text("\n".join(lines))
        session.sql(
            f"""CREATE OR REPLACE STREAM {name} (id BIGINT, at BIGINT, ts AS timestamp_seconds(at),
            WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS) USING json OPTIONS (path '{tmp_path / name}')
            {"DROP DUPLICATES ON (id)" if name == "dp" else ""}"""
        )
    select = "SELECT P.id FROM dp P, dq Q WINDOW (P, Q) = 5 SECONDS WHERE P.id = Q.id"
    unsure = "Not judged: which of 2 rows of P with its id is not dropped."
    assert unsure in told(session, f"EXPLAIN MATCH P(at = {START + 6}), Q(id = 1) {select}")
    assert "Not judged" not in told(session, f"EXPLAIN MATCH P(id = 2), Q(id = 2) {select}")


@pytest.mark.long
def test_rows_that_wait_are_evicted_or_come_from_the_future(session: wjoin.Session, tmp_path: Path) -> None:
    begin = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    session.spark.conf.set("spark.sql.session.timeZone", "UTC")

    def at(seconds: int) -> str:
        return (begin + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(sep=" ")

    def bring(name: str, file: int, *rows: tuple[int, int]) -> None:
        lines = (json.dumps({"id": number, "ts": f"{at(after)}Z"}) for number, after in rows)
        (tmp_path / f".{name}{file}").write_text("\n".join(lines))
        (tmp_path / f".{name}{file}").rename(tmp_path / name / f"{file}.json")

    for name in ("wp", "wq"):
        (tmp_path / name).mkdir()
        session.sql(
            f"""CREATE OR REPLACE STREAM {name} (id BIGINT, ts TIMESTAMP) USING json OPTIONS
            (path '{tmp_path / name}', wjoin.ahead '2 hours') WATERMARK ts DELAY OF INTERVAL 2 SECONDS"""
        )
    session.sql(
        f"""CREATE OR REPLACE SINK waiting_pairs USING parquet
        OPTIONS (path '{tmp_path / "out"}', checkpointLocation '{tmp_path / "kept"}')"""
    )
    insert = """INSERT INTO waiting_pairs SELECT P.id, Q.id AS q FROM wp P LEFT JOIN wq Q ON P.id = Q.id
        WINDOW (P, Q) = 60 SECONDS"""
    bring("wp", 1, (1, 0), (2, 100))
    bring("wq", 1, (9, 50), (3, 86_400))
    session.run_script(insert, once=True)
    waits = told(session, f"EXPLAIN MATCH P(id = 1), Q(id = 1) {insert}")
    assert waits.startswith("No row of Q satisfies id = 1")
    until = f"is not decided until Q's watermark passes {at(60)} (it is at {at(48)})."
    assert f"Whether P has a partner {until}" in waits
    future = told(session, f"EXPLAIN MATCH P(id = 2), Q(id = 3) {insert}")
    assert "Q was dropped as too far in the future by micro-batch 0: it is " in future
    assert "Q may be 2 h" in future
    # It has moved no watermark either: what comes now is in time.
    bring("wq", 2, (2, 100), (9, 200))
    session.run_script(insert, once=True)
    assert "late" not in told(session, f"EXPLAIN MATCH P(id = 2), Q(id = 2) {insert}")
    gone = told(session, f"EXPLAIN MATCH P(id = 1), Q(id = 1) {insert}")
    assert f"P is decided: the watermark of Q, at {at(198)}, passed all that it could meet." in gone


@pytest.mark.long
def test_views_over_streams_tell_what_they_know(session: wjoin.Session, tmp_path: Path) -> None:
    """A view knows the files of its rows, unless it shuffles them; then the watermarks say what they can."""

    def bring(file: int, **rows: list[tuple[int, int]]) -> None:
        for name, own in rows.items():
            lines = (json.dumps({"id": number, "ts": at}) for number, at in own)
            (tmp_path / f".{name}{file}").write_text("\n".join(lines))
            (tmp_path / f".{name}{file}").rename(tmp_path / name / f"{file}.json")

    for name in ("vp", "vq"):
        (tmp_path / name).mkdir()
        session.sql(
            f"""CREATE OR REPLACE STREAM {name} (id BIGINT, ts BIGINT) USING json
            OPTIONS (path '{tmp_path / name}') WATERMARK ts DELAY OF 2"""
        )
    session.sql("CREATE OR REPLACE VIEW plain AS SELECT id, ts AS at FROM vp WHERE id < 8")
    session.sql("CREATE OR REPLACE VIEW shuffled AS SELECT /*+ REPARTITION(2) */ id, ts AS at FROM vp")
    insert = {}
    for view in ("plain", "shuffled"):
        session.sql(
            f"""CREATE OR REPLACE SINK of_{view} USING parquet
            OPTIONS (path '{tmp_path}/out_{view}', checkpointLocation '{tmp_path}/kept_{view}')"""
        )
        join = f"SELECT P.id FROM {view} P, vq Q WINDOW (P, Q) = 5 WHERE P.id = Q.id"
        insert[view] = f"INSERT INTO of_{view} {join}"
    for file, rows in enumerate(
        [{"vp": [(1, 0), (3, 20), (9, 25)], "vq": [(3, 13)]}, {"vp": [(4, 10)], "vq": [(4, 12)]}]
    ):
        bring(file, **rows)
        for each in insert.values():
            session.run_script(each, once=True)
    bring(2, vp=[(6, 60)])
    late = told(session, f"EXPLAIN MATCH P(id = 4), Q(id = 4) {insert['plain']}")
    assert "First thing that fails: P came late, by 8: micro-batch 1 read it" in late
    assert "P came late" in told(session, f"EXPLAIN MATCH P(id = 4), Q(id = 7) {insert['plain']}")
    unread = told(session, f"EXPLAIN MATCH P(id = 6), Q(id = 4) {insert['plain']}")
    assert "P has not been read yet: no micro-batch has its file" in unread
    assert "P is kept" not in unread
    unsure = told(session, f"EXPLAIN MATCH P(id = 4), Q(id = 4) {insert['shuffled']}")
    assert unsure.startswith("These rows are a result:")
    assert "Not judged: whether P came late (nothing tells which micro-batch read it)." in unsure
    unread = told(session, f"EXPLAIN MATCH P(id = 6), Q(id = 4) {insert['shuffled']}")
    assert "P has not been read yet: the query has read none after 25." in unread
    alone = told(session, f"EXPLAIN MATCH P(id = 3), Q(id = 7) {insert['shuffled']}")
    assert "If P was read in time, P is kept until Q's watermark passes 25 (it is at 11)." in alone
    lines = told(session, f"EXPLAIN MATCH {insert['shuffled']}")
    assert "Not judged: which rows of P the query has read, and in time: its source does not tell." in lines


@pytest.mark.long
def test_a_silent_stream_is_not_judged_where_it_may_have_gone_on(
    session: wjoin.Session, tmp_path: Path
) -> None:
    for name, idle in (("ip", ""), ("iq", "IDLE AFTER 1 MILLISECOND")):
        (tmp_path / name).mkdir()
        session.sql(
            f"""CREATE OR REPLACE STREAM {name} (id BIGINT, ts BIGINT) USING json
            OPTIONS (path '{tmp_path / name}') WATERMARK ts DELAY OF 2 {idle}"""
        )
    session.sql(
        f"""CREATE OR REPLACE SINK silent_pairs USING parquet
        OPTIONS (path '{tmp_path / "out"}', checkpointLocation '{tmp_path / "kept"}')"""
    )
    insert = (
        "INSERT INTO silent_pairs SELECT P.id, Q.ts FROM ip P, iq Q WINDOW (P, Q) = 100 WHERE P.id = Q.id"
    )
    brought = [
        {"ip": [(1, 0), (2, 50)], "iq": [(1, 10), (2, 40)]},
        {"ip": [(3, 100)]},
        {"iq": [(2, 60), (3, 99)]},
        {"ip": [(4, 200)], "iq": [(3, 150)]},
    ]
    for file, rows in enumerate(brought):
        for name, own in rows.items():
            lines = (json.dumps({"id": number, "ts": at}) for number, at in own)
            (tmp_path / f".{name}{file}").write_text("\n".join(lines))
            (tmp_path / f".{name}{file}").rename(tmp_path / name / f"{file}.json")
        session.run_script(insert, once=True)
    results = {(row.id, row.ts) for row in session.read.parquet(str(tmp_path / "out")).collect()}
    # Q went on with P to 98, so that its row of 60 was late, which its own rows do not tell.
    assert results == {(1, 10), (2, 40), (3, 99), (3, 150)}
    unsure = "Not judged: whether Q was silent before, and came behind the watermarks of the others."
    for number, at in [(1, 10), (2, 40), (2, 60), (3, 99), (3, 150)]:
        found = told(session, f"EXPLAIN MATCH P(id = {number}), Q(id = {number} AND ts = {at}) {insert}")
        assert found.startswith("These rows are a result:"), found
        assert (unsure in found) == ((number, at) not in results), found
    lines = told(session, f"EXPLAIN MATCH {insert}")
    assert "Not judged: which rows of Q came behind the watermarks of others after it was silent." in lines
