"""One SELECT with a window clause: where its parts are, and what they say."""

from itertools import pairwise
from typing import NamedTuple

from wjoin.grammar.clauses import SyntaxSlip, read_clause
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.from_list import (
    MATCH_CONDITION,
    Sources,
    holds_joins,
    is_lateral_view,
    read_laterals,
    read_sources,
    within_at,
)
from wjoin.grammar.hints import read_hints
from wjoin.grammar.lookahead import CLAUSE_WORDS, has_shape, is_strong, names_window, starts_clause
from wjoin.grammar.nesting import QUERY_WORDS, Code
from wjoin.grammar.slips import explain
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import Conjunct, SelectBlock, WindowAnd, WindowCondition
from wjoin.grammar.tokens import Kind, is_name

_SET_OPERATIONS = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS", "SETMINUS"})
_TAIL_BY = frozenset({"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"})
_TAIL_WORDS = frozenset({"HAVING", "QUALIFY", "LIMIT", "OFFSET"})
_CONNECTORS = frozenset({"AND", "OR", "NOT", "ON", "WHERE"})
_FOLLOWS = {"ON": "the FROM list", "WHERE": "the FROM list, or a condition of WHERE"} | dict.fromkeys(
    ("AND", "OR", "NOT"), "the whole condition"
)


class Parts(NamedTuple):
    """Where the parts of a SELECT start, as token places; -1 where a part is absent.

    ``clauses`` are the token ranges of window clauses, ``laterals`` that of the LATERAL VIEWs behind one
    (empty where there are none), ``late`` the place of one after GROUP BY
    or the like, ``sources_end`` the place after the FROM list, ``condition_end`` that after the
    condition of WHERE and ``tail`` that of all that follows.
    """

    select: int
    from_: int
    sources_end: int
    where: int
    condition_end: int
    clauses: tuple[tuple[int, int], ...]
    laterals: tuple[int, int]
    tail: int
    end: int
    late: int


def is_from(code: Code, place: int) -> bool:
    """Return whether the FROM of a SELECT, and not that of IS DISTINCT FROM, stands at a place."""
    if code.word(place) != "FROM":
        return False
    return not (code.word(place - 1) == "DISTINCT" and code.word(place - 2) in ("IS", "NOT"))


def from_place(code: Code, select: int, end: int) -> int:
    """Return the place of the FROM of the SELECT at a place, -1 where it has none before ``end``."""
    return next((place for place in code.level(select + 1, end) if is_from(code, place)), -1)


def select_end(code: Code, start: int, end: int) -> int:
    """Return the place after the SELECT that starts at a place: before a set operation or the end."""
    seen_from = False
    for place in code.level(start + 1, end):
        if code.word(place) == "SELECT" or code.mark(place) in ("|>", ";"):
            return place
        if seen_from and code.word(place) in _SET_OPERATIONS and code.ends_operand(place - 1):
            return place
        seen_from = seen_from or is_from(code, place)
    return end


def divide(code: Code, select: int, from_: int, end: int) -> Parts:
    """Return the parts of the SELECT at a place, with its FROM at another, that ends before a third.

    Raises WJ101 for a window clause that is written as a condition.
    """
    streams = names_of(code, from_, end)
    starts: list[int] = []
    where = tail = late = lateral = -1
    region = "FROM"
    for place in code.level(from_ + 1, end):
        word = code.word(place)
        if region == "tail":
            if late < 0 and word in CLAUSE_WORDS and code.ends_operand(place - 1):
                late = place if starts_clause(code, place, streams) else -1
        elif _starts(code, place, region, streams):
            starts.append(place)
            region = "clause"
        elif region != "FROM" and code.word(place - 1) in CLAUSE_WORDS and place - 1 in starts:
            continue  # the name of a stream
        elif region == "clause" and lateral < 0 and where < 0 and is_lateral_view(code, place):
            lateral = place
        elif word == "WHERE" and where < 0 and (region == "clause" or code.ends_operand(place - 1)):
            where, region = place, "WHERE"
        elif _is_tail(code, place) or (word == "WHERE" and starts):
            tail, region = place, "tail"
    stop = tail if tail >= 0 else end
    edges = sorted({*starts, stop, *(place for place in (where, lateral) if place >= 0)})
    following = dict(pairwise(edges))
    return Parts(
        select=select,
        from_=from_,
        sources_end=edges[0],
        where=where,
        condition_end=following.get(where, stop),
        clauses=tuple((start, following[start]) for start in starts),
        laterals=(lateral, following[lateral]) if lateral >= 0 else (0, 0),
        tail=stop,
        end=end,
        late=late,
    )


