"""What a stage is expected to do: its inputs, its probes, and how rows arrive."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.kernel import StepEstimate
from wjoin.planner.cost.stream_statistics import KeyStatistics

ROW_BYTES = 16
"""What every row carries beside its columns: event time and key code."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class InputEstimate:
    """One input of a stage as the estimate sees it; times in the plan's unit.

    ``rate``: tuples per unit of time. ``width``: bytes of a tuple. ``offsets``: for each member
    after the first, times relative to the first's, a sample. ``kept``: how long a tuple stays.
    ``volume``: how much the windows leave of the times of the members after the first, in units of time for
    each of them.
    """

    members: tuple[int, ...]
    rate: float
    width: float
    key: KeyStatistics
    offsets: tuple[Floats, ...]
    kept: float
    volume: float = 1.0

    @property
    def kept_rows(self) -> float:
        """Tuples in state."""
        return self.rate * self.kept


@dataclass(frozen=True)
class ProbeEstimate:
    """What the new rows of input ``origin`` do: the steps to the others, and the results."""

    origin: int
    steps: tuple[StepEstimate, ...]
    results: float

    @property
    def order(self) -> tuple[int, ...]:
        """The other inputs in the order in which they are met."""
        return tuple(step.number for step in self.steps)


@dataclass(frozen=True)
class StageEstimate:
    """A stage: its inputs, a probe for each whose new rows begin results, and the results per unit of time.

    ``agreement``: how many times as often as independent ones the keys of two rows agree whose
    times are near; None where that was not measured. ``single``: results per unit of time that tell of one
    row whether it has partners; ``paired``: whether tuples that meet are results, too.
    """

    inputs: tuple[InputEstimate, ...]
    probes: tuple[ProbeEstimate, ...]
    agreement: float | None = None
    single: float = 0.0
    paired: bool = True

    @property
    def met(self) -> float:
        """Tuples per unit of time that meet."""
        return sum(each.results for each in self.probes)

    @property
    def results(self) -> float:
        """Result tuples per unit of time."""
        return self.single + (self.met if self.paired else 0.0)


@dataclass(frozen=True)
class Arrival:
    """How rows arrive: in micro-batches of ``interval``, or all at once (``streaming`` False).

    ``duration`` is what is joined in all where rows do not stream: in stretches, for one of which each of
    ``workers`` has ``stretch`` bytes of rows.
    """

    interval: float
    duration: float
    streaming: bool
    stretch: float = math.inf
    workers: int = 1

    @property
    def batches(self) -> float:
        """Micro-batches per unit of time; tables are one."""
        return 1 / (self.interval if self.streaming else self.duration)

    def newest(self, first: int, other: int) -> float:
        """Return up to when rows of input ``other`` are there when those of ``first`` probe.

        Times are relative to the start of the micro-batch: new rows meet the new ones of the
        inputs before theirs, and the old ones of all.
        """
        if not self.streaming:
            return self.duration
        return self.interval if other < first else 0.0

    def met(self, inputs: Sequence[InputEstimate], reach: float, *, keyed: bool) -> float:
        """Return of how much time the rows of an input are held that new ones meet, of complete inputs.

        These lie ``reach`` units of time apart at the most.
        """
        arriving = sum(each.rate * (each.width + ROW_BYTES) for each in inputs)
        if arriving <= 0:
            return self.duration
        return min(self.duration, self.stretch * (self.workers if keyed else 1) / arriving + reach)
