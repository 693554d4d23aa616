"""Every form of the window clause in LANGUAGE.md, section 2."""

import pytest

from wjoin.grammar import statement_kinds, syntax
from wjoin.grammar.parser import parse_script, parse_statement
from wjoin.grammar.spans import Span

SECOND = 1_000_000
ANY = Span(0, 0)


def name(text: str) -> syntax.Identifier:
    return syntax.Identifier(text, span=ANY)


def seconds(number: float) -> syntax.TimeDuration:
    return syntax.TimeDuration(int(number * SECOND), span=ANY)


def bare(number: int) -> syntax.BareNumber:
    return syntax.BareNumber(number, span=ANY)


def pair(first: str, second: str, width: syntax.Duration, directed: bool = False) -> syntax.WindowPair:
    return syntax.WindowPair(name(first), name(second), width, directed, span=ANY)


def clause(text: str) -> syntax.WindowCondition:
    statement = parse_statement(f"SELECT * FROM A, B, C {text} WHERE A.x = B.x")
    assert isinstance(statement, statement_kinds.Query)
    (block,) = statement.blocks
    return block.window


def in_row(text: str, width: syntax.Duration, directed: bool = False) -> syntax.WindowPair:
    bound = syntax.InRow(text, span=ANY)
    return syntax.WindowPair(name("A"), name("B"), width, directed, bound, span=ANY)


FORMS = {
    "DWINDOW (A, B) = A.expires - A.ts AT MOST 1 HOUR": in_row("A.expires - A.ts", seconds(3600), True),
    "WINDOW (A, B) = f(A.x, 'AT MOST') at most :w": in_row(
        "f(A.x, 'AT MOST')", syntax.Parameter("w", False, span=ANY)
    ),
    "WINDOW (A, B) = CASE WHEN A.x = 1 AND A.y THEN 5 END AT MOST 9 AND WINDOW = 5": syntax.WindowAnd(
        (
            in_row("CASE WHEN A.x = 1 AND A.y THEN 5 END", bare(9)),
            syntax.WindowAll(bare(5), span=ANY),
        ),
        span=ANY,
    ),
    "WINDOW = 5 SECONDS": syntax.WindowAll(seconds(5), span=ANY),
    "window = 5": syntax.WindowAll(bare(5), span=ANY),
    "WINDOW = :w": syntax.WindowAll(syntax.Parameter("w", False, span=ANY), span=ANY),
    "WINDOW (A, B) = 5 SECONDS": pair("A", "B", seconds(5)),
    "Window (a,b) = 5 seconds": pair("a", "b", seconds(5)),
    "DWINDOW (A, B) = 5 SECONDS": pair("A", "B", seconds(5), directed=True),
    "WINDOW (A, B) BETWEEN -5 SECONDS AND 3 SECONDS": syntax.WindowBetween(
        name("A"), name("B"), seconds(-5), seconds(3), span=ANY
    ),
    "WINDOW (A, B) BETWEEN -:low AND :high": syntax.WindowBetween(
        name("A"),
        name("B"),
        syntax.Parameter("low", True, span=ANY),
        syntax.Parameter("high", False, span=ANY),
        span=ANY,
    ),
    "WINDOW (A, B) BETWEEN 0 AND 3 SECONDS": syntax.WindowBetween(
        name("A"), name("B"), seconds(0), seconds(3), span=ANY
    ),
    "WINDOW (A, B) BETWEEN -4 AND -2": syntax.WindowBetween(
        name("A"), name("B"), bare(-4), bare(-2), span=ANY
    ),
    "WINDOW A = 5 SECONDS": syntax.WindowStream(name("A"), seconds(5), span=ANY),
    "WINDOW A = 12 ROWS": syntax.WindowRows(name("A"), 12, span=ANY),
    "WINDOW since = 2 ROWS PER KEY": syntax.WindowRows(name("since"), 2, syntax.Per.KEY, span=ANY),
    "WINDOW home = 2 ROWS PER HOME": syntax.WindowRows(name("home"), 2, syntax.Per.HOME, span=ANY),
    "WINDOW since SINCE (A.x IN (1, ')') AND WINDOW > 5)": syntax.WindowSince(
        name("since"), "A.x IN (1, ')') AND WINDOW > 5", ANY, span=ANY
    ),
    "PATH (A, B, C) WITHIN (5 SECONDS, 1 MINUTE)": syntax.WindowPath(
        (name("A"), name("B"), name("C")), (seconds(5), seconds(60)), False, span=ANY
    ),
    "PATH (A, B) WITHIN (:w) BIDIRECTIONAL": syntax.WindowPath(
        (name("A"), name("B")), (syntax.Parameter("w", False, span=ANY),), True, span=ANY
    ),
    "WINDOW (`a b`, `c``d`) = 1 DAY": pair("a b", "c`d", seconds(86400)),
    "WINDOW (window, path) = 1": pair("window", "path", bare(1)),
    "WINDOW `window` = 1": syntax.WindowStream(name("window"), bare(1), span=ANY),
    "WINDOW (rows, and) = 1": pair("rows", "and", bare(1)),
    "(WINDOW (A, B) = 1)": pair("A", "B", bare(1)),
}


