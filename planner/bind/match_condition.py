"""The MATCH_CONDITION of an ASOF JOIN: which row of the second stream a row of the first is joined to."""

from collections.abc import Sequence

from sqlglot import exp

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import Nearest
from wjoin.grammar.syntax import FromItem
from wjoin.planner.bind.event_time import EventTimes
from wjoin.planner.conditions.conjuncts import column_of
from wjoin.planner.text.pieces import read_condition
from wjoin.planner.text.scope import Scope
from wjoin.planner.windows.window_graph import Edge

_OPERATORS: dict[type, Nearest] = {
    exp.GTE: Nearest.AT_OR_BEFORE,
    exp.GT: Nearest.BEFORE,
    exp.LTE: Nearest.AT_OR_AFTER,
    exp.LT: Nearest.AFTER,
}
_TURNED = {
    Nearest.AT_OR_BEFORE: Nearest.AT_OR_AFTER,
    Nearest.BEFORE: Nearest.AFTER,
    Nearest.AT_OR_AFTER: Nearest.AT_OR_BEFORE,
    Nearest.AFTER: Nearest.BEFORE,
}


def nearest_row(text: str, scope: Scope, times: EventTimes) -> Nearest | None:
    """Return which row the ASOF JOIN of a block takes, None where it has none.

    Raises WJ223 for a condition that does not compare the event times of both streams.
    """
    match = next((each.item.match for each in scope.sources if each.item.match is not None), None)
    if match is None:
        return None
    if match.condition.of(text).strip().upper() == Nearest.EITHER.value:
        return Nearest.EITHER
    first, second = (
        source.expression(time.column.name)
        for source, time in zip(scope.sources, times, strict=True)
        if time is not None
    )
    remedy = f"write MATCH_CONDITION ({first} >= {second}), with >=, >, <= or <, or MATCH_CONDITION (NEAREST)"
    piece = read_condition(text, match.condition)
    found = _OPERATORS.get(type(piece.tree))
    plain = all(isinstance(each, exp.Column) for each in piece.tree.iter_expressions())
    if found is None or not plain:
        message = "MATCH_CONDITION does not compare two columns by >=, >, <= or <"
        raise WJoinError("WJ223", message, span=match.condition, help=remedy)
    compared: list[int] = []
    for name in piece.columns:
        reference = column_of(scope, name)
        time = None if reference is None else times[reference.column.stream]
        if reference is None or time is None or not reference.whole or reference.column.column != time.column:
            message = f"{name.span.of(text)} is not the event time of its stream"
            raise WJoinError("WJ223", message, span=name.span, help=remedy)
        compared.append(reference.column.stream)
    if sorted(compared) != [0, 1]:
        message = "MATCH_CONDITION compares the times of one stream"
        raise WJoinError("WJ223", message, span=match.condition, help=remedy)
    return found if compared == [0, 1] else _TURNED[found]


def match_bounds(nearest: Nearest | None, items: Sequence[FromItem]) -> tuple[Edge, ...]:
    """Return what the MATCH_CONDITION of a block bounds, as a window does."""
    span = next((each.match.span for each in items if each.match is not None), None)
    if nearest is None or nearest is Nearest.EITHER or span is None:
        return ()
    # Event times are whole numbers.
    bound = -1 if nearest in (Nearest.BEFORE, Nearest.AFTER) else 0
    earlier = (0, 1) if nearest in (Nearest.AT_OR_BEFORE, Nearest.BEFORE) else (1, 0)
    return (Edge(*earlier, bound, span),)
