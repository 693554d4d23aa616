"""Which relations the FROM lists of an unfinished statement name, and under which aliases."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wjoin.grammar.tokens import Token, is_name, unquoted

_ENDS_FROM = frozenset(
    """
    WHERE GROUP ORDER HAVING LIMIT WINDOW DWINDOW PATH UNION EXCEPT INTERSECT MINUS SORT CLUSTER DISTRIBUTE
    QUALIFY SELECT SET VALUES ON USING
    """.split()
)
_NO_ALIAS = _ENDS_FROM | frozenset(
    "AS JOIN INNER CROSS LEFT RIGHT FULL OUTER NATURAL SEMI ANTI LATERAL WATERMARK TABLESAMPLE PIVOT".split()
)


@dataclass(frozen=True)
class FromItem:
    """A relation of a FROM list: its name there, and its own, which is empty for a subquery.

    ``query`` is what the parentheses of a subquery hold, ``depth`` in how many the relation itself stands.
    """

    alias: str
    relation: str
    query: tuple[Token, ...] = ()
    depth: int = 0


def from_items(tokens: Sequence[Token]) -> tuple[FromItem, ...]:
    """Return the relations that stand in FROM lists, in order, at any depth of a statement."""
    found: list[FromItem] = []
    inside = [False]  # whether each open parenthesis, and the statement itself, is in a FROM list
    opened = [0]  # the place after each open parenthesis
    place = 0
    while place < len(tokens):
        token = tokens[place]
        expects = token.word in ("FROM", "JOIN") or (token.text == "," and inside[-1])
        if token.word in ("FROM", "JOIN"):
            inside[-1] = True
        elif token.word in _ENDS_FROM:
            inside[-1] = False
        elif token.text == "(":
            inside.append(False)
            opened.append(place + 1)
        elif token.text == ")" and len(inside) > 1:
            inside.pop()
            query = tuple(tokens[opened.pop() : place])
            if inside[-1] and (alias := _alias(tokens, place + 1)):
                found.append(FromItem(alias, "", query, len(inside) - 1))
        place += 1
        if expects:
            place, item = _relation(tokens, place)
            found += [replace(item, depth=len(inside) - 1)] if item is not None else []
    return tuple(found)


def _relation(tokens: Sequence[Token], place: int) -> tuple[int, FromItem | None]:
    """Return the place after the relation at a place, and the relation, None where none stands there."""
    if _word(tokens, place) == "STREAM" and place + 1 < len(tokens) and is_name(tokens[place + 1]):
        place += 1
    if place >= len(tokens) or not is_name(tokens[place]) or tokens[place].word in _NO_ALIAS | {"LATERAL"}:
        return place, None
    parts = [tokens[place].text]
    place += 1
    while _text(tokens, place) == "." and place + 1 < len(tokens) and is_name(tokens[place + 1]):
        parts.append(tokens[place + 1].text)
        place += 2
    return place, FromItem(_alias(tokens, place) or unquoted(parts[-1]), ".".join(parts))


def _alias(tokens: Sequence[Token], place: int) -> str:
    """Return the alias of the relation that ends before a place, empty where it has none."""
    if _word(tokens, place) == "WATERMARK":
        place = _after_watermark(tokens, place)
    if _word(tokens, place) == "AS":
        place += 1
    elif _word(tokens, place) in _NO_ALIAS:
        return ""
    return unquoted(tokens[place].text) if place < len(tokens) and is_name(tokens[place]) else ""


def _after_watermark(tokens: Sequence[Token], place: int) -> int:
    """Return the place after WATERMARK column [DELAY OF duration]: AS, or the alias after the last unit."""
    place += 2
    if _word(tokens, place) != "DELAY":
        return place
    place += 2
    while place < len(tokens) and (_word(tokens, place) == "INTERVAL" or not is_name(tokens[place])):
        if tokens[place].text in (",", ")"):
            return place
        number = tokens[place].text[:1].isdigit() or tokens[place].text[:1] in "'\""
        place += 1
        if number and place < len(tokens) and is_name(tokens[place]) and _word(tokens, place) != "AS":
            place += 1  # the unit
    return place


def _word(tokens: Sequence[Token], place: int) -> str:
    return tokens[place].word if place < len(tokens) else ""


def _text(tokens: Sequence[Token], place: int) -> str:
    return tokens[place].text if place < len(tokens) else ""
