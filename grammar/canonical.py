"""A piece of SQL as it is whatever its spelling: what a formatter changes is not in it."""

import re
from collections.abc import Iterator, Mapping, Sequence

from wjoin.grammar.tokens import Kind, Token, scan, unquoted

_PLAIN = re.compile(r"[\w$.]+")
_SAME = {"==": "=", "!=": "<>"}
_AMOUNT = re.compile(r"\s*[+-]?\s*(?:\d+\.?\d*|\.\d+)(?:\s*\w+)?(?:\s+[+-]?\s*(?:\d+\.?\d*|\.\d+)\s*\w+)*\s*")


def canonical(text: str, aliases: Mapping[str, str] | None = None) -> str:
    """Return a text that is equal for two spellings of one piece of SQL.

    Blanks, comments, hints, the case of words and names, backticks, AS, and how an interval is written are
    left out. ``aliases``, in lower case, are replaced before a dot. What stands in quotes stays as it is.

    >>> canonical("select O.id AS x from orders AS O WHERE O.t>INTERVAL '20' SECOND", {"o": "$0"})
    'select $0 . id x from orders o where $0 . t > interval 20 second'
    """
    return " ".join(_words(scan(text), aliases or {}))


def _words(tokens: Sequence[Token], aliases: Mapping[str, str]) -> Iterator[str]:
    units = _units(tokens)
    for place, token in enumerate(tokens):
        if token.kind is Kind.HINT or token.word == "AS":
            continue
        if place in units:
            yield from (_unit(each.text) for each in scan(token.text.strip("'\"")))
        elif token.kind in (Kind.WORD, Kind.QUOTED):
            name = unquoted(token.text).lower()
            field = place > 0 and tokens[place - 1].text == "."
            if not field and place + 1 < len(tokens) and tokens[place + 1].text == ".":
                name = aliases.get(name, name)
            yield name if _PLAIN.fullmatch(name) else f"`{name}`"
        else:
            yield _SAME.get(token.text, token.text)


def _units(tokens: Sequence[Token]) -> set[int]:
    """Return the places of what follows INTERVAL: amounts, in quotes or not, and their units."""
    found: set[int] = set()
    for place, token in enumerate(tokens):
        if token.word != "INTERVAL":
            continue
        place += 1
        while place < len(tokens) and _is_amount(tokens[place]):
            found.add(place)
            if place + 1 < len(tokens) and tokens[place + 1].kind is Kind.WORD:
                found.add(place + 1)
                place += 1
            place += 1
    return found


def _is_amount(token: Token) -> bool:
    return token.kind is Kind.NUMBER or (
        token.kind is Kind.STRING and _AMOUNT.fullmatch(token.text[1:-1]) is not None
    )


def _unit(word: str) -> str:
    return word.lower().removesuffix("s") if len(word) > 1 else word.lower()
