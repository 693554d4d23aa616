"""What the nodes of an approximate join know of each other (DFT joins): a part of their state.

A worker is a node. With each micro-batch it writes, as one more slice of its state, what others may know of
its windows (``parts.summaries``), and what was measured of the visits. In the next micro-batch whoever sends
rows reads that of all nodes, and decides by it; so does every repeated attempt.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.routes.route import Role, Visits
from wjoin.parts.summaries.error import Estimate, Sample, estimate
from wjoin.parts.summaries.flow import (
    LEAST,
    SAMPLE,
    Flow,
    lots_variance,
    scores_of,
    targets,
    tightened,
    tuned,
    visit_chances,
)
from wjoin.parts.summaries.hashing import FloatArray
from wjoin.parts.summaries.profile import Profile, bins_of
from wjoin.parts.summaries.registry import SUMMARIES
from wjoin.parts.summaries.summary import Form, Summary, View
from wjoin.planner.plan.block_columns import code_name, meeting_name
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.stage_kinds import Stage, StageEdge, meeting

BASE = "base"

Bins = npt.NDArray[np.uint8]
"""The bins of scores."""

Counted = TypeVar("Counted", Sample, Profile)

CHANCE, SAMPLED, CHOSEN, BIN = 24, 40, 41, 48
"""The bits of a row's mark beside its home: with what chance it has come so far, of the sample, visiting by
choice, and the bin of its score."""

HOME = (1 << 24) - 1

_NEVER, _HALVES = (1 << 16) - 1, 1 << 10
"""The mark of no chance, and how finely others are told: by 1024th parts of a power of two."""

_STAGE = 56
"""The bits of a row's number that tell the stages apart."""


@dataclass(frozen=True)
class Nodes:
    """The nodes of a stage of an approximate join, and what they know of the windows of its inputs.

    ``asked``: by input the one whose windows its tuples ask, None where they visit none. ``stored``: the
    inputs that have windows, with the names of their codes.
    """

    count: int
    route: str
    form: Form
    error: float | None
    messages: float | None
    asked: tuple[int | None, ...]
    stored: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, plan: PhysicalPlan, stage: Stage, count: int) -> "Nodes | None":
        """Return those of a stage with so many workers, None where its join is exact."""
        asked = plan.approximate
        if asked is None or not ROUTES[stage.placement.route].approximate:
            return None
        met = []
        for number in range(len(stage.inputs)):
            others = [other for chain in stage.chains(number) for other in chain]
            met.append(others[0] if others else None)
        stored = [
            (number, str(meeting_name(each)))
            for number, each in enumerate(stage.inputs)
            if meeting(stage, number)
        ]
        form = Form(asked.size, seed=plan.stages.index(stage), rows=asked.rows)
        # What one stage loses, the next ones cannot find.
        error = None if asked.error is None else 1 - (1 - asked.error) ** (1 / len(plan.stages))
        return cls(count, stage.placement.route, form, error, asked.messages, tuple(met), tuple(stored))

    @property
    def summary(self) -> type[Summary]:
        """The kind of summary."""
        return SUMMARIES[self.route]

    @property
    def flow(self) -> Flow:
        """The flow before anything is measured: all is visited.

        All stages have one sample of keys: what has come so far by it alone is followed to the end.
        """
        measured = self.route != BASE
        return Flow(
            nodes=self.count,
            error=self.error,
            messages=self.messages,
            greedy=self.summary.greedy,
            sample=SAMPLE if measured else 0.0,
            least=LEAST if measured else 0.0,
        )

    @property
    def own(self) -> dict[int, str]:
        """The name of the code of each input that has a window."""
        return dict(self.stored)


def home_column(plan: PhysicalPlan, each: StageEdge) -> str | None:
    """Return the block column that says where tuples of an input live, then what they visit."""
    stream = each.newest[0]
    home = plan.streams[stream].home
    return None if home is None else code_name(stream, home)


def homes_of(marks: Int64Array, nodes: int, *, scanned: bool) -> Int64Array:
    """Return the nodes where rows live: by the codes of their homes, or by their marks if they have some."""
    return marks % nodes if scanned else marks & HOME


@dataclass(frozen=True)
class Told:
    """What a node tells: a view of the window of each input that has one, what was measured of results of
    the sample since the beginning, and what was measured of visits lately. ``form``: that of the views, which
    another plan of the statement may have otherwise from the next micro-batch on."""

    views: tuple[bytes, ...]
    sample: Sample
    profile: Profile
    form: Form

    def batch(self) -> pa.RecordBatch:
        """Return it as a row."""
        form = f"{self.form.size} {self.form.rows} {self.form.seed}".encode()
        values = [*self.views, _packed(self.sample), _packed(self.profile), form]
        return pa.RecordBatch.from_pydict(
            {str(number): pa.array([value], pa.binary()) for number, value in enumerate(values)}
        )

    @classmethod
    def read(cls, batch: pa.RecordBatch, nodes: int) -> "Told":
        """Return what a row tells."""
        *views, sample, profile, form = (column[0].as_py() for column in batch.columns)
        size, rows, seed = map(int, form.split())
        return cls(
            tuple(views),
            _unpacked(Sample.empty(), sample),
            _unpacked(Profile.empty(nodes), profile),
            Form(size, seed, rows),
        )


def _packed(counts: Sample | Profile) -> bytes:
    arrays = [np.asarray(getattr(counts, each.name), np.float32).ravel() for each in fields(counts)]
    return zlib.compress(np.concatenate(arrays).tobytes(), 1)


