"""What one micro-batch did at one worker: what is counted of its rows, its keys and the state after it."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from wjoin.executor.key_counts import count_keys
from wjoin.executor.node_state import Measuring
from wjoin.executor.report import NOTHING_SEEN, Report
from wjoin.executor.shared_parts import SharedParts
from wjoin.executor.state.manifest import Manifest
from wjoin.parts.kernels.runs import RunShape, SortedRun
from wjoin.planner.choose.held_streams import is_held
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.stage_kinds import Stage


@dataclass
class Counts:
    """What one micro-batch did at one worker: a report of the stage, and one of each stream.

    ``shared``: what counts results by their parts, ``measuring`` what counts those of the sample of an
    approximate join; None where nothing does.
    """

    stage: Report = field(default_factory=Report)
    streams: dict[int, Report] = field(default_factory=dict)
    shared: SharedParts | None = None
    measuring: Measuring | None = None

    def of(self, stream: int) -> Report:
        """Return the report of a stream."""
        if stream not in self.streams:
            self.streams[stream] = Report()
        return self.streams[stream]


def count_spread(
    plan: PhysicalPlan,
    stage: Stage,
    shapes: Sequence[RunShape],
    new: Iterable[SortedRun | None],
    counts: Counts,
) -> None:
    """Count how the keys of each stream's new rows are spread; of many stretches, in one."""
    for each, shape, run in zip(stage.inputs, shapes, new, strict=True):
        own = counts.of(each.members[0])
        # Of a held input only keys come that others have.
        if each.stage is not None or run is None or own["counted"] or is_held(plan, each):
            continue
        found = count_keys(run, shape.order)
        if found is not None:
            own.add("counted", found.rows)
            own.add("distinct", found.distinct)
            own.add("heaviest", found.heaviest)


def count_state(stage: Stage, before: Manifest, after: Manifest, counts: Counts) -> None:
    """Count what is kept; of an input of several streams at its first, what waits for counts at the first of
    all."""
    for each, group in zip(stage.inputs, after.slices, strict=True):
        first = counts.of(each.members[0])
        first.add("kept", sum(piece.rows for piece in group))
        first.add("kept_bytes", sum(piece.size for piece in group))
        if group:
            first.add("oldest", min(piece.earliest for piece in group))
        if each is stage.inputs[0]:
            first.add("kept_bytes", sum(piece.size for piece in itertools.chain(*after.counted)))
        for stream in each.members:
            counts.of(stream).add("seen", after.seen.get(stream, NOTHING_SEEN))
            counts.of(stream).add("before", before.seen.get(stream, NOTHING_SEEN))
