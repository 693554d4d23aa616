"""What a query has read and not yet given: groups that wait for the watermark, in words."""

from collections.abc import Sequence

from wjoin.grammar.errors import WJoinWarning
from wjoin.grammar.plurals import counted
from wjoin.measured.progress import Progress
from wjoin.planner.plan.to_come import holding, is_dated
from wjoin.planner.planning import PlannedSelect


def waiting(progress: Progress | None, planned: Sequence[PlannedSelect] = ()) -> str:
    """Return what waits after a micro-batch and for what, empty where nothing does.

    ``planned`` are the W-joins of the query, the outermost last.
    """
    if progress is None or not progress.groups:
        return ""
    count = progress.groups
    rows = f"{counted(count, 'group')} of Spark's aggregate wait{'s' if count == 1 else ''}"
    at = f"now at {progress.watermark}" if progress.watermark else "which is not set yet"
    held = _held(progress, planned)
    return f"{rows} for the watermark, {at}{f', held by {held}' if held else ''}"


def _held(progress: Progress, planned: Sequence[PlannedSelect]) -> str:
    """Return the streams that hold the watermark of MATCH_TIME(), empty where it is no such."""
    if not planned:
        return ""
    plan = planned[-1].physical
    if not any(is_dated(plan, output) for output in plan.outputs):
        return ""
    numbers = {scan.alias: number for number, scan in enumerate(plan.streams)}
    seen = {numbers[alias]: time for alias, time in progress.seen.items() if alias in numbers}
    return " and ".join(plan.streams[stream].alias for stream in holding(plan, seen))


def waits(subject: str, words: str) -> WJoinWarning:
    """Return the warning that a query has ended and something of what it read waits."""
    return WJoinWarning("WJ813", f"{subject} has ended, but {words}")
