"""What EXPLAIN says of an approximate join: what is sent where, and what is lost."""

from collections.abc import Iterator

from wjoin.grammar.plurals import counted, listed
from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.summaries.flow import SAMPLE
from wjoin.parts.summaries.registry import SUMMARIES
from wjoin.planner.catalog import SOURCE_HOME
from wjoin.planner.cost.approximate import BASE
from wjoin.planner.figures import size
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.stage_kinds import StageEdge


def visit_notes(plan: PhysicalPlan, number: int) -> Iterator[str]:
    """Yield what is said of the visits in a stage, nothing of an exact join."""
    stage = plan.stages[number]
    route = ROUTES[stage.placement.route]
    if plan.approximate is None or not route.approximate:
        return
    kept = {each.members[0]: _home(plan, each) for each in stage.inputs if each.stored}
    for stream, home in kept.items():
        yield f"{plan.streams[stream].alias}: each row is stored at the node of its {home}"
    visiting = [
        " ".join(plan.streams[member].alias for member in each.members)
        for place, each in enumerate(stage.inputs)
        if stage.chains(place)
    ]
    who = listed(list(dict.fromkeys(visiting)))
    if number > 0:
        # The rest is as at the first stage.
        return
    if route.name == BASE:
        yield f"{who}: each row visits all other nodes, so nothing is lost"
        return
    yield f"{who}: each row visits {_visits(plan)}"
    told = f"{size(plan.approximate.size)} of each window of a node"
    yield f"where that is: {SUMMARIES[route.name].meaning}, {told}"
    yield (
        "lost: results at nodes that a row does not visit, including those of new rows of one micro-batch "
        "if the nodes had no row of their key before"
    )
    yield f"one in {round(1 / SAMPLE)} keys visits all nodes: these measure the lost share"


def _home(plan: PhysicalPlan, each: StageEdge) -> str:
    scan = plan.streams[each.members[0]]
    code = scan.codes[scan.home or 0]
    if not code.expressions[0].strip("`").endswith(SOURCE_HOME):
        return code.expressions[0]
    return "partition of the topic" if code.exact else "file, by its name"


def _visits(plan: PhysicalPlan) -> str:
    asked = plan.approximate
    if asked is not None and asked.error is not None:
        return f"as few other nodes as possible, losing {asked.error:.3g} of the results"
    if asked is not None and asked.messages is not None:
        nodes = counted(f"{asked.messages:g}", "other node")
        return f"{nodes} on average, where it will probably find most"
    return "log2 of the number of nodes on average, where it will probably find most"
