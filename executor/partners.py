"""Which rows of an outer join have partners: what a micro-batch finds, and what follows from it.

A preserved row that is kept has a mark: whether it has been in a result (``state.marks``). It is decided when
it can have no partner any more, which is when it need not be kept: without a mark it is then a result by
itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from wjoin.executor.combinations import Combinations
from wjoin.executor.spool import Spool
from wjoin.executor.state.kept_rows import Keeper
from wjoin.executor.state.marks import marks_of, with_marks
from wjoin.executor.state.slices import Change, Slice, SliceStore, read_slice, write_marks
from wjoin.executor.state.writing import Cutting
from wjoin.grammar.join_kinds import JoinKind
from wjoin.parts.kernels.runs import BoolArray, Int64Array, RunShape, SortedRun
from wjoin.planner.plan.physical import Join, Stage


def preserved_inputs(stage: Stage) -> tuple[int, ...]:
    """Return the numbers of the inputs whose rows have marks."""
    if not isinstance(stage, Join) or stage.nearest is not None:
        return ()
    return tuple(n for n in range(len(stage.inputs)) if n in stage.kind.preserved)


@dataclass
class Partners:
    """What a micro-batch finds of the preserved ``inputs`` of a stage, whose order is ``shapes``.

    ``known`` are the marks of slices so far, by the names of these, ``written`` those that count after the
    micro-batch.
    """

    kind: JoinKind
    inputs: Sequence[int]
    shapes: Sequence[RunShape]
    known: dict[str, Slice]
    written: dict[str, Slice] = field(default_factory=dict)
    _loaded: dict[str, SortedRun] = field(default_factory=dict)
    _places: dict[str, Int64Array] = field(default_factory=dict)
    _changed: set[str] = field(default_factory=set)
    _earlier: dict[int, list[SortedRun]] = field(default_factory=dict)
    _found: dict[int, BoolArray] = field(default_factory=dict)

    @classmethod
    def of(cls, stage: Stage, shapes: Sequence[RunShape], known: Mapping[str, Slice]) -> "Partners":
        """Return those of a stage, without inputs where it preserves none."""
        kind = stage.kind if isinstance(stage, Join) else JoinKind.INNER
        return cls(kind, preserved_inputs(stage), shapes, dict(known))

    def load(self, number: int, shape: RunShape, each: Slice, store: SliceStore) -> SortedRun:
        """Return the rows of a slice of a preserved input in the order of a shape, with their marks."""
        own = self.shapes[number]
        if each.name not in self._loaded:
            kept = own.ordered(each.order)
            run = read_slice(each, kept, store, self.known.get(each.name), marked=True)
            if each.order != own.order_name:
                places = self._places[each.name] = own.places(run.batch)
                run = own.read(run.batch.take(pa.array(places)))
            self._loaded[each.name] = run
        run = self._loaded[each.name]
        return run if shape.order_name == own.order_name else shape.sort(run.batch)

    def note(self, found: Combinations) -> None:
        """Take note of results."""
        for number in self.inputs:
            pieces, rows = found.pieces[number], found.rows[number]
            places = np.searchsorted(pieces.offsets, rows, side="right") - 1
            for place in np.unique(places).tolist():
                run = pieces.runs[place]
                marks = self._found.setdefault(id(run), np.zeros(run.rows, bool))
                marks[rows[places == place] - pieces.offsets[place]] = True

    def set_down(self, number: int, run: SortedRun, spool: Spool) -> SortedRun:
        """Return the new rows of a stretch mapped from disk, with what is found of them.

        Rows of later stretches may be their partners, so they are written with those of the last one.
        """
        mapped = self.shapes[number].read(spool.put(run.batch))
        if (found := self._found.pop(id(run), None)) is not None:
            self._found[id(mapped)] = found
        self._earlier.setdefault(number, []).append(mapped)
        return mapped

    def decide(
        self, number: int, last: SortedRun | None, slices: Iterable[Slice], before: Keeper, after: Keeper
    ) -> Iterator[tuple[SortedRun, BoolArray]]:
        """Yield runs of a preserved input with those rows that are results by themselves now.

        ``last`` are the new rows of the last stretch. ``before`` tells which rows had to be kept before the
        micro-batch, ``after`` which after it.
        """
        for each in slices:
            run = self._loaded[each.name]
            if self._has(run) or after.may_end(run, before):
                yield run, self._alone(run, before.live(run) & ~after.live(run))
            if self._has(run) and self._after(run).sum() > marks_of(run).sum():
                self._loaded[each.name] = self.marked(number, run)
                self._changed.add(each.name)
        for run in (*self._earlier.get(number, ()), last):
            if run is not None:
                yield run, self._alone(run, ~after.live(run))

    def rest(self, number: int, last: SortedRun | None) -> Iterator[tuple[SortedRun, BoolArray]]:
        """Yield all runs of a preserved input with those rows that are results, when no row comes any more.

        ``last`` are the rows of the last stretch.
        """
        for run in (*self._earlier.get(number, ()), last):
            if run is not None:
                yield run, self._alone(run, np.ones(run.rows, bool))

    def earlier(self, number: int) -> Iterator[SortedRun]:
        """Yield the new rows of the stretches before the last one, with their marks."""
        return (self.marked(number, run) for run in self._earlier.get(number, ()))

    def marked(self, number: int, run: SortedRun) -> SortedRun:
        """Return rows with their marks after the micro-batch."""
        return with_marks(run, self.shapes[number], self._after(run))

    def keep_marks(self, change: Change, store: SliceStore, names: Iterator[int], cutting: Cutting) -> None:
        """Write the marks of the slices that stay where they have changed, and remove others."""
        for each in change.stay:
            if each.name in self._changed:
                marks = self._in_slice(each)
                self.written |= write_marks(store, names, each.name, marks, cutting)
            elif each.name in self.known:
                self.written[each.name] = self.known[each.name]
        for each in (*change.remove, *change.stay):
            before = self.known.get(each.name)
            if before is not None and self.written.get(each.name) is not before:
                store.remove(before)

    def _in_slice(self, each: Slice) -> BoolArray:
        """Return the marks of a slice in its order, which may be that of another kernel before a restart."""
        marks = marks_of(self._loaded[each.name])
        if each.name not in self._places:
            return marks
        found = np.zeros(len(marks), bool)
        found[self._places[each.name]] = marks
        return found

    def _has(self, run: SortedRun) -> bool:
        return id(run) in self._found

    def _after(self, run: SortedRun) -> BoolArray:
        """Return the marks of the rows of a run after the micro-batch."""
        before, found = marks_of(run), self._found.get(id(run))
        return before if found is None else before | found

    def _alone(self, run: SortedRun, decided: BoolArray) -> BoolArray:
        """Return which rows of a run are results by themselves: of those ``decided``, or with a partner."""
        if self.kind.alone:
            return decided & ~self._after(run)
        # Of SEMI a row is a result once it has its first partner.
        return self._after(run) & ~marks_of(run)
