"""What follows from the windows of rows of a plan: by which columns they count, what ends with a count."""

from wjoin.parts.routes.hash_route import HashRoute
from wjoin.planner.plan.block_columns import code_name, stored_column
from wjoin.planner.plan.physical import CountedWindow, PhysicalPlan
from wjoin.planner.windows.bounds import Windows


def key_columns(plan: PhysicalPlan, window: CountedWindow) -> tuple[str, ...]:
    """Return the names of the block columns whose values tell the key of a row that a window counts by."""
    if window.key is None:
        return ()
    code = plan.streams[window.stream].codes[window.key]
    if code.exact:
        return (code_name(window.stream, window.key),)
    return tuple(stored_column(plan, window.stream, number).name for number in code.verify)


def goes_by_key(plan: PhysicalPlan, window: CountedWindow) -> bool:
    """Return whether all results with rows of one key are made by the worker that its code tells."""
    return window.key is not None and plan.stages[-1].placement.route == HashRoute.name


def ends_in_time(plan: PhysicalPlan, stream: int, windows: Windows | None = None) -> bool:
    """Return whether windows in time, those of the plan or others, say how long a row of a stream is kept."""
    return all((windows or plan.windows).between(stream, other) is not None for other in plan.staged)


def ends_by_count(plan: PhysicalPlan, stream: int) -> tuple[tuple[Windows, tuple[int, ...]], ...]:
    """Return by alternative the windows in time, and of rows, that end the time for which a row is kept.

    Nothing where those in time of the whole plan do, or where those of an alternative do not.
    """
    if not plan.counted or ends_in_time(plan, stream):
        return ()
    own = tuple(
        (windows, tuple(number for number in asked if plan.counted[number].stream == stream))
        for windows, asked in zip(plan.branches or (plan.windows,), plan.asked, strict=True)
    )
    return own if all(counted or ends_in_time(plan, stream, windows) for windows, counted in own) else ()
