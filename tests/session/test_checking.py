"""``wjoin check`` of Spark's statements that have a join: it is planned, and nothing is run."""

from pathlib import Path

import pytest

import wjoin
from wjoin.grammar.parser import parse_statement
from wjoin.statements.checking import check

pytestmark = [pytest.mark.long, pytest.mark.spark]

JOIN = "SELECT A.id FROM {0} A, {0} B WINDOW = 1 SECOND WHERE A.id = B.id"


@pytest.fixture
def declared(session: wjoin.Session, tmp_path: Path) -> wjoin.Session:
    """A stream and a table of the same columns."""
    times = session.range(3).selectExpr("id", "timestamp_seconds(id) AS ts")
    times.write.parquet(str(tmp_path / "in"))
    times.createOrReplaceTempView("checked_rows")
    session.sql(
        f"CREATE STREAM checked (id BIGINT, ts TIMESTAMP) USING parquet OPTIONS (path '{tmp_path / 'in'}') "
        "WATERMARK ts DELAY OF INTERVAL 1 SECOND"
    )
    return session


COMMANDS = [
    ("CREATE TABLE checked_made USING parquet AS {}", "line 1, CREATE TABLE checked_made"),
    ("CREATE TABLE checked_made AS WITH c AS (SELECT 1) {}", "line 1, CREATE TABLE checked_made"),
    ("CREATE MATERIALIZED VIEW checked_made AS {}", "line 1, CREATE MATERIALIZED VIEW"),
]


def told(session: wjoin.Session, text: str) -> str:
    return check(session.context.asked(text, {}), parse_statement(text), None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        *COMMANDS,
        ("MERGE INTO t USING ({}) s ON t.id = s.id WHEN MATCHED THEN DELETE", "line 1, MERGE INTO t"),
    ],
)
def test_a_join_of_tables_in_a_statement_of_sparks(declared: wjoin.Session, text: str, found: str) -> None:
    assert (
        told(declared, text.format(JOIN.format("checked_rows")))
        == f"{found}: good, 1 window join over tables"
    )
    assert not declared.catalog.tableExists("checked_made")


@pytest.mark.parametrize("text", [text for text, _ in COMMANDS])
def test_a_statement_that_keeps_all_rows_of_a_stream_is_refused_as_when_it_runs(
    declared: wjoin.Session, text: str
) -> None:
    written = text.format(JOIN.format("checked"))
    for ask in (told, wjoin.Session.sql):
        with pytest.raises(wjoin.WJoinError, match="all rows of a stream") as refused:
            ask(declared, written)
        assert refused.value.code == "WJ621"
        assert refused.value.span is not None and refused.value.span.of(written) == "WINDOW = 1 SECOND"
    assert not declared.catalog.tableExists("checked_made")
