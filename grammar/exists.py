"""EXISTS and NOT EXISTS whose subquery has a window clause: SEMI and ANTI JOINs of the SELECT around it."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import NamedTuple, NoReturn

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.nesting import QUERY_WORDS, Code
from wjoin.grammar.plurals import listed
from wjoin.grammar.select_parts import (
    Parts,
    conjuncts,
    divide,
    from_place,
    names_of,
    names_streams,
    select_end,
)
from wjoin.grammar.spans import Span
from wjoin.grammar.suggestions import suggestion
from wjoin.grammar.syntax import (
    Conjunct,
    Exists,
    FromItem,
    Identifier,
    SelectBlock,
    WindowAll,
    WindowAnd,
    WindowBetween,
    WindowCondition,
    WindowOr,
    WindowPair,
    WindowPath,
)
from wjoin.grammar.tokens import Kind


class ExistsCondition(NamedTuple):
    """A condition of WHERE as token range, the kind of join that it is, and the parts of its subquery."""

    place: tuple[int, int]
    kind: JoinKind
    parts: Parts


def find_asked(code: Code, parts: Parts, *, windowless: bool = False) -> tuple[ExistsCondition, ...]:
    """Return the conditions of a WHERE that are an EXISTS or NOT EXISTS with a window to streams outside it.

    ``windowless``: also those without a window clause, of streams that are looked for. Raises WJ107 where its
    subquery is no relation that can be joined.
    """
    if parts.where < 0:
        return ()
    found_in = _subqueries(code, parts, parts.where + 1, parts.condition_end, windowless)
    subqueries = dict(found_in)
    if not subqueries:
        return ()
    found = []
    for start, end in conjuncts(code, parts.where + 1, parts.condition_end):
        place, absent = _without_not(code, start, end)
        inner = subqueries.get(place)
        if inner is not None:
            if find_asked(code, inner):
                message = "an EXISTS with a window clause is inside another one"
                remedy = "write it in a subquery of FROM: FROM (SELECT … WHERE EXISTS (…)) AS B"
                raise _refused(code.span(inner.where, inner.condition_end), message, remedy)
            found.append(ExistsCondition((start, end), JoinKind.ANTI if absent else JoinKind.SEMI, inner))
    return tuple(found)


def _subqueries(
    code: Code, outer: Parts, start: int, end: int, windowless: bool
) -> Iterator[tuple[int, Parts]]:
    """Yield the place of each EXISTS among some tokens that is about streams outside, and its subquery."""
    for place in code.level(start, end):
        if code.partner[place] < place:
            continue
        if code.word(place - 1) != "EXISTS":
            if code.word(place + 1) not in QUERY_WORDS:
                yield from _subqueries(code, outer, place + 1, code.partner[place], windowless)
            continue
        select, close = place + 1, code.partner[place]
        from_ = from_place(code, select, close) if code.word(select) == "SELECT" else -1
        if from_ < 0:
            continue
        inner = divide(code, select, from_, select_end(code, select, close))
        looked_for = windowless and names_streams(code, inner)
        if (inner.clauses or looked_for) and _is_about(code, outer, inner):
            if inner.end != close:
                message = f"{code.word(inner.end)} is in an EXISTS with a window clause"
                raise _refused(code.tokens[inner.end].span, message, "write one EXISTS for each SELECT")
            yield place - 1, inner


def _is_about(code: Code, outer: Parts, inner: Parts) -> bool:
    """Return whether a subquery has one relation, or several with a window to one outside."""
    places = code.level(inner.from_ + 1, inner.sources_end)
    second = next((place for place in places if code.mark(place) == "," or code.join_end(place)), None)
    if second is None:
        return True
    outside = names_of(code, outer.from_, outer.sources_end) - names_of(code, inner.from_, inner.sources_end)
    clause = range(*inner.clauses[0]) if inner.clauses else ()
    return any(code.mark(place).strip("`").upper() in outside for place in clause)


def _without_not(code: Code, start: int, end: int) -> tuple[int, bool]:
    """Return where the EXISTS of a condition stands, -1 for another condition, and whether it is negated."""
    absent = False
    while start < end:
        if code.word(start) == "NOT" or code.mark(start) == "!":
            absent, start = not absent, start + 1
        elif code.mark(start) == "(" and code.partner[start] == end - 1:
            start, end = start + 1, end - 1
        else:
            break
    whole = code.word(start) == "EXISTS" and code.after(start + 1) == end
    return (start if whole else -1), absent


def refuse_asked(code: Code, opening: int, block: SelectBlock) -> None:
    """Raise WJ107 for a subquery of EXISTS or IN with a window to a stream outside, where it is no join."""
    if len(block.items) > 1:
        return
    word = code.word(opening - 1)
    if word == "EXISTS":
        message = "an EXISTS with a window clause is not a condition of WHERE by itself"
        remedy = "write EXISTS or NOT EXISTS in WHERE, joined to other conditions by AND alone"
        raise _refused(code.tokens[opening - 1].span, message, remedy)
    if word == "IN":
        message = "IN with a window to a stream outside its subquery is not supported"
        remedy = "write EXISTS (SELECT * FROM b B WINDOW (A, B) = 5 SECONDS WHERE A.k = B.k)"
        raise _refused(code.tokens[opening - 1].span, message, remedy)


def with_exists(
    code: Code, block: SelectBlock, asked: Sequence[ExistsCondition], inner: Sequence[SelectBlock]
) -> SelectBlock:
    """Return a block in which conditions of WHERE that are EXISTS are joins; ``inner`` are their subqueries.

    Raises WJ107, WJ201 and WJ209 for what cannot be joined.
    """
    if not asked:
        return block
    outside = [_name(each) for each in block.items]
    windows: list[WindowCondition] = []
    if block.window is not None:
        if len(outside) < 2:
            remedy = "move the window clause into the subquery of EXISTS"
            message = "a window clause needs two or more streams"
            raise WJoinError("WJ209", message, span=block.window_span, help=remedy)
        windows.append(_scoped(block.window, outside, [*combinations(outside, 2)]))
    absent = {name.name.lower() for each in windows for name in _absent(each)}
    seen = [
        name
        for name, item in zip(outside, block.items, strict=True)
        if not item.kind.one_sided and name.name.lower() not in absent
    ]
    items, joins, using = [*block.items], [], [*block.using]
    parts: dict[Span, tuple[Conjunct, ...]] = {}
    for each, select in zip(asked, inner, strict=True):
        _refuse_unjoined(code, each.parts, select)
        number = len(items)
        own = [_name(item) for item in select.items]
        first, *others = select.items
        items += [replace(first, kind=each.kind, joined=len(own)), *others]
        using += [replace(clause, right=number + clause.right) for clause in select.using]
        if select.window is not None:
            pairs = [*product(seen, own), *combinations(own, 2)]
            windows.append(_scoped(select.window, [*seen, *own], pairs, own))
        place = code.span(*each.place)
        joins.append(Exists(number, select.select_list, select.window_span, place))
        parts[place] = tuple(replace(piece, on=number + (piece.on or 0)) for piece in select.conjuncts)
    conditions = [
        piece
        for conjunct in block.conjuncts
        for piece in (parts.get(conjunct.span, (conjunct,)) if conjunct.on is None else (conjunct,))
    ]
    return replace(
        block,
        items=tuple(items),
        using=tuple(using),
        window=WindowAnd(tuple(windows), span=windows[0].span) if windows[1:] else next(iter(windows), None),
        window_span=joins[0].window_span if block.window is None else block.window_span,
        conjuncts=tuple(conditions),
        exists=tuple(joins),
    )


def _name(item: FromItem) -> Identifier:
    return item.alias or item.parts[-1]


def _refuse_unjoined(code: Code, parts: Parts, select: SelectBlock) -> None:
    """Raise WJ107 where the subquery of an EXISTS has more than a relation, windows and conditions."""
    wrong: list[tuple[Span, str, str]] = []
    if parts.tail < parts.end:
        span = code.span(parts.tail, parts.end)
        word = code.word(parts.tail)
        word += " BY" if code.word(parts.tail + 1) == "BY" else ""
        wrong.append((span, word, "leave it out, or write it in a subquery of FROM"))
    if select.laterals:
        wrong.append((select.laterals[0].span, "a LATERAL VIEW", "write it in a subquery of FROM"))
    if code.kind(parts.select + 1) is Kind.HINT:
        wrong.append((code.tokens[parts.select + 1].span, "a hint", "write hints in the outer SELECT"))
    calls = (place for place in range(parts.select, parts.from_) if code.mark(place) == "(")
    if next(calls, None) is not None:
        remedy = "write SELECT *: an EXISTS asks only whether there is a row"
        wrong.append((select.select_list, "a select list with a call", remedy))
    if wrong:
        span, what, remedy = wrong[0]
        raise _refused(span, f"the subquery of an EXISTS with a window clause has {what}", remedy)


def _absent(window: WindowCondition) -> Iterator[Identifier]:
    """Yield the streams that a path names with NOT."""
    match window:
        case WindowAnd(terms) | WindowOr(terms):
            for term in terms:
                yield from _absent(term)
        case WindowPath():
            yield from (each.stream for each in window.absent)


def _scoped(
    window: WindowCondition,
    names: Collection[Identifier],
    pairs: Collection[tuple[Identifier, Identifier]],
    own: Sequence[Identifier] = (),
) -> WindowCondition:
    """Return a window condition as it is beside those of other SELECTs: it is about streams ``names`` only.

    A window of all streams is one of ``pairs``. Each term names one of ``own``, the streams of an EXISTS.
    """
    match window:
        case WindowAnd(terms, span=span):
            return WindowAnd(tuple(_scoped(each, names, pairs, own) for each in terms), span=span)
        case WindowOr(terms, span=span):
            return WindowOr(tuple(_scoped(each, names, pairs, own) for each in terms), span=span)
        case WindowAll(width, span=span):
            return WindowAnd(tuple(WindowPair(*each, width, False, span=span) for each in pairs), span=span)
        case WindowPair(first, second) | WindowBetween(first, second):
            streams = [first, second]
        case WindowPath():
            streams = [*window.streams, *(each.stream for each in window.absent)]
        case _:
            message = "a window of one stream cannot be used with an EXISTS: it would include its stream"
            raise _refused(window.span, message, "write WINDOW (A, B) = w")
    for each in streams:
        if not any(each.matches(name.name) for name in names):
            _refuse_unknown(each, [name.name for name in names])
    if own:
        if len(streams) > 2:
            message = "a path of more than two streams is in an EXISTS"
            raise _refused(window.span, message, "write DWINDOW (A, B) = w for the steps to its stream")
        if not any(each.matches(name.name) for each in streams for name in own):
            message = (
                f"a window in an EXISTS does not name its stream, {listed([each.name for each in own], 'or')}"
            )
            raise _refused(window.span, message, "write it into the window clause around it")
    return window


def _refuse_unknown(name: Identifier, known: Sequence[str]) -> NoReturn:
    help = suggestion(name.name, known) or f"the streams are {', '.join(known)}"
    raise WJoinError("WJ201", f"{name.name} is not a stream of FROM", span=name.span, help=help)


def _refused(span: Span, message: str, remedy: str) -> WJoinError:
    return WJoinError("WJ107", message, span=span, help=remedy)
