"""One micro-batch of one worker of one stage: state and blocks in, results and state out.

Pure: no Spark. The store is read and written through ``SliceStore``, so that the same logic
runs under Spark's operator, in batch and in simulated crashes.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from wjoin.executor.arrivals import Arrivals
from wjoin.executor.asof import ENDED, NearestJoin, Undecided
from wjoin.executor.blocks import concatenate
from wjoin.executor.combinations import Assembler, Combinations
from wjoin.executor.counted import Ticks, Waiting, all_ticks, decided, limit
from wjoin.executor.counts import Counts, count_spread, count_state
from wjoin.executor.gathering import Pieces
from wjoin.executor.lacking import THERE, Lacking
from wjoin.executor.late_rows import told
from wjoin.executor.multiway import MultiwayJoin
from wjoin.executor.numbering import with_numbers
from wjoin.executor.partners import Partners, preserved_inputs
from wjoin.executor.report import Report
from wjoin.executor.silence import count_silent, progressed
from wjoin.executor.spool import Spool
from wjoin.executor.state.kept_rows import Keeper, live, settled, watermark
from wjoin.executor.state.manifest import Elsewhere, Manifest
from wjoin.executor.state.slices import (
    Slice,
    SliceStore,
    maintain,
    read_slice,
    still_live,
    write_slices,
)
from wjoin.executor.state.writing import Writing
from wjoin.executor.stretches import STRETCH_BYTES, Arrived, stretches
from wjoin.parts.kernels.adaptive import Meeting, preferred
from wjoin.parts.kernels.registry import KERNELS, refusal_of
from wjoin.parts.kernels.run_filter import RunFilter
from wjoin.parts.kernels.runs import BoolArray, Order, RunShape, SortedRun, int64_view
from wjoin.parts.routes.route import Role
from wjoin.planner.plan.block_columns import meeting_name, row_name, stored_column, time_name
from wjoin.planner.plan.counting import windows_at
from wjoin.planner.plan.edges import destination, destinations, held_for, reached_by, result_columns
from wjoin.planner.plan.physical import (
    Gather,
    Join,
    PhysicalPlan,
    Stage,
    StageEdge,
    meeting,
)
from wjoin.planner.plan.probes import over_streams, with_kernel
from wjoin.planner.plan.steps import Probe, Rows
from wjoin.planner.plan.to_come import earliest
from wjoin.udfs.predicate import Predicate

if TYPE_CHECKING:
    from wjoin.executor.sites.held_input import HeldInput


PAST = -1
"""The input that late rows are for: they go past the later stages."""


@dataclass(frozen=True)
class Made:
    """Results, or in a hop partial ones: rows for input ``to`` of a later stage, None out of the last one.

    Late rows that go to a sink are ``PAST``.
    """

    rows: pa.RecordBatch
    to: int | None


@dataclass(frozen=True)
class _New:
    """The new rows of each input as runs: those that begin results, and those that are kept.

    ``passed_on``: rows as they came, for a later hop. ``alone``: rows that meet no other, and are results of
    an outer join. ``late``: late rows for a sink.
    """

    probing: list[SortedRun | None]
    stored: list[SortedRun | None]
    passed_on: list[Made] = field(default_factory=list)
    alone: list[Made] = field(default_factory=list)
    late: list[Made] = field(default_factory=list)


@dataclass(frozen=True)
class StageLogic:
    """Stage ``number`` of a plan, ready to run; plain data, so that it can be sent to a worker.

    ``stretch``: the bytes of new rows that are joined at once. ``predicates`` are those that the
    plan names, ``statement`` is what failures are told with. ``elsewhere``: by their numbers what brings the
    rows of inputs that are not in the state. ``absent``: what columns are in tuples that lack a row.
    """

    plan: PhysicalPlan
    number: int
    stretch: int = STRETCH_BYTES
    predicates: Mapping[str, Predicate] = field(default_factory=dict)
    statement: str = ""
    elsewhere: Mapping[int, "HeldInput"] = field(default_factory=dict)
    absent: Mapping[str, pa.Scalar] = field(default_factory=dict)

    @property
    def stage(self) -> Stage:
        """The stage itself."""
        return self.plan.stages[self.number]

    @cached_property
    def streams(self) -> frozenset[int]:
        """The streams whose event times the stage must know."""
        return reached_by(self.plan, self.number)

    def shape(self, number: int) -> RunShape:
        """Return the order of input ``number`` and the columns that it is made by."""
        each = self.stage.inputs[number]
        code = meeting_name(each)
        times = tuple(time_name(stream) for stream in each.members)
        order = KERNELS[self.stage.kernels[0]].order
        value = None
        if each.index is not None and order is Order.VALUE:
            own = each.index.left if each.index.left[0] in each.members else each.index.right
            value = stored_column(self.plan, *own).name
        newest = time_name(each.newest[0]) if len(each.newest) == 1 else None
        return RunShape(code, times, order, value, newest)

    @cached_property
    def shapes(self) -> list[RunShape]:
        """The shapes of all inputs."""
        return [self.shape(number) for number in range(len(self.stage.inputs))]

    @cached_property
    def lacking(self) -> Lacking:
        """What becomes of tuples that have no row of some stream."""
        return Lacking(self.plan, self.number, self.absent, self.statement)

    @cached_property
    def _assemblers(self) -> dict[tuple[int, ...], Assembler]:
        return {_joined(probe): self._made_assembler(probe) for probe in self.stage.probes}

    def assembler(self, probe: Probe) -> Assembler:
        """Return what makes blocks of what a probe of the stage finds."""
        return self._assemblers[_joined(probe)]

    def _made_assembler(self, probe: Probe) -> Assembler:
        inputs = self.stage.inputs
        places = {name: number for number in _joined(probe) for name in inputs[number].columns}
        names = result_columns(self.plan, self.number, self._destination(probe))
        for number in _joined(probe):
            there = self.lacking.there(number)
            names = (*names, *there)
            places |= dict.fromkeys(there, number)
        # What is in no input is the number of the row that begins.
        return Assembler(tuple((places.get(name, probe.origin), name) for name in names))

    def _destination(self, probe: Probe) -> tuple[int, int] | None:
        return destination(self.plan, self.number, self.stage.inputs[probe.origin], probe.order)

    def _numbered(self, number: int, run: SortedRun | None) -> SortedRun | None:
        """Return new rows of an input with numbers where these tell what each has begun."""
        if run is None or len(self.stage.chains(number)) < 2:
            return run
        return with_numbers(run, row_name(self.stage.inputs[number].members[0]))

    def join(
        self,
        old: Sequence[Sequence[SortedRun]],
        probing: Sequence[SortedRun | None],
        stored: Sequence[SortedRun | None],
        counted: Report,
        inside: Callable[[Combinations], Combinations] | None = None,
    ) -> Iterator[tuple[Probe, Combinations]]:
        """Yield every combination with at least one new row, each once, as the probes of the stage say.

        ``inside``: as in ``MultiwayJoin``.
        """
        asof = isinstance(self.stage, Join) and self.stage.nearest is not None
        join = (NearestJoin if asof else MultiwayJoin)(
            self.plan, self.number, counted, KERNELS, self.predicates, self.statement, inside
        )
        filters = [
            RunFilter(runs) if shape.by_code else None for shape, runs in zip(self.shapes, old, strict=True)
        ]
        for probe in self.stage.probes:
            run = probing[probe.origin]
            if run is None:
                continue
            met = {number: Pieces(()) for number in range(len(old))}
            met[probe.origin] = Pieces((run,))
            for step in probe.steps:
                new = stored[step.input] if step.rows is not Rows.OLD else None
                fresh = () if new is None else (new,)
                if step.rows is Rows.NEW:
                    met[step.input] = Pieces(fresh)
                else:
                    met[step.input] = Pieces((*old[step.input], *fresh), filters[step.input])
            for found in join.results(probe, [met[number] for number in range(len(old))]):
                yield probe, found

    @property
    def by_key(self) -> bool:
        """Whether rows of several keys never meet, nor are waited for: tables that are joined by a key."""
        keyed = all(shape.code is not None for shape in self.shapes)
        return keyed and isinstance(self.stage, Join) and not self.plan.streaming

    def batch(self, arrivals: Arrivals, counts: Counts) -> Iterator[Made]:
        """Yield the results over complete inputs: no state, nothing is late."""
        logic = self._with(self.stage.kernels[0])
        ticks = all_ticks(self.plan, self.number, arrivals.ticks)
        working: list[list[SortedRun]] = [[] for _ in logic.stage.inputs]
        undecided = Undecided.of(logic.stage, logic.shapes)
        partners = Partners.of(logic.stage, logic.shapes, {})
        if partners.inputs:
            # Which rows have partners is told of all inputs.
            logic = replace(logic, plan=over_streams(logic.plan, logic.number))
        cut = stretches(arrivals.blocks, logic.shapes, self.stretch, arrivals.spool, by_key=self.by_key)
        for stretch in cut:
            if stretch.later is not None and not logic.plan.streaming:
                # Rows of one stretch meet those of the next ones.
                logic = replace(logic, plan=over_streams(logic.plan, logic.number))
            new = logic._new(stretch.blocks, counts, {})
            if len(self.stage.kernels) > 1 and not any(working):
                known = logic.shapes
                logic = self._suited(logic, new)
                new = logic._arranged(new, known)
            if undecided is not None:
                yield from logic._decided(undecided, working, new, counts, stretch.later, ENDED)
            else:
                for made in logic._results(working, new, counts, partners):
                    yield from logic._counted(made, ticks, counts)
            for number in partners.inputs:
                stored = new.stored[number]
                if stretch.later is not None:
                    new.stored[number] = stored and partners.set_down(number, stored, arrivals.spool)
                else:
                    for run, alone in partners.rest(number, stored):
                        yield from logic._by_themselves(number, run, alone, counts)
            if stretch.later is not None:
                working = logic._working(working, new.stored, stretch.later, arrivals.spool)
            else:
                working = [[] for _ in working]
                undecided = Undecided.of(logic.stage, logic.shapes)
                partners = Partners.of(logic.stage, logic.shapes, {})

    def _counted(self, made: Made, ticks: Mapping[int, Ticks], counts: Counts) -> Iterator[Made]:
        """Yield results over complete inputs that are inside the windows of rows."""
        if not ticks:
            yield made
            return
        inside, _ = decided(self.plan, self.number, ticks, made.rows, None)
        rows = made.rows.filter(pa.array(inside))
        counts.stage.add("matches", rows.num_rows)
        yield Made(rows, made.to)

    @cached_property
    def _held(self) -> bool:
        """Whether what comes waits until it is known what windows of rows count."""
        return self._asks_for_counts and bool(held_for(self.plan, self.number))

    @cached_property
    def _asks_for_counts(self) -> bool:
        """Whether what the stage makes must be inside windows of rows."""
        return bool(windows_at(self.plan, self.number))

    def stream(
        self, manifest: Manifest, store: SliceStore, arrivals: Arrivals, counts: Counts, worker: int = 0
    ) -> Iterator[Made | Manifest]:
        """Yield the results of a micro-batch, then the manifest of the state after it.

        ``worker``: the place of this one among the workers of the stage.
        """
        writing = manifest.writing or Writing.first(self.plan, self.stage)
        # Workers that adapt, and those with marks, go on with the kernel whose order their state has.
        names = (*self.stage.kernels, *(KERNELS if preserved_inputs(self.stage) else ()))
        possible = (self._with(name) for name in names if self._can_have(name))
        known = (each for each in possible if each.orders == tuple(writing.orders))
        logic = next(known, None) or self._with(self.stage.kernels[0])
        yield from logic._micro_batch(manifest, writing, store, arrivals, counts, worker, among=self)

    @property
    def orders(self) -> tuple[str, ...]:
        """The orders in which the rows of the inputs are kept."""
        return tuple(each.order_name for each in self.shapes)

    def _can_have(self, kernel: str) -> bool:
        return refusal_of((kernel,), keyed=self.stage.keyed, indexed=self.stage.indexed) is None

    def _with(self, kernel: str) -> "StageLogic":
        """Return the logic with one kernel of the stage."""
        if self.stage.kernels == (kernel,):
            return self
        stage = with_kernel(self.plan, self.stage, kernel)
        return replace(self, plan=self.plan.with_stage(self.number, stage))

    def _micro_batch(
        self,
        manifest: Manifest,
        writing: Writing,
        store: SliceStore,
        arrivals: Arrivals,
        counts: Counts,
        worker: int,
        *,
        among: "StageLogic",
    ) -> Iterator[Made | Manifest]:
        shapes = self.shapes
        cutting = writing.cutting
        partners = Partners.of(self.stage, shapes, manifest.marks)
        seen, came = progressed(self.plan, self.number, manifest, arrivals)
        loaded: dict[str, SortedRun] = {}

        def load(number: int, shape: RunShape, each: Slice) -> SortedRun:
            if number in partners.inputs:
                return partners.load(number, shape, each, store)
            if each.order != shape.order_name:
                return read_slice(each, shape, store)
            if each.name not in loaded:
                loaded[each.name] = read_slice(each, shape, store)
            return loaded[each.name]

        waiting, keepers = None, self._keepers(writing, seen)
        if self._asks_for_counts:
            own = self.plan, self.number, manifest.counted, manifest.seen
            waiting = Waiting(*own, store, cutting, arrivals.spool)
            waiting.begin(arrivals.ticks, seen, self._marks(seen))
            for rows in arrivals.waiting:
                waiting.take(rows)
            keepers = waiting.keepers(keepers)
        names = itertools.count(manifest.written)
        if waiting is not None and self._held:
            for number, blocks in enumerate(arrivals.blocks):
                blocks = self._taking_part(number, blocks, counts, manifest.seen)
                arrivals.blocks[number] = waiting.due(number, blocks, names)
        slices = [list(group) for group in manifest.slices]
        working = [
            [load(number, shapes[number], each) for each in group]
            for number, group in enumerate(manifest.slices)
        ]
        for number, source in self.elsewhere.items():
            if worker == 0:
                counts.of(self.stage.inputs[number].members[0]).add("late", source.late(manifest, arrivals))
            working[number] = source.brought(manifest, arrivals, working, shapes, self.stretch, worker)
        if arrivals.ended and partners.kind.alone:
            for number in partners.inputs:
                keepers[number] = self._keeper(writing, number, self._marks(seen), ended=True)
        before, passed = (self._marks(each)[self.stage.members[-1]] for each in (manifest.seen, seen))
        undecided = Undecided.of(self.stage, shapes, before)
        for stretch in stretches(arrivals.blocks, shapes, cutting.stretch, arrivals.spool):
            new = self._new(stretch.blocks, counts, manifest.seen)
            count_spread(self.plan, self.stage, self.shapes, new.probing, counts)
            if undecided is not None:
                made_now = self._decided(undecided, working, new, counts, stretch.later, passed, waiting)
            else:
                made_now = self._results(working, new, counts, partners, waiting)
            for made in made_now:
                if waiting is None or self._held or made.to == PAST:
                    yield made
                elif made.to is None:
                    waiting.take(made.rows)
                else:
                    rows = waiting.possible(made.rows)
                    counts.stage.add("matches", rows.num_rows)
                    yield Made(rows, made.to)
            if stretch.later is None:
                break
            for number, keeper in enumerate(keepers):
                if number in partners.inputs:
                    stored = new.stored[number]
                    new.stored[number] = stored and partners.set_down(number, stored, arrivals.spool)
                elif self._keeps(number):
                    run = _sorted_as(keeper.shape, new.stored[number], shapes[number])
                    staying = None if run is None else still_live(run, keeper.shape, keeper.live)
                    if staying is not None:
                        slices[number] += write_slices(store, names, keeper.shape, staying, cutting)
            working = self._working(working, new.stored, stretch.later, arrivals.spool)
        was = self._keepers(writing, manifest.seen) if partners.inputs else []
        if was and waiting is not None:
            past = Waiting(*own, store, cutting, arrivals.spool)
            past.begin({}, manifest.seen, self._marks(manifest.seen))
            was = past.keepers(was)
        for number in partners.inputs:
            stored = new.stored[number]
            for run, alone in partners.decide(number, stored, slices[number], was[number], keepers[number]):
                yield from self._by_themselves(number, run, alone, counts)
            new.stored[number] = stored and partners.marked(number, stored)
            for run in partners.earlier(number):
                staying = still_live(run, shapes[number], keepers[number].live)
                if staying is not None:
                    slices[number] += write_slices(
                        store, names, shapes[number], staying, cutting, partners.known
                    )
        groups: list[tuple[Slice, ...]] = []
        for number in range(len(self.stage.inputs)):
            if not self._keeps(number):
                groups.append(())
                continue
            keeper = keepers[number]
            fresh = _sorted_as(keeper.shape, new.stored[number], shapes[number])
            rules = (partial(load, number, keeper.shape), keeper.live, keeper.settled, cutting)
            change = maintain(tuple(slices[number]), fresh, keeper.shape, *rules)
            for slice_ in change.remove:
                store.remove(slice_)
            marks = partners.written if number in partners.inputs else None
            if marks is not None:
                partners.keep_marks(change, store, names, cutting)
            wrote = (write_slices(store, names, keeper.shape, run, cutting, marks) for run in change.write)
            groups.append((*change.stay, *itertools.chain(*wrote)))
        if waiting is not None:
            for rows in () if self._held else waiting.decide(names):
                counts.stage.add("matches", rows.num_rows)
                yield Made(rows, None)
            waiting.finish(names)
        after = replace(
            manifest,
            written=next(names),
            seen=seen,
            slices=tuple(groups),
            held=self._elsewhere_after(manifest, arrivals, keepers),
            writing=among._next_writing(self, new),
            marks=partners.written,
            came=came,
            counted=() if waiting is None else waiting.after,
        )
        count_state(self.stage, manifest, after, counts)
        count_silent(self.plan, self.stage, after, arrivals.clock, counts)
        yield after

    def _keepers(self, writing: Writing, seen: Mapping[int, int]) -> list[Keeper]:
        """Return how the rows of each input are kept, given the event times seen."""
        marks = self._marks(seen)
        return [self._keeper(writing, number, marks) for number in range(len(self.stage.inputs))]

    def _keeper(
        self, writing: Writing, number: int, marks: Mapping[int, int | None], *, ended: bool = False
    ) -> Keeper:
        """Return how the rows of an input are kept, with such watermarks.

        ``ended``: the streams have ended, and no row is kept for ever.
        """
        rules = tuple(each for each in writing.retentions[number] if each.ends or not ended)
        shape = self.shapes[number].ordered(writing.orders[number])
        return Keeper(shape, partial(live, rules, self.stage.inputs[number], marks), settled(rules, marks))

    def _keeps(self, number: int) -> bool:
        """Return whether the rows of an input are in the state."""
        return self.stage.inputs[number].stored and number not in self.elsewhere

    def _elsewhere_after(
        self, manifest: Manifest, arrivals: Arrivals, keepers: Sequence[Keeper]
    ) -> tuple[Elsewhere, ...]:
        """Return what each input has elsewhere after a micro-batch, nothing where none has."""
        found = list(manifest.held or ((),) * len(keepers))
        for number, source in self.elsewhere.items():
            found[number] = source.after(manifest, arrivals, keepers[number].settled)
        return tuple(found) if any(found) else ()

    def _results(
        self,
        working: Sequence[Sequence[SortedRun]],
        new: _New,
        counts: Counts,
        partners: Partners | Undecided | None = None,
        waiting: Waiting | None = None,
    ) -> Iterator[Made]:
        """Yield the results of new rows with those that are there, and count them; and what is passed on.

        ``partners`` takes note of them where rows are preserved; ``waiting`` knows what windows of rows
        count.
        """
        yield from (*new.passed_on, *new.alone, *new.late)
        inside = waiting.inside if waiting is not None and self._held else None
        for probe, found in self.join(working, new.probing, new.stored, counts.stage, inside):
            if partners is not None:
                partners.note(found)
                if not partners.kind.pairs:
                    continue
            if self._held or not self._asks_for_counts:
                counts.stage.add("matches", len(found))
            if counts.shared is not None:
                counts.shared.add(probe.origin, found)
            if counts.measuring is not None:
                counts.measuring.add(probe.origin, found)
            to = self._destination(probe)
            for block in self.assembler(probe).blocks(found):
                yield from self._made(block, None if to is None else to[1], _joined(probe))

    def _decided(
        self,
        undecided: Undecided,
        working: Sequence[Sequence[SortedRun]],
        new: _New,
        counts: Counts,
        later: int | None,
        mark: int | None,
        waiting: Waiting | None = None,
    ) -> Iterator[Made]:
        """Yield the results of those rows of an ASOF join's first input that are decided now.

        ``mark``: the watermark of the second input, ``later``: the least time of rows in later stretches.
        """
        least = mark if mark is None or later is None else min(mark, later)
        due = undecided.due(working[0], new.probing[0], least)
        new.probing[0] = due
        yield from self._results(working, new, counts, undecided, waiting)
        if due is not None and undecided.kind.alone:
            yield from self._by_themselves(0, due, undecided.without, counts)

    def _by_themselves(
        self, number: int, run: SortedRun, chosen: BoolArray, counts: Counts
    ) -> Iterator[Made]:
        """Yield rows of an input as results that have no row of the other one."""
        if chosen.any():
            yield from self._alone(number, run.batch.filter(pa.array(chosen)), counts)

    def _alone(self, number: int, rows: pa.RecordBatch, counts: Counts) -> Iterator[Made]:
        """Yield rows of an input as results."""
        counts.stage.add("matches", rows.num_rows)
        (to,) = destinations(self.plan, self.number)
        for block in self.lacking.parted(rows, result_columns(self.plan, self.number, to), [number]):
            yield Made(block, None if to is None else to[1])

    def _made(self, block: pa.RecordBatch, to: int | None, inputs: Sequence[int]) -> Iterator[Made]:
        """Yield results of rows of some inputs, each without the columns of what it lacks."""
        if not self.lacking.any:
            yield Made(block, to)
            return
        names = [name for name in block.schema.names if not name.startswith(THERE)]
        for part in self.lacking.parted(block, names, inputs):
            yield Made(part, to)

    def _working(
        self,
        working: Sequence[Sequence[SortedRun]],
        stored: Sequence[SortedRun | None],
        later: int,
        spool: Spool,
    ) -> list[list[SortedRun]]:
        """Return the runs that rows at or after the time ``later`` may still meet.

        What is more than a stretch is mapped from disk.
        """
        marks: dict[int, int | None] = dict.fromkeys(self.stage.members, later)
        found: list[list[SortedRun]] = []
        size = 0
        preserved = preserved_inputs(self.stage)
        for number, (each, shape, runs, new) in enumerate(
            zip(self.stage.inputs, self.shapes, working, stored, strict=True)
        ):
            cut = settled(each.retention, marks)
            met: list[SortedRun] = []
            for run in (*runs, new):
                if run is None or run.rows == 0:
                    continue
                if cut is not None and run.span[1] < cut:
                    continue
                if cut is None and not live(each.retention, each, marks, run).any():
                    continue
                size += run.batch.nbytes
                if run is new and size > self.stretch and number not in preserved:
                    run = shape.read(spool.put(run.batch))
                met.append(run)
            found.append(met)
        return found

    def _next_writing(self, current: "StageLogic", new: _New) -> Writing:
        """Return the rules for the next micro-batch, of the kernel that suits the new rows."""
        several, name = len(self.stage.kernels) > 1, self.stage.kernels[0]
        logic = self._suited(current, new) if several else current._with(name)
        return Writing.of(logic.stage, logic.shapes, self.stretch)

    def _suited(self, current: "StageLogic", new: _New) -> "StageLogic":
        """Return the logic with the kernel, of those of the stage, that suits the new rows."""
        return current._with(preferred(current._meetings(new), current.stage.kernels[0]))

    def _new(self, arrived: Sequence[Arrived], counts: Counts, seen: Mapping[int, int]) -> _New:
        """Return the new rows that are not late, sorted; ``seen`` are the event times before them."""
        found = _New([], [])
        for number, each in enumerate(self.stage.inputs):
            shape, blocks = self.shapes[number], arrived[number]
            if each.stage is None:
                found.late.extend(self._late(each.members[0], blocks, seen))
                blocks = [(role, block) for role, block in blocks if role is not Role.LATE]
            if not self._held:
                blocks = self._taking_part(number, blocks, counts, seen)
            for role, block in blocks:
                if role is Role.ALONE and block.num_rows:
                    found.alone.extend(self._alone(number, block, counts))
            blocks = [(role, block) for role, block in blocks if role is not Role.ALONE]
            alike = all(role.stores == role.probes for role, _ in blocks)
            found.passed_on.extend(self._passed_on(each, blocks))
            run = _sorted(shape, [block for role, block in blocks if role.probes])
            found.probing.append(self._numbered(number, run))
            if not (each.stored or (isinstance(self.stage, Gather) and meeting(self.stage, number))):
                found.stored.append(None)
                continue
            stored = [block for role, block in blocks if role.stores]
            found.stored.append(run if alike else _sorted(shape, stored))
        return found

    def _taking_part(self, number: int, arrived: Arrived, counts: Counts, seen: Mapping[int, int]) -> Arrived:
        """Return what comes to an input without late rows, apart what meets no other."""
        each = self.stage.inputs[number]
        late: Arrived = [(role, block) for role, block in arrived if role is Role.LATE]
        others: Arrived = [(role, block) for role, block in arrived if role is not Role.LATE]
        if each.stage is None:
            others = self._on_time(each.members[0], others, seen, counts)
        return [*late, *self._apart(number, others)]

    def _apart(self, number: int, blocks: Arrived) -> Arrived:
        """Return tuples, apart those that meet no other and are results."""
        found: Arrived = []
        told = isinstance(self.stage, Join) and number in self.stage.kind.preserved and self.stage.kind.alone
        for role, block in blocks:
            meets = self.lacking.meets(number, block)
            if meets is None:
                found.append((role, block))
                continue
            found.append((role, block.filter(pa.array(meets))))
            if told:
                found.append((Role.ALONE, block.filter(pa.array(~meets))))
        return found

    def _passed_on(self, each: StageEdge, blocks: Arrived) -> Iterator[Made]:
        """Yield the rows of a stream that a later hop needs, which this worker is the one to pass on."""
        to = destination(self.plan, self.number, each) if len(each.members) == 1 else None
        if to is None or not self.stage.probes:
            return
        for role, block in blocks:
            if each.stage is None and not (role.probes and role.counts):
                continue
            if block.num_rows:
                yield Made(block.select(result_columns(self.plan, self.number, to)), to[1])

    def _on_time(self, stream: int, blocks: Arrived, seen: Mapping[int, int], counts: Counts) -> Arrived:
        """Return the rows of a stream that are not older than its watermark; count those that are.

        A late row is counted by the worker whose it is to count.
        """
        mark = self._mark(stream, seen)
        if mark is None:
            return blocks
        found: Arrived = []
        for role, block in blocks:
            on_time = int64_view(block.column(time_name(stream))) >= mark
            late = len(on_time) - int(np.count_nonzero(on_time))
            if late and role.counts:
                counts.of(stream).add("late", late)
            found.append((role, block.filter(pa.array(on_time)) if late else block))
        return found

    def _late(self, stream: int, blocks: Arrived, seen: Mapping[int, int]) -> Iterator[Made]:
        """Yield the late rows of a stream for a sink, of those that may be late."""
        mark = self._mark(stream, seen)
        for role, block in blocks:
            rows = told(stream, block, mark) if role is Role.LATE and mark is not None else None
            if rows is not None:
                yield Made(rows, PAST)

    def _mark(self, stream: int, seen: Mapping[int, int]) -> int | None:
        """Return the watermark of a stream, None before its first row."""
        return watermark(seen.get(stream), self.plan.streams[stream].delay)

    def _marks(self, seen: Mapping[int, int]) -> dict[int, int | None]:
        """Return the least times that rows of the stage's streams may still have."""
        marks = {each: self._mark(each, seen) for each in self.streams}
        if held_for(self.plan, self.number):
            least = limit(self.plan, self.number, seen)
            for each, mark in marks.items():
                marks[each] = None if mark is None or least is None else min(mark, least)
        return earliest(self.plan, self.number, marks)

    def _meetings(self, new: _New) -> Iterator[Meeting]:
        """Yield the new rows of inputs that look for each other's."""
        for probe in self.stage.probes:
            own = self.stage.inputs[probe.origin].members[0]
            for step in probe.steps:
                probing, target = new.probing[probe.origin], new.stored[step.input]
                if probing is not None and target is not None:
                    look = next(each for each in step.ranges if each.stream == own)
                    yield Meeting(probing, target, look.back, look.ahead)

    def _arranged(self, new: _New, shapes: Sequence[RunShape]) -> _New:
        """Return new rows of some shapes in the order that this logic has."""

        def arranged(runs: Sequence[SortedRun | None]) -> list[SortedRun | None]:
            return [_sorted_as(*each) for each in zip(self.shapes, runs, shapes, strict=True)]

        return replace(new, probing=arranged(new.probing), stored=arranged(new.stored))


def _joined(probe: Probe) -> tuple[int, ...]:
    """Return the inputs of a probe, first the one whose new rows begin its results."""
    return probe.origin, *sorted(probe.order)


def _sorted(shape: RunShape, blocks: list[pa.RecordBatch]) -> SortedRun | None:
    return shape.sort(concatenate(blocks)) if blocks else None


def _sorted_as(shape: RunShape, run: SortedRun | None, known: RunShape) -> SortedRun | None:
    """Return a run of the shape ``known`` in the order of another one."""
    return run if run is None or shape.order_name == known.order_name else shape.sort(run.batch)
