"""The joins that W-join 2002 compares with: ripple join and XJoin, adapted to windows (its section 4.3).

Both are symmetric: a new row is joined with all rows that have come before it of the other
streams, and the windows are a condition like any other. Their buffers do not follow the
windows. Every CLEANED_EVERY rows, those that can join nothing any more are removed.

- Ripple join: nested loops over the whole buffers.
- XJoin: hash tables of the join attribute; a row meets the rows of its value, of any time.
  What XJoin does about full memory (partitions on disk, time stamps against duplicates) never
  comes to pass here, and is left out.

They share with wjoin's kernels whatever does not tell them apart: sorting new rows, growing
partial tuples by one stream at a time, smallest buffer first, and making results. Their hash
tables are runs sorted by value, too. So what differs is which rows are kept and searched.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from wjoin.executor.arrivals import Arrivals
from wjoin.executor.blocks import concatenate
from wjoin.executor.combinations import Pieces
from wjoin.executor.multiway import MultiwayJoin
from wjoin.executor.report import Report
from wjoin.executor.state.kept_rows import kept, watermark
from wjoin.executor.step import StageLogic
from wjoin.parts.kernels.candidates import Candidates, Search
from wjoin.parts.kernels.hash_window import HashWindow
from wjoin.parts.kernels.kernel import Kernel
from wjoin.parts.kernels.nested_window import NestedWindow
from wjoin.parts.kernels.registry import KERNELS
from wjoin.parts.kernels.runs import BoolArray, Int64Array, RunShape, SortedRun, select
from wjoin.planner.plan.block_columns import code_name, time_name
from wjoin.planner.plan.physical import PhysicalPlan

CLEANED_EVERY = 10_000
"""Rows, of all streams together, after which the buffers are cleaned."""


class WholeBucket(HashWindow):
    """The search of XJoin: all rows of the tuple's value, then their times."""

    selective = False

    def candidates(self, run: SortedRun, search: Search) -> Candidates:
        """Return the rows with the tuple's code, of any time."""
        first = np.searchsorted(run.codes, search.codes, side="left")
        last = np.searchsorted(run.codes, search.codes, side="right")
        filled = np.flatnonzero(last > first)
        return Candidates(filled, first[filled], last[filled])

    def agree(self, run: SortedRun, search: Search, tuples: Int64Array, rows: Int64Array) -> BoolArray:
        """Return which pairs have times in range."""
        return search.in_range(run, tuples, rows)


RIPPLE: Kernel = NestedWindow()
XJOIN: Kernel = WholeBucket()


@dataclass
class AdaptedJoin:
    """Ripple join or XJoin over the single stage of a plan, one micro-batch after the other."""

    plan: PhysicalPlan
    search: Kernel
    cleaned_every: int = CLEANED_EVERY
    _buffers: list[list[SortedRun]] = field(init=False)
    _seen: dict[int, int] = field(init=False, default_factory=dict)
    _arrived: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._buffers = [[] for _ in self.plan.stages[0].inputs]

    def batch(self, arrivals: Arrivals, counted: Report) -> Iterator[pa.RecordBatch]:
        """Yield the results of a micro-batch; rows of each stream come in the order of time."""
        # It searches in its own way, whatever kernel the steps name.
        join = MultiwayJoin(self.plan, 0, counted, dict.fromkeys(KERNELS, self.search))
        logic = StageLogic(self.plan, 0)
        new = [
            self._shape(number).sort(concatenate([block for _, block in blocks])) if blocks else None
            for number, blocks in enumerate(arrivals.blocks)
        ]
        # Each stream's new rows meet what the streams before it have just stored, and no newer rows
        # of those after it: so each combination is made once.
        for number, run in enumerate(new):
            if run is None:
                continue
            for probe in self.plan.stages[0].probes:
                if probe.origin == number:
                    for found in join.results(probe, self._pieces(number, run)):
                        yield logic.maker.assembler(probe).block(found)
            self._store(number, run)
        self._seen |= arrivals.seen
        self._clean_when_due(sum(run.rows for run in new if run is not None))

    def _pieces(self, number: int, run: SortedRun) -> list[Pieces]:
        return [Pieces((run,) if other == number else tuple(runs)) for other, runs in self._numbered()]

    def _numbered(self) -> Iterator[tuple[int, list[SortedRun]]]:
        return iter(enumerate(self._buffers))

    def _shape(self, number: int) -> RunShape:
        return RunShape(code_name(number, 0), (time_name(number),), self.search.order)

    def _store(self, number: int, run: SortedRun) -> None:
        """Append rows to a buffer; runs of like size become one, so that few are searched."""
        runs = self._buffers[number]
        runs.append(run)
        while len(runs) > 1 and runs[-2].rows < 2 * runs[-1].rows:
            last, before = runs.pop(), runs.pop()
            runs.append(self._shape(number).sort(concatenate([before.batch, last.batch])))

    def _clean_when_due(self, arrived: int) -> None:
        before = self._arrived
        self._arrived += arrived
        if self._arrived // self.cleaned_every == before // self.cleaned_every:
            return
        for number, runs in self._numbered():
            live = (self._live(number, run) for run in runs)
            self._buffers[number] = [run for run in live if run.rows]

    def _live(self, number: int, run: SortedRun) -> SortedRun:
        """Return the rows of a run that some stream may still join."""
        streams = self.plan.streams
        marks = {stream: watermark(self._seen.get(stream), each.delay) for stream, each in enumerate(streams)}
        keep = kept(self.plan.stages[0].inputs[number].retention, {number: run.times[0]}, marks)
        return run if keep.all() else select(run, self._shape(number), keep)
