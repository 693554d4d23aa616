"""What an approximate join does: visits of a row, bytes of summaries, and the error to expect.

Played on small windows that are drawn by what is known of the keys, with the summaries themselves, scaled
down alike. Nothing is known of how keys lie at nodes, so they are taken to lie evenly: the worst case, in
which all nodes promise the same (DFT joins, section 5.2.2). What is measured while a query runs decides then.
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
    asked: Approximation, route: str, nodes: int, rows: float, distinct: float, heaviest: float
) -> Traffic:
    """Return what an approximate join does on so many nodes, by one route.

    ``rows``: those of a window of a stream on all nodes; ``distinct`` keys, of which the most frequent one
    has a share ``heaviest`` of the rows.
    """
    if route == BASE:
        return Traffic(nodes - 1.0, 0.0, 0)
    if nodes < 2:
        return Traffic(0.0, 0.0, asked.size)
    own = _rounded(max(1.0, rows / nodes)), _rounded(max(1.0, min(distinct, 1e12))), _rounded(heaviest)
    visits, lost = _played(route, nodes, *own, asked.size, asked.error, asked.messages)
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
    size: int,
    error: float | None,
    messages: float | None,
) -> tuple[float, float]:
    """Return the visits of a row and the error to expect."""
    few = min(nodes, _NODES)
    scale = min(1.0, _ROWS / rows)
    window, keys = max(1, round(rows * scale)), max(1, round(distinct * scale))
    kind = SUMMARIES[name]
    form = Form(max(_LEAST_SIZE, round(size * scale)), rows=window)
    rng = np.random.default_rng(0)
    windows = [_drawn(rng, window, keys, heaviest) for _ in range(few)]
    views = [kind.view(form, kind.empty(form).add(each).to_bytes()) for each in windows]
    asking = _drawn(rng, _ASKING, keys, heaviest)
    home = rng.integers(0, few, _ASKING)
    own = kind.view(form, kind.empty(form).add(_drawn(rng, window, keys, heaviest)).to_bytes())
    flow = Flow(few, error=error, messages=_of_few(messages, nodes, few), greedy=kind.greedy)
    scores = scores_of(asking, own, views, flow)
    matches = np.stack([_counts(asking, each) for each in windows], axis=1)
    profile = Profile.of_rows(scores, home)
    for node in range(few):
        told = Profile.of_matches(few, home, bins_of(scores[:, node]), matches[:, node], home == node)
        profile = profile.plus(told)
    found = tuned(flow, replace(profile, matches=profile.matches * 1e3, local=profile.local * 1e3))
    share = 1.0 if math.isinf(found.visits) else min(1.0, found.visits / (few - 1))
    visits = share * (nodes - 1) if error is not None else min(nodes - 1.0, messages or math.log2(nodes))
    return visits + flow.sample * (nodes - 1 - visits), found.forecast


def _of_few(messages: float | None, nodes: int, few: int) -> float:
    """Return the visits among few nodes that are the same share of all."""
    wanted = messages if messages is not None else max(1.0, math.log2(nodes))
    return min(few - 1.0, wanted * (few - 1) / (nodes - 1))


def _drawn(rng: np.random.Generator, rows: int, keys: int, heaviest: float) -> Int64Array:
    """Return keys of rows: all alike, but for the most frequent one."""
    found = rng.integers(0, keys, rows)
    found[rng.random(rows) < heaviest - 1 / keys] = 0
    return found


def _counts(asking: Int64Array, window: Int64Array) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return how many rows of a window each row meets."""
    ascending = np.sort(window)
    last, first = (np.searchsorted(ascending, asking, side) for side in ("right", "left"))
    return (last - first).astype(np.float64)
