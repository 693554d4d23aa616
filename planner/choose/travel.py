"""How the streams of a plan travel from their sites: what hints, the checkpoint and costs say."""

from collections.abc import Mapping
from dataclasses import replace

from wjoin.planner.catalog import Relation
from wjoin.planner.choose.choice import wished_shipping
from wjoin.planner.choose.held_streams import entered, held_refusal
from wjoin.planner.choose.layouts import LayoutRule
from wjoin.planner.choose.likely import likely_rows
from wjoin.planner.choose.plan_candidates import Candidate
from wjoin.planner.cost.semijoin import Shipments, shipments
from wjoin.planner.plan.physical import LikelyRows, PhysicalPlan, Shipping
from wjoin.planner.request import Planning
from wjoin.planner.shape.shipping import shipped

HELD_THERE = "the checkpoint holds its rows at the site"
KEPT_HERE = "the checkpoint holds its rows in the state"


def travel(planning: Planning) -> Planning:
    """Have the streams at sites travel as is best in the plan that is taken; add what was weighed for each.

    Of the streams that meet in a stage one is held at its site at the most: that by which most is saved.
    Raises WJoinError WJ504 for a hint that cannot be granted.
    """
    request, taken = planning.request, planning.candidates[0]
    plan, model = taken.plan, planning.weighings[taken.shape].model
    relations, layouts = request.relations, request.layouts
    remote = [stream for stream, scan in enumerate(plan.streams) if scan.site is not None]
    refused = {stream: _refused(plan, stream, relations[stream], layouts) for stream in remote}
    wishes = wished_shipping(request.block, request.settings, plan, refused)
    if planning.all_rows:
        wishes = {stream: Shipping.FULL for stream in remote if Shipping.FULL not in refused[stream]}
    found: dict[int, Shipments] = {}
    for stream in remote:
        site = relations[stream].site
        if site is not None:
            wished, kept = wishes.get(stream), layouts.held(stream)
            must = Shipping.HELD if kept else wished
            can = not refused[stream].get(Shipping.HELD)
            held = can and (must is Shipping.HELD or layouts.free)
            found[stream] = shipments(plan, stream, site, model, must, held=held)
    entered_by: set[int] = set()
    for stream in sorted(found, key=lambda each: found[each].saved, reverse=True):
        if found[stream].chosen is not Shipping.HELD:
            continue
        stage, _ = entered(plan, stream)
        if stage in entered_by:
            found[stream] = found[stream].without_holding()
        entered_by.add(stage)
    ways = {stream: each.chosen for stream, each in found.items()}
    likely = {}
    if planning.likely is not None:
        likely = {each: likely_rows(planning, plan, each, relations[each], model) for each in remote}
        found = {stream: each.likely(likely[stream]) for stream, each in found.items()}
        ways = dict.fromkeys(remote, Shipping.LIKELY)
    return replace(
        planning,
        candidates=tuple(_travelling(planning, each, ways, likely) for each in planning.candidates),
        shipments=tuple(found.values()),
    )


def _travelling(
    planning: Planning, each: Candidate, ways: Mapping[int, Shipping], likely: Mapping[int, LikelyRows]
) -> Candidate:
    """Return a candidate with the ways that streams travel: a held one changes the costs of its layout."""
    taken = planning.candidates[0]
    if Shipping.HELD in ways.values() and each.layout == taken.layout:
        model = planning.weighings[each.shape].model
        each = replace(each, estimated=model.estimate(shipped(each.plan, ways)))
    return replace(each, plan=shipped(each.plan, ways, likely)) if each.lost == "" else each


def _refused(plan: PhysicalPlan, stream: int, relation: Relation, layouts: LayoutRule) -> dict[Shipping, str]:
    """Return in which ways a stream cannot travel, and why."""
    alias, site = plan.streams[stream].alias, plan.streams[stream].site
    held = layouts.held(stream)
    if held:
        return {Shipping.FULL: HELD_THERE, Shipping.PARTIAL: HELD_THERE}
    reader = "LATE ROWS INTO" if plan.streams[stream].late else "the join itself"
    whole = f"{reader} reads every column of {alias}"
    refused = {} if site is None or site.late else {Shipping.PARTIAL: whole}
    kept = KEPT_HERE if layouts.kept is not None and held is False else ""
    unheld = kept or held_refusal(plan, stream, relation)
    return {**refused, Shipping.HELD: unheld} if unheld else refused
