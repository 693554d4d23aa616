"""Statistics that a running query measures, kept beside its checkpoint for its next start."""

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wjoin.executor.report import NOTHING_FIRST, NOTHING_SEEN
from wjoin.executor.spark.observe import MEASURED
from wjoin.grammar.plain import plain, typed
from wjoin.measured.beside import UNREACHABLE, Beside, KeptWarning, stopped
from wjoin.measured.progress import observations
from wjoin.measured.reports import MicroBatchReport
from wjoin.measured.utilization import Busy, Utilization
from wjoin.planner.cost.measurement import (
    Arrived,
    KeyCount,
    Measurement,
    measured_key,
    stage_name,
)
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.spark.spark_failures import cause

STATISTICS = "statistics"
"""The name under which measurements are kept."""

Measured = list[dict[str, Measurement]]
"""What was measured: for each W-join of a statement, innermost first, by the number of the stream."""

_ENOUGH = 3
"""Micro-batches after which what was measured is kept for the first time."""

_KEEP_SECONDS = 60.0
"""How often it is kept after that. The last time is when the query ends."""


@dataclass(frozen=True)
class Recorded:
    """What earlier runs on a checkpoint measured; the ``number`` of it is one more each time it is kept.

    ``busy``: how busy the last run was, None where that is not known.
    """

    number: int = 0
    joins: Measured = field(default_factory=list)
    busy: Busy | None = None


def read_measured(beside: Beside) -> Recorded:
    """Return what earlier runs on a checkpoint measured; warns where it cannot be read."""
    try:
        return decode_measured(*beside.read(STATISTICS))
    except (*UNREACHABLE, ValueError) as error:
        _warn(f"the statistics beside {beside.folder} cannot be read, so they are not used: {cause(error)}")
        return Recorded()


def decode_measured(number: int, value: Any) -> Recorded:
    """Read what a query has kept; None is nothing. Raises ValueError where it is anything else."""
    if value is None:
        return Recorded(number)
    # An earlier version kept the joins alone.
    joins, busy = (value, None) if not isinstance(value, dict) else (value.get("joins"), value.get("busy"))
    if not isinstance(joins, list) or not all(isinstance(each, dict) for each in joins):
        raise ValueError("not a list of joins")
    joins = [{stream: typed(Measurement, body) for stream, body in each.items()} for each in joins]
    return Recorded(number, joins, None if busy is None else typed(Busy, busy))


class Recorder:
    """Adds up what a running query tells of its streams, and keeps it now and then and at its end.

    ``name`` is the query's. ``plans`` are those of its W-joins by the numbers under which they were compiled,
    in the order in which ``before`` has what was known before. ``utilization`` measures how busy it is.
    """

    def __init__(
        self,
        name: str,
        beside: Beside,
        plans: Mapping[int, PhysicalPlan],
        before: Recorded,
        utilization: Utilization,
    ) -> None:
        self._name = name
        self._beside = beside
        self._plans = dict(plans)
        self._number = before.number
        self._utilization = utilization
        known = [*before.joins, *({} for _ in plans)]
        self._measured = {each: _faded(known[place]) for place, each in enumerate(plans)}
        self._batches = 0
        self._kept = 0
        self._kept_at = time.monotonic()

    def take(self, report: MicroBatchReport) -> None:
        """Add what a micro-batch tells."""
        self._utilization.take(report)
        found = list(_told(report.body, self._plans))
        if all(arrived is None for _, _, arrived, *_ in found):
            return
        self._batches += 1
        for join, stream, arrived, stage, passed, results in found:
            known = self._measured[join].get(stream, Measurement())
            if arrived is not None:
                known = known.add(arrived)
            self._measured[join][stream] = known.meet(stage, passed, results)

    def tend(self) -> None:
        """Keep what was measured where that is due."""
        late = time.monotonic() - self._kept_at > _KEEP_SECONDS
        if self._batches > self._kept and (late or (not self._kept and self._batches >= _ENOUGH)):
            self._keep()
            if late:
                self._measured = {query: _faded(streams) for query, streams in self._measured.items()}

    def end(self) -> None:
        """Keep what was measured until the end of the query."""
        if self._batches > self._kept:
            self._keep()

    def _keep(self) -> None:
        busy = self._utilization.now
        value = {
            "joins": plain([*self._measured.values()]),
            "busy": None if busy is None else plain(busy),
        }
        self._kept, self._kept_at = self._batches, time.monotonic()
        try:
            self._beside.write(STATISTICS, self._number + 1, value)
        except UNREACHABLE as error:
            if not stopped(self._beside.spark):
                _warn(f"the measurements of the query {self._name} cannot be saved: {cause(error)}")
            return
        self._number += 1


def _faded(streams: Mapping[str, Measurement]) -> dict[str, Measurement]:
    return {stream: each.faded() for stream, each in streams.items()}


def _told(
    report: Any, plans: Mapping[int, PhysicalPlan]
) -> Iterator[tuple[int, str, Arrived | None, str, int, int]]:
    """Yield what a progress report tells of the streams: plan, stream, measures where rows came.

    Behind them of the stage that the stream enters: its name, the rows that it got of it, and its results.
    """
    for query, stage, values in observations(report):
        plan = plans.get(query)
        if plan is None:
            continue
        name = stage_name(plan.streams[member].alias for member in plan.stages[stage].members)
        for each in plan.stages[stage].inputs:
            if each.stage is None:
                scan = plan.streams[each.members[0]]
                found = {kind: values.get(f"{kind}:{scan.alias}") for kind in ("rows", "seen", *MEASURED)}
                arrived = _arrived(found, None if each.key is None else scan.codes[each.key[1]].expressions)
                passed = values.get(f"passed:{scan.alias}") or 0
                yield query, str(each.members[0]), arrived, name, passed, values.get("matches") or 0


def _arrived(found: Mapping[str, int | None], key: Sequence[str] | None) -> Arrived | None:
    """Return the measures of one stream, None where it sent no row with an event time."""
    rows, earliest, latest = found.get("rows"), found.get("earliest"), found.get("seen")
    if not rows or earliest in (None, NOTHING_FIRST) or latest in (None, NOTHING_SEEN):
        return None
    before = found.get("before")
    counted, distinct, heaviest = (found.get(name) or 0 for name in ("counted", "distinct", "heaviest"))
    return Arrived(
        rows=rows,
        passed=found.get("passed") or 0,
        size=found.get("size") or 0,
        before=None if before == NOTHING_SEEN else before,
        earliest=earliest,
        latest=latest,
        key=(measured_key(key), KeyCount(counted, distinct, heaviest)) if key and counted else None,
    )


def _warn(message: str) -> None:
    warnings.warn(message, KeptWarning, stacklevel=2)