def _unpacked(like: Counted, content: bytes) -> Counted:
    numbers = np.frombuffer(zlib.decompress(content), np.float32).astype(np.float64)
    arrays = []
    for each in fields(like):
        shape = getattr(like, each.name).shape
        size = int(np.prod(shape))
        # What a version before did not count is 0.
        arrays.append(numbers[:size].reshape(shape) if len(numbers) else np.zeros(shape))
        numbers = numbers[size:]
    return type(like)(*arrays)


@dataclass(frozen=True)
class Chooser:
    """Decides in one micro-batch which nodes rows visit; ``views`` are by input, then by node.

    ``lots``: the variance by lots that `error.estimate` takes.
    """

    nodes: Nodes
    flow: Flow
    views: dict[int, tuple[View | None, ...]]
    sample: Sample
    lots: float = 0.0

    @classmethod
    def of(cls, nodes: Nodes, told: Sequence[Told | None]) -> "Chooser":
        """Return it by what the nodes have told before the micro-batch, None for nothing yet."""
        profile, sample = Profile.empty(nodes.count), Sample.empty()
        for each in told:
            if each is not None:
                profile, sample = profile.plus(each.profile), sample.plus(each.sample)
        views = {
            number: tuple(
                None if each is None else nodes.summary.view(each.form, each.views[place]) for each in told
            )
            for place, (number, _) in enumerate(nodes.stored)
        }
        flow = nodes.flow
        if nodes.route != BASE:
            lost = estimate(sample, flow.sample).error
            flow = replace(tuned(tightened(flow, lost), profile), error=flow.error)
        lots = lots_variance(flow, profile) / max(float(profile.seen.sum()), 1.0)
        return cls(nodes, flow, views, sample, lots)

    def scores(self, number: int, codes: Int64Array, homes: Int64Array) -> tuple[FloatArray, Bins]:
        """Return what rows of an input may find at each node (float64[n, nodes]), infinite where unknown, and
        the bins of that (uint8[n, nodes])."""
        asked = self.nodes.asked[number]
        if asked is None:
            nothing = np.zeros((len(codes), self.nodes.count))
            return nothing, nothing.astype(np.uint8)
        views = self.views[asked]
        if self.nodes.summary.by_code or number not in self.views:
            unique, places = np.unique(codes, return_inverse=True)
            known = scores_of(unique, None, views, self.flow)
            return known[places], bins_of(known)[places]
        found = np.empty((len(codes), self.nodes.count))
        for home in np.unique(homes).tolist():
            own = homes == home
            found[own] = scores_of(codes[own], self.views[number][home], views, self.flow)
        return found, bins_of(found)

    def visits(self, number: int, codes: Int64Array, homes: Int64Array, rows: Int64Array) -> "Visited":
        """Return which nodes rows of an input visit; ``rows`` are numbers that follow from them."""
        stored = number in self.views
        if self.nodes.asked[number] is None:
            nowhere = np.zeros((len(codes), self.nodes.count), bool)
            nothing = nowhere.astype(np.uint8)
            return Visited(Visits(homes, nowhere, nowhere[:, 0], Role.STORE), nothing, self.flow)
        begun = Role.BOTH if stored else Role.PROBE
        scores, bins = self.scores(number, codes, homes)
        # Each stage draws lots of its own.
        found = targets(codes, rows ^ (self.nodes.form.seed << _STAGE), homes, scores, self.flow)
        return Visited(Visits(homes, found.chosen, found.sampled, begun), bins, self.flow)

    @property
    def knows(self) -> bool:
        """Whether anything is known of a window."""
        return any(view is not None for views in self.views.values() for view in views)

    @property
    def estimate(self) -> Estimate:
        """The share of results that is lost, as far as the sample tells."""
        if self.nodes.route == BASE or all(None in views for views in self.views.values()):
            # Every row visits all nodes.
            return Estimate(0.0, 0.0, 0.0, 0.95, 0.0)
        return estimate(self.sample, self.flow.sample, lots=self.lots)


@dataclass(frozen=True)
class Visited:
    """Which nodes rows visit, with the bin of their score for each (uint8[n, nodes])."""

    visits: Visits
    bins: Bins
    flow: Flow

    def marks(
        self, rows: Int64Array, worker: int, role: Role, before: Int64Array | None = None
    ) -> Int64Array:
        """Return the marks of some rows as they come to a worker; ``before``: those that they have had."""
        visits = self.visits
        sampled = visits.tried[rows].astype(np.int64)
        chosen = np.full(len(rows), int(role is not Role.TRIAL), np.int64)
        if before is not None:
            # Of the sample, what only a trial has found before is lost.
            chosen &= before[rows] >> CHOSEN & 1 | 1 - (before[rows] >> SAMPLED & 1)
        home, bins = visits.home[rows], self.bins[rows, worker]
        chance = np.where(home == worker, 0, self._told_chances[home, bins])
        if before is not None:
            chance = np.minimum(chance + (before[rows] >> CHANCE & _NEVER), _NEVER)
        of_score = bins.astype(np.int64)
        marks: Int64Array = home | chance << CHANCE | sampled << SAMPLED | chosen << CHOSEN | of_score << BIN
        return marks

    @cached_property
    def _told_chances(self) -> Int64Array:
        """The bits of the chance of each home and bin (int64[N, BINS]); they add up where chances are
        multiplied."""
        halves = -np.log2(np.maximum(visit_chances(self.flow), 1e-300))
        found: Int64Array = np.minimum(np.round(_HALVES * halves), _NEVER).astype(np.int64)
        return found


def chance_of(marks: Int64Array) -> FloatArray:
    """Return with what chance rows have come to where they are, by their marks (float64[n])."""
    told = marks >> CHANCE & _NEVER
    return np.where(told == _NEVER, 0.0, np.exp2(-told / _HALVES))
