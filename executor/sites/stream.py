"""A stream at one site or several: its sites and lineages, and the numbers of its rows."""

from dataclasses import dataclass

import numpy as np

from wjoin.parts.kernels.runs import BoolArray, Int64Array
from wjoin.sites.protocol import SiteAddress

NUMBER_BITS = 48
"""Bits of a row's number at its site; those above tell the site's place in the list of the stream's sites."""

MOST_SITES = 1 << 14
"""Sites that one stream can have at the most."""

_MASK = (1 << NUMBER_BITS) - 1


@dataclass(frozen=True)
class SiteStream:
    """A stream by its name at each of its sites; ``lineages`` are those of its numbers there, in order."""

    addresses: tuple[SiteAddress, ...]
    stream: str
    lineages: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 0 < len(self.addresses) == len(self.lineages) <= MOST_SITES:
            raise ValueError("a stream has one site or more, and a lineage at each")


def numbered(site: int, numbers: Int64Array, *, partial: bool) -> Int64Array:
    """Return numbers at one site (int64) as numbers of the stream; complements of them for partial tuples."""
    found = numbers | (site << NUMBER_BITS)
    return ~found if partial else found


def is_partial(numbers: Int64Array) -> BoolArray:
    """Return which rows have come as partial tuples."""
    return numbers < 0


def whole_numbers(numbers: Int64Array) -> Int64Array:
    """Return the numbers of a stream whatever way its rows have come."""
    return np.where(numbers < 0, ~numbers, numbers)


def sites_of(numbers: Int64Array) -> Int64Array:
    """Return the place of the site of each row, of whole numbers."""
    return numbers >> NUMBER_BITS


def at_site(numbers: Int64Array) -> Int64Array:
    """Return the number that each row has at its site, of whole numbers."""
    return numbers & _MASK
