"""What leaves a stage: results, rows of an input by themselves, and what is passed on to later stages."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from wjoin.executor.combinations import Assembler, Combinations
from wjoin.executor.lacking import THERE, Lacking
from wjoin.executor.report import Report
from wjoin.planner.plan.edges import destination, destinations, result_columns
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.steps import Probe

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
class Maker:
    """Makes what leaves stage ``number`` of a plan; ``lacking``: what becomes of tuples without some row."""

    plan: PhysicalPlan
    number: int
    lacking: Lacking

    @cached_property
    def _assemblers(self) -> dict[tuple[int, ...], Assembler]:
        probes = self.plan.stages[self.number].probes
        return {_joined(probe): self._made_assembler(probe) for probe in probes}

    def assembler(self, probe: Probe) -> Assembler:
        """Return what makes blocks of what a probe of the stage finds."""
        return self._assemblers[_joined(probe)]

    def _made_assembler(self, probe: Probe) -> Assembler:
        inputs = self.plan.stages[self.number].inputs
        places = {name: number for number in _joined(probe) for name in inputs[number].columns}
        names = result_columns(self.plan, self.number, self._destination(probe))
        for number in _joined(probe):
            there = self.lacking.there(number)
            names = (*names, *there)
            places |= dict.fromkeys(there, number)
        # What is in no input is the number of the row that begins.
        return Assembler(tuple((places.get(name, probe.origin), name) for name in names))

    def _destination(self, probe: Probe) -> tuple[int, int] | None:
        origin = self.plan.stages[self.number].inputs[probe.origin]
        return destination(self.plan, self.number, origin, probe.order)

    def results(self, probe: Probe, found: Combinations) -> Iterator[Made]:
        """Yield what a probe has found, each without the columns of what it lacks."""
        to = self._destination(probe)
        for block in self.assembler(probe).blocks(found):
            names = [name for name in block.schema.names if not name.startswith(THERE)]
            parts = self.lacking.parted(block, names, _joined(probe)) if self.lacking.any else (block,)
            yield from (Made(part, None if to is None else to[1]) for part in parts)

    def alone(self, counted: Report, number: int, rows: pa.RecordBatch) -> Iterator[Made]:
        """Yield rows of an input as results that have no row of the other one, and count them."""
        if not rows.num_rows:
            return
        counted.add("matches", rows.num_rows)
        (to,) = destinations(self.plan, self.number)
        for block in self.lacking.parted(rows, result_columns(self.plan, self.number, to), [number]):
            yield Made(block, None if to is None else to[1])


def _joined(probe: Probe) -> tuple[int, ...]:
    """Return the inputs of a probe, first the one whose new rows begin its results."""
    return probe.origin, *sorted(probe.order)
