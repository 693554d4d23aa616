"""Bounds in the row: a row says itself how far the row of another stream may be from it.

``DWINDOW (A, B) = A.expires - A.ts AT MOST 1 HOUR`` is ``DWINDOW (A, B) = 1 HOUR`` and, for the two rows,
``B.ts <= A.expires``: the time at which the row ends is a value of it, which joins compare as a column.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_tree import JoinTree
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import WindowAnd, WindowCondition, WindowOr, WindowPair
from wjoin.grammar.tokens import scan_piece
from wjoin.planner.bind.event_time import EventTimes
from wjoin.planner.catalog import INTEGRAL, Column, Types
from wjoin.planner.conditions.conjuncts import ColumnComparison, column_of
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.text.edits import Edit, apply_edits
from wjoin.planner.text.literals import literal
from wjoin.planner.text.pieces import AnalysedText, read_condition
from wjoin.planner.text.scope import ComputedValue, Reference, Scope, ScopeItem, StreamColumn


@dataclass(frozen=True)
class RowEnd:
    """The row of stream ``other`` is not after, or not before, a time that the row of ``owner`` says.

    ``after``: which of both. ``bound`` is how far that is in SQL over the owner's alias, ``time`` the same as
    a time: where there is ``apart``, that is it, if it has the type of event times. ``reads`` are the columns
    in them, and ``shown`` the bound as written.
    """

    owner: int
    other: int
    after: bool
    bound: str
    time: str
    apart: str | None
    reads: tuple[StreamColumn, ...]
    shown: str
    span: Span


def row_ends(
    text: str,
    window: WindowCondition | None,
    scope: Scope,
    times: EventTimes,
    parameters: Mapping[str, object],
) -> Iterator[RowEnd]:
    """Yield what rows say themselves in a window condition. Raises WJ107, WJ310 and the errors of names."""
    for each in _pairs(window, alone=True):
        yield from _ends(text, each, scope, times, parameters)


def _pairs(window: WindowCondition | None, *, alone: bool) -> Iterator[WindowPair]:
    match window:
        case WindowAnd(terms):
            for term in terms:
                yield from _pairs(term, alone=alone)
        case WindowOr(terms):
            for term in terms:
                yield from _pairs(term, alone=False)
        case WindowPair(in_row=in_row) if in_row is not None:
            if not alone:
                message = "a bound in the row is in one of several windows joined by OR"
                help = "join it by AND, or write two statements"
                raise WJoinError("WJ107", message, span=window.span, help=help)
            yield window


def _ends(
    text: str, window: WindowPair, scope: Scope, times: EventTimes, parameters: Mapping[str, object]
) -> Iterator[RowEnd]:
    if window.in_row is None:
        return
    span = _inside(text, window.in_row.span)
    names = window.first, window.second
    pair = [next((each.number for each in scope.sources if name.matches(each.name)), -1) for name in names]
    piece = read_condition(text, span)
    references = [found for name in piece.columns if (found := column_of(scope, name)) is not None]
    reads = tuple(column for each in references for column in each.columns)
    owners = {each.stream for each in reads}
    changes = piece.has_subquery or piece.is_volatile or piece.is_aggregate or piece.matches
    if len(owners) != 1 or not owners <= {*pair} or changes:
        message = f"the bound must use columns of {names[0].name} or of {names[1].name} alone"
        raise WJoinError("WJ310", message, span=span, help=_remedy(names[0].name))
    (owner,) = owners
    time = times[owner]
    if time is None:
        return  # Its window is refused.
    edits = [each.edit for each in references if each.edit is not None]
    for token in piece.parameters:
        value = literal(parameters.get(token.text[1:]))
        if value is None:
            message = f"the value of {token.text} is not a number, boolean, date or string"
            raise WJoinError("WJ310", message, span=span, help="write it into the statement")
        edits.append(Edit(token.start, token.end, value))
    at = scope.sources[owner].expression(time.column.name)
    bound = apply_edits(text, edits, span)
    other, shown = pair[owner == pair[0]], " ".join(span.of(text).split())
    for after in (True, False) if not window.directed else (owner == pair[0],):
        place = _apart(text, piece, references, StreamColumn(owner, time.column), after=after)
        apart = None if place is None else apply_edits(text, edits, place).strip()
        moved = f"{at} {'+' if after else '-'} ({bound})"
        yield RowEnd(owner, other, after, bound, moved, apart, reads, shown, span)


def _inside(text: str, span: Span) -> Span:
    """Return the place of what is in the parentheses around all of an expression."""
    while isinstance(read_condition(text, span).tree, exp.Paren):
        first, *_, last = scan_piece(text, span)
        span = Span(first.end, last.start)
    return span


def _remedy(first: str) -> str:
    return (
        f"write one that does not change by itself, for example {first}.expires - {first}.ts AT MOST 1 HOUR"
    )


def _apart(
    text: str, piece: AnalysedText, references: Sequence[Reference], time: StreamColumn, *, after: bool
) -> Span | None:
    """Return the place of the time X in a bound ``X - time`` ``after`` a row, in ``time - X`` before one."""
    tree = piece.tree
    if not isinstance(tree, exp.Sub) or not isinstance(tree.expression if after else tree.this, exp.Column):
        return None
    minus = [each for each in scan_piece(text, piece.span) if each.text == "-"][-1 if after else 0]
    sides = Span(piece.span.start, minus.start), Span(minus.end, piece.span.end)
    found = [each for each in references if sides[after].start <= each.name.span.start < sides[after].end]
    return sides[not after] if all(each.plain and each.column.same(time) for each in found) else None


def end_comparison(
    end: RowEnd, sources: Sequence[ScopeItem], times: EventTimes, tree: JoinTree, types: Types
) -> ColumnComparison:
    """Return what a row says of the other as a comparison of the join that brings both together.

    Raises WJ310 where it says no time.
    """
    time = times[end.other]
    if time is None:
        raise AssertionError("streams of a window have event times")
    kind, whole = time.kind, time.kind is TimeKind.INTEGRAL
    found = types.of(end.owner, end.bound).lower()
    if found not in INTEGRAL if whole else not found.startswith("interval"):
        wanted, help = "a whole number", "write it in the unit of the event times"
        if not whole:
            wanted = "an interval"
            help = "write the difference of two times, or for example make_dt_interval(0, 0, minutes)"
        message = f"the bound is of type {found.upper()}, not {wanted}"
        raise WJoinError("WJ310", message, span=end.span, help=help)
    form = end.apart
    if form is None or types.of(end.owner, form).lower() not in (INTEGRAL if whole else (kind.value,)):
        form = end.time
    type_name = "bigint" if whole else kind.value
    plain = next(
        (each for each in end.reads if sources[end.owner].expression(each.column.name) == form), None
    )
    left = _as(StreamColumn(end.other, time.column), sources[end.other], type_name)
    right: StreamColumn
    if plain is not None:
        right = _as(plain, sources[end.owner], type_name)
    else:
        value = f"CAST({form} AS BIGINT)" if whole else form
        right = ComputedValue(end.owner, Column(value, type_name), end.reads)
    operator = "<=" if end.after else ">="
    shown = [sources[each.stream].value(each) for each in (left, right)]
    number = tree.meeting((end.owner, end.other))
    later = max(end.owner, end.other) if tree.joins else None
    on = tree.joins[number].on if number >= 0 else later
    return ColumnComparison(left, operator, right, f"{shown[0]} {operator} {shown[1]}", on=on)


def _as(column: StreamColumn, source: ScopeItem, type_name: str) -> StreamColumn:
    """Return a column in a type."""
    if column.column.type.lower() == type_name:
        return column
    cast = f"CAST({source.expression(column.column.name)} AS {type_name.upper()})"
    return ComputedValue(column.stream, Column(cast, type_name), (column,))
