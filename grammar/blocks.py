"""Finds the SELECT blocks with a window clause at every depth of a statement."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from wjoin.grammar.clauses import SyntaxSlip, read_clause
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.hints import read_hints
from wjoin.grammar.lookahead import CLAUSE_WORDS, has_shape, is_strong, names_window, starts_clause
from wjoin.grammar.nesting import MAXIMAL_DEPTH, Code
from wjoin.grammar.predicates import conjuncts
from wjoin.grammar.relations import Sources, read_sources
from wjoin.grammar.slips import explain
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import SelectBlock, WindowCondition
from wjoin.grammar.tokens import Kind, is_name

_SET_OPERATIONS = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS", "SETMINUS"})
_TAIL_BY = frozenset({"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"})
_TAIL_WORDS = frozenset({"HAVING", "QUALIFY", "LIMIT", "OFFSET"})
_CONNECTORS = frozenset({"AND", "OR", "NOT", "ON", "WHERE"})
_FOLLOWS = {"ON": "the FROM list", "WHERE": "the FROM list, or a condition of WHERE"} | dict.fromkeys(
    ("AND", "OR", "NOT"), "the whole condition"
)
_PLACE = "the clause stands between FROM and WHERE, or after the condition of WHERE"


def find_blocks(code: Code, start: int = 0, end: int | None = None) -> tuple[SelectBlock, ...]:
    """Return the outermost SELECT blocks with a window clause among the tokens, in text order.

    Raises WJ1xx and WJ210 for a clause, or the SELECT around it, that cannot be read.
    """
    end = len(code.tokens) if end is None else end
    if code.depth > MAXIMAL_DEPTH or not any(token.word in CLAUSE_WORDS for token in code.tokens):
        return ()
    found = _region(code, start, end, ())
    _refuse_misplaced(code, start, end, found)
    return tuple(found)


def _refuse_misplaced(code: Code, start: int, end: int, blocks: Sequence[SelectBlock]) -> None:
    """Raise WJ105 for a term, beyond doubt ours, that is in no block's clause."""
    used = [block.window_span for block in _all_blocks(blocks)]
    for place in range(start, end):
        token = code.tokens[place]
        if code.word(place) not in CLAUSE_WORDS or (place > start and not _outside(code, place)):
            continue
        if any(span.start <= token.start < span.end for span in used):
            continue
        if is_strong(code, place, frozenset()):
            raise WJoinError(
                "WJ105",
                "a window clause stands outside a SELECT … FROM",
                span=token.span,
                help="put it after the FROM list, or after WHERE, of a SELECT",
            )


def _outside(code: Code, place: int) -> bool:
    """Return whether a term at a place is worth a look: it is where no column or alias can be declared."""
    if code.ends_operand(place - 1) or code.word(place - 1) in _CONNECTORS:
        return True
    return code.mark(place - 1) == "(" and code.mark(place + 1) in ("(", "=")


def _all_blocks(blocks: Sequence[SelectBlock]) -> Iterator[SelectBlock]:
    for block in blocks:
        yield block
        yield from _all_blocks(block.nested)


# Queries ---------------------------------------------------------------------


def _region(code: Code, start: int, end: int, withs: tuple[Span, ...]) -> list[SelectBlock]:
    """Return the blocks of one level of parentheses and all below it."""
    blocks: list[SelectBlock] = []
    place = start
    while place < end:
        if code.word(place) == "WITH" and (tables := _common_tables(code, place, end)):
            for opening in tables:
                # A common table sees those before it.
                before = [close for close in (code.partner[each] for each in tables) if close < opening]
                seen = (code.span(place, before[-1] + 1),) if before else ()
                blocks += _region(code, opening + 1, code.partner[opening], (*withs, *seen))
            body = code.partner[tables[-1]] + 1
            withs = (*withs, code.span(place, body))
            place = body
        elif code.word(place) == "SELECT":
            stop = _select_end(code, place, end)
            blocks += _select(code, place, stop, withs)
            place = stop
        elif code.partner[place] > place:
            blocks += _region(code, place + 1, code.partner[place], withs)
            place = code.partner[place] + 1
        else:
            place += 1
    return blocks


