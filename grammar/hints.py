"""The hints of wjoin inside ``/*+ … */``; all others are Spark's."""

import re
from difflib import get_close_matches
from typing import NamedTuple

from wjoin.grammar.durations import COUNT_LIMIT, count_of
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.nesting import pair
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import Hint
from wjoin.grammar.tokens import Kind, Token, scan_piece, unquoted

APPROXIMATE_PLANS = ("BASE", "DFT", "DFTT", "BLOOM", "SKCH", "COUNTSKETCH", "DIGEST")
"""The values of PLAN with which a row visits the nodes that summaries choose; BASE visits all."""

HINTS = {
    "ALGORITHM": ("HW", "MW", "NLW", "ORDERED", "ADAPTIVE"),
    "BOUNDS": ("EXACT", "GCA", "LCA"),
    "PLAN": (
        *("MULTIWAY", "NATIVE", "SEMIJOIN", "SIMPLE", "PSP", "ATR", "CTR", "SKEW", "RANGE"),
        *APPROXIMATE_PLANS,
    ),
    "PASSES": ("UNION", "HULL"),
}
"""The names of wjoin's hints and the values of each."""

SHIP = "SHIP"
"""The hint that says how each stream travels from its site: ``SHIP(A = PARTIAL, B = FULL)``."""

SHIPPED = ("PARTIAL", "FULL", "HELD")
"""What it may say of a stream."""

APPROXIMATE = "APPROXIMATE"
"""The hint for an approximate join: ``APPROXIMATE(error = 0.15)`` or ``APPROXIMATE(messages = 2)``."""

ERROR, MESSAGES = "ERROR", "MESSAGES"
"""What it may ask for: the share of results that may be lost, or the visits of a row on average."""

OFF = "off"
"""The value of the setting of that name with which no join is approximate."""

_WITH_NUMBER = ("PSP", "ATR", "CTR", "SKEW", "RANGE", *APPROXIMATE_PLANS)

_NUMBER = re.compile(r"\d{0,9}\.?\d{1,9}")


class _Piece(NamedTuple):
    """One hint of a comment: its name and arguments as written, and its place."""

    name: str
    arguments: tuple[str, ...] | None
    span: Span

    @property
    def ours(self) -> bool:
        return self.name in HINTS or self.name in (SHIP, APPROXIMATE)


def read_hints(comments: list[Token]) -> tuple[Hint, ...]:
    """Return wjoin's hints in the hint comments of a SELECT.

    The span of each is what to cut so that Spark can still read the rest: it takes a comma
    along, and the marks of the comment where no other hint is left. Raises WJ112 for a hint
    of ours with a value that it does not have.
    """
    hints: list[Hint] = []
    for comment in comments:
        pieces = _pieces(comment)
        for piece, span in zip(pieces, _cuts(comment, pieces), strict=True):
            if not piece.ours:
                continue
            if any(hint.name == piece.name for hint in hints):
                message = f"the hint {piece.name} is given twice"
                raise WJoinError("WJ112", message, span=piece.span, help="keep one of them")
            read = {SHIP: _ways, APPROXIMATE: _goal}.get(piece.name, _checked)
            checked = read(piece)
            hints.append(Hint(piece.name, checked, span=span))
    return tuple(hints)


def _pieces(comment: Token) -> list[_Piece]:
    """Return the hints of one comment; text that is no hint is passed over."""
    code = pair(comment.text, scan_piece(comment.text, Span(3, len(comment.text) - 2)))
    pieces: list[_Piece] = []
    place = 0
    while place < len(code.tokens):
        name, end = code.tokens[place], place + 1
        arguments: tuple[str, ...] | None = None
        if code.mark(end) == "(":
            end = code.after(end) if code.partner[end] > 0 else len(code.tokens)
            inside = code.tokens[place + 2 : end - 1]
            arguments = tuple(unquoted(token.text).upper() for token in inside if token.text != ",")
        if name.kind in (Kind.WORD, Kind.QUOTED):
            span = Span(comment.start + name.start, comment.start + code.tokens[end - 1].end)
            pieces.append(_Piece(name.word, arguments, span))
        place = end
    return pieces


