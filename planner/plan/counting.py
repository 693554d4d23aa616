"""What follows from the windows of rows of a plan: by which columns they count, what ends with a count."""

from collections.abc import Collection, Iterator

from wjoin.parts.routes.hash_route import HashRoute
from wjoin.planner.plan.block_columns import code_name, stored_column
from wjoin.planner.plan.physical import CountedWindow, KeyCode, PhysicalPlan
from wjoin.planner.windows.bounds import Windows


def key_parts(plan: PhysicalPlan, window: CountedWindow) -> tuple[tuple[KeyCode, int | None], ...]:
    """Return what is told of the key of a row that a window counts, nothing where it counts all rows.

    By code the code itself, None, and where that is not exact the numbers of the values that it is made of.
    """
    codes = (plan.streams[window.stream].codes[key] for key in window.keys)
    return tuple(
        (code, value)
        for code in codes
        for value in (None, *(() if code.exact else range(len(code.expressions))))
    )


def key_columns(plan: PhysicalPlan, window: CountedWindow) -> tuple[str, ...]:
    """Return the names of the block columns whose values tell the key of a row that a window counts by."""
    return tuple(name for key in window.keys for name in _values(plan, window.stream, key))


def _values(plan: PhysicalPlan, stream: int, key: int) -> Iterator[str]:
    code = plan.streams[stream].codes[key]
    if code.exact:
        yield code_name(stream, key)
    else:
        yield from (stored_column(plan, stream, number).name for number in code.verify)


def windows_at(plan: PhysicalPlan, number: int) -> tuple[int, ...]:
    """Return the numbers of the windows of rows whose streams a stage has: it knows what these count."""
    members = plan.stages[number].members
    return tuple(place for place, window in enumerate(plan.counted) if window.stream in members)


def goes_by(plan: PhysicalPlan, number: int, window: CountedWindow) -> int | None:
    """Return which code of a window's key, by its place there, tells the worker of a stage that makes all
    results with rows of one key; None where any worker may make some."""
    by_hash = plan.stages[number].placement.route == HashRoute.name
    return met_by(plan, number, window) if by_hash else None


def met_by(plan: PhysicalPlan, number: int, window: CountedWindow) -> int | None:
    """Return which code of a window's key, by its place there, is the one on which rows meet in a stage."""
    alike = {each.key for each in plan.stages[number].inputs}
    for before in reversed(plan.stages[:number]):
        keys = {each.key for each in before.inputs}
        # What has met on a key has the same one.
        if None not in keys and not alike.isdisjoint(keys):
            alike |= keys
    places = (place for place, key in enumerate(window.keys) if (window.stream, key) in alike)
    return next(places, None)


def ends_in_time(windows: Windows, members: Collection[int], others: Collection[int]) -> bool:
    """Return whether windows say how long rows of the streams ``members`` are kept for those of others."""
    return all(any(windows.between(each, other) is not None for each in members) for other in others)


def ends_by_count(
    plan: PhysicalPlan, members: Collection[int], others: Collection[int]
) -> tuple[tuple[Windows, tuple[int, ...]], ...]:
    """Return by alternative the windows in time, and of rows, that end the time for which rows are kept.

    They are of the streams ``members``, and kept for others. Nothing where the windows in time of the whole
    plan end it, or where those of an alternative do not.
    """
    if not plan.counted or ends_in_time(plan.windows, members, others):
        return ()
    own = tuple(
        (windows, tuple(number for number in asked if plan.counted[number].stream in members))
        for windows, asked in zip(plan.branches or (plan.windows,), plan.asked, strict=True)
    )
    ends = (counted or ends_in_time(windows, members, others) for windows, counted in own)
    return own if all(ends) else ()
