"""The flow: which nodes a row visits (section 5.2), by what is known of their windows.

Each row has a *score* for each node: what its view expects. The paper visits node j with the probability
w_i p_ij (equation 4), where w_i keeps the messages of a row at T_i (equation 9). A greedy flow visits first
what promises most, whoever promises it: of all visits those above a limit, and a share of those at it.
Both are a `Flow`: small, constant for a micro-batch, part of the state. What it decides follows from the
seed, the row and the scores alone. Between micro-batches it is tuned by what has been measured (`tuned`).

    scores = scores_of(codes, mine, views, flow)                # float64[n, N]
    visits = targets(codes, row_ids, home, scores, flow)        # visits.sent: bool[n, N]
    ...                                                         # the sample is counted where it arrives
    flow = tuned(flow, profile)                                 # for the next micro-batch
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import BoolArray, Int64Array
from wjoin.parts.summaries.hashing import FloatArray, mixed, shares, within
from wjoin.parts.summaries.profile import BINS, CENTRES, UNKNOWN, Profile, bins_of
from wjoin.parts.summaries.summary import View

SAMPLE = 1 / 64
"""The share of keys whose rows visit all nodes, so that what the others miss can be measured."""

LEAST = 1 / 128
"""The least chance of a visit of which anything is expected, where lots are to tell."""

_OF_SAMPLE = 1009
"""What is added to the seed for the lots of the sample."""

_ENOUGH = 200.0
"""Matches that must have been counted before they are trusted; until then, scores are, or everything is
visited."""


_TIGHTEST = 0.25
"""The least share of the losses that are asked for at which a flow aims."""

_HEAVIEST = 2.0**40
"""w where all that promises anything is visited."""


@dataclass(frozen=True)
class Flow:
    """Where rows go.

    ``nodes``: N. ``error``: the ε that is asked for, or None. ``messages``: T, the visits of a row that are
    asked for, or None; with neither T is log2 N. ``greedy``: by a limit instead of the paper's probabilities.
    ``sample``: the share of keys that visits all nodes; 0 where nothing is to be measured.
    ``least``: the chance that every visit has of which anything is expected, so that lots tell what is
    missed of heavy keys, too (`error.Sample`); `LEAST` where chances are told.
    The rest is tuned. ``visits``: T as it is now. ``weights``: w_i by home. ``limit``, ``share``: the bin of
    scores from which on a greedy flow visits, and the share of the visits in that bin. ``turns``: homes whose
    rows go round robin, as all nodes promise the same. ``forecast``: the error that is expected of it.
    """

    nodes: int
    seed: int = 0
    error: float | None = None
    messages: float | None = None
    greedy: bool = False
    sample: float = SAMPLE
    least: float = 0.0
    visits: float = math.inf
    weights: tuple[float, ...] = ()
    limit: int = 0
    share: float = 1.0
    turns: tuple[bool, ...] = ()
    forecast: float = 0.0


@dataclass(frozen=True)
class Visits:
    """Which nodes rows visit: ``chosen`` (bool[n, N]) by the flow; ``sampled`` rows (bool[n]) visit all.

    Nothing is sent to a row's own home, where it is anyway.
    """

    chosen: BoolArray
    sampled: BoolArray
    home: Int64Array

    @property
    def sent(self) -> BoolArray:
        """All visits (bool[n, N])."""
        away = np.arange(self.chosen.shape[1]) != self.home[:, None]
        sent: BoolArray = (self.chosen | self.sampled[:, None]) & away
        return sent


def scores_of(codes: Int64Array, mine: View | None, views: Sequence[View | None], flow: Flow) -> FloatArray:
    """Return the score of each row (by its code, int64[n]) for each node (float64[n, N]).

    ``views``: of the windows that the rows ask, one a node; None where nothing is known yet, which scores as
    infinite, as does what cannot be compared. ``mine``: a view of the window that the rows belong to at their
    home.
    """
    found = np.full((len(codes), len(views)), np.inf)
    for node, view in enumerate(views):
        if view is not None and (mine is None or mine.form == view.form):
            found[:, node] = view.expected(codes, mine) if flow.greedy else view.chance(codes, mine)
    return found


def targets(
    codes: Int64Array, row_ids: Int64Array, home: Int64Array | int, scores: FloatArray, flow: Flow
) -> Visits:
    """Return which nodes rows visit, by codes, numbers (int64[n]), homes (one, or int64[n]) and scores."""
    homes = np.broadcast_to(np.asarray(home, np.int64), codes.shape)
    lots = (mixed(codes, flow.seed) ^ mixed(row_ids, flow.seed + 1)).view(np.int64)
    drawn = np.stack([shares(lots, flow.seed + 2 + node) for node in range(flow.nodes)], axis=1)
    chosen = drawn < chances(scores, homes, flow)
    if any(flow.turns) and not math.isinf(flow.visits):
        round_robin = np.array(flow.turns)[homes]
        chosen[round_robin] = _in_turn(lots[round_robin], homes[round_robin], flow)
    chosen &= np.arange(flow.nodes) != homes[:, None]
    return Visits(chosen, sampled(codes, flow), homes)


def sampled(codes: Int64Array, flow: Flow) -> BoolArray:
    """Return which rows are of the sample (bool[n]), by their codes (int64[n])."""
    return within(codes, flow.seed + _OF_SAMPLE, flow.sample)


def chances(scores: FloatArray, home: Int64Array, flow: Flow) -> FloatArray:
    """Return with which probability a row visits each node (float64[n, N]), by scores and home."""
    if math.isinf(flow.visits):
        return np.ones_like(scores)
    return visit_chances(flow)[home[:, None], bins_of(scores)]


def visit_chance(home: Int64Array, bins: npt.NDArray[np.uint8], flow: Flow) -> FloatArray:
    """Return with which probability the flow chooses a node that is not the home of rows (float64[n]).

    By their homes (int64[n]) and the bins of their scores for it (uint8[n]). Rows of the sample come anyway.
    """
    found: FloatArray = visit_chances(flow)[home, bins]
    return found


def visit_chances(flow: Flow) -> FloatArray:
    """Return that of each home and bin (float64[N, BINS])."""
    if math.isinf(flow.visits):
        return np.ones((flow.nodes, BINS))
    if flow.greedy:
        found = np.tile(_greedy_chances(flow.limit, flow.share), (flow.nodes, 1))
    else:
        found = _weighed_chances(flow.weights)
    if any(flow.turns):
        found[np.array(flow.turns)] = min(flow.visits / max(flow.nodes - 1, 1), 1.0)
    found[:, 1:] = np.maximum(found[:, 1:], flow.least)
    return found


def _in_turn(lots: Int64Array, home: Int64Array, flow: Flow) -> BoolArray:
    """Return as many nodes as the flow has visits, from one on that changes from row to row (bool[n, N])."""
    others = flow.nodes - 1
    whole = math.floor(flow.visits)
    many = whole + (shares(lots, flow.seed) < flow.visits - whole)
    start = np.floor(others * shares(lots, flow.seed + 1)).astype(np.int64)
    place = (np.arange(flow.nodes) - home[:, None] - 1 - start[:, None]) % flow.nodes
    # The own home stands last in the circle of the others, and is left out of it.
    own = (-1 - start) % flow.nodes
    place -= place > own[:, None]
    found: BoolArray = place < many[:, None]
    return found


def _greedy_chances(limit: int, share: float) -> FloatArray:
    """Return the chance of each bin (float64[BINS])."""
    found = np.zeros(BINS)
    found[limit + 1 :] = 1.0
    found[limit] = share
    found[UNKNOWN] = 1.0
    return found


def _weighed_chances(weights: Sequence[float]) -> FloatArray:
    """Return the chance of each home and bin (float64[N, BINS]): w times p, which counts as its bin's."""
    found = np.outer(weights, CENTRES[:UNKNOWN])
    chance: FloatArray = np.minimum(np.append(found, np.ones((len(weights), 1)), axis=1), 1.0)
    return chance


