"""The least MATCH_TIME that a result to come may have, as the watermarks of the streams tell."""

from collections.abc import Mapping

from wjoin.planner.plan.physical import Method, Output, PhysicalPlan, TimeKind


def is_dated(plan: PhysicalPlan, output: Output) -> bool:
    """Return whether MATCH_TIME of an output is an event time of Spark's, so that groups by it close."""
    # Spark takes a TIMESTAMP only as event time of a watermark.
    if not plan.streaming or plan.time_kind is not TimeKind.TIMESTAMP or output.undated:
        return False
    return "time" in output.match and output.match_delay is not None


def lags(plan: PhysicalPlan) -> dict[int, int]:
    """Return, by stream, how far MATCH_TIME of a result to come may lie behind its greatest event time.

    A row that is not late completes the result: it is at most the delay behind the stream's greatest time.
    Where a window puts some other row later than that, MATCH_TIME is no earlier than it; so the lag may be
    negative. Static relations get no new rows.
    """
    return {stream: plan.streams[stream].delay - _later(plan, stream) for stream in plan.staged}


def _later(plan: PhysicalPlan, stream: int) -> int:
    """Return by how much the latest row of a result is later than that of a stream, at the least."""
    if plan.watermarked or plan.method is Method.NATIVE:
        # Spark's own watermarks of the inputs know of no windows.
        return 0
    if any(each.stream == stream for each in plan.counted):
        # A result waits until the watermark has passed its MATCH_TIME, and not for its own row alone.
        return 0
    most = (plan.windows.between(other, stream) for other in range(plan.windows.size) if other != stream)
    return max([0, *(-bound for bound in most if bound is not None)])


def least_to_come(plan: PhysicalPlan, seen: Mapping[int, int]) -> int | None:
    """Return the least MATCH_TIME that may still come; None where it has no bound.

    ``seen`` is the greatest event time that each stream has sent, before the rows to come. A stream that has
    sent nothing may send any time.
    """
    ends = [seen[stream] - lag for stream, lag in lags(plan).items() if stream in seen]
    return min(ends) if len(ends) == len(plan.staged) else None


def holding(plan: PhysicalPlan, seen: Mapping[int, int]) -> tuple[int, ...]:
    """Return the streams that hold the least MATCH_TIME back: those without a row, else the last ones."""
    silent = tuple(stream for stream in plan.staged if stream not in seen)
    if silent:
        return silent
    ends = {stream: seen[stream] - lag for stream, lag in lags(plan).items()}
    return tuple(stream for stream, end in ends.items() if end == min(ends.values()))
