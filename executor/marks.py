"""The watermarks of a join's streams, kept by themselves: what its stages keep besides rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wjoin.executor.arrivals import Arrivals
from wjoin.executor.silence import progressed, with_later
from wjoin.executor.state.kept_rows import watermark
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.state.writing import Writing
from wjoin.planner.choose.held_streams import entered
from wjoin.planner.plan.edges import reached_by
from wjoin.planner.plan.physical import PhysicalPlan


@dataclass(frozen=True)
class Marks:
    """Follows how far the streams of a plan come at each of its stages, whose state is in Spark's store.

    The stages themselves judge by the same: each is told of the streams that enter it, and of those of the
    stages before it as they are after the micro-batch.
    """

    plan: PhysicalPlan

    def of(self, before: Sequence[Manifest], stream: int) -> int | None:
        """Return the watermark of a stream where it enters, in its unit of time; None before its first row.

        ``before``: what the stages knew before the micro-batch.
        """
        seen = before[entered(self.plan, stream)[0]].seen.get(stream)
        return watermark(seen, self.plan.streams[stream].delay)

    def after(self, before: Sequence[Manifest], came: Arrivals) -> list[Manifest]:
        """Return what each stage knows after a micro-batch with what ``came`` of all streams.

        Once all have ended, also what later stages then know.
        """
        found: list[Manifest] = []
        awake: list[bool] = []
        for number, stage in enumerate(self.plan.stages):
            entering = {each.members[0] for each in stage.inputs if each.stage is None}
            earlier = [each.stage for each in stage.inputs if each.stage is not None]
            seen = {each: time for each, time in came.seen.items() if each in entering}
            last = {each: time for each, time in came.came.items() if each in entering}
            for each in earlier:
                if awake[each]:
                    known = reached_by(self.plan, number)
                    seen |= {stream: time for stream, time in found[each].seen.items() if stream in known}
                    last |= {stream: time for stream, time in found[each].came.items() if stream in known}
            own = bool(entering & came.told.keys())
            awake.append(came.ended or own or any(awake[each] for each in earlier))
            if not awake[-1]:
                found.append(before[number])
                continue
            arrived = Arrivals([], seen, came.clock, last, ended=came.ended)
            seen, last = progressed(self.plan, number, before[number], arrived)
            rules = replace(
                Writing.first(self.plan, stage), retentions=tuple(each.retention for each in stage.inputs)
            )
            found.append(replace(before[number], seen=seen, came=last, writing=rules))
        if came.ended and self.plan.ends_earlier:
            return [with_later(each, found[number:]) for number, each in enumerate(found, 1)]
        return found