def _common_tables(code: Code, place: int, end: int) -> list[int]:
    """Return where the query of each common table of the WITH at a place opens; empty for another WITH."""
    openings: list[int] = []
    name = place + 1 + (code.word(place + 1) == "RECURSIVE" and code.word(place + 2) != "AS")
    while name < end:
        before_as = code.after(name + 1) if code.mark(name + 1) == "(" else name + 1
        if [code.word(before_as + step) for step in range(3)] == ["MAX", "RECURSION", "LEVEL"]:
            before_as += 4
        opening = before_as + 1
        if code.word(before_as) != "AS" or code.mark(opening) != "(" or code.partner[opening] < 0:
            return []
        openings.append(opening)
        following = code.partner[opening] + 1
        if code.mark(following) != "," or following >= end:
            return openings
        name = following + 1
    return []


def _is_from(code: Code, place: int) -> bool:
    if code.word(place) != "FROM":
        return False
    return not (code.word(place - 1) == "DISTINCT" and code.word(place - 2) in ("IS", "NOT"))


def _select_end(code: Code, start: int, end: int) -> int:
    """Return the place after the SELECT that starts at a place: before a set operation or the end."""
    seen_from = False
    for place in code.level(start + 1, end):
        if code.word(place) == "SELECT" or code.mark(place) in ("|>", ";"):
            return place
        if seen_from and code.word(place) in _SET_OPERATIONS and code.ends_operand(place - 1):
            return place
        seen_from = seen_from or _is_from(code, place)
    return end


# One SELECT ------------------------------------------------------------------


class _Parts(NamedTuple):
    """Where the parts of a SELECT start, as token places; -1 where a part is absent.

    ``clauses`` are the token ranges of window clauses, ``late`` the place of one after GROUP BY
    or the like, ``sources_end`` the place after the FROM list, ``condition_end`` that after the
    condition of WHERE and ``tail`` that of all that follows.
    """

    select: int
    from_: int
    sources_end: int
    where: int
    condition_end: int
    clauses: tuple[tuple[int, int], ...]
    tail: int
    end: int
    late: int


def _select(code: Code, start: int, end: int, withs: tuple[Span, ...]) -> list[SelectBlock]:
    """Return the block of the SELECT at a place, or the blocks inside it when it has no clause."""
    from_ = next((place for place in code.level(start + 1, end) if _is_from(code, place)), -1)
    if from_ < 0:
        return _inside(code, start + 1, end, withs)
    parts = _divide(code, start, from_, end)
    if parts.clauses:
        refuse_unclosed(code)
        return [_block(code, parts, withs)]
    if parts.late >= 0:
        raise WJoinError(
            "WJ105",
            "a window clause stands at the end of a SELECT",
            span=code.tokens[parts.late].span,
            help=_PLACE,
        )
    return _inside(code, start + 1, end, withs)


def _inside(
    code: Code, start: int, end: int, withs: tuple[Span, ...], without: tuple[int, int] = (0, 0)
) -> list[SelectBlock]:
    """Return the blocks in the parentheses of some tokens, those of one range left out."""
    blocks: list[SelectBlock] = []
    for place in code.level(start, end):
        if code.partner[place] > place and not without[0] <= place < without[1]:
            blocks += _region(code, place + 1, code.partner[place], withs)
    return blocks


def _divide(code: Code, select: int, from_: int, end: int) -> _Parts:
    streams = _names(code, from_, end)
    starts: list[int] = []
    where = tail = late = -1
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
        elif word == "WHERE" and where < 0 and (region == "clause" or code.ends_operand(place - 1)):
            where, region = place, "WHERE"
        elif _is_tail(code, place) or (word == "WHERE" and starts):
            tail, region = place, "tail"
    stop = tail if tail >= 0 else end
    edges = sorted({*starts, stop, *([where] if where >= 0 else [])})
    following = dict(pairwise(edges))
    return _Parts(
        select=select,
        from_=from_,
        sources_end=edges[0],
        where=where,
        condition_end=following.get(where, stop),
        clauses=tuple((start, following[start]) for start in starts),
        tail=stop,
        end=end,
        late=late,
    )


