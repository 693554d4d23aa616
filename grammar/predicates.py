"""A predicate to the conditions that AND joins at its top level."""

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.nesting import QUERY_WORDS, Code
from wjoin.grammar.spans import Span


def conjuncts(code: Code, start: int, end: int) -> list[Span]:
    """Return the places of the conditions that the predicate of tokens ``start`` to ``end`` joins by AND.

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
            return [code.span(start, end)]
        elif word == "BETWEEN":
            betweens += 1
        elif word == "AND" and betweens:
            betweens -= 1
        elif word == "AND":
            pieces.append((first, place))
            first = place + 1
    if not pieces:
        return [code.span(start, end)]
    return [span for piece in (*pieces, (first, end)) for span in conjuncts(code, *piece)]


def _is_group(code: Code, start: int, end: int) -> bool:
    """Return whether parentheses that hold no query and no row surround all the tokens."""
    if code.partner[start] != end - 1 or code.word(start + 1) in QUERY_WORDS:
        return False
    return start + 1 < end - 1 and all(code.mark(place) != "," for place in code.level(start + 1, end - 1))
