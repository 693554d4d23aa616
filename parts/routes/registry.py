"""The routes that there are, by name, in the order in which they are preferred."""

from wjoin.parts.routes.hash_route import HashRoute
from wjoin.parts.routes.route import Route
from wjoin.parts.routes.single_route import SingleRoute
from wjoin.parts.routes.slice_routes import AlignedRoute, CoordinatedRoute, SliceRoute

ROUTES: dict[str, Route] = {
    each.name: each for each in (HashRoute(), SingleRoute(), SliceRoute(), AlignedRoute(), CoordinatedRoute())
}


def applicable(*, keyed: bool, inputs: int) -> tuple[str, ...]:
    """Return the names of the routes that a stage of so many inputs can have, the one to prefer first."""
    return tuple(name for name, route in ROUTES.items() if route.applies(keyed=keyed, inputs=inputs))
