"""Which sequences of joins are planned: on all that links their streams, and chains of joins of two."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.bind.binding import BoundSelect
from wjoin.planner.choose.choice import wished_route
from wjoin.planner.choose.layouts import sequence_name
from wjoin.planner.conditions.conjuncts import ColumnComparison, PredicateCall, Residual
from wjoin.planner.conditions.readable import Unread
from wjoin.planner.request import Planning
from wjoin.planner.shape.counted import rows_terms
from wjoin.planner.shape.decompose import decompose, in_pairs
from wjoin.planner.shape.later_joins import of_part, with_later_joins


def sequences(planning: Planning) -> Planning:
    """Add the sequences of joins, and whether hops may stand in the place of one."""
    request, bound, classes = planning.request, planning.bound, planning.classes
    names, layouts = planning.graph.names, request.layouts
    # Which of the classes that link the same streams begins makes no difference.
    own = of_part(bound.tree, classes)
    numbered = [(number, each) for number, each in enumerate(own) if each.parts]
    firsts = (None, *{each.streams: number for number, each in reversed(numbered)}.values())
    apart = planning.static.union(*(side for each in bound.tree.joins for side in each.sides))
    apart = apart.difference(bound.tree.base) if bound.tree.joins else planning.static
    bases = tuple(dict.fromkeys(decompose(len(names), own, apart, first=each) for each in firsts))
    whole = tuple(with_later_joins(each, bound.tree, classes) for each in bases)
    wished = wished_route(request.block, request.settings, approximate=planning.approximate is not None)
    chains = wished is not None and ROUTES[wished].pairs
    # A checkpoint goes on with the stages that it has, also on one core.
    kept = layouts.stages if planning.streaming else None
    known = {sequence_name(each, names) for each in whole}
    several = request.costs.workers > 1 or (kept is not None and kept not in known)
    drafts = () if chains else whole
    if chains or (wished is None and several):
        links = tuple(_links(bound))
        paired = (pairs for each in bases for pairs in in_pairs(each, links))
        later_paired = (with_later_joins(each, bound.tree, classes) for each in paired)
        drafts = tuple(dict.fromkeys([*drafts, *later_paired]))
    hopping = several if wished is None else ROUTES[wished].hops
    exact = planning.approximate is None
    hopping = hopping and not bound.tree.staged.joins and not (exact and rows_terms(planning))
    return replace(planning, whole=whole, drafts=drafts, hopping=hopping)


def _links(bound: BoundSelect) -> Iterator[Collection[int]]:
    """Yield the streams of each condition that a stage can check of several, besides equalities."""
    for each in bound.conjuncts:
        if isinstance(each, ColumnComparison):
            yield each.streams
        elif isinstance(each, PredicateCall | Residual) and not isinstance(each.read, Unread):
            yield each.read.streams
        elif isinstance(each, Residual) and each.band is not None:
            yield each.band.streams
