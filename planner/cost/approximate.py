"""What an approximate join does: visits of a row, bytes of summaries, and the error to expect.

Played on small windows that are drawn by what is known of the keys, with the summaries themselves, scaled
down alike. ``ANALYZE STREAM … BY`` tells how many of the pairs of rows that have one key live at one node:
then some rows have keys of their node, and the others any. Where nothing is known keys are taken to lie
evenly: the worst case, in which all nodes promise the same (DFT joins, section 5.2.2). What is measured while
a query runs decides then.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.summaries.flow import Flow, scores_of, tuned
from wjoin.parts.summaries.profile import Profile, bins_of
from wjoin.parts.summaries.registry import SUMMARIES
from wjoin.parts.summaries.summary import Form
from wjoin.planner.plan.approximation import SIZE, Approximation

BASE, DIGEST = "base", "digest"

SIZES = (1 << 10, SIZE, 1 << 14)
"""Bytes of a summary that are weighed."""

_ROWS, _NODES, _ASKING = 1 << 11, 6, 1 << 9
"""Rows of a window, nodes, and rows that ask, of what is played."""

_LEAST_SIZE = 64

_ROOM = 1.5
"""How many times as many rows a window may come to have: a summary that just fits soon does not."""

_DIGITS = 2
"""Digits of what is known that make a difference."""


@dataclass(frozen=True)
class Traffic:
    """What is expected: ``visits`` of a row to other nodes, the share ``lost`` of the results, and the
    ``bytes`` that a node tells of a window in a micro-batch."""

    visits: float
    lost: float
    bytes: int


def traffic(
    asked: Approximation,
    route: str,
    nodes: int,
    rows: float,
    distinct: float,
    heaviest: float,
    local: float = 0.0,
) -> Traffic:
    """Return what an approximate join does on so many nodes, by one route.

    ``rows``: those of a window of a stream on all nodes; ``distinct`` keys, of which the most frequent one
    has a share ``heaviest`` of the rows. ``local``: of the pairs of rows with one key, the share that live at
    one node, which is 1 / ``nodes`` at least.
    """
    if route == BASE:
        return Traffic(nodes - 1.0, 0.0, 0)
    if nodes < 2:
        return Traffic(0.0, 0.0, asked.size)
    own = _rounded(max(1.0, rows / nodes)), _rounded(max(1.0, min(distinct, 1e12))), _rounded(heaviest)
    together = _rounded(max(local, 1 / nodes))
    visits, lost = _played(route, nodes, *own, together, asked.size, asked.error, asked.messages)
    return Traffic(visits, lost, asked.size)


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


@lru_cache(maxsize=512)
def _played(
    name: str,
    nodes: int,
    rows: float,
    distinct: float,
    heaviest: float,
    local: float,
    size: int,
    error: float | None,
    messages: float | None,
) -> tuple[float, float]:
    """Return the visits of a row and the error to expect."""
    few = min(nodes, _NODES)
    scale = min(1.0, _ROWS / rows)
    window, keys = max(1, round(rows * scale)), max(1, round(distinct * scale))
    kind = SUMMARIES[name]
    form = Form(max(_LEAST_SIZE, round(size * scale / _ROOM)), rows=window)
    rng = np.random.default_rng(0)
    drawn = _Drawn(rng, few, keys, heaviest, _of_own(local, nodes))
    windows = [drawn.keys(np.full(window, node)) for node in range(few)]
    views = [kind.view(form, kind.empty(form).add(each).to_bytes()) for each in windows]
    home = rng.integers(0, few, _ASKING)
    asking = drawn.keys(home)
    own = kind.view(form, kind.empty(form).add(drawn.keys(rng.integers(0, few, window))).to_bytes())
    flow = Flow(few, error=error, messages=_of_few(messages, nodes, few), greedy=kind.greedy)
    scores = scores_of(asking, own, views, flow)
    matches = np.stack([_counts(asking, each) for each in windows], axis=1)
    profile = Profile.of_rows(scores, home)
    for node in range(few):
        told = Profile.of_matches(few, home, bins_of(scores[:, node]), matches[:, node], home == node)
        profile = profile.plus(told)
    # What is played stands for all that will be measured.
    many = {name: 1e3 * getattr(profile, name) for name in ("matches", "local", "seen")}
    found = tuned(flow, replace(profile, **many))
    share = 1.0 if math.isinf(found.visits) else min(1.0, found.visits / (few - 1))
    visits = share * (nodes - 1) if error is not None else min(nodes - 1.0, messages or math.log2(nodes))
    return visits + flow.sample * (nodes - 1 - visits), found.forecast


def _of_few(messages: float | None, nodes: int, few: int) -> float:
    """Return the visits among few nodes that are the same share of all."""
    wanted = messages if messages is not None else max(1.0, math.log2(nodes))
    return min(few - 1.0, wanted * (few - 1) / (nodes - 1))


def _of_own(local: float, nodes: int) -> float:
    """Return the share of rows that have a key of their node's own, of which each has as many.

    With a share p of them, a row meets N p² + 1 - p² at its node for 1 - p² at each of the N - 1 others.
    """
    return math.sqrt(min(max((nodes * local - 1) / (nodes - 1), 0.0), 1.0))


@dataclass(frozen=True)
class _Drawn:
    """Draws keys: all alike, but for the most frequent one. A share ``own`` is of those of a row's node."""

    rng: np.random.Generator
    nodes: int
    distinct: int
    heaviest: float
    own: float

    def keys(self, home: Int64Array) -> Int64Array:
        """Return keys of rows by where they live."""
        rows = len(home)
        found = self.rng.integers(0, self.distinct, rows)
        mine = self.rng.random(rows) < self.own
        found[mine] = found[mine] // self.nodes * self.nodes + home[mine]
        heavy = self.rng.random(rows) < self.heaviest - 1 / self.distinct
        found[heavy] = np.where(mine, home, 0)[heavy]
        return found


def _counts(asking: Int64Array, window: Int64Array) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return how many rows of a window each row meets."""
    ascending = np.sort(window)
    last, first = (np.searchsorted(ascending, asking, side) for side in ("right", "left"))
    return (last - first).astype(np.float64)
