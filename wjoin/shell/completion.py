"""What can be completed at the cursor: keywords, relations and their columns, functions, settings, hints."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from wjoin.grammar.hints import HINTS, SHIP
from wjoin.grammar.lookahead import CLAUSE_WORDS
from wjoin.grammar.parser import unended
from wjoin.grammar.tokens import Kind, Token, is_name, scan, unquoted
from wjoin.shell.words import KEYWORDS, SPARK_SETTINGS, STATEMENTS, UNITS

_TYPED = re.compile(r"(?:`(?:[^`]|``)*|\w*)\Z")
_PLAIN = re.compile(r"[^\W\d]\w*\Z")
_SETTING = re.compile(r"\s*SET\s+(?:([\w.]+)\s*=\s*)?([\w.]*)\Z", re.IGNORECASE)
_HINT = re.compile(r"(?:(\w+)\s*\(\s*)?(\w*)\Z")
_BEFORE_RELATION = frozenset("FROM JOIN STREAM TABLE VIEW DESCRIBE DESC".split())
_CLAUSES = CLAUSE_WORDS | frozenset("SELECT FROM JOIN ON WHERE BY HAVING INTERVAL".split())
_NO_ALIAS = KEYWORDS | CLAUSE_WORDS
_VALUES = {
    "wjoin.objective": ("latency", "throughput"),
    **{f"wjoin.{name.lower()}": values for name, values in HINTS.items()},
}


@dataclass(frozen=True)
class Named:
    """Something with a name, and what it is: a kind, or a column's type; a keyword is nothing else."""

    name: str
    what: str = ""


def _no_columns(relation: str) -> tuple[Named, ...]:
    return ()


@dataclass(frozen=True)
class Names:
    """What a session knows by name; ``columns`` finds those of a relation, spelled as in a statement."""

    relations: tuple[Named, ...] = ()
    sinks: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    functions: tuple[Named, ...] = ()
    settings: tuple[str, ...] = ()
    columns: Callable[[str], tuple[Named, ...]] = field(default=_no_columns)


@dataclass(frozen=True)
class Candidate:
    """A text that can stand in place of the ``back`` signs before the cursor, and what it is."""

    text: str
    what: str
    back: int


def candidates(text: str, cursor: int, names: Names, *, asked: bool = True) -> list[Candidate]:
    """Return what can stand at a cursor, what fits best first; nothing twice.

    Where nobody has ``asked``, and nothing has been typed of it, only where few things can stand.
    """
    before = text[min(unended(text[:cursor]), cursor) : cursor]
    typed, few, possible = _at(before, text[cursor:], names)
    if not asked and not typed and (not few or before.endswith("\n")):
        return []
    start = typed.lstrip("`").lower()
    found: dict[str, Candidate] = {}
    for each in possible:
        lower = each.name.lower()
        if lower.startswith(start) and not (lower == start and not each.what):
            found.setdefault(each.name, Candidate(_spelled(each, typed), each.what, len(typed)))
    return list(found.values())


def _spelled(each: Named, typed: str) -> str:
    """Return how a name is written: quoted where it must be; a keyword in the case that is typed."""
    if not each.what:
        return each.name.lower() if typed.islower() else each.name
    plain = _PLAIN.match(each.name) and each.name.upper() not in _NO_ALIAS and not typed.startswith("`")
    if plain or each.what in ("function", "setting", "value", "hint"):
        return each.name
    return "`" + each.name.replace("`", "``") + "`"


def _at(before: str, after: str, names: Names) -> tuple[str, bool, Iterable[Named]]:
    """Return what has been typed at the end of a text, whether few things can stand there, and these."""
    if found := _SETTING.match(before):
        values = [Named(each, "value") for each in _VALUES.get((found[1] or "").lower(), ())]
        settings = [Named(each, "setting") for each in (*names.settings, *SPARK_SETTINGS)]
        return found[2], True, values if found[1] else settings
    tokens = scan(before)
    last = tokens[-1] if tokens else None
    if last is not None and last.kind is Kind.UNCLOSED and not last.text.startswith("`"):
        hint = _HINT.search(last.text) if last.text.startswith("/*+") else None
        return (hint[2], True, _hints(hint[1])) if hint is not None else ("", False, ())
    typed = _TYPED.search(before)
    prefix = typed[0] if typed is not None else ""
    if prefix and last is not None:
        if last.kind not in (Kind.WORD, Kind.UNCLOSED):
            return "", False, ()
        tokens = tokens[:-1]
    whole = scan(f"{before.removesuffix(prefix)} {after.partition(';')[0]}")
    return prefix, *_after(tokens, whole, bool(prefix), names)


def _hints(name: str | None) -> Iterator[Named]:
    if name is None:
        yield from (Named(f"{each}(", "hint") for each in (*HINTS, SHIP))
    else:
        yield from (Named(each, "hint") for each in HINTS.get(name.upper(), ()))


def _after(
    tokens: Sequence[Token], whole: Sequence[Token], typing: bool, names: Names
) -> tuple[bool, Iterable[Named]]:
    """Return whether few things can stand after some tokens of a statement, its ``whole``, and these."""
    if not tokens:
        return False, map(Named, STATEMENTS)
    last, before = tokens[-1], tokens[-2] if len(tokens) > 1 else None
    used = _used(whole, names)
    if last.text == ".":
        alias = "" if before is None else unquoted(before.text).lower()
        return True, _columns((each for each in used if each[0].lower() == alias), names)
    clause = next((each.word for each in reversed(tokens) if each.word in _CLAUSES), "")
    if last.word == "QUERY":
        return True, (Named(each, "query") for each in names.queries)
    if last.word in ("INTO", "SINK"):
        return True, (*(Named(each, "sink") for each in names.sinks), *names.relations)
    if last.word in _BEFORE_RELATION or (last.text == "," and clause in ("FROM", "JOIN")):
        return True, names.relations
    if last.text in ("(", ",") and clause in CLAUSE_WORDS:
        return True, (Named(*each) for each in used)
    if last.kind is Kind.NUMBER and (clause in CLAUSE_WORDS or clause == "INTERVAL"):
        return True, map(Named, UNITS)
    if last.word == "AS":
        return False, ()
    return False, _in_query(used, typing, names)


def _in_query(used: Sequence[tuple[str, str]], typing: bool, names: Names) -> Iterator[Named]:
    """Yield columns, aliases and keywords, and once something has been typed functions and relations."""
    yield from _columns(used, names)
    yield from (Named(alias, relation) for alias, relation in used)
    yield from map(Named, sorted(KEYWORDS))
    if typing:
        yield from names.relations
        yield from names.functions


def _columns(used: Iterable[tuple[str, str]], names: Names) -> Iterator[Named]:
    for _, relation in used:
        yield from names.columns(relation)


def _used(tokens: Sequence[Token], names: Names) -> list[tuple[str, str]]:
    """Return the aliases and names of the relations that a statement names."""
    known = {each.name.lower() for each in names.relations}
    found = []
    for place, token in enumerate(tokens):
        if is_name(token) and unquoted(token.text).lower() in known:
            rest = [each for each in tokens[place + 1 : place + 3] if each.word != "AS"]
            named = rest and is_name(rest[0]) and rest[0].word not in _NO_ALIAS
            found.append((unquoted((rest[0] if named else token).text), unquoted(token.text)))
    return found
