"""What joins that are not inner ones ask of their block."""

from collections.abc import Collection, Iterator, Sequence
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
from wjoin.grammar.window_terms import absent_streams, counts_rows
from wjoin.planner.conditions.conjuncts import OF_TABLE, Conjunct, Residual, streams_of
from wjoin.planner.conditions.expressions import is_exact
from wjoin.planner.conditions.readable import ReadCondition, Unread
from wjoin.planner.text.joined_columns import UsingPair
from wjoin.planner.text.scope import ScopeItem

MOST_MISSING = 62
"""How many streams may be missing in what joins make: which ones are is told by as many bits of a number."""

_LEFT_MAY_MISS = (JoinKind.RIGHT, JoinKind.FULL)

_KEEPS_RIGHT_SIDE = (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)
"""The joins whose results have the columns of their right side."""

_OF_SETTING = "a FLOAT and a whole number meet as FLOAT or as DOUBLE, as a setting says"

_KEEPS = "a {} JOIN keeps rows of {}, a table, whose joins Spark makes after the others"
_KEEPS_BESIDE_STREAMS = (
    "a {} JOIN keeps rows of {}, a table: more streaming rows that join them may always arrive"
)


def tree_of(sources: Sequence[ScopeItem], static: Collection[int], block: SelectBlock) -> JoinTree:
    """Return the joins of a block. Raises WJ107 for one that is not supported."""
    absent = absent_items(sources, block)
    kinds, sizes = ([getattr(each.item, name) for each in sources] for name in ("kind", "joined"))
    tree = join_tree(kinds, absent, static, sizes)
    tree = replace(tree, counted=block.window is not None and counts_rows(block.window))
    _refuse_nested(sources, tree.static)
    if len(tree.optional) > MOST_MISSING:
        last = sources[max(tree.optional)]
        message = (
            f"{len(tree.optional)} items of FROM may have no row in a result; at most {MOST_MISSING} may"
        )
        raise WJoinError("WJ107", message, span=last.item.span, help="join some of them in a subquery")
    for each, before in _with_left(sources, 0, len(sources)):
        if each.number not in absent:
            _refuse_order(sources, each, before, tree.static)
    return tree


def _with_left(
    sources: Sequence[ScopeItem], start: int, stop: int
) -> Iterator[tuple[ScopeItem, Sequence[ScopeItem]]]:
    """Yield the first item of the right side of each join, with the items of the left side."""
    place = start + 1
    while place < stop:
        yield sources[place], sources[start:place]
        yield from _with_left(sources, place, place + sources[place].item.joined)
        place += sources[place].item.joined


def _refuse_nested(sources: Sequence[ScopeItem], static: Collection[int]) -> None:
    """Raise WJ107 for a table that would be another in parentheses on the right side of a join.

    Spark joins it after the streams. A LEFT JOIN leaves nothing out, and is the same then.
    """
    for source in sources:
        inside = range(source.number, source.number + source.item.joined)
        if len(inside) == 1 or source.item.kind is JoinKind.INNER:
            continue
        for each in (sources[number] for number in inside if number in static):
            left = each is not source and each.item.kind is JoinKind.LEFT
            if left and source.item.kind in _KEEPS_RIGHT_SIDE:
                continue
            message = (
                f"{source.item.kind.words} has {each.name}, a table, in parentheses on its right side: "
                "Spark joins it after the streams"
            )
            remedy = f"join {each.name} in a subquery"
            raise WJoinError("WJ107", message, span=each.item.span, help=remedy)


def in_parentheses_of(sources: Sequence[ScopeItem], item: int) -> range:
    """Return the items before one in the parentheses around it on the right side of a join, or all before."""
    starts = (each.number for each in sources if each.number < item < each.number + each.item.joined)
    return range(max(starts, default=0), item)


