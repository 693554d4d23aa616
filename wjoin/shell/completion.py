"""What can be completed at the cursor: keywords and names, by place."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from wjoin.grammar.hints import HINTS, SHIP
from wjoin.grammar.lookahead import CLAUSE_WORDS
from wjoin.shell import words
from wjoin.shell.from_items import FromItem
from wjoin.shell.places import Place, What, place_at
from wjoin.shell.selected import columns_of

_PLAIN = re.compile(r"[^\W\d]\w*\Z")
_VALUES = {
    "wjoin.objective": ("latency", "throughput"),
    **{f"wjoin.{name.lower()}": values for name, values in HINTS.items()},
}


@dataclass(frozen=True)
class Named:
    """Something with a name, and what it is: a kind, or a column's type."""

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
    place = place_at(text, cursor)
    if not asked and not place.prefix and (place.what in _MANY or text[:cursor].endswith("\n")):
        return []
    typed = place.prefix.lstrip("`").lower()
    seen: set[str] = set()
    found = []
    for each in _possible(place, names):
        lower = each.name.lower()
        if lower.startswith(typed) and each.name not in seen and not (lower == typed and each.what == ""):
            seen.add(each.name)
            found.append(Candidate(_spelled(each, place), each.what, len(place.prefix)))
    return found


_MANY = (What.WORDS, What.OPERAND, What.EXPRESSION, What.NOTHING, What.OPTION)


def _spelled(each: Named, place: Place) -> str:
    """Return how a name is written: quoted where it must be; a keyword in the case that is typed."""
    if each.what == "":
        return each.name.lower() if place.prefix.islower() else each.name
    if place.what in _AS_THEY_ARE or each.what == "function":
        return each.name
    if _PLAIN.match(each.name) and not place.prefix.startswith("`") and each.name.upper() not in _RESERVED:
        return each.name
    return "`" + each.name.replace("`", "``") + "`"


_AS_THEY_ARE = (What.SETTING, What.VALUE, What.OPTION, What.FORMAT, What.HINT)
_RESERVED = CLAUSE_WORDS | {"SELECT", "FROM", "WHERE", "GROUP", "ORDER", "JOIN", "ON", "UNION"}


def _possible(place: Place, names: Names) -> Iterator[Named]:
    """Yield what can stand at a place, whatever has been typed of it."""
    match place.what:
        case What.RELATION:
            yield from (Named(each, "WITH") for each in place.new)
            yield from names.relations
        case What.STREAM:
            yield from (each for each in names.relations if each.what in ("stream", "view over streams"))
        case What.SINK:
            yield from (Named(each, "sink") for each in names.sinks)
        case What.TARGET:
            yield from (Named(each, "sink") for each in names.sinks)
            yield from (each for each in names.relations if each.what == "table")
        case What.QUERY:
            yield from (Named(each, "query") for each in names.queries)
        case What.COLUMN:
            yield from _columns_of(place, names)
        case What.ALIAS:
            yield from (Named(each.alias, each.relation or "subquery") for each in place.items)
        case What.EXPRESSION:
            yield from _in_expression(place, names)
        case What.UNIT:
            yield from (Named(each[:-1] if place.singular else each) for each in words.UNITS)
        case What.SETTING:
            yield from (Named(each, "setting") for each in (*names.settings, *words.SPARK_SETTINGS))
        case What.VALUE:
            yield from (Named(each, "value") for each in _VALUES.get(place.of, ()))
        case What.HINT:
            yield from (Named(f"{each}(", "hint") for each in (*HINTS, SHIP))
        case What.HINT_VALUE:
            yield from map(Named, HINTS.get(place.of, ()))
        case What.FORMAT:
            yield from (Named(each, "format") for each in _formats(place.of))
        case What.OPTION:
            kind, _, provider = place.of.partition(" ")
            yield from (Named(each, "option") for each in sorted(_formats(kind).get(provider, ())))
        case What.WORDS | What.OPERAND | What.NOTHING:
            pass
    yield from map(Named, place.words)


def _formats(kind: str) -> Mapping[str, frozenset[str]]:
    """Return the formats of a STREAM or a SINK, and the options of each."""
    # Imports sqlglot, which the first prompt does without.
    from wjoin.sources.format_options import SINK_OPTIONS, STREAM_OPTIONS

    return SINK_OPTIONS if kind == "SINK" else STREAM_OPTIONS


def _columns_of(place: Place, names: Names) -> Iterator[Named]:
    """Yield the columns of the relation with the alias of a place."""
    for item in place.items:
        if item.alias.lower() == place.of.lower():
            yield from _columns(item, names)


def _columns(item: FromItem, names: Names) -> Iterator[Named]:
    def known(relation: str) -> list[tuple[str, str]]:
        return [(each.name, each.what) for each in names.columns(relation)] if relation else []

    return (Named(*each) for each in columns_of(item, known))


def _in_expression(place: Place, names: Names) -> Iterator[Named]:
    """Yield columns, aliases and keywords, and once something has been typed functions."""
    for item in place.items:
        yield from _columns(item, names)
    yield from (Named(item.alias, item.relation or "subquery") for item in place.items)
    if place.prefix:
        yield from names.functions