def names_of(code: Code, from_: int, end: int) -> frozenset[str]:
    """Return the words, upper case, of a FROM list: the names of its relations are among them."""
    names: set[str] = set()
    for place in code.level(from_ + 1, end):
        if code.word(place) == "WHERE":
            break
        if is_name(code.tokens[place]):
            names.add(code.mark(place).strip("`").upper())
    return frozenset(names)


def _starts(code: Code, place: int, region: str, streams: frozenset[str]) -> bool:
    """Return whether a window clause starts at a place of a SELECT's FROM list or WHERE condition.

    Raises WJ101 for one that follows AND or the like.
    """
    word, before = code.word(place), code.word(place - 1)
    if word not in CLAUSE_WORDS and word != "NOT" and code.mark(place) != "(":
        return False
    if region == "clause" and (before in CLAUSE_WORDS or before == "SINCE"):
        return False
    if code.ends_operand(place - 1):
        return starts_clause(code, place, streams)
    if region == "FROM" and (code.mark(place - 1) == "," or is_from(code, place - 1)):
        return word in CLAUSE_WORDS and has_shape(code, place, frozenset())
    if region == "clause" or before not in _CONNECTORS:
        return False
    term = place
    while code.mark(term) == "(":
        term += 1
    if not is_strong(code, term, streams):
        return False
    raise WJoinError(
        "WJ101",
        f"a window clause follows {before}",
        span=code.span(place - 1, term + 1),
        help=f"leave out {before}: the clause is not a condition; it follows {_FOLLOWS[before]}",
    )


def _is_tail(code: Code, place: int) -> bool:
    word = code.word(place)
    if not code.ends_operand(place - 1) or place + 1 >= len(code.tokens):
        return False
    if word in _TAIL_BY:
        return code.word(place + 1) == "BY"
    if word in _TAIL_WORDS:
        return code.mark(place + 1) not in (",", ".", "=", ")") and not code.join_end(place + 1)
    return names_window(code, place)


def has_asof(code: Code, parts: Parts) -> bool:
    """Return whether the FROM list of a SELECT has an ASOF JOIN with a MATCH_CONDITION."""
    return _joins_asof(code, parts.from_, parts.sources_end)


def has_within(code: Code, parts: Parts) -> bool:
    """Return whether a join of the FROM list of a SELECT has a WITHIN, as in ksqlDB."""
    places = [*code.level(parts.from_, parts.sources_end)]
    return any(within_at(code, place) for place in places) and any(map(code.join_end, places))


def names_streams(code: Code, parts: Parts) -> bool:
    """Return whether the FROM list of a SELECT names a stream that is looked for."""
    names = (token.text.strip("`").lower() for token in code.tokens[parts.from_ : parts.sources_end])
    return not code.streams.isdisjoint(names)


def joins_streams(code: Code, parts: Parts) -> bool:
    """Return whether the FROM list of a SELECT joins relations, and names a stream that is looked for."""
    places = code.level(parts.from_ + 1, parts.sources_end)
    joined = any(code.mark(place) == "," or code.join_end(place) for place in places)
    return joined and names_streams(code, parts)


