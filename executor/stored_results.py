"""The results among rows that are all in a worker's state: the history of a statement that came later.

A worker makes them once, in its first micro-batch with the statement, of its state before that. Its manifest
says so, and is committed with the results: a micro-batch that is repeated makes them again, a later one does
not.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa

from wjoin.executor.blocks import for_output
from wjoin.executor.report import Report
from wjoin.executor.state.kept_rows import live, watermark
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.state.slices import SliceStore, read_slice, still_live
from wjoin.executor.step import StageLogic
from wjoin.parts.kernels.runs import SortedRun
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.sets.with_history import among_stored

State = tuple[Manifest, SliceStore]
"""What a worker has stored."""


def stored_results(
    logic: StageLogic, place: int, workers: int, state: Callable[[int], State]
) -> Iterator[pa.RecordBatch]:
    """Yield the results of stored rows for the outputs that have not had them yet, each for its output.

    ``place`` is that of the worker among so many ``workers``; ``state`` returns that of each.
    """
    waiting = _waiting(logic, state(place)[0])
    runs = _met_runs(logic, place, workers, state) if waiting else []
    for number in waiting if runs and all(runs) else ():
        plan = among_stored(logic.plan, logic.plan.outputs[number])
        joining = replace(logic, plan=plan)
        # What leaves the stage has the columns of all outputs.
        making = replace(logic, plan=replace(plan, outputs=logic.plan.outputs))
        nothing: list[SortedRun | None] = [None] * len(runs)
        for run in runs[-1]:
            for probe, found in joining.join(runs, [*nothing[:-1], run], nothing, Report()):
                for block in making.maker.assembler(probe).blocks(found):
                    yield for_output(block, number)


def with_histories(logic: StageLogic, manifest: Manifest) -> Manifest:
    """Return a manifest that says of all outputs that they have had the results of stored rows."""
    outputs = logic.plan.outputs
    told = (outputs[number].sink.lower() for number in _waiting(logic, manifest))
    return replace(manifest, histories=(*manifest.histories, *told))


def _waiting(logic: StageLogic, manifest: Manifest) -> list[int]:
    """Return the numbers of the outputs that shall have the results of stored rows, and have not."""
    if logic.number != len(logic.plan.stages) - 1:
        return []
    return [
        number
        for number, each in enumerate(logic.plan.outputs)
        if each.history and each.sink.lower() not in manifest.histories
    ]


def _met_runs(
    logic: StageLogic, place: int, workers: int, state: Callable[[int], State]
) -> list[list[SortedRun]]:
    """Return the rows of a worker's last input, and those of the others that they can meet, by input.

    Where rows visit workers on which they are not stored, those are on any one of them, or on one of each
    group that has copies of all.
    """
    own = _live_runs(logic, *state(place))
    placement = logic.stage.placement
    if not ROUTES[placement.route].visits:
        return own
    groups = min(placement.copies, workers)
    if place % groups:
        return []
    each = [_live_runs(logic, *state(other)) for other in range(0, workers, groups)]
    met = [[run for runs in each for run in runs[number]] for number in range(len(own) - 1)]
    return [*met, own[-1]]


def _live_runs(logic: StageLogic, manifest: Manifest, store: SliceStore) -> list[list[SortedRun]]:
    """Return the rows of each input that a later row could still join, without what else is in its slices."""
    streams = logic.plan.streams
    marks = {each: watermark(manifest.seen.get(each), streams[each].delay) for each in logic.stage.members}
    retentions = () if manifest.writing is None else manifest.writing.retentions
    inputs = zip(logic.stage.inputs, logic.shapes, retentions, manifest.slices, strict=bool(retentions))
    return [
        [
            rest
            for each in slices
            if (rest := still_live(read_slice(each, shape, store), shape, partial(live, rules, edge, marks)))
        ]
        for edge, shape, rules, slices in inputs
    ]
