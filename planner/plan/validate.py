"""What every plan keeps to, whatever step has made it."""

from collections.abc import Iterable, Iterator

from wjoin.parts.kernels.registry import KERNELS
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.plan.block_columns import meeting_name
from wjoin.planner.plan.checks import Operand
from wjoin.planner.plan.edges import operands, scan_columns
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.probes import kept_for, origins
from wjoin.planner.plan.stage_kinds import Stage, StageEdge
from wjoin.planner.plan.steps import Probe


def validate(plan: PhysicalPlan) -> None:
    """Raise ValueError where a plan names what it does not have, or leaves out what a result needs.

    What follows from the choices for a stage (``planner.plan.probes``) is checked once it is there.
    """
    for problem in _problems(plan):
        raise ValueError(f"not a plan: {problem}")


def _problems(plan: PhysicalPlan) -> Iterator[str]:
    yield from _of_windows(plan)
    for number, scan in enumerate(plan.streams):
        named = [column for code in scan.codes for column in code.verify]
        named += [] if scan.site is None else [scan.site.number, *scan.site.late]
        yield from _missing(plan, ((number, column) for column in named), scan.alias)
    for output in plan.outputs:
        yield from _missing(plan, output.columns, "an output")
    for number, stage in enumerate(plan.stages):
        yield from (f"stage {number + 1}: {each}" for each in _of_stage(plan, number, stage))
    if plan.stages and {member for stage in plan.stages for member in stage.members} != set(plan.staged):
        yield "the stages do not have all streams that are joined"
    read = {each.stage for stage in plan.stages for each in stage.inputs}
    for number in set(range(len(plan.stages) - 1)) - read:
        yield f"nothing reads the results of stage {number + 1}"


def _of_windows(plan: PhysicalPlan) -> Iterator[str]:
    for each in (
        plan.windows,
        *plan.branches,
        *(one for output in plan.outputs for one in output.windows),
    ):
        if each.size != len(plan.streams):
            yield f"windows of {each.size} streams, of which there are {len(plan.streams)}"
    if not all(plan.windows.includes(each) for each in plan.branches):
        yield "an alternative of the windows is outside their hull"


def _missing(plan: PhysicalPlan, columns: Iterable[Operand], who: str) -> Iterator[str]:
    """Yield what is named of scan columns and is not there."""
    for stream, column in columns:
        if not 0 <= stream < len(plan.streams) or not 0 <= column < len(plan.streams[stream].columns):
            yield f"{who} reads column {column} of stream {stream}, which is not there"


def _of_stage(plan: PhysicalPlan, number: int, stage: Stage) -> Iterator[str]:
    if stage.placement.route not in ROUTES or not stage.kernels or not set(stage.kernels) <= KERNELS.keys():
        yield f"no such route and kernels: {stage.placement.route}, {', '.join(stage.kernels)}"
    for each in stage.inputs:
        yield from _of_input(plan, number, stage, each)
    yield from _missing(plan, operands(plan, stage), "a check")
    if stage.probes:
        yield from _of_probes(plan, stage)


def _of_input(plan: PhysicalPlan, number: int, stage: Stage, each: StageEdge) -> Iterator[str]:
    if each.stage is not None and not 0 <= each.stage < number:
        yield f"an input is the result of stage {each.stage + 1}"
    elif not set(each.members) <= set(plan.staged if each.stage is None else plan.stages[each.stage].members):
        yield "an input has streams that do not come to it"
    if each.key is not None:
        stream, code = each.key
        if stream not in each.members or not 0 <= code < len(plan.streams[stream].codes):
            yield f"an input has no key code {code} of stream {stream}"
    if each.index is not None and each.index not in stage.bands:
        yield "a band that is not checked orders the rows of an input"
    known = {meeting_name(each), *(name for stream in each.members for name in scan_columns(plan, stream))}
    if unknown := set(each.columns) - known:
        yield f"an input has no columns {', '.join(sorted(unknown))}"


def _of_probes(plan: PhysicalPlan, stage: Stage) -> Iterator[str]:
    begun = {probe.origin for probe in stage.probes}
    if begun != set(origins(stage, streaming=plan.streaming)):
        yield f"new rows of inputs {sorted(begun)} begin results"
    for probe in stage.probes:
        yield from _of_probe(stage, probe)
    for number, each in enumerate(stage.inputs):
        kept = {bound.stream for bound in each.retention}
        if each.stored and plan.streaming and not set(kept_for(stage, number)) <= kept:
            yield f"rows of input {number} are not kept for all that can meet them"


def _of_probe(stage: Stage, probe: Probe) -> Iterator[str]:
    if set(probe.order) not in map(set, stage.chains(probe.origin)):
        yield f"new rows of input {probe.origin} meet inputs {list(probe.order)}"
        return
    own = set(stage.inputs[probe.origin].members)
    joined = own.union(*(stage.inputs[number].members for number in probe.order))
    done = {check for step in probe.steps for check in step.checks}
    checked = {each for each in stage.checks if each.tested}
    due = {each for each in checked if each.streams <= joined and not each.streams <= own}
    if done - checked or due - done:
        left = "decided" if any(each.decides for each in due - done) else "checked"
        yield f"new rows of input {probe.origin} are not {left} as the stage asks"