def _joins_asof(code: Code, start: int, end: int) -> bool:
    """Return whether an ASOF JOIN stands between two places, joins in parentheses there included."""
    places = [*code.level(start, end)]
    words = [code.word(place) for place in places]
    if MATCH_CONDITION in words and ("ASOF", "JOIN") in pairwise(words):
        return True
    inside = (place for place in places if code.mark(place) == "(" and holds_joins(code, place))
    return any(_joins_asof(code, place + 1, code.after(place) - 1) for place in inside)


def read_block(
    code: Code, parts: Parts, withs: tuple[Span, ...], nested: tuple[SelectBlock, ...]
) -> SelectBlock:
    """Return the block of a SELECT, given the blocks inside it; without a window clause it has no window.

    Raises WJ1xx and WJ210 for what cannot be read.
    """
    _refuse_emit(code, parts)
    _refuse_arrow(code, parts)
    _refuse_second(code, parts)
    _refuse_late_lateral(code, parts)
    clause, clause_end = parts.clauses[0] if parts.clauses else (parts.sources_end, parts.sources_end)
    if parts.clauses and code.mark(clause - 1) == ",":
        span = code.span(clause - 1, clause + 1)
        remedy = "leave out the comma"
        raise WJoinError("WJ101", "a comma precedes the window clause", span=span, help=remedy)
    hints_end = parts.select + 1
    while code.kind(hints_end) is Kind.HINT:
        hints_end += 1
    list_start = hints_end + (code.word(hints_end) in ("DISTINCT", "ALL"))
    if list_start >= parts.from_:
        remedy = "name columns, or write *"
        raise WJoinError("WJ210", "a SELECT has no columns", span=code.tokens[parts.select].span, help=remedy)
    sources = read_sources(code, parts.from_ + 1, parts.sources_end)
    place = code.span(clause, clause_end)
    window = _window(code, clause, clause_end) if parts.clauses else None
    terms = ([] if window is None else [window]) + [*sources.windows]
    if sources.windows:
        window = terms[0] if len(terms) == 1 else WindowAnd(tuple(terms), span=terms[0].span)
    span = code.span(parts.select, parts.end)
    source = code.span(parts.from_, parts.tail)
    return SelectBlock(
        span=span,
        select_list=code.span(list_start, parts.from_),
        hints=read_hints(code.tokens[parts.select + 1 : hints_end]),
        items=sources.items,
        using=sources.using,
        window=window,
        window_span=place,
        conjuncts=_conditions(code, parts, sources),
        source=source,
        tail=Span(source.end, span.end),
        withs=withs,
        nested=nested,
        laterals=(*sources.laterals, *read_laterals(code, *parts.laterals)),
    )


def _refuse_emit(code: Code, parts: Parts) -> None:
    """Raise WJ210 for the EMIT CHANGES of other streaming dialects."""
    for place in code.level(parts.from_ + 1, parts.end):
        emits = code.word(place) == "EMIT" and code.word(place + 1) in ("CHANGES", "FINAL")
        if emits and code.ends_operand(place - 1):
            raise WJoinError(
                "WJ210",
                f"EMIT {code.word(place + 1)} is not needed",
                span=code.span(place, place + 2),
                help="leave it out: each result is returned once, in the micro-batch of its last row",
            )


def _refuse_arrow(code: Code, parts: Parts) -> None:
    """Raise WJ210 for ksqlDB's ``A.name->field``; what a lambda has before its arrow has no dot."""
    for place in range(parts.select, parts.end):
        if code.mark(place) == "->" and code.mark(place - 2) == ".":
            start, end = place - 1, place + 2
            while code.mark(start - 1) == ".":
                start -= 2
            while code.mark(end) in ("->", "."):
                end += 2
            span = code.span(start, end)
            remedy = f"write {span.of(code.text).replace('->', '.')}"
            raise WJoinError("WJ210", "a field of a struct follows a dot", span=span, help=remedy)


