"""Which rows of an outer join have partners: what a micro-batch finds, and what follows from it.

A preserved row that is kept has a mark: whether it has been in a result (``state.marks``). It is decided when
it can have no partner any more, which is when it need not be kept: without a mark it is then a result by
itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from wjoin.executor.combinations import Combinations
from wjoin.executor.spool import Spool
from wjoin.executor.state.marks import marks_of
from wjoin.grammar.join_kinds import JoinKind
from wjoin.parts.kernels.runs import BoolArray, RunShape, SortedRun
from wjoin.planner.plan.physical import Join, Stage


def preserved_inputs(stage: Stage) -> tuple[int, ...]:
    """Return the numbers of the inputs whose rows have marks."""
    if not isinstance(stage, Join):
        return ()
    return tuple(n for n, each in enumerate(stage.inputs) if each.members[0] in stage.kind.preserved)


@dataclass
class Partners:
    """What a micro-batch finds of the preserved ``inputs`` of a stage: by run, which rows are in a result."""

    kind: JoinKind
    inputs: Sequence[int]
    _found: dict[int, BoolArray] = field(default_factory=dict)

    def note(self, found: Combinations) -> None:
        """Take note of results."""
        for number in self.inputs:
            pieces, rows = found.pieces[number], found.rows[number]
            places = np.searchsorted(pieces.offsets, rows, side="right") - 1
            for place in np.unique(places).tolist():
                run = pieces.runs[place]
                marks = self._found.setdefault(id(run), np.zeros(run.rows, bool))
                marks[rows[places == place] - pieces.offsets[place]] = True

    def have(self, run: SortedRun) -> bool:
        """Return whether the micro-batch has found partners of rows of a run."""
        return id(run) in self._found

    def set_down(self, run: SortedRun, shape: RunShape, spool: Spool) -> SortedRun:
        """Return new rows mapped from disk, with what is found of them."""
        mapped = shape.read(spool.put(run.batch))
        if (found := self._found.pop(id(run), None)) is not None:
            self._found[id(mapped)] = found
        return mapped

    def after(self, run: SortedRun) -> BoolArray:
        """Return the marks of the rows of a run after the micro-batch."""
        before, found = marks_of(run), self._found.get(id(run))
        return before if found is None else before | found

    def results(self, run: SortedRun, decided: BoolArray) -> BoolArray:
        """Return which rows of a run are results by themselves now.

        ``decided`` are those that can have no more partners from now on.
        """
        if self.kind.alone:
            return decided & ~self.after(run)
        # Of SEMI a row is a result once it has its first partner.
        return self.after(run) & ~marks_of(run)
