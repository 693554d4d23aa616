"""Which rows of an outer join have partners: what a micro-batch finds, and what follows from it.

A preserved row that is kept has a mark: whether it has been in a result (``state.marks``). It is decided when
it can have no partner any more, which is when it need not be kept: without a mark it is then a result by
itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from wjoin.executor.combinations import Combinations
from wjoin.executor.made import Made
from wjoin.executor.new_rows import NewRows
from wjoin.executor.spool import Spool
from wjoin.executor.state.kept_rows import Keeper
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.state.marks import marks_of, preserved_inputs, with_marks
from wjoin.executor.state.slices import Change, Slice, SliceWriter, read_slice, still_live
from wjoin.executor.waits import Alone, Load, Waits
from wjoin.parts.kernels.runs import BoolArray, Int64Array, RunShape, SortedRun
from wjoin.planner.plan.stage_kinds import Join


@dataclass
class Partners(Waits):
    """What is found of the preserved inputs of a stage over tables, whose order is ``shapes``.

    ``alone`` tells rows by themselves.
    """

    stage: Join
    shapes: Sequence[RunShape]
    alone: Alone
    spool: Spool
    _found: dict[int, BoolArray] = field(default_factory=dict)
    _earlier: dict[int, list[SortedRun]] = field(default_factory=dict)

    @property
    def inputs(self) -> Sequence[int]:
        """The inputs whose rows have marks."""
        return preserved_inputs(self.stage)

    def note(self, found: Combinations) -> bool:
        """Take note of results."""
        for number in self.inputs:
            pieces, rows = found.pieces[number], found.rows[number]
            places = np.searchsorted(pieces.offsets, rows, side="right") - 1
            for place in np.unique(places).tolist():
                run = pieces.runs[place]
                marks = self._found.setdefault(id(run), np.zeros(run.rows, bool))
                marks[rows[places == place] - pieces.offsets[place]] = True
        return self.stage.kind.pairs

    def end(self, new: NewRows, later: int | None) -> Iterator[Made]:
        """Set new rows down, as those of later stretches may be their partners; yield what is decided."""
        for number in self.inputs:
            run = new.stored[number]
            if later is not None:
                new.stored[number] = None if run is None else self._set_down(number, run)
                continue
            runs = [*self._earlier.get(number, ()), *([] if run is None else [run])]
            for each, decided in self._decided(number, runs):
                told = self._by_itself(each, decided)
                yield from self.alone(number, each.batch.filter(pa.array(told))) if told.any() else ()

    def _set_down(self, number: int, run: SortedRun) -> SortedRun:
        """Return the new rows of a stretch mapped from disk, with what is found of them."""
        mapped = self.shapes[number].read(self.spool.put(run.batch))
        if (found := self._found.pop(id(run), None)) is not None:
            self._found[id(mapped)] = found
        self._earlier.setdefault(number, []).append(mapped)
        return mapped

    def _decided(self, number: int, new: Sequence[SortedRun]) -> Iterator[tuple[SortedRun, BoolArray]]:
        """Yield runs of an input, and which of their rows can have no partner any more."""
        return ((run, np.ones(run.rows, bool)) for run in new)

    def _after(self, run: SortedRun) -> BoolArray:
        """Return the marks of the rows of a run after the micro-batch."""
        before, found = marks_of(run), self._found.get(id(run))
        return before if found is None else before | found

    def _by_itself(self, run: SortedRun, decided: BoolArray) -> BoolArray:
        """Return which rows of a run are results by themselves: of those ``decided``, or with a partner."""
        if self.stage.kind.alone:
            return decided & ~self._after(run)
        # Of SEMI a row is a result once it has its first partner.
        return self._after(run) & ~marks_of(run)


@dataclass(kw_only=True)
class KeptPartners(Partners):
    """What a micro-batch finds of preserved inputs whose rows are kept, with their marks.

    ``slices`` are those of all inputs, to which rows of earlier stretches are added. ``before`` tells which
    rows had to be kept before the micro-batch, ``after`` which after it. ``known`` are the marks of slices so
    far, by the names of these, ``written`` those that count after the micro-batch.
    """

    writer: SliceWriter
    slices: Sequence[list[Slice]]
    before: Sequence[Keeper]
    after: Sequence[Keeper]
    known: dict[str, Slice]
    written: dict[str, Slice] = field(default_factory=dict)
    _loaded: dict[str, SortedRun] = field(default_factory=dict)
    _places: dict[str, Int64Array] = field(default_factory=dict)
    _changed: set[str] = field(default_factory=set)

    def loading(self, load: Load) -> Load:
        """Return what loads the slices of preserved inputs with their marks."""
        return lambda number, *of: (self._load if number in self.inputs else load)(number, *of)

    def _load(self, number: int, shape: RunShape, each: Slice) -> SortedRun:
        own = self.shapes[number]
        if each.name not in self._loaded:
            kept = own.ordered(each.order)
            run = read_slice(each, kept, self.writer.store, self.known.get(each.name), marked=True)
            if each.order != own.order_name:
                places = self._places[each.name] = own.places(run.batch)
                run = own.read(run.batch.take(pa.array(places)))
            self._loaded[each.name] = run
        run = self._loaded[each.name]
        return run if shape.order_name == own.order_name else shape.sort(run.batch)

    def end(self, new: NewRows, later: int | None) -> Iterator[Made]:
        """Do as over tables; at last take the rows of all stretches with their marks."""
        yield from super().end(new, later)
        for number in self.inputs if later is None else ():
            run, keeper = new.stored[number], self.after[number]
            new.stored[number] = None if run is None else self._marked(number, run)
            for each in self._earlier.get(number, ()):
                staying = still_live(self._marked(number, each), self.shapes[number], keeper.live)
                self.slices[number] += self.writer.write(self.shapes[number], staying, self.known)

    def _decided(self, number: int, new: Sequence[SortedRun]) -> Iterator[tuple[SortedRun, BoolArray]]:
        before, after = self.before[number], self.after[number]
        for each in self.slices[number]:
            run = self._loaded[each.name]
            if id(run) in self._found or after.may_end(run, before):
                yield run, before.live(run) & ~after.live(run)
            if id(run) in self._found and self._after(run).sum() > marks_of(run).sum():
                self._loaded[each.name] = self._marked(number, run)
                self._changed.add(each.name)
        yield from ((run, ~after.live(run)) for run in new)

    def _marked(self, number: int, run: SortedRun) -> SortedRun:
        """Return rows with their marks after the micro-batch."""
        return with_marks(run, self.shapes[number], self._after(run))

    def marks(self, number: int, change: Change) -> dict[str, Slice] | None:
        """Write the marks of the slices that stay where they have changed, and remove others."""
        if number not in self.inputs:
            return None
        for each in change.stay:
            if each.name in self._changed:
                self.written |= self.writer.write_marks(each.name, self._in_slice(each))
            elif each.name in self.known:
                self.written[each.name] = self.known[each.name]
        for each in (*change.remove, *change.stay):
            before = self.known.get(each.name)
            if before is not None and self.written.get(each.name) is not before:
                self.writer.store.remove(before)
        return self.written

    def kept(self, after: Manifest) -> Manifest:
        """Return the manifest with the marks."""
        return replace(after, marks=self.written)

    def _in_slice(self, each: Slice) -> BoolArray:
        """Return the marks of a slice in its order, which may be that of another kernel before a restart."""
        marks = marks_of(self._loaded[each.name])
        if each.name not in self._places:
            return marks
        found = np.zeros(len(marks), bool)
        found[self._places[each.name]] = marks
        return found