def _refuse_second(code: Code, parts: Parts) -> None:
    second = parts.clauses[1][0] if len(parts.clauses) > 1 else parts.late
    if second >= 0:
        raise WJoinError(
            "WJ104",
            "a SELECT has two window clauses",
            span=code.tokens[second].span,
            help="join them with AND",
        )
    if parts.tail < parts.end and code.word(parts.tail) == "WHERE":
        span = code.tokens[parts.tail].span
        raise WJoinError("WJ210", "a SELECT has two WHERE clauses", span=span, help="join them with AND")


def _refuse_late_lateral(code: Code, parts: Parts) -> None:
    for place in code.level(parts.where, parts.condition_end) if parts.where >= 0 else ():
        if is_lateral_view(code, place) and code.ends_operand(place - 1):
            span = code.span(place, place + 2)
            remedy = "put it before WHERE"
            raise WJoinError("WJ210", "a LATERAL VIEW follows WHERE", span=span, help=remedy)


def _window(code: Code, start: int, end: int) -> WindowCondition:
    try:
        return read_clause(code.text, code.tokens[start:end])
    except SyntaxSlip as slip:
        if slip.leaf.type == "COMMA":
            _refuse_relation(code, start, end, slip.leaf.start_pos or 0)
        raise explain(slip, "clause") from None


def _refuse_relation(code: Code, start: int, end: int, offset: int) -> None:
    """Raise WJ101 when the comma at an offset is one of the FROM list, with a relation behind it."""
    comma = next((place for place in code.level(start, end) if code.tokens[place].start == offset), end)
    following = code.word(comma + 1)
    if comma + 1 < end and following and following not in CLAUSE_WORDS and following != "NOT":
        raise WJoinError(
            "WJ101",
            "a relation follows the window clause",
            span=code.tokens[comma + 1].span,
            help="put the window clause after the last relation of FROM",
        ) from None


def _conditions(code: Code, parts: Parts, sources: Sources) -> tuple[Conjunct, ...]:
    ranges: list[tuple[int | None, int, int]] = [*sources.conditions]
    if parts.where >= 0:
        ranges.append((None, parts.where + 1, parts.condition_end))
    return tuple(
        Conjunct(code.span(*each), on) for on, first, last in ranges for each in conjuncts(code, first, last)
    )


def conjuncts(code: Code, start: int, end: int) -> list[tuple[int, int]]:
    """Return the token ranges of the conditions that the predicate of such a range joins by AND.

    A predicate with OR at its top level is one condition; parentheses around a whole
    condition are looked through. Raises WJ210 where a condition is missing.
    """
    if start >= end:
        mark = code.span(max(start - 1, 0), start)
        raise WJoinError("WJ210", "a condition is missing", span=mark, help="write one after the marked word")
    if _is_group(code, start, end):
        return conjuncts(code, start + 1, end - 1)
    pieces: list[tuple[int, int]] = []
    first, cases, betweens = start, 0, 0
    for place in code.level(start, end):
        word = code.word(place)
        if word == "CASE":
            cases += 1
        elif word == "END" and cases:
            cases -= 1
        elif cases:
            continue
        elif word == "OR":
            return [(start, end)]
        elif word == "BETWEEN":
            betweens += 1
        elif word == "AND" and betweens:
            betweens -= 1
        elif word == "AND":
            pieces.append((first, place))
            first = place + 1
    if not pieces:
        return [(start, end)]
    return [each for piece in (*pieces, (first, end)) for each in conjuncts(code, *piece)]


def _is_group(code: Code, start: int, end: int) -> bool:
    """Return whether parentheses that hold no query and no row surround all the tokens."""
    if code.partner[start] != end - 1 or code.word(start + 1) in QUERY_WORDS:
        return False
    return start + 1 < end - 1 and all(code.mark(place) != "," for place in code.level(start + 1, end - 1))
