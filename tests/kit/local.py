"""All stages of a plan on workers in this process, without Spark."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from wjoin.executor.arrivals import Arrivals
from wjoin.executor.counted import passed_on, shares, told_ticks
from wjoin.executor.counts import Counts
from wjoin.executor.made import Made
from wjoin.executor.node_state import Measuring
from wjoin.executor.nodes import Chooser, Nodes, Told
from wjoin.executor.routing import Router, worker_count
from wjoin.executor.silence import with_later
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.state.slices import Slice, Stored
from wjoin.executor.state.writing import Cutting
from wjoin.executor.step import StageLogic
from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.parts.kernels.runs import int64_view
from wjoin.parts.routes.route import Role
from wjoin.planner.plan.block_columns import stored_column, time_name
from wjoin.planner.plan.counting import goes_by
from wjoin.planner.plan.edges import reached_by
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.udfs.predicate import Predicate


@dataclass
class MemoryStore:
    """Slices in a dictionary."""

    slices: dict[str, pa.RecordBatch] = field(default_factory=dict)

    def load(self, stored: Slice) -> pa.RecordBatch:
        """Return the rows of a slice."""
        return self.slices[stored.name]

    def save(self, name: str, batch: pa.RecordBatch, cutting: Cutting) -> Stored:
        """Keep a slice under a new name, in one piece."""
        self.slices[name] = batch
        return Stored(int(batch.nbytes))

    def remove(self, stored: Slice) -> None:
        """Forget a slice."""
        del self.slices[stored.name]


@dataclass
class _Worker:
    """One worker of one stage."""

    logic: StageLogic
    manifest: Manifest
    store: MemoryStore = field(default_factory=MemoryStore)

    @property
    def kept(self) -> int:
        return sum(piece.rows for group in self.manifest.slices for piece in group)

    def run(self, arrivals: Arrivals, counts: Counts) -> Iterator[Made]:
        if not self.logic.plan.streaming:
            yield from self.logic.batch(arrivals, counts)
            return
        for each in self.logic.stream(self.manifest, self.store, arrivals, counts):
            if isinstance(each, Manifest):
                told = counts.measuring
                self.manifest = (
                    each if told is None else told.after(self.manifest, each, self.store, counts.stage)
                )
            else:
                yield each


@dataclass(frozen=True)
class Load:
    """What a worker did for a micro-batch: seconds of the processor, rows that it got, pairs it compared.

    ``kept``: the rows that it keeps after it.
    """

    seconds: float
    rows: int
    compared: int
    kept: int


class LocalWorkers:
    """Runs micro-batches one after the other and keeps the state between them; tables at once.

    ``partitions`` is the number of workers of a stage whose route uses all there are, ``stretch`` the bytes
    that a worker joins at once, ``predicates`` those that the plan names. ``whole``: whether the rows of a
    stream are few enough to be assigned one by one; ``absent``: what columns are where there is no row.
    ``files``: whether a stage knows of later ones, as where the state is in files. ``loads``: what each
    worker of each stage did for the last micro-batch.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        partitions: int = 1,
        stretch: int = STRETCH_BYTES,
        predicates: Mapping[str, Predicate] | None = None,
        *,
        whole: bool = True,
        absent: Mapping[str, pa.Scalar] | None = None,
        files: bool = True,
    ) -> None:
        self._plan, self._files = plan, files
        conditions = (
            stored_column(plan, stream, place).name
            for stream, scan in enumerate(plan.streams)
            for place, column in enumerate(scan.columns)
            if column.type == "boolean"
        )
        self._absent = {**dict.fromkeys(conditions, pa.scalar(None, pa.bool_())), **(absent or {})}
        self._whole = whole
        self.loads: list[list[Load]] = []
        self._stages: list[list[_Worker]] = []
        for number, stage in enumerate(plan.stages):
            count = worker_count(stage, partitions)
            fresh = Manifest.fresh("local", count, len(stage.inputs))
            logic = StageLogic(plan, number, stretch, predicates or {}, absent=self._absent)
            self._stages.append([_Worker(logic, fresh) for _ in range(count)])

    def states(self) -> Iterator[tuple[int, int, Manifest, MemoryStore]]:
        """Yield the state of each worker, with the number of its stage and its own."""
        for number, stage in enumerate(self._stages):
            for place, worker in enumerate(stage):
                yield number, place, worker.manifest, worker.store

    def change(self, plan: PhysicalPlan) -> None:
        """Go on with the same plan with other kernels or other summaries, as after a restart."""
        self._plan = plan
        for stage in self._stages:
            for worker in stage:
                worker.logic = replace(worker.logic, plan=plan)

    @property
    def state_rows(self) -> int:
        """The rows that are kept now."""
        return sum(worker.kept for stage in self._stages for worker in stage)

    @property
    def seconds(self) -> list[list[float]]:
        """What each worker of each stage took for the last micro-batch, of the processor."""
        return [[each.seconds for each in stage] for stage in self.loads]

    def manifest(self, stage: int) -> Manifest:
        """Return the state of the first worker of a stage."""
        return self._stages[stage][0].manifest

    def run(
        self,
        blocks: Mapping[int, pa.RecordBatch],
        counts: Counts,
        clock: int | None = None,
        *,
        ended: bool = False,
    ) -> list[pa.RecordBatch]:
        """Join the new rows of each stream, all its block columns; return the results of the last stage.

        ``clock``: that of the micro-batch, which a plan with silent streams needs; ``ended``: whether all
        streams end with it.
        """
        known = [self.manifest(stage) for stage in range(len(self._stages))]
        told: list[Manifest] = []
        seen = {
            stream: int(int64_view(block.column(time_name(stream))).max())
            for stream, block in blocks.items()
            if block.num_rows
        }
        choosers = [self.chooser(number) for number in range(len(self._stages))]
        results: list[list[Made]] = []
        ticks: list[list[dict[int, list[pa.RecordBatch]]]] = []
        self.loads = []
        for number, (stage, workers) in enumerate(zip(self._plan.stages, self._stages, strict=True)):
            arrivals = [Arrivals([[] for _ in stage.inputs], clock=clock, whole=self._files) for _ in workers]
            for own in arrivals:
                reached = reached_by(self._plan, number)
                own.seen = {stream: time for stream, time in seen.items() if stream in reached}
                own.ended = ended
                own.came = {} if clock is None else dict.fromkeys(own.seen, clock)
                for each in told:
                    for stream in each.came.keys() & each.seen.keys():
                        own.seen[stream] = max(each.seen[stream], own.seen.get(stream, each.seen[stream]))
                    for stream, came in each.came.items():
                        own.came[stream] = max(came, own.came.get(stream, came))
            for worker in workers if self._plan.asks_later and self._files else ():
                worker.manifest = with_later(worker.manifest, known[number + 1 :])
            for before in sorted({each.stage for each in stage.inputs if each.stage is not None}):
                for at, known_ticks in enumerate(ticks[before]):
                    for window, places, share in passed_on(
                        self._plan, before, at, known_ticks, range(len(workers))
                    ):
                        for own_place in places:
                            arrivals[own_place].ticks.setdefault(window, []).append(share)
            for place, source in enumerate(stage.inputs):
                if source.stage is not None:
                    new = [each.rows for each in results[source.stage] if each.to == place]
                else:
                    stream = source.members[0]
                    new = [blocks[stream].select(source.columns)] if stream in seen else []
                    for window, share, at in self._ticks(number, stream, blocks.get(stream), len(workers)):
                        arrivals[at].ticks.setdefault(window, []).append(share)
                router = Router.to(self._plan, stage, place, tuple(range(len(workers))), self._absent)
                router = replace(router, chooser=choosers[number])
                whole = self._whole and source.stage is None
                for block in new:
                    for worker, rows, role in router.parts(block, whole=whole):
                        if source.stage is None and "false" in self._plan.streams[source.members[0]].meets:
                            role = Role.ALONE
                        filled = workers[worker].logic.lacking.filled(place, rows)
                        arrivals[worker].blocks[place].append((role, filled))
            made: list[Made] = []
            loads: list[Load] = []
            for at, (each, own) in enumerate(zip(workers, arrivals, strict=True)):
                if (chooser := choosers[number]) is not None:
                    counts.measuring = Measuring.of(self._plan, stage, chooser.nodes, at, chooser)
                    counts.measuring.arrived(own.blocks, stage.inputs)
                begin, before = time.process_time(), counts.stage["comparisons"]
                rows = sum(block.num_rows for group in own.blocks for _, block in group)
                made += each.run(own, counts)
                compared = counts.stage["comparisons"] - before
                loads.append(Load(time.process_time() - begin, rows, compared, each.kept))
            told.append(workers[0].manifest)
            ticks.append([each.ticks for each in arrivals])
            self.loads.append(loads)
            results.append(made)
        return [each.rows for each in results[-1]]

    def chooser(self, number: int) -> Chooser | None:
        """Return what decides which nodes of a stage rows visit in the next micro-batch."""
        workers = self._stages[number]
        nodes = Nodes.of(self._plan, self._plan.stages[number], len(workers))
        if nodes is None:
            return None
        known = ((each.manifest.node, each.store) for each in workers)
        told = [None if node is None else Told.read(store.load(node), nodes.count) for node, store in known]
        return Chooser.of(nodes, told)

    def _ticks(
        self, stage: int, stream: int, block: pa.RecordBatch | None, workers: int
    ) -> Iterator[tuple[int, pa.RecordBatch, int]]:
        """Yield what windows of rows count of a stream: the number of the window, ticks, and a worker."""
        for number, window in enumerate(self._plan.counted if block is not None and block.num_rows else ()):
            if window.stream == stream:
                ticks = told_ticks(self._plan, number, block, block.column(time_name(stream)))
                code = goes_by(self._plan, stage, window)
                for places, share in shares(self._plan, number, ticks, range(workers), code):
                    yield from ((number, share, place) for place in places)
