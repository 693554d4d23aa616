"""A tree of joins in the order in which they run, and the windows that it cannot have."""

from collections.abc import Collection, Sequence

from wjoin.grammar import syntax
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_tree import JoinTree, Link, arranged
from wjoin.grammar.spans import Span
from wjoin.planner.bind.binding import BoundSelect
from wjoin.planner.bind.outer_joins import absent_items
from wjoin.planner.conditions.conjuncts import (
    ColumnComparison,
    Conjunct,
    Equality,
    PredicateCall,
    Residual,
    streams_of,
)
from wjoin.planner.conditions.expressions import never_true
from wjoin.planner.conditions.readable import ReadCondition, Unread
from wjoin.planner.shape.tables_in_trees import refuse_of_tables, refuse_unlike
from wjoin.planner.shape.tree_windows import TreeWindows, edges_in, ends, rows_in


def arranged_tree(bound: BoundSelect, windows: TreeWindows, block: syntax.SelectBlock) -> JoinTree:
    """Return the joins with what they ask. Raises WJ107 and WJ301 for windows that they cannot have."""
    tree = bound.tree
    span = block.source if block.window is None else block.window.span
    pairs = [each for each in windows.conditions if len(each) == 2]
    decided = [
        Link(
            frozenset(streams_of(each)),
            _needed(each, tree),
            each.on,
            called=each.on is not None and isinstance(each, PredicateCall),
        )
        for each in bound.conjuncts
        if each.on not in tree.static and is_decided(each, tree)
    ]
    choices = (
        Link(frozenset().union(*each), frozenset.intersection(*each), window=True) for each in windows.choices
    )
    absent = absent_items(bound.sources, block)
    for number in sorted(absent) if len(bound.sources) > 2 else ():
        if any(number in streams for choice in windows.choices for streams in choice):
            name = bound.sources[number].name
            message = f"a path with NOT {name} cannot be one of several windows joined by OR"
            raise WJoinError(
                "WJ107", message, span=span, help="join the path by AND, or write two statements"
            )
    given = (Link(pair, pair, window=True) for pair in map(ends, windows.given.bounds))
    counted = [frozenset({stream}) for stream in windows.counted]
    of_rows = [(each, each) for each in counted]
    of_rows += [(frozenset().union(*each), frozenset.intersection(*each)) for each in windows.counted_choices]
    stays = bool(windows.counted_choices)
    found = arranged(tree, [*given, *choices, *decided], of_rows, stays=stays)
    windows.refuse_lost(found)
    if any(each.streaming for each in (source.relation for source in bound.sources)):
        timeless = [number for number, time in enumerate(bound.times) if time is None]
        if not block.implicit:
            _refuse_unconnected(found, windows, span, timeless)
        names = [source.name for source in bound.sources]
        written = {each.number for each in bound.sources if tree.kind_of(each.number) is each.item.kind}
        refuse_of_tables(found, pairs, names, span, written)
    refuse_unlike(bound, windows, span)
    return found


def is_decided(conjunct: Conjunct, tree: JoinTree) -> bool:
    """Return whether a join decides a condition: others are tested after all joins."""
    if conjunct.on is None and not tree.decides(streams_of(conjunct)):
        return False
    return not isinstance(conjunct, Residual | PredicateCall) or not isinstance(conjunct.read, Unread)


def _needed(conjunct: Conjunct, tree: JoinTree) -> frozenset[int]:
    """Return the streams of a condition that must have a row for it to be true."""
    streams = frozenset(streams_of(conjunct))
    before = 0 if conjunct.on is None else max(0, tree.number_of(conjunct.on))
    unsure = streams & tree.missing(before)
    match conjunct:
        case Equality(left, right):
            unsure &= {side.stream for side in (left, right) if side.plain is None}
        case Residual(read=ReadCondition(expression, columns)):
            places = {
                stream: {n for n, each in enumerate(columns) if each.stream == stream} for stream in unsure
            }
            unsure = frozenset(each for each in unsure if not never_true(expression, places[each]))
        case ColumnComparison() | PredicateCall():
            unsure = frozenset()
    return streams - unsure


def _refuse_unconnected(tree: JoinTree, windows: TreeWindows, span: Span, timeless: Collection[int]) -> None:
    """Raise WJ301 where no window links a join to what is there before it."""
    for number in range(tree.first, len(tree.joins)):
        if number >= 0 and tree.joins[number].item in timeless:
            continue
        for alternative in windows.of_join(tree, number):
            # Among several joins one alternative alone ends no waiting.
            chosen = rows_in(alternative) if len(windows.names) == 2 else ()
            counted = {each.stream for each in (*windows.given.counted, *chosen)}
            if counted.union(timeless).issuperset(range(len(windows.names))):
                # Where rows of each stream are counted, no window in time need link them.
                continue
            # A condition that leaves one side open links nothing.
            edges = (e for e in edges_in(alternative) if not e.condition or ends(e) in windows.held)
            pairs = [*map(ends, edges)]
            if (apart := _apart(tree, number, pairs)) is None:
                continue
            first, second = (windows.names[each] for each in apart)
            message = f"the windows do not connect {first} and {second} where these are joined"
            help = f"add one, for example WINDOW ({first}, {second}) = …"
            raise WJoinError("WJ301", message, span=span, help=help)


def _apart(tree: JoinTree, number: int, pairs: Sequence[frozenset[int]]) -> tuple[int, int] | None:
    """Return two streams of a join that no bounds link, None where all are linked."""
    if number >= 0:
        join = tree.joins[number]
        return None if any(map(join.crossed_by, pairs)) else (join.left[0], join.item)
    groups = [{stream} for stream in tree.part(number)]
    for first, second in pairs:
        one, other = (next(each for each in groups if stream in each) for stream in (first, second))
        if one is not other:
            groups.remove(other)
            one |= other
    return (min(groups[0]), min(groups[1])) if len(groups) > 1 else None
