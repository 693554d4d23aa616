"""Hints: which are wjoin's, and what Spark is left with when they are cut."""

import pytest

from wjoin.grammar import statement_kinds
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_statement


def hints(comment: str) -> tuple[list[tuple[str, tuple[str, ...]]], str]:
    text = f"SELECT {comment} x FROM A, B WINDOW = 5"
    statement = parse_statement(text)
    assert isinstance(statement, statement_kinds.Query)
    found = statement.blocks[0].hints
    left = text
    for hint in reversed(found):
        left = left[: hint.span.start] + left[hint.span.end :]
    rest = left[len("SELECT ") : left.index(" x FROM")]
    return [(hint.name, hint.arguments) for hint in found], rest


@pytest.mark.parametrize(
    ("comment", "expected", "rest"),
    [
        ("/*+ ALGORITHM(HW) */", [("ALGORITHM", ("HW",))], ""),
        ("/*+ algorithm(mw), Bounds(gca) */", [("ALGORITHM", ("MW",)), ("BOUNDS", ("GCA",))], ""),
        ("/*+ PLAN(PSP, 4) PASSES(HULL) */", [("PLAN", ("PSP", "4")), ("PASSES", ("HULL",))], ""),
        ("/*+ ALGORITHM(HW), BROADCAST(t) */", [("ALGORITHM", ("HW",))], "/*+ BROADCAST(t) */"),
        ("/*+ BROADCAST(t), ALGORITHM(HW) */", [("ALGORITHM", ("HW",))], "/*+ BROADCAST(t) */"),
        (
            "/*+ ALGORITHM(HW), REPARTITION(3, x), BOUNDS(LCA), PLAN(NATIVE) */",
            [("ALGORITHM", ("HW",)), ("BOUNDS", ("LCA",)), ("PLAN", ("NATIVE",))],
            "/*+ REPARTITION(3, x) */",
        ),
        (
            "/*+ MERGE(a), BOUNDS(LCA), SHUFFLE_HASH(b) */",
            [("BOUNDS", ("LCA",))],
            "/*+ MERGE(a), SHUFFLE_HASH(b) */",
        ),
        ("/*+ COALESCE(1) */", [], "/*+ COALESCE(1) */"),
        ("/*+ COALESCE(1) */ /*+ PASSES(UNION) */", [("PASSES", ("UNION",))], "/*+ COALESCE(1) */ "),
        ("/*+ */", [], "/*+ */"),
        ("/*+ (HW), 5 */", [], "/*+ (HW), 5 */"),
        ("", [], ""),
    ],
)
def test_hints(comment: str, expected: list[tuple[str, tuple[str, ...]]], rest: str) -> None:
    assert hints(comment) == (expected, rest)


@pytest.mark.parametrize(
    ("comment", "remedy"),
    [
        ("/*+ ALGORITHM */", "ALGORITHM(HW | MW | NLW | ORDERED | ADAPTIVE)"),
        ("/*+ ALGORITHM() */", "ALGORITHM(HW | MW | NLW | ORDERED | ADAPTIVE)"),
        ("/*+ BOUNDS(EXAKT) */", "did you mean EXACT?"),
        ("/*+ PLAN(PSP, x) */", "whole number"),
        ("/*+ PLAN(NATIVE, 3) */", "PLAN("),
        ("/*+ PASSES(UNION), PASSES(HULL) */", "keep one"),
    ],
)
def test_bad_hint(comment: str, remedy: str) -> None:
    with pytest.raises(WJoinError) as caught:
        hints(comment)
    assert caught.value.code == "WJ112"
    assert remedy in caught.value.help
