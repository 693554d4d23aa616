"""What joins that are not inner ones ask of their block."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise

from wjoin.grammar import syntax
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.join_tree import JoinTree, LaterJoin, join_tree
from wjoin.grammar.plurals import listed
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import SelectBlock
from wjoin.grammar.tokens import identifier, is_name, scan
from wjoin.planner.conditions.conjuncts import (
    OF_TABLE,
    Conjunct,
    PredicateCall,
    Residual,
    streams_of,
)
from wjoin.planner.conditions.expressions import is_exact
from wjoin.planner.conditions.readable import ReadCondition, Unread
from wjoin.planner.text.scope import ScopeItem, UsingPair, comma_between
from wjoin.planner.windows.window_graph import absent_streams

_LEFT_MAY_MISS = (JoinKind.RIGHT, JoinKind.FULL)

_OF_SETTING = "a FLOAT and a whole number meet as FLOAT or as DOUBLE, as a setting says"

_KEEPS = "a {} JOIN keeps rows of {}, a table, whose joins Spark makes after the others"
_KEEPS_BESIDE_STREAMS = (
    "a {} JOIN keeps rows of {}, a table: among streams it is never decided that one has no partner"
)


def tree_of(text: str, sources: Sequence[ScopeItem], static: Collection[int], block: SelectBlock) -> JoinTree:
    """Return the joins of a block. Raises WJ107 for one that is not supported."""
    absent = absent_items(sources, block)
    tree = join_tree([each.item.kind for each in sources], absent, static)
    for each in sources:
        if each.number not in absent:
            _refuse_order(sources, each, tree.static)
    for join in tree.joins:
        if join.kind is not JoinKind.INNER and join.item not in tree.static:
            _refuse_unsupported(text, sources, block, join)
    return tree


def _refuse_order(sources: Sequence[ScopeItem], source: ScopeItem, static: Collection[int]) -> None:
    """Raise WJ107 for a join that cannot be the same where the tables are joined after the streams."""
    before = sources[: source.number]
    kind, name, is_table = source.item.kind, source.name, source.number in static
    tables = [each.name for each in before if each.number in static]
    begins = bool(before) and len(tables) == len(before) and not is_table
    streaming = any(each.relation.streaming for each in sources)
    keeps = _KEEPS_BESIDE_STREAMS if streaming else _KEEPS
    if kind is JoinKind.INNER:
        return
    if kind.asof and is_table:
        message, remedy = (
            f"{kind.words} cannot take rows of {name}, a table without event time",
            "use LEFT JOIN",
        )
    elif kind in _LEFT_MAY_MISS and is_table:
        message, remedy = keeps.format(kind.value, name), "write LEFT JOIN"
    elif begins:
        message = keeps.format(kind.value, tables[0])
        if kind is JoinKind.RIGHT:
            message = (
                f"a {kind.value} JOIN begins with {tables[0]}, a table, which Spark joins after the streams"
            )
        remedy = f"begin with {name}: FROM {name} LEFT JOIN {tables[0]}"
    elif kind in _LEFT_MAY_MISS and tables:
        message = f"a {kind.value} JOIN follows {tables[0]}, a table, which Spark joins after the streams"
        remedy = f"join {tables[0]} after {name}, or in a subquery"
    else:
        return
    raise WJoinError("WJ107", message, span=source.item.span, help=remedy)


def absent_items(sources: Sequence[ScopeItem], block: SelectBlock) -> frozenset[int]:
    """Return the numbers of the streams that a path names with NOT. Raises WJ107 for one that is joined."""
    found = set()
    for name in absent_streams(block.window) if block.window is not None else ():
        for each in sources:
            if name.matches(each.name):
                found.add(each.number)
                if each.item.kind is not JoinKind.INNER:
                    message = f"a path has NOT {each.name}, which a {each.item.kind.value} JOIN joins"
                    raise WJoinError("WJ107", message, span=name.span, help="list it with a comma")
    return frozenset(found)


def about_absent(
    text: str, conjunct: syntax.Conjunct, absent: Collection[int], sources: Sequence[ScopeItem]
) -> syntax.Conjunct:
    """Return a condition of a block as one of the ON of the stream with NOT that it names, if it names one.

    Raises WJ107 where it names two.
    """
    tokens = scan(conjunct.span.of(text))
    named = [
        number
        for number in sorted(absent)
        for token, dot in pairwise(tokens)
        if dot.text == "." and is_name(token) and identifier(token).matches(sources[number].name)
    ]
    both = sorted(set(named))
    if len(both) > 1:
        names = listed([sources[each].name for each in both])
        message = f"a condition names {names}, of each of which no row is to be there"
        raise WJoinError(
            "WJ107", message, span=conjunct.span, help="compare each with a stream that is there"
        )
    if both and conjunct.on not in (None, both[0]):
        own, name = sources[conjunct.on or 0].name, sources[both[0]].name
        message = f"ON of the join with {own} names {name}, of which no row is to be there"
        raise WJoinError(
            "WJ107", message, span=conjunct.span, help=f"compare {name} with a stream that is there"
        )
    return replace(conjunct, on=both[0]) if both else conjunct


def about_exists(error: WJoinError, block: SelectBlock) -> WJoinError:
    """Return an error about a join; of an EXISTS it says which join that is."""
    span = error.span
    inside = (each for each in block.exists if span and each.span.start <= span.start < each.span.end)
    asked = next(inside, None)
    if asked is None or error.code != "WJ107":
        return error
    kind = block.items[asked.item].kind.value
    remedy = f"{error.help}; this EXISTS is a {kind} JOIN, and its WHERE is the ON of that"
    return WJoinError(error.code, error.message, span=span, help=remedy)


def refuse_merged(pair: UsingPair, sources: Sequence[ScopeItem], tree: JoinTree) -> None:
    """Raise WJ107 where USING compares what an earlier FULL JOIN of streams takes from either side."""
    if len(pair.left) > 1 and (tree.asof or any(each.relation.streaming for each in sources)):
        first, *_ = shown = [sources[each.stream].expression(each.column.name) for each in pair.left]
        message = f"a column that a FULL JOIN takes from {listed(shown, 'or')} is compared by a later join"
        remedy = f"write ON {first} = {sources[pair.right.stream].expression(pair.right.column.name)}"
        raise WJoinError("WJ107", message, span=pair.span, help=remedy)


def _refuse_unsupported(text: str, sources: Sequence[ScopeItem], block: SelectBlock, join: LaterJoin) -> None:
    kind, span = join.kind, sources[join.item].item.span
    tables = not any(each.relation.streaming for each in sources)
    if block.window is None and not tables:
        first, second = (sources[each].name for each in (join.left[0], join.item))
        message = f"{kind.words} of streams needs a window, in which the nearest row is looked for"
        raise WJoinError("WJ107", message, span=span, help=f"add one: WINDOW ({first}, {second}) = …")
    if kind not in _LEFT_MAY_MISS:
        return
    before = sources[: join.item]
    if any(comma_between(text, *pair) for pair in pairwise(before)):
        if sources[join.item].item.turned:
            message = "joins in parentheses on the right side of a join follow a comma"
            first = sources[0].name
            raise WJoinError("WJ107", message, span=span, help=f"list {first} after them: FROM … , … {first}")
        message = f"{kind.words} follows a comma, and so joins only what comes after it"
        raise WJoinError("WJ107", message, span=span, help="write JOIN in the place of the comma")


def refuse_undecided(tree: JoinTree, conjunct: Conjunct, span: Span, sources: Sequence[ScopeItem]) -> None:
    """Refuse a condition of ON that its join cannot decide: WJ107.

    Whether a row has a partner must be known when its rows are joined. Spark itself joins tables.
    """
    place = -1 if conjunct.on is None else tree.place(conjunct.on)
    staged = tree.asof or any(each.relation.streaming for each in sources)
    if place >= 0:
        join = tree.joins[place]
        _refuse_out_of_scope(join, tree.static, conjunct, span, sources)
        if staged and join.item not in tree.static:
            _refuse_before(join, conjunct, span, sources)
    elif conjunct.on is not None and tree.joins:
        of_base = LaterJoin(JoinKind.INNER, tree.base, conjunct.on)
        _refuse_out_of_scope(of_base, tree.static, conjunct, span, sources)
    if conjunct.on is None and (hidden := streams_of(conjunct) & tree.hidden):
        name = sources[min(hidden)].name
        message = f"a SEMI or ANTI JOIN shows no columns of {name}"
        raise WJoinError("WJ107", message, span=span, help=f"join {name} by JOIN or LEFT JOIN")
    if conjunct.on is None or not isinstance(conjunct, Residual):
        return
    kind = next((each.kind for each in tree.joins[max(0, place) :] if _decides(each, place, tree)), None)
    if kind is None:
        return
    of_table = conjunct.on in tree.static
    if of_table and isinstance(conjunct.read, Unread) and conjunct.read.what != OF_TABLE:
        message = f"{kind.words} with a table cannot decide this condition of ON: {conjunct.read.what}"
        raise WJoinError("WJ107", message, span=span, help="compute the value in a subquery")
    streaming = not of_table and any(each.relation.streaming for each in sources)
    ours = staged and not of_table
    if ours and isinstance(conjunct.read, ReadCondition) and is_exact(conjunct.read.expression):
        return
    why = conjunct.read.what if isinstance(conjunct.read, Unread) else _OF_SETTING
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


def _decides(join: LaterJoin, place: int, tree: JoinTree) -> bool:
    """Return whether a condition of the join with the number ``place`` must be decided because of a join.

    What inner joins ask can be tested after all joins, unless a later one tells what has no partner there.
    """
    if place >= 0 and join is tree.joins[place]:
        return join.kind is not JoinKind.INNER
    return join.kind in _LEFT_MAY_MISS


def _refuse_out_of_scope(
    join: LaterJoin, static: Collection[int], conjunct: Conjunct, span: Span, sources: Sequence[ScopeItem]
) -> None:
    """Raise WJ107 for a condition of ON on what is joined later, or of which a join shows no columns."""
    known = {*join.left, join.item}
    if join.item in static and join.kind is sources[join.item].item.kind:
        known = {each for each in known if each <= join.item}
    unknown = streams_of(conjunct) - known
    if unknown:
        name, own = sources[min(unknown)].name, sources[join.item].name
        message = f"ON of the join with {own} cannot read {name}: "
        if min(unknown) in static and join.item not in static:
            message, remedy = (
                f"{message}Spark joins this table after the streams",
                f"join {name} in a subquery",
            )
        elif sources[min(unknown)].item.turned and min(unknown) > join.item:
            message += "it stands outside the parentheses"
            remedy = "write this in ON after the parentheses"
        elif min(unknown) > join.item:
            message, remedy = f"{message}it is joined later", f"join {name} before {own}"
        else:
            message += "a SEMI or ANTI JOIN shows no columns of it"
            remedy = f"join {name} by JOIN or LEFT JOIN"
        raise WJoinError("WJ107", message, span=span, help=remedy)


def _refuse_before(join: LaterJoin, conjunct: Conjunct, span: Span, sources: Sequence[ScopeItem]) -> None:
    """Raise WJ107 for a predicate in ON on what is there before a join alone: it is called for what meets."""
    streams = streams_of(conjunct)
    if isinstance(conjunct, PredicateCall) and join.item not in streams:
        names, own = listed([sources[each].name for each in sorted(streams)]), sources[join.item].name
        message = f"ON of the join with {own} calls a predicate on {names} alone"
        raise WJoinError("WJ107", message, span=span, help="join these in a subquery")