def tuned(flow: Flow, profile: Profile) -> Flow:
    """Return the flow for what comes, by what has been measured, or by the scores where that is little.

    With an error asked for it makes as few visits as keep it, and until enough has been measured all of which
    a greedy flow expects anything; else as many as asked for.
    """
    if not profile.rows.sum():
        return _unmeasured(flow)
    turns = tuple(bool(each) for each in profile.alike)
    flow = replace(flow, turns=turns)
    if flow.error is not None and flow.sample and profile.seen.sum() < _ENOUGH:
        return _unmeasured(flow)
    if flow.error is None:
        wanted = flow.messages if flow.messages is not None else max(math.log2(flow.nodes), 1.0)
        return _with_visits(flow, profile, min(wanted, flow.nodes - 1.0))
    low, high = 0.0, flow.nodes - 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if _with_visits(flow, profile, middle).forecast <= flow.error else (middle, high)
        )
    return _with_visits(flow, profile, high)


def _unmeasured(flow: Flow) -> Flow:
    """Return the flow while only scores are known: to all nodes but those where they expect nothing."""
    if flow.greedy:
        return replace(flow, visits=flow.nodes - 1.0, limit=0, share=0.0, forecast=0.0)
    return replace(flow, visits=math.inf, forecast=0.0)


def tightened(flow: Flow, lost: float) -> Flow:
    """Return the flow that aims at fewer losses, where more than asked for is ``lost`` as measured so far.

    It is for what tuning learns too late: streams that change, and summaries that become coarser.
    """
    if flow.error is None or lost <= flow.error:
        return flow
    return replace(flow, error=flow.error * max(flow.error / lost, _TIGHTEST))


