"""Questions to a window condition as it is written."""

from collections.abc import Iterator

from wjoin.grammar import syntax


def names_in_window(condition: syntax.WindowCondition) -> frozenset[str] | None:
    """Return the names, lower case, that a window condition has; None where a window is of all streams."""
    match condition:
        case syntax.WindowAll():
            return None
        case syntax.WindowAnd(terms) | syntax.WindowOr(terms):
            found = [names_in_window(term) for term in terms]
            known = [each for each in found if each is not None]
            return frozenset().union(*known) if len(known) == len(found) else None
        case syntax.WindowPair(first, second) | syntax.WindowBetween(first, second):
            streams: tuple[syntax.Identifier, ...] = (first, second)
        case syntax.WindowPath():
            streams = (*condition.streams, *(each.stream for each in condition.absent))
        case syntax.WindowStream(stream) | syntax.WindowRows(stream) | syntax.WindowSince(stream):
            streams = (stream,)
    return frozenset(each.name.lower() for each in streams)


def landmarks(condition: syntax.WindowCondition) -> Iterator[syntax.WindowSince]:
    """Yield the windows that begin anew at landmarks."""
    match condition:
        case syntax.WindowAnd(terms) | syntax.WindowOr(terms):
            for term in terms:
                yield from landmarks(term)
        case syntax.WindowSince():
            yield condition


def counts_rows(condition: syntax.WindowCondition) -> bool:
    """Return whether a window condition has a window of rows or a landmark."""
    if isinstance(condition, syntax.WindowAnd | syntax.WindowOr):
        return any(map(counts_rows, condition.terms))
    return isinstance(condition, syntax.WindowRows | syntax.WindowSince)


def absent_streams(condition: syntax.WindowCondition) -> Iterator[syntax.Identifier]:
    """Yield the streams that a path names with NOT."""
    match condition:
        case syntax.WindowAnd(terms) | syntax.WindowOr(terms):
            for term in terms:
                yield from absent_streams(term)
        case syntax.WindowPath():
            yield from (each.stream for each in condition.absent)
