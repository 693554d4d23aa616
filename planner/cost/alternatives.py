"""How much of what is inside the hull of alternative windows is inside one of them, as a ratio of volumes."""

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from wjoin.planner.cost.stage_estimates import Floats
from wjoin.planner.windows.bounds import Windows

DRAWS = 1024
"""Draws in all, and no fewer than DRAWS_OF_EACH of every alternative."""

DRAWS_OF_EACH = 32

HALF_A_UNIT = 0.5
"""Bounds are inclusive, of whole units: what they leave is half a unit wider at each end."""


@cache
def even_draws(streams: int, count: int) -> Floats:
    """Return so many numbers from 0 to 1 for each stream, one in each of as many equal parts, shuffled."""
    random = np.random.default_rng(20020226)
    places = random.random((streams, count)).argsort(axis=1)
    return np.asarray((places + random.random((streams, count))) / count)


@lru_cache(maxsize=64)
def share_inside(
    hull: Windows, alternatives: tuple[Windows, ...], members: tuple[int, ...], longest: float
) -> float:
    """Return which part of the volume of closed windows ``hull``, between ``members``, alternatives make up.

    The times of each alternative are drawn inside it, one after the other between those before, and stand for
    the product of the ranges. Where several alternatives have a draw, it counts as a part of each.
    ``longest``: how far times are apart at the most where a window is open.
    """
    if len(members) < 2:
        return 1.0
    each = max(DRAWS_OF_EACH, -(-DRAWS // len(alternatives)))
    turns = np.tile(np.arange(len(alternatives)), each)
    bounds = np.array([_bounds(windows, members) for windows in alternatives])
    draws = even_draws(len(members), len(turns))
    times, volume = _drawn(bounds[turns], draws, longest)
    apart = times[:, None, :] - times[:, :, None]
    held = sum((apart <= upper).all((1, 2)).astype(np.int64) for upper in bounds)
    inside = len(alternatives) * float((volume / np.maximum(1, held)).mean())
    whole = np.broadcast_to(_bounds(hull, members), (len(turns), len(members), len(members)))
    around = float(_drawn(whole, draws, longest)[1].mean())
    return min(1.0, inside / around) if around else 1.0


def _bounds(windows: Windows, members: Sequence[int]) -> Floats:
    """Return the greatest differences of times between members, from row to column."""
    return np.array(
        [
            [np.inf if bound is None else bound + HALF_A_UNIT for bound in row]
            for row in ([windows.between(one, other) for other in members] for one in members)
        ]
    )


def _drawn(bounds: Floats, draws: Floats, longest: float) -> tuple[npt.NDArray[np.float64], Floats]:
    """Return times inside the bounds of each draw, the first one 0, and the volume that each stands for."""
    times = np.zeros((draws.shape[1], draws.shape[0]))
    volume = np.ones(draws.shape[1])
    for place in range(1, len(draws)):
        known = times[:, :place]
        high = np.minimum((known + bounds[:, :place, place]).min(1), longest)
        low = np.maximum((known - bounds[:, place, :place]).max(1), -longest)
        length = np.maximum(0.0, high - low)
        times[:, place] = low + draws[place] * length
        volume = volume * length
    return times, volume
