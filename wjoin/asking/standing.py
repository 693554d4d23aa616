"""How far a query has come, and whether rows are still in its state: until when, or since when not."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from wjoin.executor.state.kept_rows import watermark
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.plurals import listed
from wjoin.planner.plan.physical import PhysicalPlan, TimeKind
from wjoin.planner.plan.stage_kinds import Join
from wjoin.planner.plan.to_come import needed

_LEAST, _GREATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The times that Python's clock shows, in microseconds."""


@dataclass(frozen=True)
class Standing:
    """How a query stands after its micro-batch ``batch``: the greatest event times ``seen`` of its streams.

    ``zone``: the time zone in which times are told.
    """

    plan: PhysicalPlan
    batch: int
    seen: Mapping[int, int]
    zone: str = "UTC"

    def mark(self, stream: int) -> int | None:
        """Return the watermark of a stream, None before its first row."""
        return watermark(self.seen.get(stream), self.plan.streams[stream].delay)

    def latest(self, stream: int) -> str | None:
        """Return the greatest event time that was read of a stream, None before its first row."""
        seen = self.seen.get(stream)
        return None if seen is None else self._time(seen)

    def after(self, stream: int, time: int) -> bool:
        """Return whether an event time is later than all that were read of a stream."""
        return stream not in self.seen or time > self.seen[stream]

    def told(self, rows: Mapping[int, int], unsure: Collection[int] = ()) -> Iterator[str]:
        """Yield what is told of rows that were read in time; ``rows`` has the event time of each, by stream.

        Of one that has no partner yet: until when nobody knows. Of the streams ``unsure`` nobody knows
        whether the row was read, and in time.
        """
        for stream, time in rows.items():
            ends = awaited(self.plan, stream, time)
            if ends is not None:
                text = self._kept(stream, ends)
                if stream in unsure:
                    name = self._name(stream)
                    rest = text if text.startswith(name) else f"{text[0].lower()}{text[1:]}"
                    text = f"If {name} was read in time, {rest}"
                yield text

    def undecided(self, rows: Mapping[int, int]) -> Iterator[str]:
        """Yield until when a combination waits for what windows of rows count; ``rows`` as in ``told``."""
        dated = [number for number, each in enumerate(self.plan.streams) if each.dated]
        # Where not all joins are inner ones, rows wait before they meet, whatever the alternative.
        waits = all(self.plan.asked) if self.plan.kind is JoinKind.INNER else bool(self.plan.counted)
        if not self.plan.counted or not waits or not rows.keys() >= {*dated}:
            return
        streams = sorted({each.stream for each in self.plan.counted})
        last = max(rows.values())
        until = [self._until(each, last) for each in streams if self._waits(each, last)]
        if until:
            yield f"It is not decided until {listed(until)}."

    def _kept(self, stream: int, ends: Mapping[int, int | None]) -> str:
        name, undecided = self._name(stream), preserved(self.plan, stream)
        open_ = {each: end for each, end in ends.items() if self._waits(each, end)}
        if open_:
            until = listed([self._until(each, end) for each, end in open_.items()])
            head = f"{name} is kept"
            if undecided is not None:
                what = f"Which row {name} takes" if undecided.kind.asof else f"Whether {name} has a partner"
                head = f"{what} is not decided"
            return f"{head} until {until}."
        past = listed([f"{self._name(each)}, {self._mark(each)}," for each in ends])
        marks = "watermarks" if len(ends) > 1 else "watermark"
        if undecided is not None:
            return f"{name} is decided: the {marks} of {past} passed all that it could meet."
        return f"{name} was evicted: the {marks} of {past} passed all that it could meet."

    def _waits(self, stream: int, end: int | None) -> bool:
        mark = self.mark(stream)
        return end is None or mark is None or mark <= end

    def _until(self, stream: int, end: int | None) -> str:
        mark = self.mark(stream)
        at = f"it is at {self._time(mark)}" if mark is not None else f"{self._name(stream)} has sent nothing"
        if end is None:
            return f"{self._name(stream)} ends ({at})"
        return f"{self._name(stream)}'s watermark passes {self._time(end)} ({at})"

    def _mark(self, stream: int) -> str:
        mark = self.mark(stream)
        return "" if mark is None else f"at {self._time(mark)}"

    def _name(self, stream: int) -> str:
        return self.plan.streams[stream].alias

    def _time(self, time: int) -> str:
        return shown_time(time, self.plan.time_kind, self.zone)


def shown_time(time: int, kind: TimeKind, zone: str) -> str:
    """Return an event time as people read it: a number where it is integral.

    >>> shown_time(1_700_000_000_500_000, TimeKind.TIMESTAMP, "Europe/Berlin")
    '2023-11-14 23:13:20.500000'
    """
    if kind is TimeKind.INTEGRAL or not _LEAST <= time <= _GREATEST:
        return f"{time:,}" if kind is not TimeKind.INTEGRAL else str(time)
    found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)
    if kind is TimeKind.TIMESTAMP:
        found = found.astimezone(ZoneInfo(zone))
    return found.replace(tzinfo=None).isoformat(sep=" ")


def preserved(plan: PhysicalPlan, stream: int) -> Join | None:
    """Return the join in which rows of a stream wait to be decided; None where they wait in none."""
    for stage in plan.stages:
        if isinstance(stage, Join) and stage.kind.waits:
            kept = (0,) if stage.kind.asof else stage.kind.preserved
            if any(stage.inputs[side].members == (stream,) for side in kept):
                return stage
    return None


def awaited(plan: PhysicalPlan, stream: int, time: int) -> dict[int, int | None] | None:
    """Return what the watermarks of which streams must have passed for a row to leave the state.

    None for a stream of which no row is kept; a stream that nothing bounds has None.
    """
    found: dict[int, int | None] = {}
    for number, stage in enumerate(plan.stages):
        for each in stage.inputs:
            if each.members != (stream,) or not each.stored:
                continue
            for rule in each.retention:
                ((_, far),) = rule.distances
                ends: Mapping[int, int | None] = {rule.stream: None}
                if far is not None:
                    ends = needed(plan, number, rule.stream, time + far)
                for other, end in ends.items():
                    found[other] = _later(found[other], end) if other in found else end
    return found or None


def _later(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else max(first, second)
