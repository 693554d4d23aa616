"""What is measured at a node of an approximate join, and what it tells the others: a slice of its state."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from wjoin.executor.combinations import Combinations
from wjoin.executor.nodes import (
    BASE,
    BIN,
    CHOSEN,
    HOME,
    SAMPLED,
    Bins,
    Chooser,
    Nodes,
    Told,
    chance_of,
    home_column,
)
from wjoin.executor.report import Report
from wjoin.executor.state.manifest import Manifest, written_manifest
from wjoin.executor.state.slices import Slice, SliceStore
from wjoin.executor.state.worker_files import WorkerFiles, worker_folder
from wjoin.executor.state.writing import FIRST_CUTTING
from wjoin.executor.stretches import Arrived
from wjoin.parts.kernels.runs import BoolArray, Int64Array, int64_view
from wjoin.parts.routes.route import Role
from wjoin.parts.summaries.error import RARE, Came, Sample
from wjoin.parts.summaries.flow import chances, sampled, visit_chance
from wjoin.parts.summaries.hashing import mixed
from wjoin.parts.summaries.profile import PROMISES, Profile
from wjoin.parts.summaries.summary import Form, Summary
from wjoin.planner.plan.block_columns import meeting_name, time_name
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.slicing import cut_stream
from wjoin.planner.plan.stage_kinds import Stage, StageEdge

_MISSING, _MILLION = ("missing", "missing_least", "missing_most"), 1_000_000

_PROFILED = 1 << 14
"""New rows of a node by which is told what rows could visit, at the most."""

_LESS, _LEAST, _MANY = 0.8, 0.5, 1000
"""The weight of what was measured before, against that of a new micro-batch: where there is little, and where
these are many matches."""

_NODE = "node"
"""The order of the slice with what a node tells."""


@dataclass
class Measuring:
    """What is measured at node ``place`` in a micro-batch: results of the sample, and what rows could visit.

    ``columns``: by input its column of marks; ``times``: by input the column by which lots are drawn;
    ``first``: whether it is a node of the first stage.
    """

    nodes: Nodes
    place: int
    chooser: Chooser
    columns: dict[int, str]
    times: dict[int, str]
    first: bool
    sample: Sample
    profile: Profile
    homed: int = 0
    visits: int = 0
    trials: int = 0

    @classmethod
    def of(cls, plan: PhysicalPlan, stage: Stage, nodes: Nodes, place: int, chooser: Chooser) -> "Measuring":
        """Return what measures at a node of a stage."""
        named = {number: home_column(plan, each) for number, each in enumerate(stage.inputs)}
        columns = {number: name for number, name in named.items() if name is not None}
        first = plan.stages.index(stage) == 0
        times = {number: time_name(cut_stream(plan, stage, number)) for number in columns}
        return cls(nodes, place, chooser, columns, times, first, Sample.empty(), Profile.empty(nodes.count))

    @property
    def idle(self) -> bool:
        """Whether nothing need be measured."""
        return self.nodes.route == BASE

    def arrived(self, blocks: Sequence[Arrived], streams: Sequence[StageEdge]) -> None:
        """Take note of what new rows that live here could visit."""
        roles = [(role, block.num_rows) for group in blocks for role, block in group]
        self.visits = sum(rows for role, rows in roles if role in (Role.VISIT, Role.TRIAL))
        self.homed = sum(rows for _, rows in roles) - self.visits
        self.trials = sum(rows for role, rows in roles if role is Role.TRIAL)
        if self.idle or not self.chooser.knows:
            # What all nodes are visited for says nothing of what summaries are worth.
            return
        for number, edge in enumerate(streams):
            if self.nodes.asked[number] is None:
                continue
            codes = [
                int64_view(block.column(str(meeting_name(edge))))
                for role, block in blocks[number]
                if role in (Role.BOTH, Role.PROBE)
            ]
            rows = np.concatenate(codes) if codes else np.empty(0, np.int64)
            some = rows[:: max(1, len(rows) // _PROFILED)]
            if not len(some):
                continue
            self._could_visit(number, some, len(rows) / len(some))
            self._came_by_lot(number, blocks[number])

    def _could_visit(self, number: int, codes: Int64Array, times: float) -> None:
        """Take note of what some rows of an input that live here could visit; each stands for some."""
        homes, flow = np.full(len(codes), self.place, np.int64), self.chooser.flow
        scores, bins = self.chooser.scores(number, codes, homes)
        self.profile = self.profile.plus(Profile.of_rows(scores, homes).times(times))
        away = np.arange(self.nodes.count) != self.place
        by_lot = np.ix_(~sampled(codes, flow), away)
        # What is promised of partial results says nothing of those that were not made.
        promises = PROMISES[bins[by_lot]] if self.first else np.zeros(1)
        told = Sample.of_promises(promises, chances(scores, homes, flow)[by_lot], flow.sample)
        self.sample = self.sample.plus(told.times(times))

    def _came_by_lot(self, number: int, blocks: Arrived) -> None:
        """Take note of what was promised of the visits that lots have made here."""
        for role, block in blocks if self.first else ():
            if role is Role.VISIT:
                homes, bins, of_sample, _ = _told_by(int64_view(block.column(self.columns[number])))
                chance = visit_chance(homes, bins, self.chooser.flow)[~of_sample]
                promises = PROMISES[bins[~of_sample]]
                self.sample = self.sample.plus(Sample.of_lots(promises, chance, self.chooser.flow.sample))

    def add(self, origin: int, found: Combinations) -> None:
        """Count results that new rows of an input begin."""
        name = self.columns.get(origin)
        if self.idle or name is None or not len(found):
            return
        # New rows are in one run.
        (run,), rows, flow = found.pieces[origin].runs, found.rows[origin], self.chooser.flow
        counts, codes = np.bincount(rows, minlength=run.rows), np.zeros(run.rows, np.int64)
        codes[rows] = found.codes
        own = np.flatnonzero(counts)
        marks, codes = int64_view(run.batch.column(name))[own], codes[own]
        matches = counts[own].astype(np.float64)
        homes, bins, of_sample, chosen = _told_by(marks)
        here = homes == self.place
        chance = np.where(here, 1.0, visit_chance(homes, bins, flow))
        came = Came(chance, of_sample, flow.sample)
        if self.chooser.knows:
            told = Profile.of_matches(self.nodes.count, homes, bins, matches, here, came.worth)
            self.profile = self.profile.plus(told)
        if self.first:
            sample = Sample.of(codes, matches, chosen, flow.seed, came, PROMISES[bins])
        else:
            # Partial results of one row have come by one lot, and each of them may be at several nodes.
            chance, draws = chance_of(marks), int64_view(run.batch.column(self.times[origin]))[own]
            draws = draws ^ mixed(codes, 0).view(np.int64)
            came = Came(chance, of_sample, flow.sample, draws, self._rarest)
            sample = Sample.of(codes, matches, chosen, flow.seed, came)
            nodes = 1 + min(flow.visits, self.nodes.count - 1.0)
            sample = replace(sample, lots=nodes * sample.lots)
        self.sample = self.sample.plus(sample)

    @property
    def _rarest(self) -> float:
        """The least chance of which lots tell in a stage after the first: that of two that are rare."""
        return (RARE * self.chooser.flow.sample) ** 2

    def after(self, before: Manifest, after: Manifest, store: SliceStore, counted: Report) -> Manifest:
        """Return the manifest after the micro-batch with what the node tells; count what is lost."""
        old = None if before.node is None else Told.read(store.load(before.node), self.nodes.count)
        sample, profile = self.sample, self.profile
        if old is not None:
            sample, profile = old.sample.plus(sample), _of_late(old.profile, profile)
        views = tuple(self._view(number, name, after, store) for number, name in self.nodes.stored)
        counted.add("node", self.place)
        counted.add("homed", self.homed)
        counted.add("visits", self.visits)
        counted.add("trials", self.trials)
        counted.add("summary_bytes", sum(map(len, views)))
        if self.place == 0:
            known = self.chooser.estimate
            for counter, share in zip(_MISSING, (known.error, known.low, known.high), strict=True):
                counted.add(counter, round(_MILLION * share))
        told = Told(views, sample, profile, self.nodes.form).batch()
        name = str(after.written)
        cutting = FIRST_CUTTING if after.writing is None else after.writing.cutting
        stored = store.save(name, told, cutting)
        of = (1, stored.size, 0, 0, _NODE, stored.digest, stored.pieces, stored.compression)
        if before.node is not None:
            store.remove(before.node)
        return replace(after, written=after.written + 1, node=Slice(name, *of))

    def _view(self, number: int, name: str, manifest: Manifest, store: SliceStore) -> bytes:
        """Return what others may know of the window of an input."""
        whole = self.nodes.summary.empty(self.nodes.form)
        for each in manifest.slices[number] if not self.idle else ():
            whole = whole.plus(_of_slice(self.nodes, name, each, store))
        return whole.to_bytes()


def _told_by(marks: Int64Array) -> tuple[Int64Array, Bins, BoolArray, BoolArray]:
    """Return what marks tell: homes, bins, and which rows are of the sample and came by choice."""
    of_sample, chosen = ((marks >> bit & 1).astype(bool) for bit in (SAMPLED, CHOSEN))
    return marks & HOME, (marks >> BIN).astype(np.uint8), of_sample, chosen


def _of_late(old: Profile, new: Profile) -> Profile:
    """Return what is measured of late: the sooner forgotten the more there is."""
    many = old.seen.sum() + new.seen.sum() >= _MANY
    return old.times(_LEAST if many else _LESS).plus(new)


_kept: dict[tuple[str, str, Form, str], Summary] = {}
_MOST_KEPT = 1 << 10


def _of_slice(nodes: Nodes, name: str, each: Slice, store: SliceStore) -> Summary:
    """Return the summary of a slice, which never changes; this process keeps it."""
    key = nodes.route, name, nodes.form, each.digest
    found = _kept.get(key) if each.digest else None
    if found is None:
        codes = int64_view(store.load(each).column(name))
        found = nodes.summary.empty(nodes.form).add(codes)
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[key] = found
    return found


def told_by(stage: Path, place: int, number: int, nodes: int) -> Told | None:
    """Return what a node of a stage has told before micro-batch ``number``, None for nothing yet.

    Raises WJoinError WJ719 where its state is damaged.
    """
    files = WorkerFiles(worker_folder(stage, place), number)
    body = files.manifest()
    node = None if body is None else written_manifest(body).node
    return None if node is None else Told.read(files.load(node), nodes)


@lru_cache(maxsize=8)
def chooser_at(nodes: Nodes, stage: Path, number: int) -> Chooser:
    """Return what decides in micro-batch ``number`` which nodes rows visit; ``stage``: where the state is."""
    return Chooser.of(nodes, [told_by(stage, place, number, nodes.count) for place in range(nodes.count)])
