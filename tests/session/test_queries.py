"""SHOW QUERIES, DESCRIBE QUERY and STOP QUERY."""

import time
from pathlib import Path

import pytest

import wjoin
from tests.session.two_streams import declare_two_streams
from wjoin.grammar.errors import WJoinError

PAIRS = "SELECT A.id FROM a A, b B WINDOW (A, B) = '1 second' WHERE A.id = B.id"


@pytest.fixture
def declared(session: wjoin.Session, tmp_path: Path) -> wjoin.Session:
    """A session with two streams of the same ten rows, a quarter of a second apart, and a sink."""
    declare_two_streams(session, tmp_path)
    session.sql("CREATE SINK nothing USING noop")
    session.sql(f"SET wjoin.checkpoint = {tmp_path}/checkpoints")
    return session


def described(session: wjoin.Session, name: str) -> dict[str, str]:
    return dict(session.sql(f"DESCRIBE QUERY {name}").collect())


def started(session: wjoin.Session) -> str:
    """Start a query, and return its name once it has done its first micro-batch."""
    (row,) = session.sql(f"INSERT INTO nothing {PAIRS}").collect()
    session.queries[-1].processAllAvailable()
    deadline = time.monotonic() + 60
    while not session.running[-1].totals.known:
        session.running[-1].followed.look()
        assert time.monotonic() < deadline, "Spark reports the micro-batch"
    return str(row["sink"])


def test_queries_are_shown_described_and_stopped(declared: wjoin.Session, tmp_path: Path) -> None:
    assert declared.sql("SHOW QUERIES").collect() == []
    name = started(declared)
    (shown,) = declared.sql("SHOW QUERIES").collect()
    assert (shown["name"], shown["batch"], shown["rows_in"], shown["matches"]) == (name, 0, 20, 10)
    assert shown["state"] in ("running", "idle")
    told = described(declared, "Nothing")
    assert told["statement"] == f"INSERT INTO nothing {PAIRS}"
    assert told["checkpoint"] == f"{tmp_path}/checkpoints/nothing"
    assert told["watermark of A"] == "2023-11-14 22:12:29"
    assert told["plan"] and float(told["lag of A"].split()[0].replace(",", "")) > 1e6
    assert "20 rows in (A 10, B 10), 10 results of the join" in told["done"]
    (stopped,) = declared.sql(f"STOP QUERY {name}").collect()
    assert stopped["query"] == name and "10 results of the join" in stopped["done"]
    assert not declared.queries[0].isActive
    assert [row["state"] for row in declared.sql("SHOW QUERIES").collect()] == ["stopped"]
    assert described(declared, name)["state"] == "stopped"


@pytest.mark.thorough
def test_two_queries_into_a_sink_have_names_of_their_own(declared: wjoin.Session) -> None:
    assert [started(declared), started(declared)] == ["nothing", "nothing_2"]
    declared.sql("STOP QUERY nothing_2")
    assert [query.isActive for query in declared.queries] == [True, False]
    declared.sql("STOP QUERY nothing")
    assert started(declared) == "nothing", "the name is free again"
    declared.sql("STOP QUERY nothing")
    assert [row["state"] for row in declared.sql("SHOW QUERIES").collect()] == ["stopped"] * 3


@pytest.mark.long
def test_a_query_that_there_is_not_has_an_error_at_its_name(declared: wjoin.Session) -> None:
    with pytest.raises(WJoinError) as none:
        declared.sql("STOP QUERY nothing")
    assert "error[WJ602]: there is no query nothing" in str(none.value)
    started(declared)
    with pytest.raises(WJoinError) as near:
        declared.sql("DESCRIBE QUERY nothng")
    assert "did you mean nothing?" in str(near.value)
    declared.sql("STOP QUERY nothing")


def test_a_failed_query_tells_its_error(declared: wjoin.Session, tmp_path: Path) -> None:
    (tmp_path / "a" / "more.json").write_text("")
    declared.sql(f"INSERT INTO nothing {PAIRS.replace('A.id FROM', 'assert_true(A.id < 5) FROM')}")
    declared.queries[-1].exception()
    deadline = time.monotonic() + 60
    while declared.queries[-1].isActive and time.monotonic() < deadline:
        time.sleep(0.2)
    told = described(declared, "nothing")
    assert told["state"] == "failed"
    assert "error[WJ704]" in told["error"]
    assert "STOP QUERY" not in told["error"]


def test_describe_query_of_a_select_is_sparks(declared: wjoin.Session) -> None:
    assert [row["col_name"] for row in declared.sql("DESCRIBE QUERY SELECT 1 AS one").collect()] == ["one"]
