"""One micro-batch of one worker of one stage: state and blocks in, results and state out.

Pure: no Spark. The store is read and written through ``SliceStore``, so that the same logic
runs under Spark's operator, in batch and in simulated crashes.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from wjoin.executor.blocks import concatenate, cut
from wjoin.executor.kernels.adaptive import preferred
from wjoin.executor.kernels.kernels import KERNELS
from wjoin.executor.kernels.runs import BoolArray, Int64Array, RunShape, SortedRun, select
from wjoin.executor.key_counts import count_keys
from wjoin.executor.layout import code_name, stored_column, time_name
from wjoin.executor.multiway import MultiwayJoin, Pieces, Work
from wjoin.executor.state.manifest import Manifest, StateChoice
from wjoin.executor.state.retention import kept, stage_reach, watermark
from wjoin.executor.state.slices import LARGE_SLICE, Slice, maintain
from wjoin.executor.tally import Tally
from wjoin.planner.measurement import KeyCount
from wjoin.planner.physical import Bounds, Kernel, PhysicalPlan, Stage, StageInput


class SliceStore(Protocol):
    """Where a worker's slices are kept."""

    def load(self, name: str) -> pa.RecordBatch:
        """Return the rows of a slice."""
        ...

    def save(self, name: str, batch: pa.RecordBatch) -> int:
        """Write a slice under a new name; return its size in bytes."""
        ...

    def remove(self, name: str) -> None:
        """Forget a slice."""
        ...


@dataclass
class Arrivals:
    """What reached a worker in one micro-batch.

    ``blocks``: the new rows of each input. ``seen``: the greatest event time of each stream
    that sent anything. ``removed``: the times of a stream's rows that can join nothing, int64.
    ``told``: what a stream's rows told on their way. All but the event times of the last two is
    counted at one worker only.
    """

    blocks: list[list[pa.RecordBatch]]
    seen: dict[int, int] = field(default_factory=dict)
    removed: dict[int, list[Int64Array]] = field(default_factory=dict)
    told: dict[int, Tally] = field(default_factory=dict)


@dataclass
class Counts:
    """What one micro-batch did at one worker, by stream or by input."""

    late: dict[int, int] = field(default_factory=dict)
    matches: int = 0
    work: Work = field(default_factory=Work)
    keys: dict[int, KeyCount] = field(default_factory=dict)


