"""The predicates that wjoin brings, and those of installed packages."""

from functools import cache
from importlib.metadata import entry_points

from wjoin.udfs import images, places, sets, texts, vectors
from wjoin.udfs.predicate import PREDICATES, Predicate

__all__ = ["ENTRY_POINTS", "images", "known_predicates", "places", "sets", "texts", "vectors"]

ENTRY_POINTS = "wjoin.predicates"
"""The group of entry points by which a package names modules that register predicates."""


def known_predicates() -> dict[str, Predicate]:
    """Return the predicates of this process, wjoin's own and others, by their names in lower case."""
    _load_packages()
    return dict(PREDICATES)


@cache
def _load_packages() -> None:
    for each in entry_points(group=ENTRY_POINTS):
        each.load()
