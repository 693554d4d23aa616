"""Streams at many nodes for the experiments of the DFT paper: two of its sets, and two by published
models."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]

DOMAIN = 1 << 19
ALPHA = 0.4
"""Of Zipf's law over the values, and of the shares of nodes: each has 0.4 of what the one before has."""

_SYMBOLS = 400
_TICKS = 1 << 14


@dataclass(frozen=True)
class Set:
    """A data set: ``draw(generator, node, nodes, many)`` gives codes in their order. ``domain``: as `Form`
    has it."""

    name: str
    draw: Callable[[np.random.Generator, int, int, int], Codes]
    domain: tuple[int, int] | None


def _uniform(random: np.random.Generator, node: int, nodes: int, many: int) -> Codes:
    return random.integers(1, DOMAIN + 1, many)


def _ranks(random: np.random.Generator, many: int, ranks: int, alpha: float) -> Codes:
    """Draw ranks from 0 on by Zipf's law, by inverting its integral."""
    uniform = random.random(many)
    if alpha == 1:
        return np.minimum((ranks + 1) ** uniform - 1, ranks - 1).astype(np.int64)
    return np.minimum(ranks * uniform ** (1 / (1 - alpha)), ranks - 1).astype(np.int64)


def regions(random: np.random.Generator, node: int, nodes: int, many: int) -> Codes:
    """Draw which node each row of a node is nearest to: itself most often, the k-th before it 0.4^k as
    often."""
    weights = ALPHA ** np.arange(nodes)
    return (node - random.choice(nodes, many, p=weights / weights.sum())) % nodes


def _zipf(random: np.random.Generator, node: int, nodes: int, many: int) -> Codes:
    """Values by Zipf's law; the domain is cut into a range for each node, whose values come there most
    often."""
    width = DOMAIN // nodes
    ranks = _ranks(random, many, width, ALPHA)
    # Ranks are spread over the range, the same way everywhere.
    odd = int(width * 0.6180339887) | 1
    while np.gcd(odd, width) != 1:
        odd += 2
    return 1 + regions(random, node, nodes, many) * width + ranks * odd % width


def _financial(random: np.random.Generator, node: int, nodes: int, many: int) -> Codes:
    """Trades: R. Roll's model (1984), a price that walks at random and bounces between bid and ask.

    Symbols are traded by Zipf's law, most often where they are listed. The key is symbol and price in ticks.
    Prices follow the same walk everywhere: it is that of the symbol.
    """
    listed = regions(random, node, nodes, many)
    symbol = _ranks(random, many, _SYMBOLS // nodes, 1.0) * nodes + listed
    progress = np.sort(random.random(many))
    walks = np.random.default_rng(17).normal(0, 3, (_SYMBOLS + nodes, 512)).cumsum(axis=1)
    efficient = _TICKS // 2 + walks[symbol, (511 * progress).astype(np.int64)]
    price = np.rint(efficient + np.where(random.random(many) < 0.5, 2, -2)).astype(np.int64)
    return symbol * _TICKS + np.clip(price, 0, _TICKS - 1)


def _network(random: np.random.Generator, node: int, nodes: int, many: int) -> Codes:
    """Packets: in trains (Jain and Routhier 1986) of Pareto lengths (Crovella and Bestavros 1997, index 1.2).

    The key is the address, of 64 bits, by Zipf's law of exponent 1 within the region that the train comes
    from.
    """
    lengths = np.minimum(1 + random.pareto(1.2, many), 2000).astype(np.int64)
    trains = int(np.searchsorted(lengths.cumsum(), many)) + 1
    address = _ranks(random, trains, 1 << 16, 1.0) * nodes + regions(random, node, nodes, trains)
    scattered = (address.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    scattered ^= scattered >> np.uint64(29)
    codes = (scattered * np.uint64(0xBF58476D1CE4E5B9)).view(np.int64)
    return np.repeat(codes, lengths[:trains])[:many]


SETS: Mapping[str, Set] = {
    each.name: each
    for each in (
        Set("UNI", _uniform, (1, DOMAIN)),
        Set("ZIPF", _zipf, (1, DOMAIN)),
        Set("FIN", _financial, (0, (_SYMBOLS + 20) * _TICKS - 1)),
        Set("NWRK", _network, None),
    )
}
