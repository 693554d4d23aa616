"""One micro-batch of one worker of one stage: state and blocks in, results and state out.

Pure: no Spark. The store is read and written through ``SliceStore``, so that the same logic
runs under Spark's operator, in batch and in simulated crashes.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from wjoin.executor.arrivals import Arrivals
from wjoin.executor.asof import ENDED, NearestJoin, Undecided
from wjoin.executor.combinations import Combinations
from wjoin.executor.counted import all_ticks
from wjoin.executor.counts import Counts, count_spread, count_state
from wjoin.executor.gathering import Pieces
from wjoin.executor.kept_from import kept_from
from wjoin.executor.lacking import Lacking
from wjoin.executor.made import Made, Maker
from wjoin.executor.multiway import MultiwayJoin
from wjoin.executor.new_rows import Entrance, NewRows
from wjoin.executor.partners import KeptPartners, Partners
from wjoin.executor.report import NOTHING_SEEN, Report
from wjoin.executor.silence import count_silent, progressed
from wjoin.executor.spool import Spool
from wjoin.executor.state.kept_rows import Keeper, least_times, live, settled
from wjoin.executor.state.manifest import Elsewhere, Manifest
from wjoin.executor.state.marks import preserved_inputs
from wjoin.executor.state.slices import Slice, SliceStore, SliceWriter, maintain, read_slice, still_live
from wjoin.executor.state.writing import Writing
from wjoin.executor.stretches import HELD_STRETCHES, STRETCH_BYTES, stretches
from wjoin.executor.uncounted import CountedTables, uncounted
from wjoin.executor.waits import Load, MicroBatch, Waits
from wjoin.parts.kernels.adaptive import Meeting, preferred
from wjoin.parts.kernels.registry import KERNELS
from wjoin.parts.kernels.run_filter import RunFilter
from wjoin.parts.kernels.runs import Order, RunShape, SortedRun
from wjoin.planner.plan.block_columns import meeting_name, stored_column, time_name
from wjoin.planner.plan.counting import windows_at
from wjoin.planner.plan.edges import held_for, reached_by
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.probes import over_streams, with_kernel
from wjoin.planner.plan.stage_kinds import Join, Stage
from wjoin.planner.plan.steps import Probe, Rows
from wjoin.udfs.predicate import Predicate

if TYPE_CHECKING:
    from wjoin.executor.sites.held_input import HeldInput


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
    def maker(self) -> Maker:
        """Makes what leaves the stage."""
        return Maker(self.plan, self.number, self.lacking)

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
        join = (MultiwayJoin if self._nearest is None else NearestJoin)(
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
    def held(self) -> int:
        """The bytes of new rows that are in memory at once."""
        return HELD_STRETCHES * self.stretch

    @property
    def by_key(self) -> bool:
        """Whether rows of several keys never meet, nor are waited for: tables that are joined by a key."""
        keyed = all(shape.code is not None for shape in self.shapes)
        return keyed and isinstance(self.stage, Join) and not self.plan.streaming

    @cached_property
    def _nearest(self) -> Join | None:
        """The stage where it is an ASOF join."""
        return self.stage if isinstance(self.stage, Join) and self.stage.nearest is not None else None

    @cached_property
    def _preserving(self) -> Join | None:
        """The stage where its rows wait for a partner."""
        return self.stage if isinstance(self.stage, Join) and preserved_inputs(self.stage) else None

    def batch(self, arrivals: Arrivals, counts: Counts) -> Iterator[Made]:
        """Yield the results over complete inputs: no state, nothing is late."""
        logic = self._with(self.stage.kernels[0])
        if preserved_inputs(self.stage):
            # Which rows have partners is told of all inputs.
            logic = replace(logic, plan=over_streams(logic.plan, logic.number))
        working: list[list[SortedRun]] = [[] for _ in logic.stage.inputs]
        waits = logic._waits_of_tables(arrivals, counts)
        cut = stretches(arrivals.blocks, logic.shapes, self.stretch, arrivals.spool, by_key=self.by_key)
        for stretch in cut:
            if stretch.later is not None and not logic.plan.streaming:
                # Rows of one stretch meet those of the next ones.
                logic = replace(logic, plan=over_streams(logic.plan, logic.number))
            new = Entrance(logic.maker, logic.shapes, counts, {}).new(stretch.blocks)
            if len(self.stage.kernels) > 1 and not any(working):
                known = logic.shapes
                logic = self._suited(logic, new)
                new = logic._arranged(new, known)
            yield from logic._stretch(working, new, stretch.later, counts, waits)
            if stretch.later is not None:
                working = logic._working(working, new.stored, stretch.later, arrivals.spool)
            else:
                working = [[] for _ in working]
                waits = logic._waits_of_tables(arrivals, counts)

    def _waits_of_tables(self, arrivals: Arrivals, counts: Counts) -> list[Waits]:
        """Return what waits over complete inputs."""
        alone, waits = partial(self.maker.alone, counts.stage), list[Waits]()
        if ticks := all_ticks(self.plan, self.number, arrivals.ticks):
            waits.append(CountedTables(self.plan, self.number, ticks, counts.stage, self._held))
        if self._nearest is not None:
            ended = dict.fromkeys(self.stage.members, ENDED)
            waits.append(Undecided(self._nearest, self.shapes[0], alone, {}, ended))
        elif self._preserving is not None:
            waits.append(Partners(self._preserving, self.shapes, alone, arrivals.spool))
        return waits

    @cached_property
    def _held(self) -> bool:
        """Whether what comes waits until it is known what windows of rows count."""
        return bool(windows_at(self.plan, self.number) and held_for(self.plan, self.number))

    @cached_property
    def _counted_later(self) -> bool:
        """Whether results are counted once it is known that they are inside windows of rows."""
        return bool(windows_at(self.plan, self.number)) and not self._held

    def stream(
        self, manifest: Manifest, store: SliceStore, arrivals: Arrivals, counts: Counts, worker: int = 0
    ) -> Iterator[Made | Manifest]:
        """Yield the results of a micro-batch, then the manifest of the state after it.

        ``worker``: the place of this one among the workers of the stage.
        """
        writing = manifest.writing or Writing.first(self.plan, self.stage)
        # Workers that adapt go on with the kernel whose order their state has.
        possible = map(self._with, self.stage.kernels)
        known = (each for each in possible if each.orders == tuple(writing.orders))
        logic = next(known, None) or self._with(self.stage.kernels[0])
        seen, came = progressed(self.plan, self.number, manifest, arrivals)
        writer = SliceWriter(store, writing.cutting, itertools.count(manifest.written))
        batch = MicroBatch(manifest, seen, came, arrivals, writer, counts)
        yield from logic._micro_batch(batch, writing, worker, among=self)

    @property
    def orders(self) -> tuple[str, ...]:
        """The orders in which the rows of the inputs are kept."""
        return tuple(each.order_name for each in self.shapes)

    def _with(self, kernel: str) -> "StageLogic":
        """Return the logic with one kernel of the stage."""
        if self.stage.kernels == (kernel,):
            return self
        stage = with_kernel(self.plan, self.stage, kernel)
        return replace(self, plan=self.plan.with_stage(self.number, stage))

    def _micro_batch(
        self, batch: MicroBatch, writing: Writing, worker: int, *, among: "StageLogic"
    ) -> Iterator[Made | Manifest]:
        manifest, arrivals, writer, counts = batch.before, batch.arrivals, batch.writer, batch.counts
        slices = [list(group) for group in manifest.slices]
        keepers = self._keepers(writing, batch.seen, ended=arrivals.ended)
        waits = self._waits(batch, writing, slices, keepers)
        entrance = Entrance(self.maker, self.shapes, counts, manifest.seen, sifted=self._held)
        for number, blocks in enumerate(arrivals.blocks if self._held else ()):
            rows = entrance.taking_part(number, blocks)
            for each in waits:
                rows = each.arrived(number, rows)
            arrivals.blocks[number] = rows
        load = self._load(writer.store, waits)
        working = [
            [load(number, self.shapes[number], each) for each in group] for number, group in enumerate(slices)
        ]
        for number, source in self.elsewhere.items():
            if worker == 0:
                counts.of(self.stage.inputs[number].members[0]).add("late", source.late(manifest, arrivals))
            working[number] = source.brought(manifest, arrivals, working, self.shapes, self.held, worker)
        for stretch in stretches(arrivals.blocks, self.shapes, writing.cutting.stretch, arrivals.spool):
            new = entrance.new(stretch.blocks)
            count_spread(self.plan, self.stage, self.shapes, new.probing, counts)
            yield from self._stretch(working, new, stretch.later, counts, waits)
            if stretch.later is None:
                break
            for number, keeper in enumerate(keepers):
                if self._keeps(number) and number not in preserved_inputs(self.stage):
                    run = _sorted_as(keeper.shape, new.stored[number], self.shapes[number])
                    staying = None if run is None else still_live(run, keeper.shape, keeper.live)
                    slices[number] += writer.write(keeper.shape, staying)
            working = self._working(working, new.stored, stretch.later, arrivals.spool)
        groups: list[tuple[Slice, ...]] = []
        for number, keeper in enumerate(keepers):
            if not self._keeps(number):
                groups.append(())
                continue
            fresh = _sorted_as(keeper.shape, new.stored[number], self.shapes[number])
            rules = (partial(load, number, keeper.shape), keeper.live, keeper.settled, writing.cutting)
            change = maintain(tuple(slices[number]), fresh, keeper.shape, *rules)
            known = (each.marks(number, change) for each in waits)
            marks = [found for found in known if found is not None]
            groups.append(writer.changed(change, keeper.shape, *marks))
        for each in waits:
            yield from each.finish()
        after = replace(
            manifest,
            written=next(writer.names),
            seen=batch.seen,
            slices=tuple(groups),
            held=self._elsewhere_after(manifest, arrivals, keepers),
            writing=among._next_writing(self, new),
            came=batch.came,
        )
        for each in waits:
            after = each.kept(after)
        count_state(self.stage, manifest, after, counts)
        least = least_times(self.plan, self.number, batch.seen)
        for stream, first in kept_from(self.plan, self.number, after.counted, least).items():
            counts.of(stream).add("kept_from", NOTHING_SEEN if first is None else first)
        count_silent(self.plan, self.stage, after, arrivals.clock, counts)
        yield after

    def _waits(
        self, batch: MicroBatch, writing: Writing, slices: list[list[Slice]], keepers: list[Keeper]
    ) -> list[Waits]:
        """Return what waits in a micro-batch; ``keepers`` then keep what windows of rows need."""
        alone = partial(self.maker.alone, batch.counts.stage)
        counted = uncounted(self.plan, self.number, batch)
        waits: list[Waits] = [] if counted is None else [counted]
        if counted is not None:
            keepers[:] = counted.keepers(keepers)
        if self._nearest is not None:
            before, after = (
                least_times(self.plan, self.number, each) for each in (batch.before.seen, batch.seen)
            )
            waits.append(Undecided(self._nearest, self.shapes[0], alone, before, after))
        elif self._preserving is not None:
            was = self._keepers(writing, batch.before.seen)
            waits.append(
                KeptPartners(
                    *(self._preserving, self.shapes, alone, batch.arrivals.spool),
                    writer=batch.writer,
                    slices=slices,
                    before=was if counted is None else counted.keepers_before(was),
                    after=keepers,
                    known=dict(batch.before.marks),
                )
            )
        return waits

    def _load(self, store: SliceStore, waits: Sequence[Waits]) -> Load:
        """Return what loads slices, those in the order in which they are kept once."""
        loaded: dict[str, SortedRun] = {}

        def load(_: int, shape: RunShape, each: Slice) -> SortedRun:
            if each.order != shape.order_name:
                return read_slice(each, shape, store)
            if each.name not in loaded:
                loaded[each.name] = read_slice(each, shape, store)
            return loaded[each.name]

        loading: Load = load
        for each in waits:
            loading = each.loading(loading)
        return loading

    def _keepers(self, writing: Writing, seen: Mapping[int, int], *, ended: bool = False) -> list[Keeper]:
        """Return how the rows of each input are kept, given the event times seen.

        ``ended``: the streams have ended, and no row that waits for a partner is kept for ever.
        """
        marks, keepers = least_times(self.plan, self.number, seen), []
        join = self._preserving if ended else None
        for number, (each, rules) in enumerate(zip(self.stage.inputs, writing.retentions, strict=True)):
            if join is not None and join.kind.alone and number in join.kind.preserved:
                rules = tuple(rule for rule in rules if rule.ends)
            if number in self.elsewhere:
                # What rows that are not here say is not known.
                rules = tuple(replace(rule, until=()) for rule in rules)
            shape = self.shapes[number].ordered(writing.orders[number])
            keepers.append(Keeper(shape, partial(live, rules, each, marks), settled(rules, marks)))
        return keepers

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

    def _stretch(
        self,
        working: Sequence[Sequence[SortedRun]],
        new: NewRows,
        later: int | None,
        counts: Counts,
        waits: Sequence[Waits],
    ) -> Iterator[Made]:
        """Yield what a stretch of new rows makes with those that are there; ``later`` as in ``Stretch``."""
        for each in waits:
            each.begin(working, new, later)
        made = self._results(working, new, counts, waits)
        for each in waits:
            made = itertools.chain.from_iterable(map(each.told, made))
        yield from made
        for each in waits:
            yield from each.end(new, later)

    def _results(
        self,
        working: Sequence[Sequence[SortedRun]],
        new: NewRows,
        counts: Counts,
        waits: Sequence[Waits],
    ) -> Iterator[Made]:
        """Yield the results of new rows with those that are there, and count them; and what is passed on."""
        yield from new.made

        def inside(found: Combinations) -> Combinations:
            for each in waits:
                found = each.inside(found)
            return found

        for probe, found in self.join(working, new.probing, new.stored, counts.stage, inside):
            told = [each.note(found) for each in waits]
            if not all(told):
                continue
            if not self._counted_later:
                counts.stage.add("matches", len(found))
            if counts.shared is not None:
                counts.shared.add(probe.origin, found)
            if counts.measuring is not None:
                likely = found
                for each in waits:
                    likely = each.foreseen(likely)
                counts.measuring.add(probe.origin, likely)
            yield from self.maker.results(probe, found)

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

    def _next_writing(self, current: "StageLogic", new: NewRows) -> Writing:
        """Return the rules for the next micro-batch, of the kernel that suits the new rows."""
        logic = self._suited(current, new) if len(self.stage.kernels) > 1 else current
        return Writing.of(logic.stage, logic.shapes, self.stretch)

    def _suited(self, current: "StageLogic", new: NewRows) -> "StageLogic":
        """Return the logic with the kernel, of those of the stage, that suits the new rows."""
        return current._with(preferred(current._meetings(new), current.stage.kernels[0]))

    def _meetings(self, new: NewRows) -> Iterator[Meeting]:
        """Yield the new rows of inputs that look for each other's."""
        for probe in self.stage.probes:
            own = self.stage.inputs[probe.origin].members[0]
            for step in probe.steps:
                probing, target = new.probing[probe.origin], new.stored[step.input]
                if probing is not None and target is not None:
                    look = next(each for each in step.ranges if each.stream == own)
                    yield Meeting(probing, target, look.back, look.ahead)

    def _arranged(self, new: NewRows, shapes: Sequence[RunShape]) -> NewRows:
        """Return new rows of some shapes in the order that this logic has."""

        def arranged(runs: Sequence[SortedRun | None]) -> list[SortedRun | None]:
            return [_sorted_as(*each) for each in zip(self.shapes, runs, shapes, strict=True)]

        return replace(new, probing=arranged(new.probing), stored=arranged(new.stored))


def _sorted_as(shape: RunShape, run: SortedRun | None, known: RunShape) -> SortedRun | None:
    """Return a run of the shape ``known`` in the order of another one."""
    return run if run is None or shape.order_name == known.order_name else shape.sort(run.batch)
