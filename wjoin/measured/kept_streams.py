"""What W-joins keep of each stream, how much of that is still to come, and which window decides it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wjoin.measured.progress import Done
from wjoin.planner.cost.kept_state import KeptFor, kept_for
from wjoin.planner.explain.kept_state import kept_words, slope_lines
from wjoin.planner.figures import size
from wjoin.planner.plan.physical import Method, PhysicalPlan
from wjoin.planner.plan.stage_kinds import StageEdge
from wjoin.planner.planning import PlannedSelect


@dataclass(frozen=True)
class KeptStream:
    """What is kept of the rows that an input begins with: its streams, bytes, and for how long.

    ``to_come``: the bytes by which it grows until the watermarks have travelled the windows, if rows come as
    they did; None where that is not known.
    """

    alias: str
    members: tuple[int, ...]
    bytes: int
    kept: KeptFor
    to_come: float | None

    def words(self, planned: PlannedSelect) -> str:
        """Return it in a line."""
        more = f"; {size(self.to_come)} to come" if self.to_come else ""
        return f"{size(self.bytes)}, {kept_words(planned, self.kept)}{more}"


def kept_streams(planned: PlannedSelect, done: Done) -> list[KeptStream]:
    """Return what a W-join keeps, by the first streams of its inputs: so its workers tell it."""
    plan = planned.physical
    if plan.method is not Method.MULTIWAY:
        return []
    edges: dict[int, list[StageEdge]] = {}
    for each in (each for stage in plan.stages for each in stage.inputs if each.stored):
        edges.setdefault(each.members[0], []).append(each)
    found = []
    for stream, own in edges.items():
        alias = plan.streams[stream].alias
        if (kept := done.kept_bytes.get(alias)) is not None:
            longest = max(own, key=lambda each: kept_for(planned, each).span or 0)
            to_come = _to_come(plan, longest, kept, done) if len(own) == len(longest.members) == 1 else None
            found.append(KeptStream(alias, longest.members, kept, kept_for(planned, longest), to_come))
    return found


def _to_come(plan: PhysicalPlan, edge: StageEdge, kept: int, done: Done) -> float | None:
    """Return the bytes by which an input of one stream grows until it has rows of all times that it keeps."""
    alias = plan.streams[edge.members[0]].alias
    if alias not in done.seen or alias not in done.oldest:
        return None
    ends = []
    for rule in edge.retention:
        (_, far), mark = rule.distances[0], done.watermarks.get(plan.streams[rule.stream].alias)
        if far is None or mark is None:
            return None
        ends.append(mark - far)
    now, whole = done.seen[alias] - done.oldest[alias], done.seen[alias] - min(ends, default=0)
    return kept * (whole / now - 1) if ends and 0 < now < whole else 0.0


def longer_windows(planned: PlannedSelect, found: Sequence[KeptStream]) -> Iterator[str]:
    """Yield what a second more of each window would add, once all is there that is to come."""
    return slope_lines(planned, whole_sizes(found))


def whole_sizes(found: Sequence[KeptStream]) -> dict[tuple[int, ...], float]:
    """Return the bytes of inputs by their streams, once all is there that is to come."""
    return {each.members: each.bytes + (each.to_come or 0.0) for each in found}