def _names(code: Code, from_: int, end: int) -> frozenset[str]:
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
    if region == "clause" and before in CLAUSE_WORDS:
        return False
    if code.ends_operand(place - 1):
        return starts_clause(code, place, streams)
    if region == "FROM" and (code.mark(place - 1) == "," or _is_from(code, place - 1)):
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


def refuse_unclosed(code: Code) -> None:
    """Raise WJ111 when a string, name, comment or parenthesis of the statement is not closed."""
    for place, token in enumerate(code.tokens):
        if token.kind is Kind.UNCLOSED:
            what = {"'": "a string", '"': "a string", "`": "a quoted name"}.get(token.text[0], "a comment")
            span = Span(token.start, token.start + (1 if token.text[0] in "'\"`" else 2))
            raise WJoinError("WJ111", f"{what} is not closed", span=span)
        if token.text in ("(", ")") and code.partner[place] < 0:
            what, remedy = ("closed", "write )") if token.text == "(" else ("opened", "remove it, or write (")
            raise WJoinError("WJ111", f"a parenthesis is not {what}", span=token.span, help=remedy)


def _block(code: Code, parts: _Parts, withs: tuple[Span, ...]) -> SelectBlock:
    _refuse_second(code, parts)
    clause, clause_end = parts.clauses[0]
    if code.mark(clause - 1) == ",":
        span = code.span(clause - 1, clause + 1)
        remedy = "leave out the comma"
        raise WJoinError("WJ101", "a comma stands before the window clause", span=span, help=remedy)
    hints_end = parts.select + 1
    while code.kind(hints_end) is Kind.HINT:
        hints_end += 1
    list_start = hints_end + (code.word(hints_end) in ("DISTINCT", "ALL"))
    if list_start >= parts.from_:
        remedy = "name columns, or write *"
        raise WJoinError("WJ210", "a SELECT has no columns", span=code.tokens[parts.select].span, help=remedy)
    sources = read_sources(code, parts.from_ + 1, parts.sources_end)
    window = _window(code, clause, clause_end)
    span = code.span(parts.select, parts.end)
    source = code.span(parts.from_, parts.tail)
    return SelectBlock(
        span=span,
        select_list=code.span(list_start, parts.from_),
        hints=read_hints(code.tokens[parts.select + 1 : hints_end]),
        items=sources.items,
        using=sources.using,
        window=window,
        window_span=code.span(clause, clause_end),
        conjuncts=_conditions(code, parts, sources),
        source=source,
        tail=Span(source.end, span.end),
        withs=withs,
        nested=tuple(_inside(code, parts.select + 1, parts.end, withs, (clause, clause_end))),
    )


def _refuse_second(code: Code, parts: _Parts) -> None:
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


def _window(code: Code, start: int, end: int) -> WindowCondition:
    try:
        return read_clause(code.tokens[start:end])
    except SyntaxSlip as slip:
        comma = next(
            (place for place in range(start, end) if code.tokens[place].start == slip.leaf.start_pos), end
        )
        following = code.word(comma + 1)
        if code.mark(comma) == "," and following and following not in CLAUSE_WORDS and following != "NOT":
            span = code.tokens[comma + 1].span
            remedy = "put the window clause after the last relation of FROM"
            raise WJoinError(
                "WJ101", "a relation follows the window clause", span=span, help=remedy
            ) from None
        raise explain(slip, "clause") from None


def _conditions(code: Code, parts: _Parts, sources: Sources) -> tuple[Span, ...]:
    ranges = list(sources.conditions)
    if parts.where >= 0:
        ranges.append((parts.where + 1, parts.condition_end))
    return tuple(span for first, last in ranges for span in conjuncts(code, first, last))
