"""EXPLAIN: what a join does when it gets too much, in words."""

from collections.abc import Iterator

from wjoin.grammar.plurals import listed
from wjoin.planner.explain import document as doc
from wjoin.planner.figures import figure, size


def overload_lines(document: doc.Document) -> Iterator[str]:
    """Yield which streams are shed, how much and by what, and what the state may have."""
    found = document.overload
    if found is None:
        return
    if found.refused:
        yield f"rows cannot be shed, so the query is refused (WJ724): {found.refused}"
    if found.streams:
        yield from _shed(found, document)
    for name, limit in (("wjoin.memory", found.memory), ("wjoin.disk", found.disk)):
        if limit is not None:
            yield _limit(name, limit, document.chosen.state_bytes, found)


def _shed(found: doc.OverloadEntry, document: doc.Document) -> Iterator[str]:
    for model in dict.fromkeys(each.model for each in found.streams):
        names = listed([each.alias for each in found.streams if each.model == model])
        base = f", {_percent(found.base)} of them at least" if found.base else ""
        yield f"{names}: rows are shed above a utilization of {found.begins:g} ({model}){base}"
    off = [each.alias for each in document.streams if each.streaming]
    off = [name for name in off if all(each.alias != name for each in found.streams)]
    if off:
        yield f"{listed(off)}: never shed"
    for each in found.streams:
        yield _judged(each)
    more = f", by row {_percent(found.tenth_by_row)}" if found.tenth_by_row > found.tenth else ""
    yield f"shedding a tenth of the rows loses {_percent(found.tenth)} of the results{more}"


def _judged(each: doc.ShedEntry) -> str:
    """Return what goes as one of a stream."""
    if each.heaviest is None:
        return f"{each.alias} by row: it has no key"
    heaviest = f"{_percent(each.heaviest.value)} of its rows ({each.heaviest.source})"
    key = f"{each.alias} by key, {', '.join(each.key)}"
    return f"{key}: all rows of a value go; the most frequent has {heaviest}"


def _limit(name: str, limit: int, expected: float, found: doc.OverloadEntry) -> str:
    then = "above that the query ends (WJ725)" if found.ends else "the used share counts as utilization"
    state = f", expected to be {_percent(expected / limit)} full" if name == "wjoin.memory" else ""
    return f"{name}: {size(limit)}{state}; {then}"


def _percent(share: float) -> str:
    return f"{figure(100 * share)} %"