def _refuse_order(
    sources: Sequence[ScopeItem], source: ScopeItem, before: Sequence[ScopeItem], static: Collection[int]
) -> None:
    """Raise WJ107 for a join that cannot be the same where the tables are joined after the streams."""
    kind, name, is_table = source.item.kind, source.name, source.number in static
    tables = [each.name for each in before if each.number in static]
    begins = bool(before) and len(tables) == len(before) and not is_table
    streaming = any(each.relation.streaming for each in sources)
    keeps = _KEEPS_BESIDE_STREAMS if streaming else _KEEPS
    if kind is JoinKind.INNER:
        return
    if kind.asof and is_table:
        why = ": Spark joins tables after the streams" if streaming else " without event time"
        message, remedy = f"{kind.words} cannot take rows of {name}, a table{why}", "use LEFT JOIN"
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
        message = f"a condition names {names}, and neither may have a row"
        raise WJoinError(
            "WJ107", message, span=conjunct.span, help="compare each with a stream that is not under NOT"
        )
    if both and conjunct.on not in (None, both[0]):
        own, name = sources[conjunct.on or 0].name, sources[both[0]].name
        message = f"ON of the join with {own} names {name}, which must have no row"
        raise WJoinError(
            "WJ107", message, span=conjunct.span, help=f"compare {name} with a stream that is not under NOT"
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
    if len(pair.left) > 1 and (tree.ours or any(each.relation.streaming for each in sources)):
        first, *_ = shown = [sources[each.stream].expression(each.column.name) for each in pair.left]
        message = f"a column that a FULL JOIN takes from {listed(shown, 'or')} is compared by a later join"
        remedy = f"write ON {first} = {sources[pair.right.stream].expression(pair.right.column.name)}"
        raise WJoinError("WJ107", message, span=pair.span, help=remedy)


def refuse_windowless(
    sources: Sequence[ScopeItem], tree: JoinTree, block: SelectBlock, said: Sequence[Conjunct]
) -> None:
    """Raise WJ107 for an ASOF JOIN of streams without a window, also one that is ``said`` by conditions."""
    if block.window is not None or block.implicit or not any(each.relation.streaming for each in sources):
        return
    for join in tree.joins:
        if not join.kind.asof or join.item in tree.static:
            continue
        if any(not streams_of(each).isdisjoint(join.right) for each in said):
            continue
        first, second = (sources[each].name for each in (join.left[0], join.item))
        message = f"{join.kind.words} of streams needs a window, in which the nearest row is looked for"
        help = f"add one: WINDOW ({first}, {second}) = …"
        raise WJoinError("WJ107", message, span=sources[join.on].item.span, help=help)


def refuse_undecided(tree: JoinTree, conjunct: Conjunct, span: Span, sources: Sequence[ScopeItem]) -> None:
    """Refuse a condition of ON that its join cannot decide: WJ107.

    Whether a row has a partner must be known when its rows are joined. Spark itself joins tables.
    """
    place = -1 if conjunct.on is None else tree.number_of(conjunct.on)
    staged = tree.ours or any(each.relation.streaming for each in sources)
    if place >= 0:
        join = tree.joins[place]
        _refuse_out_of_scope(join, tree.static, conjunct, span, sources)
    elif conjunct.on is not None and tree.joins:
        of_part = LaterJoin(JoinKind.INNER, tree.part(place), (conjunct.on,), conjunct.on)
        _refuse_out_of_scope(of_part, tree.static, conjunct, span, sources)
    if conjunct.on is None and (hidden := streams_of(conjunct) & tree.hidden):
        name = sources[min(hidden)].name
        message = f"a SEMI or ANTI JOIN shows no columns of {name}"
        raise WJoinError("WJ107", message, span=span, help=f"join {name} by JOIN or LEFT JOIN")
    if conjunct.on is None or not isinstance(conjunct, Residual):
        return
    own = tree.joins[place].kind if place >= 0 else JoinKind.INNER
    above = (join.kind for join, side in tree.above(place) if join.tells(side))
    kind = next(above, None) if own is JoinKind.INNER else own
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
    remedy = "compare columns of one type, or compute the values in a subquery"
    if why == _OF_SETTING:
        remedy = "cast both to one type, for example to DOUBLE"
    if not ours:
        declared = any(each.column.declared is not None for each in conjunct.columns)
        if not declared and not conjunct.matches:
            return
        why = "a column of type CHAR" if declared else "a match function"
    raise WJoinError(
        "WJ107",
        f"{kind.words}{' of streams' if streaming else ''} cannot decide this condition of ON: {why}",
        span=span,
        help=remedy,
    )


def _refuse_out_of_scope(
    join: LaterJoin, static: Collection[int], conjunct: Conjunct, span: Span, sources: Sequence[ScopeItem]
) -> None:
    """Raise WJ107 for a condition of ON on what is joined later, or of which a join shows no columns."""
    known, first = {*join.left, *join.right}, join.left[0]
    if join.item in static and join.kind is sources[join.item].item.kind:
        first = in_parentheses_of(sources, join.item).start
        known = {each for each in known if first <= each <= join.item}
    unknown = streams_of(conjunct) - known
    if unknown:
        name, own = sources[min(unknown)].name, sources[join.on].name
        message = f"ON of the join with {own} cannot read {name}: "
        if min(unknown) in static and join.item not in static:
            message, remedy = (
                f"{message}Spark joins this table after the streams",
                f"join {name} in a subquery",
            )
        elif min(unknown) < first and min(unknown) not in _hidden(sources):
            message += "it stands outside the parentheses"
            remedy = "write this in ON after the parentheses"
        elif min(unknown) > max(known):
            message, remedy = f"{message}it is joined later", f"join {name} before {own}"
        else:
            message += "a SEMI or ANTI JOIN shows no columns of it"
            remedy = f"join {name} by JOIN or LEFT JOIN"
        raise WJoinError("WJ107", message, span=span, help=remedy)


def _hidden(sources: Sequence[ScopeItem]) -> frozenset[int]:
    """Return the items of which SEMI and ANTI JOINs show no columns."""
    joins = (each for each in sources if each.item.kind.one_sided)
    return frozenset(n for each in joins for n in range(each.number, each.number + each.item.joined))
