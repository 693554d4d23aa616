"""How the streams of a plan travel from their sites: what hints, the checkpoint and costs say."""

from collections.abc import Mapping, Sequence

from wjoin.grammar.syntax import SelectBlock
from wjoin.planner.catalog import Relation
from wjoin.planner.choose.choice import wished_shipping
from wjoin.planner.choose.held_streams import entered, held_refusal
from wjoin.planner.choose.layouts import LayoutRule
from wjoin.planner.cost.model import CostModel
from wjoin.planner.cost.semijoin import Shipments, shipments
from wjoin.planner.plan.physical import PhysicalPlan, Shipping
from wjoin.planner.shape.shipping import shipped

HELD_THERE = "the checkpoint holds its rows at the site"
KEPT_HERE = "the checkpoint holds its rows in the state"


def travelling(
    block: SelectBlock,
    settings: Mapping[str, str],
    plan: PhysicalPlan,
    relations: Sequence[Relation],
    model: CostModel,
    layouts: LayoutRule,
) -> tuple[PhysicalPlan, tuple[Shipments, ...]]:
    """Return a plan whose streams at sites travel as is best, and what was weighed for each.

    Of the streams that meet in a stage one is held at its site at the most: that by which most is saved.
    Raises WJoinError WJ504 for a hint that cannot be granted.
    """
    remote = [stream for stream, scan in enumerate(plan.streams) if scan.site is not None]
    refused = {stream: _refused(plan, stream, relations[stream], layouts) for stream in remote}
    wishes = wished_shipping(block, settings, plan, refused)
    found: dict[int, Shipments] = {}
    for stream in remote:
        site = relations[stream].site
        if site is not None:
            wished, kept = wishes[stream], layouts.held(plan, stream)
            must = Shipping.HELD if kept else wished
            can = not refused[stream].get(Shipping.HELD)
            held = can and (must is Shipping.HELD or layouts.free)
            found[stream] = shipments(plan, stream, site, model, must, held=held)
    taken: set[int] = set()
    for stream in sorted(found, key=lambda each: found[each].saved, reverse=True):
        if found[stream].chosen is not Shipping.HELD:
            continue
        stage, _ = entered(plan, stream)
        if stage in taken:
            found[stream] = found[stream].without_holding()
        taken.add(stage)
    return shipped(plan, {stream: each.chosen for stream, each in found.items()}), tuple(found.values())


def _refused(plan: PhysicalPlan, stream: int, relation: Relation, layouts: LayoutRule) -> dict[Shipping, str]:
    """Return in which ways a stream cannot travel, and why."""
    alias, site = plan.streams[stream].alias, plan.streams[stream].site
    held = layouts.held(plan, stream)
    if held:
        return {Shipping.FULL: HELD_THERE, Shipping.PARTIAL: HELD_THERE}
    whole = f"the join itself reads every column of {alias}"
    refused = {} if site is None or site.late else {Shipping.PARTIAL: whole}
    kept = KEPT_HERE if layouts.kept is not None and held is False else ""
    unheld = kept or held_refusal(plan, stream, relation)
    return {**refused, Shipping.HELD: unheld} if unheld else refused
