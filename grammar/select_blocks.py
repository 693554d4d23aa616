"""Finds the SELECT blocks with a window clause, or an ASOF JOIN, at every depth of a statement."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.exists import ExistsCondition, find_asked, refuse_asked, with_exists
from wjoin.grammar.from_list import MATCH_CONDITION, WITHIN
from wjoin.grammar.lookahead import CLAUSE_WORDS, is_strong
from wjoin.grammar.nesting import MAXIMAL_DEPTH, Code, refuse_unclosed, too_deep
from wjoin.grammar.select_parts import (
    Parts,
    divide,
    from_place,
    has_asof,
    has_within,
    joins_streams,
    names_streams,
    read_block,
    select_end,
)
from wjoin.grammar.spans import Span
from wjoin.grammar.stack import room
from wjoin.grammar.syntax import SelectBlock


def find_blocks(code: Code, start: int = 0) -> tuple[SelectBlock, ...]:
    """Return the outermost SELECT blocks that are window joins among the tokens, in text order.

    Raises WJ1xx and WJ210 for a clause, or the SELECT around it, that cannot be read.
    """
    end = len(code.tokens)
    ours = (token.word in CLAUSE_WORDS or token.word in (MATCH_CONDITION, WITHIN) for token in code.tokens)
    if not code.streams and not any(ours):
        return ()
    if code.depth > MAXIMAL_DEPTH:
        _refuse_deep(code, start, end)
        return ()
    found = _region(code, start, end, ())
    _refuse_misplaced(code, start, end, found)
    return tuple(found)


def _refuse_deep(code: Code, start: int, end: int) -> None:
    """Raise WJ114 where a statement that has a window clause has too many parentheses inside each other."""
    try:
        with room():
            found = _region(code, start, end, ())
    except RecursionError:
        # No window clause is looked for in what is that deep; Spark does not read it either.
        return
    depth = 0
    for token in code.tokens if found else ():
        depth = max(0, depth + (token.text == "(") - (token.text == ")"))
        if depth > MAXIMAL_DEPTH:
            raise too_deep(token.span)


def _refuse_misplaced(code: Code, start: int, end: int, blocks: Sequence[SelectBlock]) -> None:
    """Raise WJ105 for a term, beyond doubt ours, that is in no block's clause."""
    used = [span for block in _all_blocks(blocks) for span in block.window_spans]
    for place in range(start, end):
        token = code.tokens[place]
        if code.word(place) not in CLAUSE_WORDS or (place > start and not _outside(code, place)):
            continue
        if any(span.start <= token.start < span.end for span in used):
            continue
        if is_strong(code, place, frozenset()):
            raise WJoinError(
                "WJ105",
                "a window clause is outside a SELECT … FROM",
                span=token.span,
                help="put it after the FROM list, or after WHERE, of a SELECT",
            )


def _outside(code: Code, place: int) -> bool:
    """Return whether a term at a place is worth a look: it is where no column or alias can be declared."""
    if code.ends_operand(place - 1) or code.word(place - 1) in ("AND", "OR", "NOT", "ON", "WHERE"):
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
            stop = select_end(code, place, end)
            blocks += _select(code, place, stop, withs)
            place = stop
        elif code.partner[place] > place:
            blocks += _group(code, place, withs)
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


def _select(code: Code, start: int, end: int, withs: tuple[Span, ...]) -> list[SelectBlock]:
    """Return the block of the SELECT at a place, or the blocks inside it when it has no clause."""
    from_ = from_place(code, start, end)
    if from_ < 0:
        return _inside(code, start + 1, end, withs)
    parts = divide(code, start, from_, end)
    asked = find_asked(code, parts)
    if parts.clauses or (parts.late < 0 and (asked or has_asof(code, parts) or has_within(code, parts))):
        return [_block(code, parts, asked, withs)]
    if parts.late >= 0:
        raise WJoinError(
            "WJ105",
            "a window clause is at the end of a SELECT",
            span=code.tokens[parts.late].span,
            help="put it between FROM and WHERE, or after the condition of WHERE",
        )
    try:
        asked = find_asked(code, parts, windowless=True)
        if joins_streams(code, parts) or (asked and names_streams(code, parts)):
            return [replace(_block(code, parts, asked, withs), implicit=True)]
    except WJoinError:
        # What a window join does not know is Spark's.
        pass
    return _inside(code, start + 1, end, withs)


def _block(
    code: Code, parts: Parts, asked: Sequence[ExistsCondition], withs: tuple[Span, ...]
) -> SelectBlock:
    """Return the block of a SELECT, with the EXISTS that are joins of it."""
    refuse_unclosed(code)
    places = (*parts.clauses[:1], *(each.place for each in asked))
    nested = _inside(code, parts.select + 1, parts.end, withs, places)
    inner = []
    for each in asked:
        select = each.parts
        nested += _inside(code, select.select + 1, select.end, withs, select.clauses[:1])
        inner.append(read_block(code, select, withs, ()))
    return with_exists(code, read_block(code, parts, withs, tuple(nested)), asked, inner)


def _inside(
    code: Code, start: int, end: int, withs: tuple[Span, ...], without: Collection[tuple[int, int]] = ()
) -> list[SelectBlock]:
    """Return the blocks in the parentheses of some tokens, those of some ranges left out."""
    blocks: list[SelectBlock] = []
    for place in code.level(start, end):
        close = code.partner[place]
        if close < place or any(first <= place < last for first, last in without):
            continue
        if any(place < first < close for first, _ in without):
            blocks += _inside(code, place + 1, close, withs, without)
        else:
            blocks += _group(code, place, withs)
    return blocks


def _group(code: Code, opening: int, withs: tuple[Span, ...]) -> list[SelectBlock]:
    """Return the blocks in the parentheses that open at a place."""
    blocks = _region(code, opening + 1, code.partner[opening], withs)
    for each in blocks:
        if each.span.start == code.tokens[opening + 1].start:
            refuse_asked(code, opening, each)
    return blocks
