"""What can be completed at the cursor: columns after a dot, names after FROM and the like, else all words."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from wjoin.grammar.parser import unended
from wjoin.grammar.tokens import Kind, Token, is_name, scan, unquoted
from wjoin.shell.words import KEYWORDS, WORDS

_TYPED = re.compile(r"(?:(\w+)\.)?((?:\w+\.)*\w*)\Z")
_PLAIN = re.compile(r"[^\W\d]\w*\Z")
_BEFORE_NAME = frozenset("FROM JOIN INTO STREAM SINK QUERY TABLE VIEW DESCRIBE DESC".split())


@dataclass(frozen=True)
class Named:
    """Something with a name, and what it is: a kind, or a column's type; a keyword is nothing else."""

    name: str
    what: str = ""


@dataclass(frozen=True)
class Names:
    """What a session knows by name: ``relations``, sinks and queries, functions and settings.

    ``columns`` finds those of a relation, spelled as in a statement.
    """

    relations: tuple[Named, ...] = ()
    targets: tuple[Named, ...] = ()
    others: tuple[Named, ...] = ()
    columns: Callable[[str], Sequence[Named]] = field(default=lambda relation: ())


@dataclass(frozen=True)
class Completion:
    """A text that can stand in place of the ``back`` signs before the cursor, and what it is."""

    text: str
    what: str
    back: int


def candidates(text: str, cursor: int, names: Names, *, asked: bool = True) -> list[Completion]:
    """Return what can stand at a cursor, what fits best first; nothing twice.

    Where nobody has ``asked``, and nothing has been typed of it, only at a place for names.
    """
    before = text[min(unended(text[:cursor]), cursor) : cursor]
    typed = _TYPED.search(before)
    tokens = scan(before)
    if typed is None or (tokens and tokens[-1].kind is Kind.UNCLOSED and tokens[-1].text[:3] != "/*+"):
        return []
    before = before[: typed.start()]
    used = _used(scan(f"{before} {text[cursor:].partition(';')[0]}"), names)
    alias = (typed[1] or "").lower()
    if of_alias := [relation for name, relation in used if name.lower() == alias]:
        return _starting(typed[2], _columns(of_alias, names))
    last = before.split()[-1:]
    if last and last[0].upper() in _BEFORE_NAME:
        return _starting(typed[0], (*names.relations, *names.targets))
    if not (typed[0] or asked):
        return []
    aliases = [Named(alias, relation) for alias, relation in used]
    columns = _columns([relation for _, relation in used], names)
    words = map(Named, WORDS)
    return _starting(typed[0], (*columns, *aliases, *words, *names.relations, *names.targets, *names.others))


def _starting(typed: str, possible: Iterable[Named]) -> list[Completion]:
    """Return those that begin with what has been typed."""
    start = typed.lower()
    found: dict[str, Completion] = {}
    for each in possible:
        lower = each.name.lower()
        if lower.startswith(start) and (lower != start or each.what):
            found.setdefault(each.name, Completion(_spelled(each, typed), each.what, len(typed)))
    return list(found.values())


def _spelled(each: Named, typed: str) -> str:
    """Return how a name is written: quoted where it must be; a keyword in the case that is typed."""
    if not each.what:
        return each.name.lower() if typed.islower() else each.name
    if each.what in ("function", "setting") or (
        _PLAIN.match(each.name) and each.name.upper() not in KEYWORDS
    ):
        return each.name
    return "`" + each.name.replace("`", "``") + "`"


def _columns(relations: Iterable[str], names: Names) -> list[Named]:
    return [column for relation in relations for column in names.columns(relation)]


def _used(tokens: Sequence[Token], names: Names) -> list[tuple[str, str]]:
    """Return the aliases and names of the relations that a statement names."""
    known = {each.name.lower() for each in names.relations}
    found = []
    for place, token in enumerate(tokens):
        if is_name(token) and unquoted(token.text).lower() in known:
            rest = [each for each in tokens[place + 1 : place + 3] if each.word != "AS"]
            named = rest and is_name(rest[0]) and rest[0].word not in KEYWORDS
            found.append((unquoted((rest[0] if named else token).text), unquoted(token.text)))
    return found
