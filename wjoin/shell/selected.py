"""The columns of a subquery, as its SELECT list names them."""

from collections.abc import Callable, Iterator, Sequence

from wjoin.grammar.tokens import Kind, Token, is_name, unquoted
from wjoin.shell.from_items import FromItem, from_items

Columns = Callable[[str], Sequence[tuple[str, str]]]
"""Finds the columns of a relation: names and types."""

UNTYPED = "column"
"""What is said of a column whose type only Spark knows."""

_ENDS_LIST = frozenset("FROM UNION EXCEPT INTERSECT MINUS WHERE LIMIT ORDER".split())
_BEFORE_ITEM = frozenset({"DISTINCT", "ALL"})


def columns_of(item: FromItem, columns: Columns) -> list[tuple[str, str]]:
    """Return the columns of a relation of a FROM list; of a subquery those that can be told from its text."""
    return list(_selected(item.query, columns)) if item.query else list(columns(item.relation))


def _selected(query: Sequence[Token], columns: Columns) -> Iterator[tuple[str, str]]:
    items = [each for each in from_items(query) if each.depth == 0]
    for part in _parts(query):
        if part[-1].text == "*":
            of = unquoted(part[0].text).lower() if len(part) > 1 else None
            for item in items:
                if of is None or item.alias.lower() == of:
                    yield from columns_of(item, columns)
        elif (name := _name(part)) is not None:
            yield name, _type(part, items, columns)


def _parts(query: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the items of the first SELECT list."""
    start = next((place for place, token in enumerate(query) if token.word == "SELECT"), len(query))
    part: list[Token] = []
    depth = 0
    for token in query[start + 1 :]:
        depth += (token.text in "([{") - (token.text in ")]}")
        if depth == 0 and token.word in _ENDS_LIST:
            break
        if depth == 0 and token.text == ",":
            yield from [part] if part else []
            part = []
        elif token.kind is not Kind.HINT and (part or token.word not in _BEFORE_ITEM):
            part.append(token)
    yield from [part] if part else []


def _name(part: Sequence[Token]) -> str | None:
    """Return the name of an item: its alias, or that of its column; None for an expression without one."""
    last, before = part[-1], part[-2] if len(part) > 1 else None
    if not is_name(last) or last.word in ("END", "NULL"):
        return None
    named = before is None or before.word == "AS" or before.text in (".", ")", "]")
    if named or (before is not None and (is_name(before) or before.kind in (Kind.NUMBER, Kind.STRING))):
        return unquoted(last.text)
    return None


def _type(part: Sequence[Token], items: Sequence[FromItem], columns: Columns) -> str:
    """Return the type of an item that is a column, with or without an alias."""
    path = list(part)
    if len(path) > 1 and path[-2].text != ".":
        path = path[:-2] if path[-2].word == "AS" else path[:-1]
    if [token.text for token in path[1:-1]] not in ([], ["."]) or not path or not is_name(path[-1]):
        return UNTYPED
    of, name = unquoted(path[0].text).lower() if len(path) == 3 else None, unquoted(path[-1].text).lower()
    for item in items:
        if of is None or item.alias.lower() == of:
            for column, kind in columns_of(item, columns):
                if column.lower() == name:
                    return kind
    return UNTYPED
