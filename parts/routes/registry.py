"""The routes that there are, by name, in the order in which they are preferred."""

from wjoin.parts.routes.hash_route import HashRoute
from wjoin.parts.routes.route import Route
from wjoin.parts.routes.single_route import SingleRoute
from wjoin.parts.routes.slice_routes import AlignedRoute, CoordinatedRoute, RangeRoute, SkewRoute, SliceRoute
from wjoin.parts.routes.summary_route import SummaryRoute
from wjoin.parts.summaries.registry import SUMMARIES

ROUTES: dict[str, Route] = {
    each.name: each
    for each in (
        HashRoute(),
        SingleRoute(),
        SkewRoute(),
        SliceRoute(),
        AlignedRoute(),
        CoordinatedRoute(),
        RangeRoute(),
        *map(SummaryRoute, SUMMARIES.values()),
    )
}

APPROXIMATE = "approximate"
"""What stands for any approximate route where a statement asks for one."""


def routes_of(wished: str) -> tuple[str, ...]:
    """Return the routes that a statement may have that asks for one by name, or for any approximate one."""
    if wished != APPROXIMATE:
        return (wished,)
    # The newest summaries first: they tell most with as many bytes.
    return tuple(name for name in reversed(ROUTES) if ROUTES[name].approximate)


def plainest(*, keyed: bool, inputs: int, hop: bool = False) -> str:
    """Return the name of the route to prefer where nothing is known of bands."""
    return applicable(keyed=keyed, inputs=inputs, near=False, hop=hop)[0]


def applicable(*, keyed: bool, inputs: int, near: bool, hop: bool = False) -> tuple[str, ...]:
    """Return the names of the routes that a stage can have (``Route.applies``), the one to prefer first.

    ``hop``: its partial results go on to the next stage, or on a key come together.
    """
    if hop and not keyed:
        return tuple(name for name, route in ROUTES.items() if route.hops and not route.approximate)
    found = (
        name
        for name, route in ROUTES.items()
        if not route.approximate and route.applies(keyed=keyed, inputs=inputs, near=near)
    )
    return tuple(name for name in found if not hop or not ROUTES[name].slices)
