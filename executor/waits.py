"""What waits in a micro-batch for more than its rows, and what the step asks of it.

A row of an outer join waits for a partner (``partners``), one of an ASOF join for the nearest row (``asof``),
and what is beside windows of rows until these are counted (``uncounted``).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from wjoin.executor.arrivals import Arrivals
from wjoin.executor.combinations import Combinations
from wjoin.executor.counts import Counts
from wjoin.executor.made import Made
from wjoin.executor.new_rows import NewRows
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.state.slices import Change, Slice, SliceWriter
from wjoin.executor.stretches import Arrived
from wjoin.parts.kernels.runs import RunShape, SortedRun

Load = Callable[[int, RunShape, Slice], SortedRun]
"""Returns the rows of a slice of an input in the order of a shape."""

Alone = Callable[[int, pa.RecordBatch], Iterator[Made]]
"""Yields rows of an input as results: they have no row of the other one."""


@dataclass(frozen=True)
class MicroBatch:
    """A micro-batch of a worker: its state ``before``, and what has come.

    ``seen`` are the event times after it, ``came`` as in ``Manifest``.
    """

    before: Manifest
    seen: dict[int, int]
    came: dict[int, int]
    arrivals: Arrivals
    writer: SliceWriter
    counts: Counts


class Waits:
    """Something that waits. Where a kind does not say otherwise, all goes on as if nothing did.

    The methods stand in the order in which a micro-batch calls them; those from ``begin`` to ``end`` for each
    stretch of its rows.
    """

    def arrived(self, number: int, rows: Arrived) -> Arrived:
        """Take what has come to an input, and return what is to be joined now."""
        return rows

    def loading(self, load: Load) -> Load:
        """Return what loads slices."""
        return load

    def begin(self, working: Sequence[Sequence[SortedRun]], new: NewRows, later: int | None) -> None:
        """Begin with ``new`` rows, which may meet those of ``working``; ``later`` as in ``Stretch``."""

    def inside(self, found: Combinations) -> Combinations:
        """Return the combinations that are results."""
        return found

    def foreseen(self, found: Combinations) -> Combinations:
        """Return the combinations that are results as far as is known yet."""
        return found

    def note(self, found: Combinations) -> bool:
        """Take note of combinations; return whether they are told."""
        return True

    def told(self, made: Made) -> Iterator[Made]:
        """Take what a stretch has made, and yield what is told of it now."""
        yield made

    def end(self, new: NewRows, later: int | None) -> Iterator[Made]:
        """End a stretch, the last one where ``later`` is None: yield which rows are results by themselves."""
        yield from ()

    def marks(self, number: int, change: Change) -> dict[str, Slice] | None:
        """Write the marks of rows whose slices stay; return what gets those of slices to be written.

        None where the rows of an input have no marks.
        """
        return None

    def finish(self) -> Iterator[Made]:
        """End the micro-batch, once the rows of all inputs are written."""
        yield from ()

    def kept(self, after: Manifest) -> Manifest:
        """Return the manifest of the state after it, with what waits."""
        return after
