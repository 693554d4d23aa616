"""Which streams may be held at their sites, so that the join asks for those rows only that meet others.

The reduction of a stream by the join values of the other windows (Semijoin streams, section 4), in each
micro-batch: of its new rows those travel whose key is in the other windows, of its older ones those with keys
that have come there. None of its rows is kept in the state.
"""

from wjoin.planner.catalog import Relation, SiteFacts
from wjoin.planner.plan.block_columns import quoted, stored_column, time_name
from wjoin.planner.plan.edges import held_for
from wjoin.planner.plan.physical import KeyCode, Method, PhysicalPlan, Shipping, StreamScan
from wjoin.planner.plan.stage_kinds import Join, StageEdge
from wjoin.planner.shape.join_keys import EXACT

FEW_VALUES = 256
"""Keys that a worker sends with every request; more are pushed to the site as a filter."""

HASH = "hash"
"""The route of a stage whose workers each have whole keys: a worker asks for the rows of its own."""


def is_held(plan: PhysicalPlan, each: StageEdge) -> bool:
    """Return whether the rows of a stage's input stay at their site."""
    if each.stage is not None:
        return False
    site = plan.streams[each.members[0]].site
    return site is not None and site.shipping is Shipping.HELD


def entered(plan: PhysicalPlan, stream: int) -> tuple[int, int]:
    """Return the stage that a stream enters, and as which of its inputs. Raises ValueError where in none."""
    for number, stage in enumerate(plan.stages):
        for place, each in enumerate(stage.inputs):
            if each.stage is None and each.members == (stream,):
                return number, place
    raise ValueError("no stage reads the stream")


def held_refusal(plan: PhysicalPlan, stream: int, relation: Relation) -> str:
    """Return why a stream cannot be held at its site; empty where it can."""
    scan, site = plan.streams[stream], relation.site
    if site is None or scan.site is None:
        return "it is not at a site"
    if plan.method is not Method.MULTIWAY or not plan.stages:
        return "Spark joins it, not wjoin"
    entrance, place = entered(plan, stream)
    stage = plan.stages[entrance]
    if not isinstance(stage, Join) or stage.placement.route != HASH or not stage.keyed:
        return "no single key joins it to the others"
    if place in stage.kind.preserved:
        return f"{stage.kind.words} keeps its rows without a partner"
    if stage.kind.asof:
        return f"{stage.kind.words} looks for its rows later than they come"
    if stage.asked:
        return f"{plan.kind.words} is one of several joins"
    if any(each.stream == stream for each in plan.counted):
        return "a window of rows counts each of its rows"
    if held_for(plan, entrance):
        return f"rows of {plan.kind.words} wait until windows of rows are known"
    if scan.filters:
        return "Spark evaluates its filters"
    if scan.late:
        return "its late rows go to a sink"
    if scan.ahead is not None or plan.clocked or plan.watermarked:
        return "rows count by the time of their micro-batch"
    return _unread(plan, stream, scan, site)


def site_column(plan: PhysicalPlan, stream: int, name: str) -> str | None:
    """Return of which column of the relation, in lower case, a column of a stream's blocks is made.

    None where it is the number of the row, or a code that is a hash.
    """
    scan = plan.streams[stream]
    if name == time_name(stream):
        return scan.event_time.lower()
    if name.startswith("k"):
        code = scan.codes[int(name.split("_")[1])]
        return _column(scan, code.expressions[0]) if code.exact else None
    number = int(name.split("_")[1])
    if scan.site is not None and number == scan.site.number:
        return None
    return _column(scan, scan.columns[number].expression)


def key_column(plan: PhysicalPlan, each: StageEdge) -> str:
    """Return the column of the relation, in lower case, on which a held input meets others."""
    if each.key is None:
        raise ValueError("an input without a key is not held")
    scan = plan.streams[each.key[0]]
    found = key_column_of(scan, scan.codes[each.key[1]])
    if found is None:
        raise ValueError("an input whose key is no column is not held")
    return found


def key_column_of(scan: StreamScan, code: KeyCode) -> str | None:
    """Return the column in lower case that a key of one expression is, None where it is something else."""
    return _column(scan, code.expressions[0])


def _unread(plan: PhysicalPlan, stream: int, scan: StreamScan, site: SiteFacts) -> str:
    """Return which of the values that the join reads are no columns as the site has them."""
    if not site.dated_by(scan.event_time):
        return "its event time is not the one that the site uses"
    stage, entrance = entered(plan, stream)
    each = plan.stages[stage].inputs[entrance]
    for place, code in enumerate(scan.codes):
        met = each.key == (stream, place)
        column = _column(scan, code.expressions[0]) if len(code.expressions) == 1 else None
        verified = met and len(code.verify) == 1 and code.types == ("string",)
        if column not in site.plain or not (code.exact or verified):
            return f"its key is not a single column at the site: {', '.join(code.expressions)}"
        if met and code.types[0] not in (*EXACT, "string"):
            return f"its key is of type {code.types[0]}"
    for own, read in enumerate(scan.columns):
        row_number = scan.site is not None and own == scan.site.number
        if row_number or stored_column(plan, stream, own).restored:
            continue
        if _column(scan, read.expression) not in site.plain:
            return f"the join reads {read.expression}, which is not a column at the site"
    return ""


def _column(scan: StreamScan, expression: str) -> str | None:
    """Return the column in lower case that an expression of a scan is, None where it is something else."""
    for alias in (scan.alias, quoted(scan.alias)):
        if expression.lower().startswith(f"{alias.lower()}."):
            name = expression[len(alias) + 1 :]
            bare = name[1:-1].replace("``", "`") if name.startswith("`") else name
            return bare.lower() if quoted(bare) == name or bare.isidentifier() else None
    return None
