"""What is typed: when it is complete, what it lacks, its colours, and the commands."""

import pytest
from prompt_toolkit.document import Document
from prompt_toolkit.lexers import PygmentsLexer

from wjoin.grammar.errors import WJoinError
from wjoin.shell.commands import EXAMPLES, NAMES, Command, example, help_text, read_command
from wjoin.shell.lexer import StatementLexer
from wjoin.shell.paint import Paint
from wjoin.shell.prompt import is_complete, missing


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT 1", False),
        ("SELECT 1; SELECT 2", False),
        ("SELECT ';", False),
        ("SELECT 1; /* ;", False),
        ("-- nothing", True),
        ("BEGIN SELECT 1; SELECT 2;", False),
        ("BEGIN SELECT 1; SELECT 2; END;", True),
        (".help", True),
        ("quit", True),
        ("exit;", True),
        ("quit_time", False),
    ],
)
def test_when_it_is_complete(text, complete):
    assert is_complete(text) is complete


def test_what_it_lacks():
    assert missing("SELECT 1") == ""
    assert missing("SELECT 1\n") == "; ends the statement"
    assert missing("SELECT 'a\n") == "a string is not closed"
    assert missing("SELECT `a\n") == "a name is not closed"
    assert missing("SELECT 1 /* a\n") == "a comment is not closed"
    assert missing("SELECT\n1;") == ""


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (".help", Command(".help", "")),
        (" .READ  'x y.sql' ", Command(".read", "'x y.sql'")),
        (".rows 5;", Command(".rows", "5")),
        ("QUIT;", Command(".quit", "")),
        (".exit", Command(".quit", "")),
        ("help", Command(".help", "")),
        ("SELECT 1;", None),
        ("", None),
    ],
)
def test_commands(text, command):
    assert read_command(text) == command


def test_an_unknown_command_names_the_nearest():
    with pytest.raises(WJoinError, match=r"there is no command \.hepl") as caught:
        read_command(".hepl")
    assert caught.value.help == "did you mean .help?"


def test_help_names_all_commands_and_examples_are_there():
    assert all(f"  {name} " in help_text(keys=False) for name in NAMES)
    for name in EXAMPLES:
        assert example(Command(".example", name)).startswith("-- ")
    with pytest.raises(WJoinError, match=r"\.example takes join\|stream\|query"):
        example(Command(".example", "other"))


def test_keywords_of_spark_and_of_wjoin_have_a_colour():
    text = "SELECT count(*), 'x', 1.5 FROM s -- z\nDWINDOW (A, B) = 5 SECONDS WHERE \"un"
    lines = PygmentsLexer(StatementLexer).lex_document(Document(text))
    styles = {piece: style for number in range(2) for style, piece in lines(number)}
    assert ["".join(piece for _, piece in lines(number)) for number in range(2)] == text.splitlines()
    assert styles["SELECT"] == styles["DWINDOW"] == "class:pygments.keyword"
    assert styles["'x'"].startswith("class:pygments.literal.string")
    assert styles["-- z"].startswith("class:pygments.comment")
    assert lines(5) == []


def test_an_error_has_its_colours_only_where_they_are_wanted():
    text = "error[WJ101]: no\n --> <sql>:1:1\n  |\n1 | x\n  | ^\nhelp: write y"
    assert Paint(False).diagnostic(text) == text
    shown = Paint(True).diagnostic(text)
    assert "\x1b[31;1merror[WJ101]\x1b[0m" in shown
    assert "  | \x1b[31;1m^\x1b[0m" in shown
