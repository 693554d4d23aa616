"""The first line of a cell: options, and what follows them."""

import pytest

from wjoin.grammar.errors import WJoinError
from wjoin.notebook.options import USAGE, Options, read_options


@pytest.mark.parametrize(
    ("line", "options", "rest"),
    [
        ("", Options(), ""),
        ("--once", Options(once=True), ""),
        ("SELECT 1 -- words", Options(), "SELECT 1 -- words"),
        ("SELECT -1", Options(), "SELECT -1"),
        ("--limit 5 SELECT 1", Options(limit=5), "SELECT 1"),
        ("--checkpoint 'a b' --trigger=\"10 s\" x", Options(checkpoint="a b", trigger="10 s"), "x"),
        ("df << SELECT 1", Options(keep="df", show=False), "SELECT 1"),
        ("--once df <<", Options(once=True, keep="df", show=False), ""),
        ("df << --once", Options(once=True, keep="df", show=False), ""),
        ("df << --once --limit 5 SELECT 1", Options(once=True, limit=5, keep="df", show=False), "SELECT 1"),
        ("df << a << 2", Options(keep="df", show=False), "a << 2"),
        ("-o df SELECT 1", Options(keep="df"), "SELECT 1"),
        ("--background --restart", Options(background=True, restart=True), ""),
        ("SELECT a << 2", Options(), "SELECT a << 2"),
    ],
)
def test_options(line: str, options: Options, rest: str) -> None:
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
    for name in Options.__dataclass_fields__:
        assert {"keep": "-o NAME", "show": "NAME <<"}.get(name, f"--{name}") in USAGE
