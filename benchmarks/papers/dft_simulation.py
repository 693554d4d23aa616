"""Nodes that join two streams approximately, with wjoin's own summaries, flow and estimate, in one process.

A window of W rows a stream at each node has come before; then more come. Rows of S ask the windows of R and
those of R the windows of S; each asks with the views that nodes have told each other before. All matches are
counted, also those that the flow does not look for, so ε is exact.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from dft_loads import Codes, Set

from wjoin.parts.summaries.error import Came, Estimate, Sample, estimate
from wjoin.parts.summaries.flow import LEAST, Flow, chances, scores_of, targets, tuned, visit_chance
from wjoin.parts.summaries.profile import PROMISES, Profile, bins_of
from wjoin.parts.summaries.registry import SUMMARIES
from wjoin.parts.summaries.summary import Form, Summary, View

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """What has come: windows (by stream and node), and new rows (by stream and node)."""

    load: Set
    windows: tuple[list[Codes], list[Codes]]
    arrivals: tuple[list[Codes], list[Codes]]

    @classmethod
    def of(cls, load: Set, nodes: int, window: int, new: int, seed: int = 0) -> "World":
        """Draw it: ``window`` rows and ``new`` ones at each node of each stream."""
        drawn = [
            [
                load.draw(np.random.default_rng((seed, stream, node)), node, nodes, window + new)
                for node in range(nodes)
            ]
            for stream in (0, 1)
        ]
        windows = [[each[:window] for each in stream] for stream in drawn]
        arrivals = [[each[window:] for each in stream] for stream in drawn]
        return cls(load, (windows[0], windows[1]), (arrivals[0], arrivals[1]))

    @property
    def nodes(self) -> int:
        return len(self.windows[0])

    @cached_property
    def codes(self) -> tuple[Codes, Codes]:
        """New rows by stream (int64[n])."""
        return np.concatenate(self.arrivals[0]), np.concatenate(self.arrivals[1])

    @cached_property
    def homes(self) -> tuple[Codes, Codes]:
        """Their nodes (int64[n])."""
        first, second = (
            np.repeat(np.arange(self.nodes), [len(each) for each in stream]) for stream in self.arrivals
        )
        return first, second

    @cached_property
    def matches(self) -> tuple[Floats, Floats]:
        """How many rows of the other stream each new row meets at each node (float64[n, N])."""
        return self._matches(0), self._matches(1)

    def _matches(self, stream: int) -> Floats:
        codes = self.codes[stream]
        found = np.zeros((len(codes), self.nodes))
        for node, window in enumerate(self.windows[1 - stream]):
            distinct, counts = np.unique(window, return_counts=True)
            places = np.minimum(np.searchsorted(distinct, codes), len(distinct) - 1)
            found[:, node] = np.where(distinct[places] == codes, counts[places], 0)
        return found


@dataclass(frozen=True)
class Outcome:
    """What a way of asking gave: all for the new rows of both streams. ``told`` is the estimate of ε."""

    rows: int
    messages: int
    found: float
    everything: float
    told: Estimate
    flow: Flow

    @property
    def error(self) -> float:
        """ε of equation 1."""
        return 1 - self.found / self.everything if self.everything else 0.0

    @property
    def per_result(self) -> float:
        """Messages for each result that was found."""
        return self.messages / max(self.found, 1)

    @property
    def per_row(self) -> float:
        """Messages for each new row."""
        return self.messages / self.rows


@dataclass(frozen=True)
class Asked:
    """Views of all windows, and the scores of all new rows (float64[n, N] by stream)."""

    world: World
    greedy: bool
    scores: tuple[Floats, Floats]
    bytes: int

    @cached_property
    def profile(self) -> Profile:
        """What all new rows could visit and would find, as if all keys were of the sample."""
        found = Profile.empty(self.world.nodes)
        for scores, home, matches in zip(self.scores, self.world.homes, self.world.matches, strict=True):
            found = found.plus(Profile.of_rows(scores, home))
            for node in range(self.world.nodes):
                found = found.plus(
                    Profile.of_matches(
                        self.world.nodes, home, bins_of(scores[:, node]), matches[:, node], home == node
                    )
                )
        return found


def summarised(
    world: World, name: str, size: int, *, ordered: bool = False
) -> tuple[list[list[Summary]], list[list[View]]]:
    """Return the summaries and views of all windows, by stream and node."""
    kind = SUMMARIES[name]
    form = Form(size, 0, len(world.windows[0][0]), world.load.domain if ordered else None)
    summaries = [[kind.empty(form).add(window) for window in stream] for stream in world.windows]
    views = [[kind.view(form, each.to_bytes()) for each in stream] for stream in summaries]
    return summaries, views


def asked(world: World, name: str, size: int, *, greedy: bool | None = None, ordered: bool = False) -> Asked:
    """Return the scores of all new rows with views of a size."""
    greedy = SUMMARIES[name].greedy if greedy is None else greedy
    _, views = summarised(world, name, size, ordered=ordered)
    flow = Flow(world.nodes, greedy=greedy)
    scores = []
    for stream in (0, 1):
        by_node = [
            scores_of(codes, views[stream][node], views[1 - stream], flow)
            for node, codes in enumerate(world.arrivals[stream])
        ]
        scores.append(np.concatenate(by_node))
    sent = sum(len(view.content) for stream in views for view in stream)
    return Asked(world, greedy, (scores[0], scores[1]), sent)


def run(case: Asked, flow: Flow) -> Outcome:
    """Send all new rows where the flow says, and count."""
    world = case.world
    messages, found, everything = 0, 0.0, 0.0
    sample = Sample.empty()
    for codes, home, scores, matches in zip(
        world.codes, world.homes, case.scores, world.matches, strict=True
    ):
        visits = targets(codes, np.arange(len(codes)), home, scores, flow)
        here = np.arange(world.nodes) == home[:, None]
        messages += int(visits.sent.sum())
        found += float(matches[visits.sent | here].sum())
        everything += float(matches.sum())
        arrived = visits.sent | here
        promises, chance = PROMISES[bins_of(scores)], chances(scores, home, flow)
        asking, by_lot = ~here & ~visits.sampled[:, None], visits.chosen & ~visits.sampled[:, None]
        sample = sample.plus(Sample.of_promises(promises[asking], chance[asking], flow.sample))
        sample = sample.plus(Sample.of_lots(promises[by_lot], chance[by_lot], flow.sample))
        for node in range(world.nodes):
            of = arrived[:, node]
            came = Came(_chance(home[of], scores[of, node], node, flow), visits.sampled[of], flow.sample)
            counted = codes[of], matches[of, node], (visits.chosen | here)[of, node]
            sample = sample.plus(Sample.of(*counted, flow.seed, came, promises[of, node]))
    rows = sum(map(len, world.codes))
    return Outcome(rows, messages, found, everything, estimate(sample, flow.sample), flow)


def at_error(case: Asked, error: float) -> Outcome:
    """Run with the fewest messages that keep an error, as if all matches were known beforehand."""
    flow = tuned(Flow(case.world.nodes, greedy=case.greedy, error=error, sample=0.0), case.profile)
    return run(case, flow)


def at_messages(case: Asked, messages: float) -> Outcome:
    """Run with so many messages a row."""
    flow = tuned(Flow(case.world.nodes, greedy=case.greedy, messages=messages, sample=0.0), case.profile)
    return run(case, flow)


def _chance(home: Codes, scores: Floats, node: int, flow: Flow) -> Floats:
    return np.where(home == node, 1.0, visit_chance(home, bins_of(scores), flow))


def measured_profile(case: Asked, flow: Flow, rows: slice) -> Profile:
    """Return what a real run knows of some rows: their visits, and the matches of those that arrive."""
    world = case.world
    found = Profile.empty(world.nodes)
    for codes, scores, home, matches in zip(
        world.codes, case.scores, world.homes, world.matches, strict=True
    ):
        some = codes[rows], scores[rows], home[rows], matches[rows]
        found = found.plus(_profile_of(*some, flow))
    return found


def _profile_of(codes: Codes, scores: Floats, home: Codes, matches: Floats, flow: Flow) -> Profile:
    found = Profile.of_rows(scores, home)
    visits = targets(codes, np.arange(len(codes)), home, scores, flow)
    for node in range(flow.nodes):
        of = visits.sent[:, node] | (home == node)
        bins, at_home = bins_of(scores[of, node]), home[of] == node
        came = Came(_chance(home[of], scores[of, node], node, flow), visits.sampled[of], flow.sample)
        arrived = home[of], bins, matches[of, node], at_home
        found = found.plus(Profile.of_matches(flow.nodes, *arrived, came.worth))
    return found


def as_it_runs(case: Asked, error: float, seed: int) -> Outcome:
    """Run as a query does: tuned three times by what it has measured of the rows before, and told by it."""
    flow = Flow(case.world.nodes, seed=seed, greedy=case.greedy, error=error, least=LEAST)
    profile = Profile.empty(case.world.nodes)
    for turn in range(3):
        profile = profile.plus(measured_profile(case, flow, slice(turn, None, 4)))
        flow = tuned(flow, profile)
    return run(case, flow)
