"""What a join that is not an inner one asks of its block."""

from collections.abc import Collection, Sequence

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import SelectBlock
from wjoin.planner.conditions.conjuncts import Conjunct, Residual
from wjoin.planner.conditions.expressions import is_exact
from wjoin.planner.conditions.readable import ReadCondition, Unread
from wjoin.planner.text.scope import ScopeItem


def kind_of_join(sources: Sequence[ScopeItem], static: Collection[int], block: SelectBlock) -> JoinKind:
    """Return the kind of the join of a block. Raises WJ107 for one that is not supported."""
    outer = next((each for each in sources if each.item.kind is not JoinKind.INNER), None)
    if outer is None:
        return JoinKind.INNER
    kind, span = outer.item.kind, outer.item.span
    if len(sources) > 2:
        remedy = (
            "join the others in a subquery with a window clause of its own, or in a view, and name it here"
        )
        message = f"{kind.words} with a window clause joins two relations, not {len(sources)}"
        raise WJoinError("WJ107", message, span=span, help=remedy)
    if block.window is None and any(each.relation.streaming for each in sources):
        first, second = (each.name for each in sources)
        message = f"{kind.words} of streams needs a window, in which the nearest row is looked for"
        raise WJoinError("WJ107", message, span=span, help=f"add one: WINDOW ({first}, {second}) = …")
    if static:
        name = sources[min(static)].name
        message = f"{kind.words} with a window clause joins two streams or two tables with event times"
        raise WJoinError("WJ107", message, span=span, help=f"leave the window clause out for {name}")
    if any(each.relation.site is not None for each in sources):
        message = f"{kind.words} with a window clause cannot read a stream at a site"
        raise WJoinError("WJ107", message, span=span, help="read the stream from where all of it is")
    if block.using and kind in (JoinKind.RIGHT, JoinKind.FULL):
        message = f"USING is not supported in {kind.words} with a window clause"
        raise WJoinError("WJ107", message, span=block.using[0].span, help="write ON A.x = B.x")
    return kind


def refuse_undecided(kind: JoinKind, conjunct: Conjunct, span: Span, sources: Sequence[ScopeItem]) -> None:
    """Refuse a condition of ON that only Spark decides, after the join: WJ107.

    Whether a row has a partner must be known when its rows are joined. Spark itself joins tables.
    """
    if kind is JoinKind.INNER or not isinstance(conjunct, Residual) or conjunct.on is None:
        return
    streaming = any(each.relation.streaming for each in sources)
    ours = streaming or kind.asof
    if ours and isinstance(conjunct.read, ReadCondition) and is_exact(conjunct.read.expression):
        return
    why = conjunct.read.what if isinstance(conjunct.read, Unread) else "a FLOAT or a DECIMAL"
    if not ours:
        declared = any(each.column.declared is not None for each in conjunct.columns)
        if not declared and not conjunct.matches:
            return
        why = "a column of type CHAR" if declared else "a match function"
    raise WJoinError(
        "WJ107",
        f"{kind.words}{' of streams' if streaming else ''} cannot decide this condition of ON: {why}",
        span=span,
        help="compare columns of one type, or compute the values in a subquery",
    )
