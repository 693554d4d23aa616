"""The scanner: kinds and places of tokens."""

import pytest

from wjoin.grammar.tokens import Kind, scan


def pieces(text: str) -> list[str]:
    return [token.text for token in scan(text)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("'a'", Kind.STRING),
        ("'it''s'", Kind.STRING),
        (r"'it\'s'", Kind.STRING),
        (r"'\\'", Kind.STRING),
        ('"a""b"', Kind.STRING),
        ("'a\nb'", Kind.STRING),
        ("r'\\'", Kind.STRING),
        ('R"\\"', Kind.STRING),
        ("x'1F'", Kind.STRING),
        ("$$ it's $$", Kind.STRING),
        ("$tag$ $$ ' $tag$", Kind.STRING),
        ("`a``b`", Kind.QUOTED),
        ("`a\\`", Kind.QUOTED),
        ("word", Kind.WORD),
        ("é_1", Kind.WORD),
        ("5days", Kind.WORD),
        ("5", Kind.NUMBER),
        ("5L", Kind.NUMBER),
        ("1.5e-3BD", Kind.NUMBER),
        (".5", Kind.NUMBER),
        ("5.", Kind.NUMBER),
        (":w", Kind.PARAMETER),
        ("::", Kind.OPERATOR),
        ("<=>", Kind.OPERATOR),
        ("/*+ BROADCAST(a) */", Kind.HINT),
        ("'open", Kind.UNCLOSED),
        ('"open', Kind.UNCLOSED),
        ("`open", Kind.UNCLOSED),
        ("/* open", Kind.UNCLOSED),
        ("/*+ open", Kind.UNCLOSED),
        ("/* /* */", Kind.UNCLOSED),
    ],
)
def test_one_token(text: str, kind: Kind) -> None:
    (token,) = scan(text)
    assert (token.kind, token.text, token.start, token.end) == (kind, text, 0, len(text))
    before, (between,) = scan("a"), scan(f"  {text}")
    assert before[0].word == "A"
    assert between.span.start == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a -- b\nc", ["a", "c"]),
        ("a -- b \\\n c\nd", ["a", "d"]),
        ("a /* b /* c */ d */ e", ["a", "e"]),
        ("a --", ["a"]),
        ("a.b::int", ["a", ".", "b", "::", "int"]),
        ("x'1'r'2'", ["x'1'", "r'2'"]),
        ("'a' 'b'", ["'a'", "'b'"]),
        ("bar'x'", ["bar", "'x'"]),
        ("a-5", ["a", "-", "5"]),
        ("{df}", ["{", "df", "}"]),
        ("-:w", ["-", ":w"]),
        ("", []),
    ],
)
def test_sequence(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected
