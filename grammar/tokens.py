"""Spark SQL text to tokens with their places; blanks and comments are left out."""

import re
from enum import Enum
from typing import NamedTuple

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import Identifier


class Kind(Enum):
    """What a token is."""

    WORD = "a word"
    QUOTED = "a quoted name"
    STRING = "a string"
    NUMBER = "a number"
    PARAMETER = "a parameter"
    OPERATOR = "an operator"
    HINT = "a hint"
    UNCLOSED = "an unclosed piece"


class Token(NamedTuple):
    """A piece of the source. ``word`` is the upper-case text of a WORD, else empty."""

    kind: Kind
    text: str
    start: int
    end: int
    word: str

    @property
    def span(self) -> Span:
        """The token's place in the source."""
        return Span(self.start, self.end)


_TOKEN = re.compile(
    r"""
    (?P<blank>(?:\s+|--(?:\\\n|[^\n])*)+)
  | (?P<HINT>/\*\+.*?\*/)
  | (?P<comment>/\*(?!\+))
  | (?P<STRING>(?:[rRxX](?=['"]))?(?:'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"))
  | (?P<dollar>\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)
  | (?P<QUOTED>`(?:[^`]|``)*`)
  | (?P<NUMBER>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYFD])?(?!\w))
  | (?P<WORD>\w+)
  | (?P<double>::)
  | (?P<PARAMETER>:[A-Za-z_]\w*)
  | (?P<UNCLOSED>['"`]|/\*)
  | (?P<OPERATOR><=>|<=|>=|<>|!=|==|=>|->|\|\||\|>|.)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
HALF_PAIR = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which no text in UTF-8 has."""

_RAW_STRING = re.compile(r"""[rR](?:'[^']*'|"[^"]*")""")
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_KINDS = {kind.name: kind for kind in Kind} | {"double": Kind.OPERATOR, "dollar": Kind.STRING}


def scan(text: str) -> list[Token]:
    """Return the tokens of ``text``.

    Never raises: a string, quoted name or comment that is not closed gives one UNCLOSED
    token that reaches to the end.
    """
    tokens: list[Token] = []
    place, match_at, kinds = 0, _TOKEN.match, _KINDS
    while place < len(text):
        found = match_at(text, place)
        if found is None or found.lastgroup is None:
            raise AssertionError(f"no token matches at {place}")
        group, end = found.lastgroup, found.end()
        if group == "comment":
            end = _comment_end(text, place)
            if end < 0:
                tokens.append(Token(Kind.UNCLOSED, text[place:], place, len(text), ""))
                break
        elif group == "UNCLOSED":
            tokens.append(Token(Kind.UNCLOSED, text[place:], place, len(text), ""))
            break
        elif group != "blank":
            if group in ("STRING", "WORD") and (raw := _RAW_STRING.match(text, place)):
                group, end = "STRING", raw.end()
            piece = text[place:end]
            tokens.append(Token(kinds[group], piece, place, end, piece.upper() if group == "WORD" else ""))
        place = end
    return tokens


def first_word(text: str) -> str:
    """Return the first word of a statement, upper case, inside parentheses as well.

    >>> first_word("((select 1))"), first_word("'x'")
    ('SELECT', '')
    """
    return next((token.word for token in scan(text) if token.text != "("), "")


def scan_piece(text: str, span: Span) -> list[Token]:
    """Return the tokens of a piece of ``text``, with their places in the whole."""
    return [
        token._replace(start=token.start + span.start, end=token.end + span.start)
        for token in scan(span.of(text))
    ]


def _comment_end(text: str, start: int) -> int:
    """Return where the bracketed comment at ``start`` ends, -1 when it does not; comments nest."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += -1 if edge.group() == "*/" else 1
        if depth == 0:
            return edge.end()
    return -1


def is_name(token: Token) -> bool:
    """Return whether a token can be a name: a word that does not start with a digit, or a quoted name."""
    return token.kind is Kind.QUOTED or (token.kind is Kind.WORD and not token.text[0].isdigit())


def unquoted(text: str) -> str:
    """Return the name that ``text`` spells, backticks removed."""
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def names_in(text: str) -> set[str]:
    """Return every word and quoted name of a piece of SQL, in lower case."""
    return {unquoted(each.text).lower() for each in scan(text) if each.kind in (Kind.WORD, Kind.QUOTED)}


def identifier(token: Token) -> Identifier:
    """Return the name that a token spells, quotes removed."""
    return Identifier(unquoted(token.text), span=token.span)


_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)


def string_value(text: str, span: Span) -> str:
    """Return the characters that a string literal stands for, escapes read as Spark reads them.

    Raises WJ106 for an escape that names no character.
    """
    if text[0] == "$":
        tag = text.index("$", 1) + 1
        return text[tag:-tag]
    if text[0] in "rR":
        return text[2:-1]

    def character(found: re.Match[str]) -> str:
        short, long, octal, other = found.groups()
        if octal:
            return chr(int(octal, 8))
        if short or long:
            code = int(short or long, 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise WJoinError("WJ106", f"the escape {found.group()} is no character", span=span)
            return chr(code)
        return _ESCAPES.get(other, other)

    return _ESCAPE.sub(character, _undouble(text))


def _undouble(text: str) -> str:
    quote = text[0]
    return re.sub(rf"(\\.)|{quote}{quote}", lambda found: found[1] or quote, text[1:-1], flags=re.DOTALL)
