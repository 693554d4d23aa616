"""What travels along the edges of a plan: the columns that are still read of a tuple, and no others."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from wjoin.grammar.join_kinds import JoinKind
from wjoin.planner.plan.block_columns import code_name, meeting_name, stored_column, time_name
from wjoin.planner.plan.checks import Operand
from wjoin.planner.plan.counting import key_columns, met_by
from wjoin.planner.plan.physical import Output, PhysicalPlan
from wjoin.planner.plan.stage_kinds import Join, Joined, Pairs, Stage, StageEdge


def with_columns(plan: PhysicalPlan) -> PhysicalPlan:
    """Return a plan whose stage inputs have the columns of their blocks; the last stage's first."""
    for number in reversed(range(len(plan.stages))):
        stage = plan.stages[number]
        read = {name for to in destinations(plan, number) for name in result_columns(plan, number, to)}
        inputs = tuple(
            replace(each, columns=_columns(plan, stage, place, read))
            for place, each in enumerate(stage.inputs)
        )
        plan = plan.with_stage(number, replace(stage, inputs=inputs))
    return plan


def result_columns(
    plan: PhysicalPlan, number: int, destination: tuple[int, int] | None = None
) -> tuple[str, ...]:
    """Return the columns of a stage's results: those of the input that they are, or what the outputs read.

    ``destination`` is one of ``destinations``; without it, the only one.
    """
    if destination is None:
        (destination,) = destinations(plan, number)
    if destination is not None:
        return plan.stages[destination[0]].inputs[destination[1]].columns
    found = [name for output in plan.outputs for name in _output_columns(plan, output)]
    # A block needs a column to have a number of rows.
    return tuple(dict.fromkeys(found)) or (time_name(plan.stages[number].members[0]),)


def may_lack(plan: PhysicalPlan, each: StageEdge) -> tuple[int, ...]:
    """Return the streams of which the tuples of an input need not have a row."""
    return () if each.stage is None else _may_lack(plan, each.stage)


def _may_lack(plan: PhysicalPlan, number: int) -> tuple[int, ...]:
    stage = plan.stages[number]
    if not isinstance(stage, Join) or not stage.asked:
        return ()
    kept = stage.inputs[:1] if stage.kind.one_sided else stage.inputs
    found = {stream for each in kept for stream in may_lack(plan, each)}
    if stage.kind is JoinKind.INNER:
        found -= stage.asked
    elif not stage.kind.one_sided:
        found |= {stream for side in stage.kind.optional for stream in stage.inputs[side].members}
    return tuple(sorted(found))


def destinations(plan: PhysicalPlan, number: int) -> tuple[tuple[int, int] | None, ...]:
    """Return the stage and the input that a stage's results go to, None out of the last stage.

    Those of a hop go to several inputs of the next one (``destination``).
    """
    found = tuple(
        (later, place)
        for later in range(number + 1, len(plan.stages))
        for place, each in enumerate(plan.stages[later].inputs)
        if each.stage == number
    )
    return found or (None,)


def destination(
    plan: PhysicalPlan, number: int, origin: StageEdge, met: Collection[int] = ()
) -> tuple[int, int] | None:
    """Return the stage and the input that results go to which rows of an input begin with those of others.

    ``met`` are the numbers of these. None where the results leave the stages. Without others: where the rows
    of the stream of that input go themselves, None where no later hop needs them.
    """
    inputs = plan.stages[number].inputs
    members = {*origin.members, *(member for other in met for member in inputs[other].members)}
    for to in destinations(plan, number):
        if to is None:
            continue
        each = plan.stages[to[0]].inputs[to[1]]
        if isinstance(each.source, Joined):
            return to if met else None
        if each.newest == origin.newest and set(each.members) == members:
            return to
    return None


def reached_by(plan: PhysicalPlan, number: int) -> frozenset[int]:
    """Return the streams of a stage, and those that a join before it waits for."""
    stage = plan.stages[number]
    if not isinstance(stage, Join) or not stage.asked:
        return frozenset(stage.members)
    before = (reached_by(plan, each.stage) for each in stage.inputs if each.stage is not None)
    return frozenset(stage.members).union(*before)