@pytest.mark.parametrize("text", FORMS)
def test_form(text: str) -> None:
    assert clause(text) == FORMS[text]


def test_and_binds_tighter_than_or() -> None:
    one, two, three = pair("A", "B", bare(1)), pair("B", "C", bare(2)), pair("A", "C", bare(3))
    text = "WINDOW (A, B) = 1 AND WINDOW (B, C) = 2 OR WINDOW (A, C) = 3"
    assert clause(text) == syntax.WindowOr((syntax.WindowAnd((one, two), span=ANY), three), span=ANY)


def test_between_takes_its_own_and() -> None:
    between = syntax.WindowBetween(name("A"), name("B"), bare(1), bare(2), span=ANY)
    text = "WINDOW (A, B) BETWEEN 1 AND 2 AND WINDOW (B, C) = 2"
    assert clause(text) == syntax.WindowAnd((between, pair("B", "C", bare(2))), span=ANY)


def test_parentheses_group() -> None:
    one, two, three = pair("A", "B", bare(1)), pair("B", "C", bare(2)), pair("A", "C", bare(3))
    text = "(WINDOW (A, B) = 1 OR DWINDOW (B, C) = 2) AND WINDOW (A, C) = 3"
    directed = syntax.WindowPair(two.first, two.second, two.width, True, span=ANY)
    assert clause(text) == syntax.WindowAnd((syntax.WindowOr((one, directed), span=ANY), three), span=ANY)
    assert clause(f"(({text}))") == clause(text)


def test_three_terms_are_one_conjunction() -> None:
    condition = clause("WINDOW A = 1 AND WINDOW B = 2 AND WINDOW C = 3")
    assert isinstance(condition, syntax.WindowAnd)
    assert len(condition.terms) == 3


def test_spans_index_the_whole_source() -> None:
    start = "SELECT 1;\n/* é */ SELECT * FROM A, B -- c\n "
    text = start + "(WINDOW (A, `B`) = 250ms OR WINDOW A = -0 s) AND WINDOW = :w"
    query = parse_script(text)[1]
    assert isinstance(query, statement_kinds.Query)
    window = query.blocks[0].window
    assert isinstance(window, syntax.WindowAnd)
    either, every = window.terms
    assert isinstance(either, syntax.WindowOr)
    first, second = either.terms
    assert isinstance(first, syntax.WindowPair)
    assert isinstance(second, syntax.WindowStream)
    assert isinstance(every, syntax.WindowAll)
    assert window.span.of(text) == text[text.index("(WINDOW") :]
    assert query.blocks[0].window_span == window.span
    assert either.span.of(text) == "(WINDOW (A, `B`) = 250ms OR WINDOW A = -0 s)"
    assert first.span.of(text) == "WINDOW (A, `B`) = 250ms"
    assert first.second.span.of(text) == "`B`"
    assert first.width.span.of(text) == "250ms"
    assert second.width.span.of(text) == "-0 s"
    assert every.width.span.of(text) == ":w"


@pytest.mark.parametrize("term", ["DWINDOW (A, B) = A.x - A.ts AT MOST {}", "WINDOW A SINCE (A.x = {})"])
def test_a_thousand_terms_with_raw_text(term: str) -> None:
    found = clause(" AND ".join(term.format(number) for number in range(1000)))
    assert isinstance(found, syntax.WindowAnd)
    assert len({repr(each) for each in found.terms}) == 1000
