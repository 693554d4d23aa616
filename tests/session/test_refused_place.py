"""What Spark refuses is marked where it is, and a word is named that nearly is one of wjoin's."""

from pathlib import Path

import pytest
from pyspark.errors import ParseException

import wjoin
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.spark.spark_failures import failure

FROM = "FROM range(1) A, range(1) B"


LONG = "9" * 400
ROWS = "(SELECT id, now() AS ts FROM range(2))"
JOIN = f"SELECT A.id, {{}} FROM {ROWS} A, {ROWS} B "
WHERE = "WINDOW (A, B) = 5 SECONDS WHERE A.id = B.id AND {}"


LITERALS = [
    (LONG, LONG),
    (f"-{LONG}.5", f"{LONG}.5"),
    ("1e400", "1e400"),
    ("128Y", "128Y"),
    (f"{LONG}L", f"{LONG}L"),
    ("9" * 39 + "BD", "9" * 39 + "BD"),
    (f"INTERVAL '{LONG}' SECOND", f"'{LONG}'"),
    (f"INTERVAL {LONG} YEARS", LONG),
    ("TIMESTAMP '9999999-01-01'", "'9999999-01-01'"),
]


@pytest.mark.parametrize(("literal", "marked"), tiers(LITERALS, long=LITERALS[2:]))
def test_a_literal_that_no_type_holds_is_marked(
    session: wjoin.Session, tmp_path: Path, literal: str, marked: str
) -> None:
    for statement in (
        f"SELECT {literal} AS x",
        JOIN.format(literal) + WHERE.format("true"),
        JOIN.format("1") + WHERE.format(f"A.id + B.id < {literal}"),
        JOIN.format("1") + WHERE.format(f"A.id < {literal}"),
    ):
        with pytest.raises(WJoinError) as refused:
            session.run_script(statement)
        error = refused.value
        assert (error.code, error.help) == ("WJ607", "write a value that its type holds"), statement
        assert error.span is not None and error.span.of(statement) == marked
    for statement in (
        JOIN.format("1").replace("SELECT id,", f"SELECT {literal} AS x, id,") + WHERE.format("true"),
        JOIN.format("1") + WHERE.format("true").replace("A.id =", f"A.id + {literal} ="),
    ):
        with pytest.raises(WJoinError) as refused:
            session.sql(statement)
        assert refused.value.code == "WJ607" and refused.value.span is not None
    with pytest.raises(WJoinError, match="the column y cannot be computed") as refused:
        session.sql(f"CREATE STREAM q (id INT, y AS id + {literal}) USING json OPTIONS (path '{tmp_path}')")
    assert refused.value.code == "WJ216"


@pytest.mark.parametrize(
    ("statement", "marked", "remedy"),
    [
        (f"SELECT 1 {FROM} WINDW (A, B) = 5 SECONDS", "WINDW", "did you mean WINDOW?"),
        (f"SELECT 1 {FROM}\nWIDNOW = 5 SECONDS", "WIDNOW", "did you mean WINDOW?"),
        (f"SELECT 1 {FROM} DWINDWO (A, B) = 5 SECONDS", "DWINDWO", "did you mean DWINDOW?"),
        ("CREATE STREM r USING rate", "STREM", "did you mean STREAM?"),
        ("SHOW STREAM", "STREAM", "did you mean STREAMS?"),
        ("SHOW QUERYS", "QUERYS", "did you mean QUERIES?"),
        ("SELECT 1 FROM range(1) a WHERE WHERE id = 1 ORDER", "id", None),
        ("SELECT\n  nothing\nFROM range(1)", "nothing", None),
        ("SELECT * FROM nothing_there", "nothing_there", None),
    ],
)
def test_a_refused_statement_is_marked_where_spark_says(
    session: wjoin.Session, statement: str, marked: str, remedy: str | None
) -> None:
    script = f"SELECT 1;\n  {statement};\nSELECT 2"
    with pytest.raises(WJoinError) as refused:
        session.run_script(script)
    error = refused.value
    assert (error.code, error.text) == ("WJ607", script)
    assert error.span is not None
    assert error.span.of(script) == marked
    assert ("did you mean" in error.help) == (remedy is not None)
    assert remedy is None or error.help == remedy


def test_so_is_what_stands_behind_explain(session: wjoin.Session) -> None:
    statement = f"SELECT 1 {FROM} WINDW = 5 SECONDS"
    with pytest.raises(WJoinError) as refused:
        session.explain(statement)
    error = refused.value
    assert error.span is not None
    assert (error.span.of(statement), error.help) == ("WINDW", "did you mean WINDOW?")


def test_a_place_in_another_text_than_the_user_s_is_not_taken() -> None:
    said = "[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'. SQLSTATE: 42601 (line 3, pos 7)"
    text = "SELECT 1; SELECT y"
    error = failure(ParseException(said), Span(10, 18), text)
    assert (error.code, error.span) == ("WJ607", Span(10, 18))
