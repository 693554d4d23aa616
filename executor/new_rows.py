"""What comes to a stage in a micro-batch: late rows are dropped, counted and told, the others are sorted."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from wjoin.executor.blocks import concatenate
from wjoin.executor.counts import Counts
from wjoin.executor.late_rows import told
from wjoin.executor.made import PAST, Made, Maker
from wjoin.executor.numbering import with_numbers
from wjoin.executor.state.kept_rows import watermark
from wjoin.executor.stretches import Arrived
from wjoin.parts.kernels.runs import RunShape, SortedRun, int64_view
from wjoin.parts.routes.route import Role
from wjoin.planner.plan.block_columns import row_name, time_name
from wjoin.planner.plan.edges import destination, result_columns
from wjoin.planner.plan.stage_kinds import Gather, Join, StageEdge, meeting


@dataclass(frozen=True)
class NewRows:
    """The new rows of each input as runs: those that begin results, and those that are kept.

    ``made``: rows as they came, for a later hop; rows that meet no other, and are results of an outer join;
    late rows for a sink.
    """

    probing: list[SortedRun | None]
    stored: list[SortedRun | None]
    made: list[Made]


@dataclass(frozen=True)
class Entrance:
    """Takes what comes to the inputs of a stage, whose orders are ``shapes``.

    ``seen`` are the event times before the micro-batch, by which rows are late. ``sifted``: what takes part
    has been chosen before.
    """

    maker: Maker
    shapes: Sequence[RunShape]
    counts: Counts
    seen: Mapping[int, int]
    sifted: bool = False

    def new(self, arrived: Sequence[Arrived]) -> NewRows:
        """Return the new rows that are not late, sorted."""
        found = NewRows([], [], [])
        stage = self.maker.plan.stages[self.maker.number]
        for number, each in enumerate(stage.inputs):
            blocks: Arrived = []
            for role, block in arrived[number] if self.sifted else self.taking_part(number, arrived[number]):
                if role is Role.LATE:
                    found.made.extend(self._late(each.members[0], block))
                elif role is Role.ALONE:
                    found.made.extend(self.maker.alone(self.counts.stage, number, block))
                else:
                    blocks.append((role, block))
            alike = all(role.stores == role.probes for role, _ in blocks)
            found.made.extend(self._passed_on(each, blocks))
            run = _sorted(self.shapes[number], [block for role, block in blocks if role.probes])
            found.probing.append(self._numbered(number, run))
            if not (each.stored or (isinstance(stage, Gather) and meeting(stage, number))):
                found.stored.append(None)
                continue
            stored = [block for role, block in blocks if role.stores]
            found.stored.append(run if alike else _sorted(self.shapes[number], stored))
        return found

    def taking_part(self, number: int, arrived: Arrived) -> Arrived:
        """Return what comes to an input without late rows, apart what meets no other and is a result.

        Late rows of a sink stay.
        """
        stage = self.maker.plan.stages[self.maker.number]
        each, found = stage.inputs[number], Arrived()
        alone = isinstance(stage, Join) and number in stage.kind.preserved and stage.kind.alone
        for role, block in arrived:
            if role is Role.LATE:
                found.append((role, block))
                continue
            rows = self._on_time(each.members[0], role, block) if each.stage is None else block
            meets = self.maker.lacking.meets(number, rows)
            found.append((role, rows if meets is None else rows.filter(pa.array(meets))))
            if meets is not None and alone:
                found.append((Role.ALONE, rows.filter(pa.array(~meets))))
        return found

    def _numbered(self, number: int, run: SortedRun | None) -> SortedRun | None:
        """Return new rows of an input with numbers where these tell what each has begun."""
        stage = self.maker.plan.stages[self.maker.number]
        if run is None or len(stage.chains(number)) < 2:
            return run
        return with_numbers(run, row_name(stage.inputs[number].members[0]))

    def _passed_on(self, each: StageEdge, blocks: Arrived) -> Iterator[Made]:
        """Yield the rows of a stream that a later hop needs, which this worker is the one to pass on."""
        plan, number = self.maker.plan, self.maker.number
        to = destination(plan, number, each) if len(each.members) == 1 else None
        if to is None or not plan.stages[number].probes:
            return
        for role, block in blocks:
            if each.stage is None and not (role.probes and role.counts):
                continue
            if block.num_rows:
                yield Made(block.select(result_columns(plan, number, to)), to[1])

    def _on_time(self, stream: int, role: Role, block: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a stream that are not older than its watermark; count those that are.

        A late row is counted by the worker whose it is to count.
        """
        mark = self._mark(stream)
        if mark is None:
            return block
        on_time = int64_view(block.column(time_name(stream))) >= mark
        late = len(on_time) - int(np.count_nonzero(on_time))
        if late and role.counts:
            self.counts.of(stream).add("late", late)
        return block.filter(pa.array(on_time)) if late else block

    def _late(self, stream: int, block: pa.RecordBatch) -> Iterator[Made]:
        """Yield the late rows of a stream for a sink, of those that may be late."""
        mark = self._mark(stream)
        rows = None if mark is None else told(stream, block, mark)
        if rows is not None:
            yield Made(rows, PAST)

    def _mark(self, stream: int) -> int | None:
        return watermark(self.seen.get(stream), self.maker.plan.streams[stream].delay)


def _sorted(shape: RunShape, blocks: list[pa.RecordBatch]) -> SortedRun | None:
    return shape.sort(concatenate(blocks)) if blocks else None
