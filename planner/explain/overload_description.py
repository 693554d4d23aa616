"""What a join does when it gets too much, for the document of EXPLAIN."""

from collections.abc import Iterator

from wjoin.planner.cost.shed_share import OFF, lost_share
from wjoin.planner.explain import document as doc
from wjoin.planner.explain.stage_description import estimate_entry
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.shedding_models import SheddingRules, StreamShedding, cannot_shed, shedding_of
from wjoin.planner.plan.stage_kinds import Scanned
from wjoin.planner.planning import PlannedSelect

_TENTH = 0.1


def overload_entry(planned: PlannedSelect, rules: SheddingRules, *, files: bool) -> doc.OverloadEntry | None:
    """Return what a join does under some rules, None where these say nothing of it.

    ``files``: whether its state is in files.
    """
    plan, limits = planned.physical, rules.thresholds
    refused = cannot_shed(plan, rules, files=files)
    shedding = None if refused else shedding_of(plan, rules, 0.0, files=files)
    if not refused and (shedding is None or not shedding.watches):
        return None
    known = () if shedding is None else shedding.streams
    shed = [each for each in known if each.model != OFF]
    kept = 1 - _TENTH
    return doc.OverloadEntry(
        refused=refused,
        streams=tuple(_shed(planned, each) for each in shed),
        begins=limits.shedding,
        base=limits.base,
        tenth=lost_share((each.judged, kept) for each in shed),
        tenth_by_row=lost_share((each.number, kept) for each in shed),
        memory=rules.memory,
        disk=rules.disk if files else None,
        ends=shedding is None or shedding.refuses,
    )


def _shed(planned: PlannedSelect, each: StreamShedding) -> doc.ShedEntry:
    scan, known = planned.physical.streams[each.number], planned.statistics[each.number]
    code = next(_codes(planned.physical, each), None)
    return doc.ShedEntry(
        alias=scan.alias,
        model=each.model,
        key=() if code is None else scan.codes[code].expressions,
        heaviest=None if code is None else estimate_entry(known.keys[code].heaviest),
    )


def _codes(plan: PhysicalPlan, each: StreamShedding) -> Iterator[int]:
    """Yield the number of the key by which a stream is shed, if there is one."""
    inputs = () if each.stage is None else plan.stages[each.stage].inputs
    for edge in inputs:
        if isinstance(edge.source, Scanned) and edge.source.stream == each.number and edge.key is not None:
            yield edge.key[1]
