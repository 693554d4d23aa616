"""EXPLAIN: the plan as text. It renders what the planner returned and decides nothing."""

from collections.abc import Iterator, Sequence

from wjoin.parts.kernels.registry import name_of
from wjoin.planner.durations import human
from wjoin.planner.explain.bands import band_lines
from wjoin.planner.explain.cost import choice_line, kernel_words, statistics_lines
from wjoin.planner.explain.native import native_join_lines, native_retention_lines
from wjoin.planner.logical import LogicalPlan
from wjoin.planner.physical import (
    Method,
    PhysicalPlan,
    Stage,
    StageInput,
    StaticJoin,
    StreamScan,
    UpperBounds,
)
from wjoin.planner.plan import PlannedSelect
from wjoin.planner.reach import reach
from wjoin.planner.window_graph import Branch, WindowGraph


def explain_text(planned: PlannedSelect) -> str:
    """Return the plan of a block for people to read; lines without a newline at the end."""
    logical, physical = planned.logical, planned.physical
    sections = [
        ("Streams" if physical.streaming else "Relations", list(_streams(planned))),
        *_constraints(logical.graph),
        ("Equality classes", list(_classes(logical)) or ["none: every pair inside the windows is compared"]),
        ("Filters before the join", list(_filters(physical)) or ["none"]),
        ("Conditions after the join", list(logical.residual) or ["none"]),
        ("Statistics", list(statistics_lines(planned))),
        ("Stages", [choice_line(planned), *_stages(logical, physical), *_lookups(physical)]),
    ]
    if physical.streaming:
        sections.append(("Retention", list(_retention(logical, physical))))
    lines = []
    for title, body in sections:
        lines += [title, *(f"  {line}" for line in body)]
    return "\n".join([*lines, *_warnings(logical, physical)])


def _streams(planned: PlannedSelect) -> Iterator[str]:
    logical = planned.logical
    parts = zip(logical.names, logical.relations, planned.physical.streams, strict=True)
    for number, (name, relation, scan) in enumerate(parts):
        shown = name if relation == name else f"{name} = {' '.join(relation.split())}"
        columns = ", ".join(column.output for column in scan.columns if column.output is not None)
        delay = f", delay {human(scan.delay, logical.graph.kind)}" if scan.streaming else ""
        delay += " (none declared)" if number in planned.undeclared else ""
        yield f"{shown}: event time {scan.event_time}{delay}; columns {columns or 'none'}"


def _constraints(graph: WindowGraph) -> Iterator[tuple[str, list[str]]]:
    if len(graph.branches) == 1:
        yield "Constraints", list(_branch(graph.branches[0], graph))
    else:
        for number, branch in enumerate(graph.branches, start=1):
            yield f"Constraints, alternative {number} of {len(graph.branches)}", list(_branch(branch, graph))
        yield "Hull of the alternatives", [text for _, text in _intervals(graph.upper, graph)]
    if graph.contradictory:
        yield "Left out", [f"{graph.contradictory} alternative(s) that no tuple can satisfy"]


def _branch(branch: Branch, graph: WindowGraph) -> Iterator[str]:
    for (first, second), text in _intervals(branch.upper, graph):
        yield f"{text}  [{origin(branch, graph, first, second)}]"


def _intervals(upper: UpperBounds, graph: WindowGraph) -> Iterator[tuple[tuple[int, int], str]]:
    for first in range(len(graph.names)):
        for second in range(first + 1, len(graph.names)):
            yield (first, second), _interval(upper, graph, first, second)


def _interval(upper: UpperBounds, graph: WindowGraph, first: int, second: int) -> str:
    high, back = upper[first][second], upper[second][first]
    difference = f"{graph.names[second]} - {graph.names[first]}"
    if high is None and back is None:
        return f"{difference} is free"
    if high is not None and high == back:
        return f"|{difference}| <= {human(high, graph.kind)}"
    low_text = "" if back is None else f"{human(-back, graph.kind)} <= "
    high_text = "" if high is None else f" <= {human(high, graph.kind)}"
    return f"{low_text}{difference}{high_text}"


def origin(branch: Branch, graph: WindowGraph, first: int, second: int) -> str:
    """Return where the bounds of a pair of streams come from: given, derived, tightened or unbounded."""
    upper = _bound_origin(branch, graph, first, second)
    lower = _bound_origin(branch, graph, second, first, turned=True)
    if upper == lower or lower is None:
        return upper or "unbounded"
    return lower if upper is None else f"upper bound {upper}; lower bound {lower}"


def _bound_origin(
    branch: Branch, graph: WindowGraph, source: int, target: int, *, turned: bool = False
) -> str | None:
    """Return where a bound comes from; a lower bound's path is shown in the upper one's direction."""
    bound, given = branch.upper[source][target], branch.given[source][target]
    if bound is None:
        return None
    if given == bound:
        return "given"
    path = branch.paths[source][target]
    via = " -> ".join(graph.names[stream] for stream in (reversed(path) if turned else path))
    return f"derived via {via}" if given is None else f"tightened from {human(given, graph.kind)} via {via}"