def _cuts(comment: Token, pieces: list[_Piece]) -> list[Span]:
    if not pieces:
        return []
    starts = [piece.span.start for piece in pieces]
    ends = [*starts[1:], pieces[-1].span.end]
    if all(piece.ours for piece in pieces):
        starts[:1], ends[-1:] = [comment.start], [comment.end]
    else:
        last_kept = max(place for place, piece in enumerate(pieces) if not piece.ours)
        if last_kept + 1 < len(pieces):
            starts[last_kept + 1] = pieces[last_kept].span.end
    return [Span(start, end) for start, end in zip(starts, ends, strict=True)]


def _checked(piece: _Piece) -> tuple[str, ...]:
    values = HINTS[piece.name]
    choices = f"write {piece.name}({' | '.join(values)})"
    if not piece.arguments:
        raise WJoinError("WJ112", f"the hint {piece.name} has no value", span=piece.span, help=choices)
    value, *rest = piece.arguments
    if value not in values:
        near = get_close_matches(value, values, n=1)
        remedy = f"did you mean {near[0]}? Or {choices}" if near else choices
        message = f"the hint {piece.name} has no value {value}"
        raise WJoinError("WJ112", message, span=piece.span, help=remedy)
    number = len(rest) == 1 and value in _WITH_NUMBER and count_of(rest[0]) is not None
    if rest and not number:
        numbered = f"write {piece.name}({value}, n), n a whole number from 1 to {COUNT_LIMIT}"
        remedy = numbered if value in _WITH_NUMBER else choices
        message = f"the hint {piece.name}({value}) cannot take {', '.join(rest)}"
        raise WJoinError("WJ112", message, span=piece.span, help=remedy)
    return piece.arguments


def _ways(piece: _Piece) -> tuple[str, ...]:
    """Return the arguments of SHIP, a stream and how it travels in turn."""
    choices = f"write {SHIP}(A = {' | '.join(SHIPPED)}, …)"
    given = piece.arguments or ()
    streams, marks, ways = given[::3], given[1::3], given[2::3]
    if not given or len(given) % 3 or set(marks) != {"="}:
        message = f"the hint {SHIP} does not say how each stream travels"
        raise WJoinError("WJ112", message, span=piece.span, help=choices)
    for way in ways:
        if way not in SHIPPED:
            message = f"the hint {SHIP} has no value {way}"
            raise WJoinError("WJ112", message, span=piece.span, help=choices)
    twice = next((each for n, each in enumerate(streams) if each in streams[:n]), None)
    if twice is not None:
        message = f"the hint {SHIP} names {twice} twice"
        raise WJoinError("WJ112", message, span=piece.span, help="keep one of them")
    return tuple(part for pair in zip(streams, ways, strict=True) for part in pair)


def _goal(piece: _Piece) -> tuple[str, ...]:
    """Return what APPROXIMATE asks for, and how much."""
    name, sign, value, *rest = (*(piece.arguments or ()), "", "", "")
    try:
        goal = approximate_goal(name, value)
    except ValueError as error:
        raise WJoinError("WJ112", str(error), span=piece.span, help=APPROXIMATE_HELP) from None
    if sign != "=" or any(rest):
        message = f"the hint {APPROXIMATE} does not say one goal"
        raise WJoinError("WJ112", message, span=piece.span, help=APPROXIMATE_HELP)
    return goal


APPROXIMATE_HELP = (
    f"write {APPROXIMATE}(error = 0.15), the share of results that may be lost; "
    f"or {APPROXIMATE}(messages = 2), how many other nodes a row visits on average"
)
"""What can be written."""


def approximate_goal(name: str, value: str) -> tuple[str, str]:
    """Return what an approximate join is asked for, and how much, as text. Raises ValueError."""
    name = name.upper()
    if name not in (ERROR, MESSAGES):
        raise ValueError(
            f"the hint {APPROXIMATE} has no goal {name}" if name else f"the hint {APPROXIMATE} has no goal"
        )
    if not _NUMBER.fullmatch(value):
        raise ValueError(f"{name.lower()} = {value} is no number")
    if name == ERROR and not 0 < float(value) < 1:
        raise ValueError(f"error = {value} is no share between 0 and 1")
    if name == MESSAGES and not float(value) > 0:
        raise ValueError(f"messages = {value} is not above zero")
    return name, value
