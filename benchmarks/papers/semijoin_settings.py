"""Semijoin streams: the equations (section 5.1), and the settings of 5.2: defaults, and five sweeps away."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from wjoin.planner.cost.semijoin import NetworkLink, match_probability

ATTRIBUTE = 5
"""Bytes of an attribute, in the paper."""


@dataclass(frozen=True)
class Sides:
    """The paper's two streams: rates in tuples a second, windows in tuples, sizes of a tuple in bytes."""

    rate_1: float
    rate_2: float
    window_1: float
    window_2: float
    full: float
    partial: float
    distinct: float


def simple_seconds(sides: Sides, link: NetworkLink) -> float:
    """Return the seconds of transmission in a second where every tuple is shipped whole (equation 1)."""
    return sides.rate_1 * link.seconds(1, sides.full)


def semijoin_seconds(sides: Sides, link: NetworkLink) -> float:
    """Return the seconds of transmission in a second with partial tuples first (equation 2)."""
    first = match_probability(sides.window_1, sides.distinct)
    second = match_probability(sides.window_2, sides.distinct)
    request = link.seconds(1, sides.partial)
    arriving = request + second * (request + link.seconds(1, sides.full))
    several = sides.window_1 / sides.distinct * sides.full
    meeting = (1 - second) * first * (request + link.seconds(1, several))
    return sides.rate_1 * arriving + sides.rate_2 * meeting


@dataclass(frozen=True)
class Setting:
    """What an experiment runs with; the defaults are the paper's.

    ``window``: tuples, of each stream. ``rate``: tuples a second, of each stream. ``link_rate``: bytes a
    second. ``latency``: seconds of a message. ``full``, ``partial``: attributes of a tuple.
    """

    distinct: int = 10_000
    full: float = 20
    partial: float = 2
    link_rate: float = 1000.0
    latency: float = 0.005
    window: int = 500
    rate: float = 500.0

    @property
    def sides(self) -> Sides:
        """The streams as the equations have them."""
        sizes = self.full * ATTRIBUTE, self.partial * ATTRIBUTE
        return Sides(self.rate, self.rate, self.window, self.window, *sizes, self.distinct)

    @property
    def link(self) -> NetworkLink:
        """The link as the equations have it."""
        return NetworkLink(self.latency, self.link_rate)


@dataclass(frozen=True)
class Sweep:
    """One parameter varied: the label of its axis, its values, and the setting at one of them.

    ``judged``: whether the cross-over that is measured must be near the one that was predicted.
    """

    title: str
    label: str
    values: tuple[float, ...]
    at: Callable[[float], Setting]
    logarithmic: bool = False
    judged: bool = False


DEFAULT = Setting()
FEW = replace(DEFAULT, distinct=1000)
"""With as many values as make full tuples common, so that the cross-over is at tuples of some size."""

SWEEPS: Mapping[str, Sweep] = {
    "distinct": Sweep(
        "Number of distinct values",
        "distinct values of the join attribute",
        (100, 200, 350, 500, 700, 1000, 2000, 5000, 10_000, 20_000),
        lambda value: replace(DEFAULT, distinct=round(value)),
        logarithmic=True,
        judged=True,
    ),
    "ratio": Sweep(
        "Ratio of tuple sizes",
        "size of a full tuple / of a partial one",
        (1.25, 1.5, 2, 3, 4, 6, 10, 20),
        lambda value: replace(DEFAULT, full=2 * value),
        judged=True,
    ),
    "ratio-few": Sweep(
        "Ratio of tuple sizes, 1,000 distinct values",
        "size of a full tuple / of a partial one",
        (1.5, 2, 3, 4, 5, 6, 8, 10),
        lambda value: replace(FEW, full=2 * value),
        judged=True,
    ),
    "link": Sweep(
        "Transmission rate",
        "transmission rate, bytes/s",
        (500, 1000, 2000, 4000, 8000, 16_000, 32_000),
        lambda value: replace(DEFAULT, link_rate=value),
        logarithmic=True,
    ),
    "window": Sweep(
        "Window size",
        "tuples in each window",
        (100, 250, 500, 1000, 2000, 4000, 8000, 16_000),
        lambda value: replace(DEFAULT, window=round(value)),
        logarithmic=True,
    ),
    "rate": Sweep(
        "Stream rate",
        "tuples a second of each stream",
        (100, 200, 300, 400, 500, 600, 800, 1000),
        lambda value: replace(DEFAULT, rate=value),
    ),
}
