"""How busy the W-joins of a running query are: τ of S2J, section 3.2."""

from dataclasses import dataclass
from datetime import UTC, datetime

from wjoin.measured.layers import TASKS
from wjoin.measured.progress import Progress
from wjoin.measured.reports import MicroBatchReport
from wjoin.planner.cost.shed_share import came_in, state_utilization, time_utilization


@dataclass(frozen=True)
class UtilizationRules:
    """By what a query is measured: the seconds of a micro-batch that are no work on rows, the ``interval``.

    A shorter micro-batch is in time. ``memory``: the bytes that its state may have, None for no limit.
    """

    fixed: float
    interval: float
    memory: int | None


@dataclass(frozen=True)
class Busy:
    """τ, and when it was measured: ISO 8601, UTC."""

    utilization: float
    at: str

    @property
    def words(self) -> str:
        """The same for a reader."""
        return f"measured: busy {self.utilization:.0%} of the time, at {self.at}"


class Utilization:
    """τ of the last micro-batch that had one before it: of the state or of the time, whichever is worse."""

    def __init__(self, rules: UtilizationRules) -> None:
        self._rules = rules
        self._before: Progress | None = None
        self.now: Busy | None = None

    def take(self, report: MicroBatchReport) -> None:
        """Take what a report tells of a micro-batch."""
        progress = report.progress
        before, self._before = self._before, None if progress.idle else progress
        if progress.idle or before is None or before.ended is None or progress.ended is None:
            return
        passed = progress.ended - before.ended
        came = came_in(progress.seen, before.seen, progress.ended)
        busy = progress.parts.get(TASKS, 0) / 1000
        of_time = time_utilization(
            busy, self._rules.fixed, passed if came is None else came, self._rules.interval
        )
        of_state = state_utilization(progress.state_bytes, self._rules.memory)
        at = datetime.fromtimestamp(progress.ended, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        self.now = Busy(max(of_time, of_state), at)
