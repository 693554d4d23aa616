"""The first line of a cell: options, and what follows them."""

import pytest

from wjoin.grammar.errors import WJoinError
from wjoin.notebook.cell_options import USAGE, CellOptions, read_options


@pytest.mark.parametrize(
    ("line", "options", "rest"),
    [
        ("", CellOptions(), ""),
        ("--once", CellOptions(once=True), ""),
        ("SELECT 1 -- words", CellOptions(), "SELECT 1 -- words"),
        ("SELECT -1", CellOptions(), "SELECT -1"),
        ("--limit 5 SELECT 1", CellOptions(limit=5), "SELECT 1"),
        ("--checkpoint 'a b' --trigger=\"10 s\" x", CellOptions(checkpoint="a b", trigger="10 s"), "x"),
        ("df << SELECT 1", CellOptions(keep="df", show=False), "SELECT 1"),
        ("--once df <<", CellOptions(once=True, keep="df", show=False), ""),
        ("df << --once", CellOptions(once=True, keep="df", show=False), ""),
        (
            "df << --once --limit 5 SELECT 1",
            CellOptions(once=True, limit=5, keep="df", show=False),
            "SELECT 1",
        ),
        ("df << a << 2", CellOptions(keep="df", show=False), "a << 2"),
        ("-o df SELECT 1", CellOptions(keep="df"), "SELECT 1"),
        ("--background --restart", CellOptions(background=True, restart=True), ""),
        ("SELECT a << 2", CellOptions(), "SELECT a << 2"),
    ],
)
def test_options(line: str, options: CellOptions, rest: str) -> None:
    assert read_options(line) == (options, rest)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--limi 3", "did you mean --limit?"),
        ("--limit", "--limit has no value"),
        ("--limit 0 SELECT 1", "--limit is 0"),
        ("-o 1a", "1a is not a variable name"),
        ("-x", "%wjoin has no option -x"),
    ],
)
def test_what_is_no_option(line: str, said: str) -> None:
    with pytest.raises(WJoinError, match="WJ603") as raised:
        read_options(line)
    assert said in str(raised.value)


def test_the_usage_names_every_option() -> None:
    for name in CellOptions.__dataclass_fields__:
        assert {"keep": "-o NAME", "show": "NAME <<"}.get(name, f"--{name}") in USAGE
