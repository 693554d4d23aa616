"""The one stage of a join of two streams that is not an inner one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.tokens import scan
from wjoin.planner.conditions.conjuncts import Equality, Side
from wjoin.planner.plan.checks import Operand
from wjoin.planner.plan.physical import Join, Stage
from wjoin.planner.request import Planning
from wjoin.planner.text.edits import Edit, apply_edits
from wjoin.planner.text.literals import literal


def outer_stage(
    planning: Planning, staged: Sequence[Stage], late: Sequence[Side], tied: Sequence[Operand] = ()
) -> Join:
    """Return the stage with the kind of the join. ``late``: sides of equalities that no key enforces.

    ``tied``: the columns of the second stream by which an ASOF JOIN chooses among rows of one instant.

    Raises WJoinError WJ107 for what only a join of tables can do.
    """
    bound = planning.bound
    (stage,) = staged
    if not isinstance(stage, Join):
        raise AssertionError("two streams are joined by one stage")
    asof = bound.kind.asof
    if (planning.streaming or asof) and (late or not stage.keyed):
        of = f"{bound.kind.words}{' of streams' if planning.streaming else ''}"
        equalities = [each for each in bound.conjuncts if isinstance(each, Equality)]
        if equalities:
            message = f"{of} cannot decide an equality of these types"
            remedy = "compare columns of one type: whole numbers, strings, dates, timestamps"
            raise WJoinError("WJ107", message, span=equalities[0].span, help=remedy)
        first, second = (each.name for each in bound.sources)
        message = f"{of} needs an equality in ON"
        remedy = f"add one: ON {first}.id = {second}.id"
        raise WJoinError("WJ107", message, span=bound.sources[1].item.span, help=remedy)
    if asof:
        _refuse_endless(planning)
        return replace(stage, kind=bound.kind, nearest=bound.nearest, tied=tuple(tied))
    return replace(stage, kind=bound.kind, on=tuple(_on(planning)))


def _refuse_endless(planning: Planning) -> None:
    """Raise WJ107 where rows of an ASOF JOIN of streams would wait for ever."""
    if planning.streaming and planning.graph.windows.between(0, 1) is None:
        first, second = planning.bound.sources
        message = (
            f"no window limits how much later {second.name} may be, so rows of {first.name} wait for ever"
        )
        help = f"add one: WINDOW ({first.name}, {second.name}) = …"
        raise WJoinError("WJ107", message, span=second.item.span, help=help)


def outer_undated(kind: JoinKind) -> str:
    """Return why MATCH_TIME of a join has no watermark, empty where it can have one."""
    if kind is JoinKind.INNER:
        return ""
    return f"rows {'wait and ' if kind.asof else 'without a partner '}come later than their times"


def _on(planning: Planning) -> Iterator[str]:
    """Yield the conditions of ON as Spark reads them, with the values of parameters."""
    for each in planning.bound.conjuncts:
        if each.on is not None:
            text = f"{each.left.text} = {each.right.text}" if isinstance(each, Equality) else each.text
            yield _with_values(text, planning.request.parameters)


def _with_values(text: str, parameters: Mapping[str, object]) -> str:
    """Return a condition with literals in the place of parameters. Raises WJoinError WJ107."""
    edits = []
    for token in scan(text):
        if token.text[:1] == ":" and token.text[1:] in parameters:
            value = literal(parameters[token.text[1:]])
            if value is None:
                message = f"the value of {token.text} cannot be in ON of an outer join of tables"
                raise WJoinError("WJ107", message, help="write it into the statement")
            edits.append(Edit(token.start, token.end, value))
    return apply_edits(text, edits)