def held_for(plan: PhysicalPlan, number: int) -> tuple[int, ...]:
    """Return the streams whose watermarks must have passed what comes to a stage before it is joined.

    Where not all joins are inner ones, what windows of rows count must be known before anything meets.
    """
    counted = {window.stream for window in plan.counted if plan.kind is not JoinKind.INNER}
    return tuple(sorted(counted & reached_by(plan, number))) if counted else ()


def needed_codes(plan: PhysicalPlan, number: int, stream: int) -> tuple[str, ...]:
    """Return the names of the codes that a row of a stream must have, which stage ``number`` reads.

    A join of a tree that comes later tells itself what has no key there.
    """
    needed = {
        each.key
        for place, stage in enumerate(plan.stages)
        if place == number or not isinstance(stage, Join) or not stage.asked
        for each in stage.inputs
    }
    codes = range(len(plan.streams[stream].codes))
    return tuple(code_name(stream, code) for code in codes if (stream, code) in needed)


def scan_columns(plan: PhysicalPlan, stream: int) -> tuple[str, ...]:
    """Return all block columns of a stream: its time, its codes, and its scan columns that are no copies."""
    scan = plan.streams[stream]
    stored = [stored_column(plan, stream, number) for number in range(len(scan.columns))]
    codes = (code_name(stream, number) for number in range(len(scan.codes)))
    return time_name(stream), *codes, *(each.name for each in stored if not each.restored)


def _output_columns(plan: PhysicalPlan, output: Output) -> Iterator[str]:
    for stream, number in plan.staged_columns(output):
        yield stored_column(plan, stream, number).name
        site = plan.streams[stream].site
        if site is not None and number in site.late:
            yield stored_column(plan, stream, site.number).name
    if output.match or output.windows or plan.lookups or plan.counted or len(plan.outputs) > 1:
        yield from (time_name(stream) for stream in plan.staged if stream not in plan.hidden)
    yield from map(time_name, sorted(output.lacked))
    for window in plan.counted if plan.kind is JoinKind.INNER else ():
        yield from key_columns(plan, window)
        code = met_by(plan, len(plan.stages) - 1, window)
        if code is not None:
            # A result that waits moves to another worker by it.
            yield code_name(window.stream, window.keys[code])


def _columns(plan: PhysicalPlan, stage: Stage, place: int, read: set[str]) -> tuple[str, ...]:
    """Return the columns of an input's blocks, given those of the stage's results."""
    each = stage.inputs[place]
    times = [time_name(stream) for stream in each.members]
    meeting = meeting_name(each)
    own = {*read, *times, *(() if meeting is None else (meeting,))}
    own |= {stored_column(plan, *operand).name for operand in operands(plan, stage)}
    homes = ((stream, plan.streams[stream].home) for stream in each.members)
    own |= {code_name(stream, code) for stream, code in homes if code is not None}
    counted = (window for window in plan.counted if window.stream in stage.members)
    own |= {name for window in counted for name in key_columns(plan, window)}
    brought, numbers = each.members, []
    if isinstance(each.source, Pairs):
        numbers = [meeting] if meeting is not None else []
        # Of the pairs that one row has begun, the first ones bring its columns.
        brought = each.members if stage.chains(place) else (each.source.other,)
    known = (name for stream in brought for name in scan_columns(plan, stream))
    return tuple(dict.fromkeys([*times, *numbers, *(name for name in known if name in own)]))


def operands(plan: PhysicalPlan, stage: Stage) -> Iterator[Operand]:
    """Yield the scan columns that a stage reads itself: of its conditions and keys, and to choose by."""
    for check in stage.checks:
        yield from check.columns
    if isinstance(stage, Join):
        yield from stage.tied
        for gate in stage.gates:
            yield from gate.check.columns
    for source in stage.inputs:
        if source.key is not None:
            stream, code = source.key
            yield from ((stream, number) for number in plan.streams[stream].codes[code].verify)