def _with_visits(flow: Flow, profile: Profile, visits: float) -> Flow:
    """Return the flow that makes so many visits a row in the mean, with the error to expect of it."""
    most = profile.visits.sum() / profile.rows.sum()
    if visits >= most - 1e-9:
        return replace(flow, visits=math.inf, forecast=0.0)
    flow = replace(flow, visits=visits)
    if flow.greedy:
        limit, share = _limit(profile.visits.sum(axis=0), visits * profile.rows.sum())
        flow = replace(flow, limit=limit, share=share)
    else:
        flow = replace(
            flow,
            weights=tuple(
                _weight(own, visits * rows) for own, rows in zip(profile.visits, profile.rows, strict=True)
            ),
        )
    return replace(flow, forecast=_forecast(flow, profile))


def _limit(visits: FloatArray, wanted: float) -> tuple[int, float]:
    """Return the bin, and the share of it, down to which the best visits are so many."""
    above = np.cumsum(visits[::-1])[::-1]
    for limit in range(UNKNOWN, -1, -1):
        if above[limit] >= wanted:
            beyond = above[limit] - visits[limit]
            return limit, float(min(max((wanted - beyond) / max(visits[limit], 1e-300), 0.0), 1.0))
    return 0, 1.0


def _weight(visits: FloatArray, wanted: float) -> float:
    """Return w of equation 9: times it, probabilities below 1 make so many visits."""
    known, centres = visits[1:UNKNOWN], CENTRES[1:UNKNOWN]
    # With w = 1 / centre, greater scores are visited surely, and the others in proportion.
    surely = visits[UNKNOWN] + known[::-1].cumsum()[::-1] - known
    in_proportion = (known * centres).cumsum()
    enough = np.flatnonzero(in_proportion / centres + surely >= wanted)
    if not len(enough):
        return _HEAVIEST
    last = enough[-1]
    weight = float((wanted - surely[last]) / max(in_proportion[last], 1e-300))
    return min(max(weight, 0.0), 1 / float(centres[last]))


def _forecast(flow: Flow, profile: Profile) -> float:
    """Return the error to expect: by the matches that were measured at each score, or by the scores."""
    matches, local = profile.matches, profile.local
    if profile.seen.sum() < _ENOUGH:
        known = np.where(np.isfinite(CENTRES), CENTRES, 0.0)
        matches = profile.visits * known
        local = matches.sum(axis=1) / max(flow.nodes - 1, 1)
    chance = visit_chances(flow)
    everything = float(matches.sum() + local.sum())
    return float((matches * (1 - chance)).sum()) / everything if everything else 0.0


def lots_variance(flow: Flow, profile: Profile) -> float:
    """Return the variance that lots give to the matches of ``profile.seen``, by what scores expect.

    A visit that promises e matches, and is made with a chance c, adds (1 - c) / c of the square of what it
    finds, e in the mean and in its variance. What few lots have found says less of it where some would find
    far more than others. One match more is taken to be found by the rarest lot: it may just not have been.
    """
    if math.isinf(flow.visits) or not profile.rows.sum():
        return 0.0
    chance, known = visit_chances(flow), np.where(np.isfinite(CENTRES), CENTRES, 0.0)
    by_lot = np.where(chance > 0, (1 - chance) / np.maximum(chance, 1e-12), 0.0)
    rarest = float(by_lot[profile.visits > 0].max(initial=0.0))
    promised = float((profile.visits * known).sum())
    matches, variance = float(profile.matches[:, 1:UNKNOWN].sum()), 0.0
    for _ in range(1 if flow.greedy else 2):
        # Of the paper's chances only the proportions count. What lots have found sets them right, and may be
        # too little: the second time matches are as many as they may be, but no more than twice as many.
        right = (matches + min(2 * math.sqrt(variance), matches)) / promised if promised else 0.0
        found = right * known * (right * known + 1)
        variance = float((profile.visits * by_lot * found).sum()) + rarest**2
    return variance
