"""The colours of statements while they are typed, from the tokens of the grammar."""

from collections.abc import Callable
from itertools import zip_longest

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer

from wjoin.grammar.durations import UNITS
from wjoin.grammar.tokens import Kind, Token, scan
from wjoin.shell.words import CLAUSES, KEYWORDS

_LONGEST = 50_000
"""Signs of a text that is coloured: each key that is pressed scans it anew."""

_KINDS = {
    Kind.QUOTED: "class:name",
    Kind.STRING: "class:string",
    Kind.NUMBER: "class:number",
    Kind.PARAMETER: "class:parameter",
    Kind.HINT: "class:hint",
    Kind.OPERATOR: "",
}


class StatementLexer(Lexer):
    """Colours keywords, wjoin's clauses, strings, numbers, hints, comments, and what is not closed."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """Return a function from the number of a line to its coloured pieces."""
        text = document.text
        if len(text) > _LONGEST or text.startswith("."):
            return lambda number: [("", document.lines[number])]
        lines = _lines(coloured(text))
        return lambda number: lines[number] if number < len(lines) else []


def coloured(text: str) -> list[tuple[str, str]]:
    """Return the pieces of a text with their styles; together they are the text.

    >>> coloured("SELECT 'x' -- y")
    [('class:keyword', 'SELECT'), ('', ' '), ('class:string', "'x'"), ('', ' '), ('class:comment', '-- y')]
    """
    pieces: list[tuple[str, str]] = []
    place = 0
    tokens = scan(text)
    for token, following in zip_longest(tokens, tokens[1:]):
        pieces += _between(text[place : token.start])
        pieces.append((_style(token, following), token.text))
        place = token.end
    return pieces + _between(text[place:])


def _between(text: str) -> list[tuple[str, str]]:
    """Return the blanks and comments between two tokens."""
    begin = len(text) - len(text.lstrip())
    comment = text[begin:]
    return [piece for piece in (("", text[:begin]), ("class:comment", comment)) if piece[1]]


def _style(token: Token, following: Token | None) -> str:
    if token.kind is Kind.UNCLOSED:
        hint = token.text.startswith("/*+")
        return "class:hint" if hint else "class:comment" if token.text.startswith("/*") else "class:string"
    if token.kind is not Kind.WORD:
        return _KINDS[token.kind]
    if token.word in CLAUSES:
        return "class:clause"
    if token.word in KEYWORDS:
        return "class:keyword"
    if token.word in UNITS and len(token.word) > 2:
        return "class:unit"
    return "class:function" if following is not None and following.text == "(" else ""


def _lines(pieces: list[tuple[str, str]]) -> list[StyleAndTextTuples]:
    """Return pieces line by line."""
    lines: list[StyleAndTextTuples] = [[]]
    for style, text in pieces:
        parts = text.split("\n")
        lines[-1].append((style, parts[0]))
        lines += [[(style, part)] for part in parts[1:]]
    return lines
