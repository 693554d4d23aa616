"""The stages of a plan, and the joins of two that Spark makes of one, as parts of the document of EXPLAIN."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from wjoin.grammar.join_kinds import JoinKind, Nearest
from wjoin.grammar.plurals import listed
from wjoin.grammar.syntax import Per
from wjoin.parts.kernels.registry import KERNELS, meaning_of, name_of
from wjoin.parts.kernels.runs import Order
from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.routes.route import Role
from wjoin.planner.catalog import Estimate
from wjoin.planner.choose.native_method import PairJoin, latest_bound, whole_seconds
from wjoin.planner.cost.psp import reached
from wjoin.planner.explain import document as doc
from wjoin.planner.explain.phrases import Lying
from wjoin.planner.explain.plan_words import (
    alias_names,
    column_words,
    copies_words,
    kernel_words,
    slice_words,
)
from wjoin.planner.explain.visit_notes import visit_notes
from wjoin.planner.figures import figure
from wjoin.planner.plan.checks import Band, Comparison, Condition, PredicateCheck, of_kind
from wjoin.planner.plan.counting import ends_by_count, goes_by, windows_at
from wjoin.planner.plan.edges import destination, held_for
from wjoin.planner.plan.physical import Method, PhysicalPlan, windows_of
from wjoin.planner.plan.probes import chosen_orders, kept_for, row_ends, window_checks
from wjoin.planner.plan.slicing import SLICES_OF_A_WINDOW, kept_anywhere, roles, slicing
from wjoin.planner.plan.stage_kinds import Gather, Join, Retention, Stage, StageEdge
from wjoin.planner.plan.steps import WindowCheck
from wjoin.planner.planning import PlannedSelect
from wjoin.planner.windows.lengths import human

LYING = {
    Role.BOTH: Lying.KEEPS,
    Role.STORE: Lying.COPIES,
    Role.COPY: Lying.COPIES,
    Role.PROBE: Lying.MEETS,
    Role.VISIT: Lying.MEETS,
}


MEANINGS = {
    ("bounds", "exact"): "the intersection of what all joined rows allow",
    ("bounds", "lca"): "each stream's widest window, then refined",
    ("bounds", "gca"): "the widest window overall, then refined",
    ("passes", "hull"): "one pass over all alternatives",
    ("passes", "union"): "one pass for each alternative",
}
"""What the parts of a plan mean, by part and value; routes and kernels say it themselves."""


_ALIKE = {Per.STREAM: "", Per.KEY: " with the same key", Per.HOME: " of the same home"}

MOST_WORKERS = 8
"""Workers, and slices, that are drawn at the most."""


SOME_WORKERS = 4
"""Workers that are drawn where a stage may have all that there are."""


def stage_entry(planned: PlannedSelect, number: int) -> doc.StageEntry:
    """Return a stage of a plan."""
    plan = planned.physical
    stage = plan.stages[number]
    kernel = name_of(stage.kernels)
    parts = [
        _part("bounds", stage.bounds.value),
        doc.PartEntry("route", _route(stage), ROUTES[stage.placement.route].meaning),
        doc.PartEntry("kernel", kernel, meaning_of(kernel)),
        *([_part("passes", plan.passes.value)] if plan.branches else []),
    ]
    return doc.StageEntry(
        inputs=tuple(_input(plan, stage, place) for place in range(len(stage.inputs))),
        bounds=stage.bounds.value,
        route=stage.placement.route,
        kernel=kernel,
        order=join_orders(plan, stage),
        bands=tuple(_band(plan, each) for each in stage.bands),
        words=kernel_words(stage),
        classes=tuple(each + 1 for each in planned.stage_classes[number]),
        checks=tuple(_comparison(plan, each) for each in of_kind(stage.checks, Comparison)),
        parts=() if plan.method is Method.NATIVE else tuple(parts),
        warning=""
        if plan.method is Method.NATIVE or _waits_twice(stage)
        else ROUTES[stage.placement.route].warning,
        calls=tuple(_call(plan, each) for each in of_kind(stage.checks, PredicateCheck)),
        # Partial results of the same streams lie alike, whatever began them.
        notes=tuple(dict.fromkeys(_notes(planned, number))),
        dealt=_dealt(plan, stage),
    )


def _notes(planned: PlannedSelect, number: int) -> Iterator[str]:
    """Yield what is said of a stage in sentences."""
    plan = planned.physical
    yield from _kind(planned, number)
    yield from _inside(plan, plan.stages[number])
    yield from _counted(plan, number)
    yield from _slices(plan, plan.stages[number])
    yield from visit_notes(plan, number)
    if number == 0 and planned.exact_anyway:
        yield "over tables the join is exact, although the statement allows results to be lost"


def _kind(planned: PlannedSelect, number: int) -> Iterator[str]:
    """Yield what a join that is not an inner one gives, and when a row without a partner comes."""
    plan, joins = planned.physical, planned.bound.tree.staged.joins
    stage, held = plan.stages[number], held_for(plan, number)
    if not isinstance(stage, Join) or stage.kind is JoinKind.INNER:
        return
    if joins[number - len(plan.stages)].empty:
        kept = [each for side in sorted(stage.kind.preserved) for each in stage.inputs[side].members]
        yield f"{stage.kind.words}: no rows can be inside its windows"
        yield f"a row of {listed([plan.streams[each].alias for each in kept])} is returned at once"
        return
    for gate in stage.gates:
        aliases = listed([plan.streams[stream].alias for stream in sorted(gate.check.streams)])
        yield f"only rows of {aliases} with ({gate.text}) have partners"
    if stage.nearest is not None:
        yield from _asof(plan, stage, stage.nearest)
        return
    yield stage.kind.words
    if of_kind(stage.checks, Condition):
        conditions = (f"({each})" if " OR " in each.upper() else each for each in stage.on)
        yield f"partners satisfy {' AND '.join(conditions)}"
    if _waits_twice(stage):
        yield "one worker has all rows, because rows of both sides wait for partners"
    for place, each in enumerate(stage.inputs if plan.streaming else ()):
        if place not in stage.kind.preserved:
            continue
        aliases = listed([plan.streams[member].alias for member in each.members])
        rules = [replace(rule, stream=n) for rule in each.retention for n in (rule.stream, *held)]
        when = " and ".join(_decided(plan, each, rule) for rule in dict.fromkeys(rules))
        if stage.kind.alone:
            yield f"a row of {aliases} without a partner is returned when {when}{_after(plan, each, rules)}"
        else:
            yield f"a row of {aliases} is returned with its first partner, and dropped when {when}"


def _waits_twice(stage: Stage) -> bool:
    """Return whether a stage has one worker because rows of both inputs wait for all that they may meet."""
    return isinstance(stage, Join) and not stage.keyed and len(stage.kind.preserved) > 1


def _inside(plan: PhysicalPlan, stage: Stage) -> Iterator[str]:
    """Yield the alternatives of the windows of a join among several."""
    if not isinstance(stage, Join) or not stage.alternatives:
        return
    found = []
    for place, windows in enumerate(stage.alternatives):
        checks = window_checks(windows, stage.members, stage.members)
        counted = stage.counted[place] if stage.counted else ()
        rows = [f"{_rows(plan, number)} later, up to its latest time" for number in counted]
        found.append(" and ".join([*(_bound(plan, each) for each in checks), *rows]))
    yield f"joined rows are inside one of {len(found)} alternatives: {'; '.join(found)}"


def _bound(plan: PhysicalPlan, check: WindowCheck) -> str:
    first, second = plan.streams[check.first].alias, plan.streams[check.second].alias
    return f"{second} - {first} <= {human(check.upper, plan.time_kind)}"


def _counted(plan: PhysicalPlan, number: int) -> Iterator[str]:
    """Yield the windows of rows that a stage decides, when it does, and what is kept for that."""
    held = held_for(plan, number)
    if not held and number < len(plan.stages) - 1:
        return
    windows = [(place, plan.counted[place]) for place in windows_at(plan, number)]
    everywhere = {place for asked in plan.asked for place in asked}
    for place, window in windows:
        if place not in everywhere:
            # Alternatives of a join have it.
            continue
        of = _rows(plan, place)
        others = [n for n, asked in enumerate(plan.asked, start=1) if place in asked]
        where = f" (alternative {listed([*map(str, others)])})" if len(plan.asked) > 1 else ""
        be = "is" if window.rows == 1 else "are"
        yield f"{of} {be} later than that of a result, up to the result's latest time{where}"
    for stream in dict.fromkeys(each.stream for _, each in windows if plan.streaming):
        name = plan.streams[stream].alias
        own = [each for _, each in windows if each.stream == stream]
        by_key = all(goes_by(plan, number, each) is not None for each in own)
        to = "the worker of their key" if by_key else "every worker"
        what = "rows wait here before they are joined" if held else "a result waits in the state"
        yield f"{what} until {name}'s watermark passes its latest time"
        yield f"the times of the rows of {name} go to {to}, and are kept as long as a result can need them"


def _rows(plan: PhysicalPlan, number: int) -> str:
    """Return what a window of rows allows, without until when."""
    window = plan.counted[number]
    rows = "no row" if window.rows == 1 else f"fewer than {window.rows} rows"
    of = f"{rows} of {plan.streams[window.stream].alias}{_ALIKE[window.per]}"
    return f"{of} with {window.condition}" if window.condition else of


def later_rows(plan: PhysicalPlan, stream: int) -> str:
    """Return how many later rows end the time for which a row of a stream is kept, empty where time does."""
    alternatives = [
        " or ".join(
            f"{'a later row' if window.rows == 1 else f'{window.rows} later rows'} of it"
            f"{_ALIKE[window.per]}"
            f"{f' with {window.condition}' if window.condition else ''}"
            for window in (plan.counted[number] for number in own)
        )
        or "the end of its window in time"
        for _, own in ends_by_count(plan, (stream,), [each for each in plan.staged if each != stream])
    ]
    return " and ".join(dict.fromkeys(alternatives))


def _decided(plan: PhysicalPlan, each: StageEdge, rule: Retention) -> str:
    """Return in words what of a stream decides a row of an input."""
    ends = [
        _end(plan, member, far, several=len(each.members) > 1)
        for member, far in rule.distances
        if far is not None
    ]
    stage = next(stage for stage in plan.stages if each in stage.inputs)
    if rule.until:
        ends += [column_words(plan, end) for end in row_ends(plan, stage, each.members, rule.stream)]
    other = plan.streams[rule.stream].alias
    if not ends:
        return f"{other} has ended"
    return f"{other}'s watermark passes {' or '.join(ends)}"


def _after(plan: PhysicalPlan, each: StageEdge, rules: Sequence[Retention]) -> str:
    """Return in words how long after a row of one stream that is, empty where that is not known."""
    known = [
        far + plan.streams[rule.stream].delay
        for rule in rules
        for _, far in rule.distances
        if far is not None
    ]
    if len(each.members) > 1 or len(known) < len(rules):
        return ""
    if any(rule.until for rule in rules):
        return f"{_about(plan, max(known, default=0))} or sooner"
    return _about(plan, max(known, default=0))


def _about(plan: PhysicalPlan, time: int) -> str:
    return f": about {human(time, plan.time_kind)} after it" if time > 0 else ""


def _end(plan: PhysicalPlan, stream: int, far: int, *, several: bool) -> str:
    """Return a time so far after that of a stream, whose name is told where there are several."""
    scan = plan.streams[stream]
    time = f"{scan.alias}.{scan.event_time}" if several else scan.event_time
    return f"{time} {'-' if far < 0 else '+'} {human(abs(far), plan.time_kind)}" if far else time


def _asof(plan: PhysicalPlan, stage: Join, nearest: Nearest) -> Iterator[str]:
    """Yield which row of the second input is joined to one of the first, and when that comes."""
    members, (item, *others) = stage.inputs[0].members, stage.inputs[1].members
    by = stage.timed_by
    first, second = listed([plan.streams[each].alias for each in members]), plan.streams[item].alias
    told = f", by the times of {plan.streams[by].alias}" if len(members) > 1 else ""
    told += f", and its rows of {listed([plan.streams[each].alias for each in others])}" if others else ""
    yield f"{stage.kind.words}: each row of {first} with the {_NEAREST[nearest].format(second=second)}{told}"
    if plan.streaming and others:
        when = (_decided(plan, stage.inputs[0], rule) for rule in stage.inputs[0].retention)
        yield f"a row of {first} is returned when {' and '.join(when)}"
    elif plan.streaming:
        far = windows_of(plan, stage).between(by, item) or 0
        reaches = far == -1 and nearest is Nearest.BEFORE
        far = 0 if reaches else far
        end = _end(plan, by, far, several=len(members) > 1)
        passes = "reaches" if reaches else "passes"
        after = "" if len(members) > 1 else _about(plan, far + plan.streams[item].delay)
        yield f"a row of {first} is returned when {second}'s watermark {passes} {end}{after}"


_NEAREST = {
    Nearest.AT_OR_BEFORE: "last row of {second} that is not later",
    Nearest.BEFORE: "last row of {second} that is earlier",
    Nearest.AT_OR_AFTER: "first row of {second} that is not earlier",
    Nearest.AFTER: "first row of {second} that is later",
    Nearest.EITHER: "nearest row of {second}; of two equally near, the earlier one",
}


def _route(stage: Stage) -> str:
    where = stage.placement
    if ROUTES[where.route].approximate:
        return f"{where.route} on {'all' if where.workers is None else where.workers} nodes"
    if where.length is None:
        return where.route
    workers = "all" if where.workers is None else where.workers
    return f"{where.route} on {workers} workers{copies_words(stage)}"


def _slices(plan: PhysicalPlan, stage: Stage) -> Iterator[str]:
    """Yield in words how the rows of a stage lie on several workers, nothing where they do not."""
    where = stage.placement
    if where.length is None:
        return
    workers = "all workers" if where.workers is None else f"{where.workers} workers"
    copied = f", {where.copies} copies each" if where.copies > 1 else ""
    cut = f"{slice_words(plan, stage)}{'' if ROUTES[where.route].values else ' of event time'}"
    if ROUTES[where.route].heaviest:
        yield f"each key is on one of {workers}, except the most frequent key:"
    yield f"slices of {cut}, assigned to {workers} round-robin{copied}"
    if kept_anywhere(plan, stage, where.workers or SLICES_OF_A_WINDOW):
        yield "small micro-batches are assigned row by row, because probing rows visit every worker"
    keeper = "the workers of its slice" if where.copies > 1 else "the worker of its slice"
    for number, each in enumerate(stage.inputs):
        view = slicing(plan, stage, number)
        name = " ".join(alias_names(plan, each.members))
        if view is None or (view.sliced and not view.visits):
            yield f"{name}: each row goes to {keeper}"
            continue
        if not view.probes:
            doing = "stored on" if view.stored else "forwarded by"
            yield f"{name}: each row is {doing} {keeper}"
            continue
        visits = reached(view, where.workers or sys.maxsize)
        if where.workers is not None:
            found = f"{figure(visits)} of {where.workers}"
        elif view.back is None or view.ahead is None:
            found = "all" if where.copies == 1 else f"one in {where.copies}"
        else:
            found = f"up to {figure(visits)}"
        kept = f"is stored on {keeper} and probes" if view.sliced and view.stored else "probes"
        met = "the workers" if where.copies == 1 else "the fewest workers that hold all slices"
        yield f"{name}: each row {kept} {met} in reach ({found})"


def _dealt(plan: PhysicalPlan, stage: Stage) -> doc.DealtEntry | None:
    """Return what can be drawn of how the rows of a stage lie on several workers, None where they do not."""
    where = stage.placement
    if where.length is None or where.workers == 1:
        return None
    workers = SOME_WORKERS if where.workers is None else where.workers
    drawn = min(workers, MOST_WORKERS)
    keeping = where.master or next((n for n, each in enumerate(stage.inputs) if each.stored), 0)
    places = range(min(2 * workers, MOST_WORKERS))
    homes = (roles(plan, stage, keeping, place, workers) for place in places)
    place, rows = 1, []
    for number, each in enumerate(stage.inputs):
        found = roles(plan, stage, number, place, workers)
        if Role.PASSED in found.values():
            continue
        lying = (_lying(stage, found[worker]) if worker in found else "" for worker in range(drawn))
        rows.append(doc.LyingEntry(alias_names(plan, each.members), tuple(lying)))
    return doc.DealtEntry(
        slices=tuple(
            tuple(worker + 1 for worker, role in sorted(home.items()) if role.stores) for home in homes
        ),
        place=place + 1,
        rows=tuple(dict.fromkeys(rows)),
        more=where.workers is None or drawn < workers,
    )


def _lying(stage: Stage, role: Role) -> str:
    """Return what a worker does with a row."""
    alone = role is Role.STORE and stage.placement.copies == 1
    return (Lying.KEEPS if alone else LYING[role]).value


def _part(name: str, value: str) -> doc.PartEntry:
    return doc.PartEntry(name, value, MEANINGS.get((name, value), ""))


def _input(plan: PhysicalPlan, stage: Stage, place: int) -> doc.InputEntry:
    each = stage.inputs[place]
    code = None if each.key is None else plan.streams[each.key[0]].codes[each.key[1]]
    return doc.InputEntry(
        members=alias_names(plan, each.members),
        stage=None if each.stage is None else each.stage + 1,
        key=() if code is None else code.expressions,
        kept_for={plan.streams[kept.stream].alias: kept.distances[0][1] for kept in each.retention}
        if each.stored
        else {},
        hashed=code is not None and not code.exact,
        ordered_by=_ordered_by(plan, stage, place),
        hop=None if isinstance(stage, Join) else _hop(plan, stage, place),
    )


def _hop(plan: PhysicalPlan, stage: Stage, place: int) -> doc.HopEntry:
    """Return what the rows of an input do in a hop."""
    each, number = stage.inputs[place], plan.stages.index(stage)
    met = [stage.inputs[other].members[-1] for chain in stage.chains(place) for other in chain]
    kept_before = (
        number
        for number, earlier in enumerate(plan.stages[:number], start=1)
        for source in earlier.inputs
        if source.members == each.members and source.stored
    )
    alone = len(each.members) == 1
    return doc.HopEntry(
        newest=None if alone else plan.streams[each.newest[0]].alias,
        meets=alias_names(plan, met),
        kept=alias_names(plan, kept_for(stage, place)) if each.stored else (),
        before=tuple(kept_before) if each.stored else (),
        passed_on=alone and destination(plan, number, each) is not None,
        gathered=isinstance(stage, Gather),
    )


def _ordered_by(plan: PhysicalPlan, stage: Stage, place: int) -> str | None:
    band = stage.inputs[place].index
    if band is None or KERNELS[stage.kernels[0]].order is not Order.VALUE:
        return None
    return column_words(plan, band.left if band.left[0] in stage.inputs[place].members else band.right)


def _comparison(plan: PhysicalPlan, each: Comparison) -> str:
    return f"{column_words(plan, each.left)} {each.operator} {column_words(plan, each.right)}"


def _call(plan: PhysicalPlan, check: PredicateCheck) -> doc.CallEntry:
    arguments = ", ".join(
        column_words(plan, each) if isinstance(each, tuple) else repr(each) for each in check.arguments
    )
    call = f"{check.predicate}({arguments})"
    if isinstance(check.asked, bool):
        condition = call if check.asked else f"NOT {call}"
    else:
        condition = " AND ".join(f"{call} {operator} {value:g}" for operator, value in check.asked)
    return doc.CallEntry(condition, estimate_entry(check.cost_us), estimate_entry(check.share), check.tried)


def _band(plan: PhysicalPlan, band: Band) -> doc.BandEntry:
    low = "" if band.low is None else f"{band.low:g} <= " if band.slack else f"{band.low} <= "
    high = "" if band.high is None else f" <= {band.high:g}" if band.slack else f" <= {band.high}"
    condition = f"{low}{column_words(plan, band.left)} - {column_words(plan, band.right)}{high}"
    return doc.BandEntry(condition, band.low, band.high, estimate_entry(band.share), band.checked)


def join_entry(plan: PhysicalPlan, join: PairJoin) -> doc.JoinEntry:
    """Return a join of two that Spark makes."""
    sides = [plan.streams[stream].codes[number].expressions for stream, number in join.keys or ()]
    return doc.JoinEntry(
        left=alias_names(plan, join.left),
        right=alias_names(plan, join.right),
        on=tuple(" = ".join(pair) for pair in zip(*sides, strict=True)),
        checks=tuple(_comparison(plan, each) for each in join.comparisons),
        kept_for=(_kept_for(plan, join.left, join.right), _kept_for(plan, join.right, join.left)),
    )


def _kept_for(plan: PhysicalPlan, own: Sequence[int], other: Sequence[int]) -> int | None:
    bound = latest_bound(plan.windows, own, other)
    return None if bound is None else whole_seconds(bound) * 1_000_000


def join_orders(plan: PhysicalPlan, stage: Stage) -> doc.Orders:
    """Return in which order the rows of each input of a stage meet the others."""
    names = ["+".join(alias_names(plan, each.members)) for each in stage.inputs]
    orders = chosen_orders(stage) or {}
    return tuple((names[first], *(names[n] for n in order)) for first, order in orders.items())


def estimate_entry(each: Estimate) -> doc.EstimateEntry:
    """Return a number, and who says so."""
    return doc.EstimateEntry(each.value, each.origin.value)
