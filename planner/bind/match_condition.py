"""The MATCH_CONDITION of an ASOF JOIN: which row of the second stream a row of the first is joined to."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import Nearest
from wjoin.grammar.join_tree import JoinTree, LaterJoin
from wjoin.grammar.syntax import FromItem
from wjoin.grammar.tokens import scan
from wjoin.planner.bind.event_time import EventTimes
from wjoin.planner.conditions.conjuncts import column_of
from wjoin.planner.text.pieces import read_condition
from wjoin.planner.text.scope import Scope
from wjoin.planner.windows.closure import Edge

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


def with_nearest(text: str, tree: JoinTree, names: Sequence[Scope], times: EventTimes) -> JoinTree:
    """Return the joins of a block, of ASOF JOINs with the row that each takes.

    ``names`` are those that the ON of each item sees. Raises WJ223 for a condition that does not compare the
    event times of two streams.
    """
    joins = (
        _with_nearest(text, each, names[each.on], times) if each.kind.asof else each for each in tree.joins
    )
    return replace(tree, joins=tuple(joins))


def _with_nearest(text: str, join: LaterJoin, scope: Scope, times: EventTimes) -> LaterJoin:
    match = scope.sources[join.on].item.match
    if match is None:
        return join
    words = [each.word for each in scan(match.condition.of(text)) if each.text not in ("(", ")")]
    if words == [Nearest.EITHER.value]:
        return replace(join, nearest=Nearest.EITHER)
    first, second = (
        scope.sources[stream].expression(time.column.name) if (time := times[stream]) is not None else "…"
        for stream in (join.left[0], join.item)
    )
    remedy = f"write MATCH_CONDITION ({first} >= {second}), with >=, >, <= or <, or MATCH_CONDITION (NEAREST)"
    piece = read_condition(text, match.condition)
    compared_by = piece.tree.unnest()
    found = _OPERATORS.get(type(compared_by))
    plain = all(isinstance(each.unnest(), exp.Column) for each in compared_by.iter_expressions())
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
    by, to = (next((each for each in compared if each in side), None) for side in join.sides)
    if by is None or to is None:
        own = scope.sources[join.item].name
        several = len(set(compared)) > 1
        message = (
            f"MATCH_CONDITION does not compare a time of {own} with one of a stream before it"
            if several
            else "MATCH_CONDITION compares the times of one stream"
        )
        raise WJoinError("WJ223", message, span=match.condition, help=remedy)
    nearest = found if compared[0] == by else _TURNED[found]
    return replace(join, nearest=nearest, timed_by=by, timed_to=to)


def match_bounds(tree: JoinTree, items: Sequence[FromItem]) -> tuple[Edge, ...]:
    """Return what the MATCH_CONDITIONs of a block bound, as windows do."""
    found = []
    for each in tree.joins:
        match, by, to = items[each.on].match, each.timed_by, each.timed_to
        if match is not None and by is not None and to is not None:
            # Event times are whole numbers.
            bound = -1 if each.nearest in (Nearest.BEFORE, Nearest.AFTER) else 0
            earlier = each.nearest in (Nearest.AT_OR_BEFORE, Nearest.BEFORE)
            pair = (by, to) if earlier else (to, by)
            found.append(Edge(*pair, bound, match.span))
    return tuple(found)
