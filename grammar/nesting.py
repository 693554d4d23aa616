"""One statement's tokens with their parentheses paired, and what a place in them can be."""

from collections.abc import Iterator
from typing import NamedTuple

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import Identifier
from wjoin.grammar.tokens import Kind, Token, identifier, is_name

MAXIMAL_DEPTH = 100
"""How deep a statement with a window clause may be: parentheses, CASE and NOT inside each other."""

QUERY_WORDS = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM"})
"""Words with which a query begins."""

_BEFORE_OPERAND = frozenset(
    """
    ALL AND AS ASOF BETWEEN BY CASE CROSS DISTINCT DIV ELSE ESCAPE EXCEPT EXISTS FROM FULL HAVING
    ILIKE IN INNER INTERSECT INTERVAL IS JOIN LATERAL LEFT LIKE LIMIT MINUS NATURAL NOT OFFSET ON OR
    OVER QUALIFY REGEXP RIGHT RLIKE SELECT SEMI ANTI SET THEN UNION USING VALUES WHEN WHERE WITH
    """.split()
)
_JOIN_WORDS = frozenset("JOIN INNER CROSS LEFT RIGHT FULL OUTER NATURAL SEMI ANTI ASOF".split())


class Code(NamedTuple):
    """The tokens of one statement.

    ``partner`` holds for each parenthesis the place of the other one, -1 where there is none
    and for all other tokens; ``depth`` is the deepest nesting. ``streams`` are the names, lower case, of the
    streams whose joins are looked for without a window clause.
    """

    text: str
    tokens: list[Token]
    partner: list[int]
    depth: int
    streams: frozenset[str] = frozenset()

    def word(self, place: int) -> str:
        """Return the upper-case word at a place, empty when there is no word or it is a field."""
        if 0 <= place < len(self.tokens) and not self.is_field(place):
            return self.tokens[place].word
        return ""

    def mark(self, place: int) -> str:
        """Return the text of the token at a place, empty past the end."""
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def kind(self, place: int) -> Kind | None:
        """Return the kind of the token at a place, None past the end."""
        return self.tokens[place].kind if 0 <= place < len(self.tokens) else None

    def is_field(self, place: int) -> bool:
        """Return whether the token is a part of a dotted name after its dot."""
        return place > 0 and self.tokens[place - 1].text == "."

    def span(self, start: int, end: int) -> Span:
        """Return the place in the text of the tokens from ``start`` to before ``end``."""
        if start >= end:
            edge = self.tokens[start - 1].end if start else 0
            return Span(edge, edge)
        return Span(self.tokens[start].start, self.tokens[end - 1].end)

    def after(self, place: int) -> int:
        """Return the next place on the same level: past a closed group, else the next token."""
        if self.partner[place] > place:
            return self.partner[place] + 1
        return place + 1

    def dotted(self, place: int) -> tuple[tuple[Identifier, ...], int]:
        """Return the parts of the name at a place, which dots link, and the place after it."""
        parts: list[Identifier] = []
        while place < len(self.tokens) and is_name(self.tokens[place]):
            parts.append(identifier(self.tokens[place]))
            place += 1
            if self.mark(place) != "." or not is_name(self.tokens[min(place + 1, len(self.tokens) - 1)]):
                break
            place += 1
        return tuple(parts), place

    def names(self, opening: int) -> list[Token]:
        """Return the names listed in the parentheses that open at a place, empty when there is other text."""
        closing = self.partner[opening] if self.mark(opening) == "(" else -1
        inside = self.tokens[opening + 1 : closing] if closing > opening else []
        names, commas = inside[::2], inside[1::2]
        apart = len(inside) % 2 == 1 and all(each.text == "," for each in commas)
        return names if apart and all(map(is_name, names)) else []

    def level(self, start: int, end: int) -> Iterator[int]:
        """Yield the places from ``start`` to before ``end``, the inside of closed groups left out."""
        place = start
        while place < end:
            yield place
            place = self.after(place)

    def ends_operand(self, place: int) -> bool:
        """Return whether an operand or a relation can end with the token at a place.

        Two operands do not follow each other in SQL, so a clause word right after one
        is no operand itself.
        """
        if place < 0:
            return False
        token = self.tokens[place]
        if token.kind is Kind.OPERATOR:
            return token.text in (")", "]", "}", "?")
        if token.kind in (Kind.HINT, Kind.UNCLOSED):
            return False
        return self.is_field(place) or token.word not in _BEFORE_OPERAND

    def join_end(self, place: int) -> int:
        """Return the place after the JOIN of the join words at a place, 0 where there are none."""
        if self.word(place) not in _JOIN_WORDS or not self.ends_operand(place - 1):
            return 0
        for end in range(place, min(place + 5, len(self.tokens))):
            if self.word(end) == "JOIN":
                return end + 1
            if self.word(end) not in _JOIN_WORDS:
                return 0
        return 0

    def first_word(self, place: int) -> str:
        """Return the first word inside the parentheses that open at a place."""
        while self.mark(place) == "(":
            place += 1
        return self.word(place)


def pair(text: str, tokens: list[Token], streams: frozenset[str] = frozenset()) -> Code:
    """Return the tokens of a statement with their parentheses paired."""
    partner = [-1] * len(tokens)
    opened: list[int] = []
    depth = 0
    for place, token in enumerate(tokens):
        if token.text == "(":
            opened.append(place)
            depth = max(depth, len(opened))
        elif token.text == ")" and opened:
            opening = opened.pop()
            partner[opening], partner[place] = place, opening
    return Code(text, tokens, partner, depth, streams)


def too_deep(span: Span) -> WJoinError:
    """Return the error for what stands too deep at a place."""
    return WJoinError("WJ114", f"this is nested inside more than {MAXIMAL_DEPTH} others", span=span)


def refuse_unclosed(code: Code) -> None:
    """Raise WJ111 when a string, name, comment or parenthesis of the statement is not closed."""
    for place, token in enumerate(code.tokens):
        if token.kind is Kind.UNCLOSED:
            what = {"'": "a string", '"': "a string", "`": "a quoted name"}.get(token.text[0], "a comment")
            span = Span(token.start, token.start + (1 if token.text[0] in "'\"`" else 2))
            raise WJoinError("WJ111", f"{what} is not closed", span=span)
        if token.text in ("(", ")") and code.partner[place] < 0:
            what, remedy = ("closed", "write )") if token.text == "(" else ("opened", "remove it, or write (")
            raise WJoinError("WJ111", f"a parenthesis is not {what}", span=token.span, help=remedy)
