"""The routes that there are, by name, in the order in which they are preferred."""

from wjoin.parts.routes.hash_route import HashRoute
from wjoin.parts.routes.route import Route
from wjoin.parts.routes.single_route import SingleRoute
from wjoin.parts.routes.slice_routes import AlignedRoute, SliceRoute

ROUTES: dict[str, Route] = {
    each.name: each for each in (HashRoute(), SingleRoute(), SliceRoute(), AlignedRoute())
}
