"""Whether a statement asks for an approximate join, and what such a join cannot have."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.hints import APPROXIMATE, ERROR, approximate_goal
from wjoin.grammar.plurals import listed
from wjoin.grammar.syntax import SelectBlock
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.choose.choice import Wish, goal_wish, route_wish
from wjoin.planner.choose.likely import at_sites, likely_refusals, with_likely
from wjoin.planner.plan.approximation import Approximation
from wjoin.planner.request import Planning
from wjoin.planner.shape.counted import home_remedy
from wjoin.planner.shape.hops import MOST_STREAMS


def approximated(planning: Planning) -> Planning:
    """Add what is asked of an approximate join; over tables the join is exact whatever is asked.

    Raises WJoinError WJ505 for what no approximate join has.
    """
    block, settings = planning.request.block, planning.request.settings
    goal, route = goal_wish(block, settings), route_wish(block, settings)
    named = route is not None and ROUTES[route.part].approximate
    if (goal is None and not named) or not planning.streaming:
        return planning
    if goal is not None and route is not None and not named:
        if goal.span is None:
            return planning
        raise goal.refused(f"{route.name}({route.value}) is exact", "leave one of them out")
    asked = _asked(goal)
    wish = goal if goal is not None else route
    reason = next(_refusals(planning, _without(goal, route)), None)
    if reason is not None and wish is not None:
        if wish.span is None:
            # What a session prefers is for joins that can have it.
            return planning
        why, remedy = reason
        raise WJoinError("WJ505", f"an approximate join {why}", span=wish.span, help=remedy)
    if wish is not None and at_sites(planning):
        return with_likely(planning, asked, wish)
    return replace(planning, approximate=asked)


def asks_approximately(block: SelectBlock, settings: Mapping[str, str]) -> bool:
    """Return whether a block, or its session, asks for a join that may lose results."""
    route = route_wish(block, settings)
    named = route is not None and ROUTES[route.part].approximate
    return named or (goal_wish(block, settings) is not None and route is None)


def _asked(goal: Wish | None) -> Approximation:
    if goal is None:
        return Approximation()
    name, value = approximate_goal(*goal.value.split(" = "))
    return Approximation(error=float(value)) if name == ERROR else Approximation(messages=float(value))


def _without(goal: Wish | None, route: Wish | None) -> str:
    """Return how the join becomes an exact one."""
    asked = [] if goal is None else [APPROXIMATE]
    asked += [] if route is None else [f"{route.name}({route.value})"]
    return f"leave {listed(asked)} out"


def _refusals(planning: Planning, exact: str) -> Iterator[tuple[str, str]]:
    """Yield what no approximate join has, as it goes on after its name, and what to do; ``exact``: without
    what the join is an exact one."""
    if planning.bound.tree.joins:
        yield "has inner joins only: a row without a partner may have one that is lost", exact
    if planning.bound.collapsed:
        yield (
            "has no groups or aggregates: what is lost would make them wrong",
            ("INSERT the results INTO a sink and aggregate those, with ε in mind"),
        )
    names = planning.graph.names
    staged = [number for number in range(len(names)) if number not in planning.static]
    if at_sites(planning):
        yield from likely_refusals(planning)
        return
    if len(staged) > MOST_STREAMS:
        yield f"has {MOST_STREAMS} streams at most", f"join the others to its results, or {exact}"
    for number in staged:
        relation = planning.request.relations[number]
        if relation.site is not None:
            yield f"takes {names[number]} from its site by itself, not from nodes of Spark", exact
        if not relation.streaming:
            yield f"reads streams, and {names[number]} is a table with a window", exact
        if relation.home_column is None and relation.derived:
            yield (
                f"needs to know where the rows of {names[number]} live, which no view or subquery tells",
                home_remedy(relation),
            )
        elif relation.home_column is None:
            yield (
                f"needs to know where the rows of {names[number]} live, and its source tells neither file "
                "nor partition",
                home_remedy(relation),
            )
    if not any(each.streams >= set(staged) for each in planning.classes):
        own = [names[number] for number in staged]
        equal = " AND ".join(f"{one}.id = {other}.id" for one, other in itertools.pairwise(own))
        yield (
            "needs one key that all its streams are equal on",
            f"write one, for example {equal}, or {exact}",
        )
