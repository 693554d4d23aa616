"""EXPLAIN of the plan NATIVE: the order of Spark's own joins, and how long they keep rows."""

from collections.abc import Iterator, Sequence

from wjoin.planner.durations import human
from wjoin.planner.logical import LogicalPlan
from wjoin.planner.native import PairJoin, latest_bound, pair_joins, whole_seconds
from wjoin.planner.physical import PhysicalPlan


def native_join_lines(physical: PhysicalPlan) -> Iterator[str]:
    """Yield the joins of two in order, with their keys and comparisons."""
    names = [scan.alias for scan in physical.streams]
    yield "plan native: joins of two by Spark itself"
    for number, join in enumerate(pair_joins(physical), start=1):
        left, right = _members(join.left, names), _members(join.right, names)
        yield f"{number}: {left} x {right}{_key(join, physical)}"
        for each in join.comparisons:
            first, second = (
                physical.streams[stream].columns[column].expression
                for stream, column in (each.left, each.right)
            )
            yield f"   check {first} {each.operator} {second}"


def _key(join: PairJoin, physical: PhysicalPlan) -> str:
    if join.keys is None:
        return " without a key"
    sides = [physical.streams[stream].codes[number].expressions for stream, number in join.keys]
    return f" on {' and '.join(f'{left} = {right}' for left, right in zip(*sides, strict=True))}"


def native_retention_lines(logical: LogicalPlan, physical: PhysicalPlan) -> Iterator[str]:
    """Yield how long each side of each join is kept."""
    yield "the query has one watermark, the least of all streams'"
    for number, join in enumerate(pair_joins(physical), start=1):
        for own, other in ((join.left, join.right), (join.right, join.left)):
            limit = _limit(own, other, logical, physical)
            yield f"{_members(own, logical.names)}: kept by join {number} {limit}"


def _limit(own: Sequence[int], other: Sequence[int], logical: LogicalPlan, physical: PhysicalPlan) -> str:
    bound = latest_bound(physical.upper, own, other)
    if bound is None:
        return f"for ever: no window bounds how far {_members(other, logical.names)} may be after it"
    time = logical.event_times[own[0]] if len(own) == 1 else "the latest of its event times"
    seconds = whole_seconds(bound)
    if seconds:
        distance = human(abs(seconds) * 1_000_000, logical.graph.kind)
        time += f" {'-' if seconds < 0 else '+'} {distance}"
    return f"until the watermark passes {time}"


def _members(members: Sequence[int], names: Sequence[str]) -> str:
    shown = ", ".join(names[member] for member in members)
    return shown if len(members) == 1 else f"({shown})"