def _classes(logical: LogicalPlan) -> Iterator[str]:
    for number, each in enumerate(logical.classes, start=1):
        yield f"{number}: {' = '.join(part.text for part in each.parts)}  ({each.type})"


def _filters(physical: PhysicalPlan) -> Iterator[str]:
    for scan in physical.streams:
        yield from (f"{scan.alias}: {each}" for each in scan.filters)


def _stages(logical: LogicalPlan, physical: PhysicalPlan) -> Iterator[str]:
    if physical.method is Method.NATIVE and physical.stages:
        yield from native_join_lines(physical)
        return
    if physical.branches and physical.stages:
        yield f"passes {physical.passes.value}"
    pairs = zip(physical.stages, logical.stage_classes, strict=True)
    for number, (stage, classes) in enumerate(pairs, start=1):
        inputs = " x ".join(_input(each, physical.streams) for each in stage.inputs)
        on = f" on class {' and '.join(str(each + 1) for each in classes)}" if classes else " without a key"
        yield f"{number}: {inputs}{on}"
        parts = f"bounds {stage.bounds.value}, route {stage.route}, kernel {name_of(stage.kernels)}"
        yield f"   {kernel_words(stage)} ({parts}, shipping {stage.shipping.value})"
        yield from (f"   check {each}" for each in _comparisons(stage, physical.streams))
        yield from (f"   {each}" for each in band_lines(stage, physical.streams))


def _lookups(physical: PhysicalPlan) -> Iterator[str]:
    after = " after the stages" if physical.stages else ""
    for each in physical.lookups:
        name = physical.streams[each.stream].alias
        yield f"{name} joined by Spark{after} (static){_lookup_conditions(each)}"


def _lookup_conditions(join: StaticJoin) -> str:
    on = f" on {' and '.join(join.equalities)}" if join.equalities else " without a key"
    return on + "".join(f", check {each}" for each in join.comparisons)


def _input(member_input: StageInput, streams: Sequence[StreamScan]) -> str:
    names = ", ".join(streams[member].alias for member in member_input.members)
    shown = names if member_input.stage is None else f"stage {member_input.stage + 1} ({names})"
    if member_input.key is None:
        return shown
    stream, number = member_input.key
    code = streams[stream].codes[number]
    return f"{shown} [{', '.join(code.expressions)}{'' if code.exact else '; hashed'}]"


def _comparisons(stage: Stage, streams: Sequence[StreamScan]) -> Iterator[str]:
    for each in stage.comparisons:
        operands = (each.left, each.right)
        left, right = (streams[stream].columns[number].expression for stream, number in operands)
        yield f"{left} {each.operator} {right}"


def _retention(logical: LogicalPlan, physical: PhysicalPlan) -> Iterator[str]:
    names, kind = logical.names, logical.graph.kind
    if not physical.stages:
        yield "nothing is kept"
    elif physical.method is Method.NATIVE:
        yield from native_retention_lines(logical, physical)
        return
    for stream in physical.staged if physical.stages else ():
        row = reach(physical.stages[0].bounds, physical.upper, physical.staged).ahead[stream]
        others = [(names[other], row[other]) for other in physical.staged if other != stream]
        limits = [
            f"{name} ends" if bound is None else f"{name}'s watermark passes {_after(bound, stream, logical)}"
            for name, bound in others
        ]
        yield f"{names[stream]}: kept until {' and '.join(limits)}"
    if physical.outputs[0].match_delay is not None:
        behind = human(physical.outputs[0].match_delay, kind)
        yield f"MATCH_TIME of a result is at most {behind} behind that of an earlier one"


def _after(bound: int, stream: int, logical: LogicalPlan) -> str:
    column = logical.event_times[stream]
    if bound == 0:
        return column
    return f"{column} {'-' if bound < 0 else '+'} {human(abs(bound), logical.graph.kind)}"


def _warnings(logical: LogicalPlan, physical: PhysicalPlan) -> Iterator[str]:
    if not physical.streaming or physical.method is Method.NATIVE:
        return
    if physical.outputs[0].undated and "time" in physical.outputs[0].match:
        yield (
            f"warning: MATCH_TIME() has no watermark, so that it cannot be aggregated on a stream: "
            f"{physical.outputs[0].undated}"
        )
    for stream in physical.staged:
        row = physical.upper[stream]
        free = [logical.names[other] for other in physical.staged if row[other] is None]
        if free:
            yield (
                f"warning: the rows of {logical.names[stream]} are never dropped: "
                f"no window bounds how far {', '.join(free)} may be after {logical.names[stream]}"
            )
