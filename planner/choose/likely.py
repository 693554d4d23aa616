"""Approximate joins of two streams at sites: of each only those rows are brought that probably match.

The rows that come are joined exactly. Others stay at their sites, and may come later: with older event times
than rows before them, so that a stream's delay is longer by how long its rows are held.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.hints import APPROXIMATE, SHIP
from wjoin.grammar.spans import Span
from wjoin.planner.catalog import Relation
from wjoin.planner.choose.choice import Wish, goal_wish, route_wish
from wjoin.planner.choose.held_streams import entered, key_column_of
from wjoin.planner.cost.model import CostModel
from wjoin.planner.plan.approximation import Approximation, LikelyJoin
from wjoin.planner.plan.physical import LikelyRows, Method, PhysicalPlan
from wjoin.planner.plan.stage_kinds import Join
from wjoin.planner.request import Planning
from wjoin.planner.shape.join_keys import EXACT

LEAST_BITS, MOST_BITS = 12, 24
BUCKETS_A_ROW = 64
"""Buckets for each row that a window has: by chance alone one of so many rows seems to have a partner."""

_EXACTLY = f"leave {APPROXIMATE} out"

_PLAN, _BASE = "PLAN", "base"
_OTHERS = {
    "dft": "DFT tells how alike two windows are, not which rows match: 80 % of the rows or more must come",
    "skch": "SKCH tells how many rows of two windows match, not which: 80 % of the rows or more must come",
    "dftt": "DFTT takes up to five times the rows that counts by hash take",
    "bloom": "BLOOM takes up to three times the rows that counts by hash take",
    "countsketch": "COUNTSKETCH takes up to five times the rows that counts by hash take",
}
"""Why sites tell counts alone, which is what DIGEST tells of nodes: in the same bytes, and measured by
benchmarks/sites_summaries.py.
"""


def at_sites(planning: Planning) -> bool:
    """Return whether all streams of a join are at sites."""
    staged, relations = _staged(planning), planning.request.relations
    return bool(staged) and all(relations[each].site is not None for each in staged)


def likely_refusals(planning: Planning) -> Iterator[tuple[str, str]]:
    """Yield what no approximate join over sites has, as it goes on after its name, and what to do."""
    block, settings = planning.request.block, planning.request.settings
    goal, route = goal_wish(block, settings), route_wish(block, settings)
    name = "" if route is None else route.part
    if name in _OTHERS:
        yield f"over sites has the plans DIGEST and BASE: {_OTHERS[name]}", "write PLAN(DIGEST)"
    if any(hint.name == _PLAN and len(hint.arguments) > 1 for hint in block.hints):
        yield "over sites has its sites as nodes", "leave the number of nodes out"
    if goal is None and name != _BASE:
        yield (
            "over sites asks for a share of results, or of rows",
            f"write {APPROXIMATE}(error = 0.1), or {APPROXIMATE}(messages = 0.2)",
        )
    staged = _staged(planning)
    if len(staged) != 2:
        yield "over sites is of two streams", _EXACTLY
        return
    if None in _reach(planning, staged):
        yield "over sites has a window in both directions", "bound it on both sides"
    if any(hint.name == SHIP for hint in block.hints):
        yield "over sites brings rows that probably match", f"leave {SHIP} out"


def with_likely(planning: Planning, asked: Approximation, wish: Wish) -> Planning:
    """Return a planning whose streams bring only rows that probably match. Raises ValueError.

    With PLAN(BASE) they bring all of them.
    """
    block, settings = planning.request.block, planning.request.settings
    route = route_wish(block, settings)
    # Which nodes rows visit is asked in Spark alone.
    hints = tuple(hint for hint in block.hints if hint.name != _PLAN)
    settings = {name: value for name, value in settings.items() if name != _PLAN}
    request = replace(planning.request, block=replace(block, hints=hints), settings=settings)
    planning = replace(planning, request=request)
    if route is not None and route.part == _BASE:
        return replace(planning, all_rows=True)
    staged = _staged(planning)
    ahead, back = _reach(planning, staged)
    if ahead is None or back is None:
        raise ValueError("an approximate join over sites has a window")
    times = list(planning.bound.times)
    delays = {each: time.delay for each in staged if (time := times[each]) is not None}
    hold = 2 * max(ahead, back, 0) + max(delays.values())
    for each in staged:
        if (time := times[each]) is not None:
            times[each] = replace(time, delay=time.delay + hold)
    bound = replace(planning.bound, times=tuple(times))
    return replace(
        planning, bound=bound, likely=LikelyJoin(asked.error, asked.messages, hold, delays, wish.span)
    )


def _staged(planning: Planning) -> list[int]:
    return [each for each in range(len(planning.graph.names)) if each not in planning.static]


def _reach(planning: Planning, staged: Sequence[int]) -> tuple[int | None, int | None]:
    one, other = staged
    return planning.graph.windows.between(one, other), planning.graph.windows.between(other, one)


def likely_rows(
    planning: Planning, plan: PhysicalPlan, stream: int, relation: Relation, model: CostModel
) -> LikelyRows:
    """Return how a stream brings only rows that probably match. Raises WJoinError WJ505 where it cannot."""
    if planning.likely is None:
        raise ValueError("a join that is exact")
    asked, span = planning.likely, planning.likely.span
    scan, alias = plan.streams[stream], plan.streams[stream].alias
    stage, place = entered(plan, stream)
    joined = plan.stages[stage]
    if plan.method is not Method.MULTIWAY or not isinstance(joined, Join) or len(plan.stages) != 1:
        raise refused(span, "over sites is made by wjoin in one stage", _EXACTLY)
    if planning.request.layouts.held(stream):
        raise refused(
            span, f"keeps no rows at their site, and the checkpoint holds those of {alias}", _EXACTLY
        )
    if scan.late or scan.ahead is not None or plan.clocked or plan.watermarked or plan.counted:
        raise refused(span, f"over sites judges the rows of {alias} by event time alone", _EXACTLY)
    if scan.site is None or relation.site is None or not relation.site.dated_by(scan.event_time):
        raise refused(span, f"over sites reads the event time of {alias} as its site does", _EXACTLY)
    key = joined.inputs[place].key
    code = None if key is None else scan.codes[key[1]]
    column = None if code is None or len(code.expressions) != 1 else key_column_of(scan, code)
    if code is None or column not in relation.site.plain or code.types[0] not in (*EXACT, "string"):
        raise refused(span, f"over sites needs a key of {alias} that is one column at its site", _EXACTLY)
    rows = max(model.statistics[each].rate.value for each in plan.staged) * asked.hold
    bits = min(MOST_BITS, max(LEAST_BITS, math.ceil(math.log2(max(1.0, BUCKETS_A_ROW * rows)))))
    late = [str(scan.columns[number].output) for number in scan.site.late]
    width = sum(relation.site.widths.get(each.lower(), 0.0) for each in (*scan.site.early, *late))
    return LikelyRows(
        asked.error, asked.messages, asked.hold, asked.delays[stream], column, bits, max(width, 1.0)
    )


def refused(span: Span | None, why: str, remedy: str) -> WJoinError:
    """Return the error of what an approximate join over sites cannot have."""
    return WJoinError("WJ505", f"an approximate join {why}", span=span, help=remedy)
