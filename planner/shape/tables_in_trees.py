"""What a tree of joins cannot have, because Spark joins the tables in it after the streams."""

from collections.abc import Collection, Sequence
from itertools import permutations

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.join_tree import JoinTree
from wjoin.grammar.spans import Span
from wjoin.planner.bind.binding import BoundSelect
from wjoin.planner.bind.outer_joins import in_parentheses_of
from wjoin.planner.conditions.conjuncts import Equality, streams_of
from wjoin.planner.shape.tree_windows import TreeWindows


def refuse_of_tables(
    tree: JoinTree,
    pairs: Sequence[frozenset[int]],
    names: Sequence[str],
    span: Span,
    written: Collection[int],
) -> None:
    """Raise WJ107 for a window of a table that the join of a stream would have to know.

    ``written`` are the items that FROM joins where they stand, not a path with NOT.
    """
    for table, stream in (each for pair in pairs for each in permutations(sorted(pair))):
        if table not in tree.static or stream in tree.static:
            continue
        inner = tree.kind_of(table) is tree.kind_of(stream) is JoinKind.INNER
        before = table in written and table < stream and not inner
        if before or stream not in tree.joins[tree.place(table)].left:
            message = (
                f"the join with {names[stream]} cannot have a window with {names[table]}: "
                "Spark joins this table after the streams"
            )
            remedy = f"join {names[table]} after {names[stream]}, or in a subquery"
            raise WJoinError("WJ107", message, span=span, help=remedy)


def refuse_unlike(bound: BoundSelect, windows: TreeWindows, span: Span) -> None:
    """Raise WJ107 for a table in parentheses on the right side of an outer join that Spark cannot join last.

    Then it must have no row where what stands with it has none.
    """
    sources = bound.sources
    for table in sorted(bound.tree.static):
        beside = in_parentheses_of(sources, table)
        around = [each.item.kind for each in sources if each.number < table < each.number + each.item.joined]
        if {*around} <= {JoinKind.INNER}:
            continue
        name, one = sources[table].name, sources[beside.start].name
        sides = (
            side
            for each in bound.conjuncts
            if isinstance(each, Equality) and each.on == table and table in streams_of(each)
            for side in (each.left, each.right)
        )
        if not any(side.stream in beside and side.plain is not None for side in sides):
            message = f"ON of {name}, a table in parentheses, has no equality with a column of {one}"
            raise WJoinError(
                "WJ107", message, span=sources[table].item.span, help=f"join {name} in a subquery"
            )
        if any(table in each and not each <= {*beside, table} for each in windows.conditions):
            message = f"a window of {name}, a table in parentheses, names what stands outside them"
            raise WJoinError("WJ107", message, span=span, help=f"join {name} in a subquery")