@dataclass(frozen=True)
class StageLogic:
    """Stage ``number`` of a plan, ready to run; plain data, so that it can be sent to a worker."""

    plan: PhysicalPlan
    number: int

    @property
    def stage(self) -> Stage:
        """The stage itself."""
        return self.plan.stages[self.number]

    def shape(self, number: int) -> RunShape:
        """Return the order of input ``number`` and the columns that it is made by."""
        each = self.stage.inputs[number]
        code = None if each.key is None else code_name(*each.key)
        times = tuple(time_name(stream) for stream in each.members)
        band = self.stage.index(number)
        value = None
        if band is not None and self.stage.kernel is Kernel.ORDERED:
            own = band.left if band.left[0] in each.members else band.right
            value = stored_column(self.plan, *own).name
        return RunShape(code, times, KERNELS[self.stage.kernel].order, value)

    def join(
        self, old: list[list[SortedRun]], new: list[SortedRun | None], work: Work
    ) -> Iterator[pa.RecordBatch]:
        """Yield every combination that has at least one new row, each once.

        A combination is produced by its last new input: new rows of input i meet old and new
        rows of the inputs before i, and old rows of those after.
        """
        join = MultiwayJoin(self.plan, self.stage, self.number == len(self.plan.stages) - 1, work)
        for number, run in enumerate(new):
            if run is None:
                continue
            pieces = []
            for other, runs in enumerate(old):
                fresh = new[other]
                extra = [fresh] if other < number and fresh is not None else []
                pieces.append(Pieces((run,) if other == number else (*runs, *extra)))
            yield from join.results(number, pieces)

    def batch(self, arrivals: Arrivals, counts: Counts) -> Iterator[pa.RecordBatch]:
        """Yield the results over complete inputs: no state, nothing is late."""
        logic = self._concrete(Kernel.HW)
        new = [logic._sorted(number, blocks) for number, blocks in enumerate(arrivals.blocks)]
        if logic is not self:
            adapted = self._concrete(preferred(self.plan, self.stage, new, Kernel.HW))
            new = [adapted.arranged(number, run, logic.shape(number)) for number, run in enumerate(new)]
            logic = adapted
        yield from logic.join([[] for _ in new], new, counts.work)

    def stream(
        self, manifest: Manifest, store: SliceStore, arrivals: Arrivals, counts: Counts
    ) -> Iterator[pa.RecordBatch | Manifest]:
        """Yield the results of a micro-batch, then the manifest of the state after it."""
        known = Kernel.HW if manifest.choice is None else manifest.choice.kernel
        logic = self._concrete(Kernel.MW if known is Kernel.MW else Kernel.HW)
        yield from logic._micro_batch(manifest, store, arrivals, counts, adapts=logic is not self)

    def _concrete(self, kernel: Kernel) -> "StageLogic":
        """Return the logic with a kernel in the place of ADAPTIVE, itself where it has another."""
        if self.stage.kernel is not Kernel.ADAPTIVE:
            return self
        return self._of(replace(self.stage, kernel=kernel))

    def _micro_batch(
        self, manifest: Manifest, store: SliceStore, arrivals: Arrivals, counts: Counts, *, adapts: bool
    ) -> Iterator[pa.RecordBatch | Manifest]:
        for stream, removed in arrivals.removed.items():
            for times in removed:
                self._punctual(stream, times, manifest.seen, counts)
        new = [
            self._on_time(each, self._sorted(number, blocks), manifest.seen, counts)
            for number, (each, blocks) in enumerate(zip(self.stage.inputs, arrivals.blocks, strict=True))
        ]
        self._count_keys(new, counts)
        loaded: dict[str, SortedRun] = {}

        def load(logic: StageLogic, number: int, each: Slice) -> SortedRun:
            shape = logic.shape(number)
            if each.order != shape.order_name:
                return shape.sort(store.load(each.name))
            if each.name not in loaded:
                loaded[each.name] = shape.read(store.load(each.name), (each.earliest, each.latest))
            return loaded[each.name]

        old = [[load(self, number, each) for each in group] for number, group in enumerate(manifest.slices)]
        for result in self.join(old, new, counts.work):
            counts.matches += result.num_rows
            yield result
        seen = dict(manifest.seen)
        for stream, time in arrivals.seen.items():
            seen[stream] = max(time, seen.get(stream, time))
        keeper = self._keeper(manifest)
        groups = []
        names = itertools.count(manifest.written)
        for number, group in enumerate(manifest.slices):
            shape = keeper.shape(number)
            change = maintain(
                group,
                keeper.arranged(number, new[number], self.shape(number)),
                shape,
                partial(load, keeper, number),
                partial(keeper._live, number, seen),
                keeper._settled(self.stage.inputs[number], seen),
            )
            for each in change.remove:
                store.remove(each.name)
            written = (piece for run in change.write for piece in _slices(store, names, shape, run))
            groups.append((*change.stay, *written))
        choice = StateChoice.of(self.stage)
        if adapts:
            choice = replace(choice, kernel=preferred(self.plan, self.stage, new, self.stage.kernel))
        yield replace(manifest, written=next(names), seen=seen, slices=tuple(groups), choice=choice)

    def _keeper(self, manifest: Manifest) -> "StageLogic":
        """Return the logic by which this micro-batch writes state: as the one before has said.

        A restart may come with other bounds or another kernel, and may repeat a micro-batch of
        which Spark keeps what the first attempt has written.
        """
        choice = manifest.choice or StateChoice(Bounds.EXACT, Kernel.HW, ())
        if choice == StateChoice.of(self.stage):
            return self
        return self._of(choice.on(self.stage))

    def _of(self, stage: Stage) -> "StageLogic":
        """Return the logic with another stage in the place of its own."""
        return StageLogic(self.plan.with_stage(self.number, stage), self.number)

    def arranged(self, number: int, run: SortedRun | None, shape: RunShape) -> SortedRun | None:
        """Return a run of ``shape`` in the order that this logic has for input ``number``."""
        own = self.shape(number)
        if run is None or own.order_name == shape.order_name:
            return run
        return own.sort(run.batch)

    def _count_keys(self, new: list[SortedRun | None], counts: Counts) -> None:
        """Count how the keys of each stream's new rows are spread."""
        for number, run in enumerate(new):
            each = self.stage.inputs[number]
            found = count_keys(run, self.shape(number).order) if run is not None else None
            if each.stage is None and found is not None:
                counts.keys[each.members[0]] = found

    def _live(self, number: int, seen: dict[int, int], run: SortedRun) -> BoolArray:
        return kept(self.plan, self.stage, number, run.times, seen)

    def _sorted(self, number: int, blocks: list[pa.RecordBatch]) -> SortedRun | None:
        return self.shape(number).sort(concatenate(blocks)) if blocks else None

    def _on_time(
        self, each: StageInput, run: SortedRun | None, seen: dict[int, int], counts: Counts
    ) -> SortedRun | None:
        """Drop and count the rows older than their stream's watermark."""
        if run is None or each.stage is not None:
            return run
        on_time = self._punctual(each.members[0], run.times[0], seen, counts)
        if on_time is None:
            return run
        return select(run, self.shape(self.stage.inputs.index(each)), on_time)

    def _punctual(
        self, stream: int, times: Int64Array, seen: dict[int, int], counts: Counts
    ) -> BoolArray | None:
        """Count the rows of a stream that are late; return which are not, None for all."""
        mark = watermark(seen.get(stream), self.plan.streams[stream].delay)
        on_time = np.ones(len(times), bool) if mark is None else times >= mark
        late = len(times) - int(np.count_nonzero(on_time))
        if not late:
            return None
        counts.late[stream] = counts.late.get(stream, 0) + late
        return on_time

    def _settled(self, each: StageInput, seen: dict[int, int]) -> int | None:
        """Return the time from which on the rows of a one-stream input are live, None if unknown."""
        if len(each.members) > 1:
            return None
        stream = each.members[0]
        ahead = stage_reach(self.plan, self.stage).ahead
        cuts = []
        for other in self.stage.members:
            if other != stream:
                mark = watermark(seen.get(other), self.plan.streams[other].delay)
                distance = ahead[stream][other]
                if mark is None or distance is None:
                    return None
                cuts.append(mark - distance)
        return min(cuts)


def _slices(store: SliceStore, names: Iterator[int], shape: RunShape, run: SortedRun) -> Iterator[Slice]:
    """Write a run as slices that are not much larger than LARGE_SLICE."""
    for batch in cut(run.batch, max(1, run.rows), 2 * LARGE_SLICE):
        piece = shape.read(batch)
        name = str(next(names))
        yield Slice(name, piece.rows, store.save(name, batch), *piece.span, shape.order_name)
