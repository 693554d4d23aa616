"""The statistics that ALTER STREAM gives a stream: their names and the values that each may have."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import StatisticEntry
from wjoin.grammar.syntax import Identifier


class _Statistic(NamedTuple):
    """What a statistic says, an example of it, and what it belongs to and may be; ``value``: any number."""

    meaning: str
    example: str
    of_column: bool = False
    share: bool = False
    value: bool = False


_STATISTICS = {
    "rate": _Statistic("the rows per second of event time", "rate = 1000"),
    "width": _Statistic("the bytes of a row", "width = 120"),
    "disorder": _Statistic("how far rows are usually out of order", "disorder = 2 SECONDS"),
    "selectivity": _Statistic(
        "the share of rows that the filters of the stream keep", "selectivity = 0.1", share=True
    ),
    "matched": _Statistic("the share of rows that are in a result", "matched = 0.01", share=True),
    "distinct": _Statistic(
        "the number of different values of a column", "distinct.obj_id = 5000", of_column=True
    ),
    "heaviest": _Statistic(
        "the share of rows with the most frequent value of a column",
        "heaviest.obj_id = 0.2",
        of_column=True,
        share=True,
    ),
    "local": _Statistic(
        "the share of the pairs of rows with the same value of a column that live at one node",
        "local.obj_id = 0.9",
        of_column=True,
        share=True,
    ),
    "minimum": _Statistic("the least value of a column", "minimum.speed = 0", of_column=True, value=True),
    "maximum": _Statistic(
        "the greatest value of a column", "maximum.speed = 250", of_column=True, value=True
    ),
}


def statistic_key(parts: Sequence[Identifier]) -> tuple[str, tuple[Identifier, ...]]:
    """Return the name of a statistic, lower case, and the parts of its column, empty where it has none.

    Raises WJ113 for a name that is not known, and for a column too much or too few.
    """
    first, *column = parts
    name, span = first.name.lower(), first.span.cover(parts[-1].span)
    known = _STATISTICS.get(name)
    if known is None:
        message = f"there is no statistic {first.name}"
        raise WJoinError("WJ113", message, span=first.span, help=_nearest(name))
    if known.of_column and not column:
        message, remedy = f"the statistic {name} names no column", f"write for example {known.example}"
        raise WJoinError("WJ113", message, span=span, help=remedy)
    if column and not known.of_column:
        message = f"the statistic {name} belongs to the whole stream, not to a column"
        raise WJoinError("WJ113", message, span=span, help=f"write for example {known.example}")
    if name == "disorder":  # The grammar reads the plain word, and its duration, itself.
        remedy = f"write it plain, for example {known.example}"
        raise WJoinError("WJ113", "the statistic disorder is in backticks", span=span, help=remedy)
    return name, tuple(column)


def _nearest(name: str) -> str:
    near = get_close_matches(name, _STATISTICS, n=1)
    *most, last = (f"{each}.column" if _STATISTICS[each].of_column else each for each in _STATISTICS)
    names = f"he statistics are {', '.join(most)} and {last}"
    return f"did you mean {near[0]}? T{names}" if near else f"t{names}"


def statistic_value(name: str, value: float, span: Span) -> float:
    """Return the value of a statistic; raises WJ113 for one that it cannot have."""
    known = _STATISTICS[name]
    if known.share and not 0 <= value <= 1:
        remedy = f"it is {known.meaning}: write a number from 0 to 1, for example {known.example}"
        raise WJoinError("WJ113", f"{name} is not between 0 and 1", span=span, help=remedy)
    if abs(value) == float("inf"):
        raise WJoinError("WJ113", f"{name} is larger than a DOUBLE", span=span, help="write a smaller number")
    if not known.share and not known.value and value <= 0:
        remedy = f"it is {known.meaning}: write a number above 0, for example {known.example}"
        raise WJoinError("WJ113", f"{name} is not above 0", span=span, help=remedy)
    return value


def once_each(entries: tuple[StatisticEntry, ...]) -> tuple[StatisticEntry, ...]:
    """Return the entries; raises WJ113 when two give the same statistic."""
    seen: set[tuple[str, ...]] = set()
    for entry in entries:
        key = entry.name, *(part.name.lower() for part in entry.column)
        if key in seen:
            message = f"the statistic {'.'.join(key)} is given twice"
            raise WJoinError("WJ113", message, span=entry.span, help="keep one of them")
        seen.add(key)
    return entries
