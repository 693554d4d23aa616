"""Names of streams, sinks and columns, and values of rows: what acts on a terminal does nothing there."""

import pytest

import wjoin
from wjoin.commands.printed import print_rows
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_script
from wjoin.sources.catalog import check_name

ACTING = ["a\x1b[2J", "a\nb", "a\r", "\u202ea", "a\ud800", "a\x85", "a\u2028b", "\x7f"]


@pytest.mark.parametrize("name", [*ACTING, "", "x" * 201, "é" * 101])
@pytest.mark.parametrize("kind", ["stream", "sink"])
def test_a_name_that_cannot_be_shown_is_refused(kind: str, name: str):
    with pytest.raises(WJoinError, match="WJ106") as refused:
        check_name(kind, name)
    assert all(line.isprintable() for line in str(refused.value).split("\n"))


@pytest.mark.parametrize("name", ["..", ".", "../../home", "a/b", "/etc", "a\\b"])
def test_the_name_of_a_sink_leads_to_no_other_folder(name: str):
    with pytest.raises(WJoinError, match="WJ106"):
        check_name("sink", name)
    check_name("stream", name)


@pytest.mark.parametrize(
    "name", ["a b", "naïve", "流れ", "‌می‌خواهم", "a-b.c", "👩‍💻", "[/red]", "<b>", "x" * 200]
)
def test_names_of_all_languages_are_names(name: str):
    check_name("sink" if "/" not in name else "stream", name)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize(
    "text",
    ["SELECT '\udc80'", "SELECT 1; SELECT 1 AS \ud800", "SELECT * FROM a\ud800 A, b B WINDOW = 5 SECONDS"],
)
def test_half_a_surrogate_pair_in_a_text_is_refused(text: str):
    with pytest.raises(WJoinError, match="WJ115") as refused:
        parse_script(text)
    assert all(line.isprintable() for line in str(refused.value).split("\n"))


def test_statements_and_printed_rows(session: wjoin.Session, capsys: pytest.CaptureFixture[str]):
    for name in ACTING:
        for statement in (
            f"CREATE STREAM `{name}` USING rate",
            f"CREATE SINK `{name}` USING noop",
        ):
            with pytest.raises(WJoinError, match="WJ115" if "\ud800" in name else "WJ106") as refused:
                session.sql(statement)
            assert all(line.isprintable() for line in str(refused.value).split("\n"))
        with pytest.raises(WJoinError, match="WJ106"):
            session.stream(name, session.spark.range(1))
    # Spark's own columns may have such names.
    frame = session.sql("SELECT '\\u001b[2J\\u202eboo' AS `a\x1b[31m`")
    print_rows(frame, 5)
    for view in "ab":
        columns = "1 AS `k\x1b[31m`, TIMESTAMP '2024-05-01 12:00:00' AS ts"
        session.sql(f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT {columns}")
    join = "FROM a A, b B WINDOW = 5 SECONDS WHERE A.`k\x1b[31m` = B.`k\x1b[31m`"
    explained = session.explain(f"SELECT A.`k\x1b[31m` {join}")
    assert "k\\x1b[31m" in explained
    assert "\x1b" not in explained.rendered("html") + explained.rendered("json")
    shown = capsys.readouterr().out + str(explained)
    assert "\\x1b[2J\\u202eboo" in shown
    assert "\x1b" not in shown and "\u202e" not in shown
