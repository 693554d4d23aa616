"""Rows of a worker's state on their way to other workers of the same stage, as many as there will be."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from wjoin.executor.blocks import concatenate
from wjoin.executor.routing import Router
from wjoin.executor.sites.ranges import HeldRows
from wjoin.executor.state.identity import fingerprint
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.state.writing import Writing
from wjoin.executor.step import StageLogic
from wjoin.planner.plan.checks import PredicateCheck
from wjoin.planner.plan.physical import PhysicalPlan


@dataclass(frozen=True)
class StageMove:
    """Stage ``number`` of a plan, as a checkpoint has it and as another one shall have it.

    The plans differ in the routes of their stages and in how many workers share them. ``old_workers`` and
    ``new_workers`` are the workers of the stage.
    """

    before: PhysicalPlan
    after: PhysicalPlan
    number: int
    old_workers: tuple[int, ...]
    new_workers: tuple[int, ...]

    @property
    def fingerprint(self) -> str:
        """The stage's identity, as the new workers have it."""
        return fingerprint(self.after, self.after.stages[self.number])

    @property
    def old_routers(self) -> tuple[Router, ...]:
        """What has brought rows to the workers, by input."""
        return _routers(self.before, self.number, self.old_workers)

    @property
    def new_routers(self) -> tuple[Router, ...]:
        """What brings rows to the new workers, by input."""
        return _routers(self.after, self.number, self.new_workers)

    def logic(self, stretch: int) -> StageLogic:
        """Return the logic that keeps rows for the new workers, and joins none."""
        stage = self.after.stages[self.number]
        checks = tuple(each for each in stage.checks if not isinstance(each, PredicateCheck))
        stage = replace(stage, probes=(), checks=checks)
        return StageLogic(self.after.with_stage(self.number, stage), self.number, stretch)

    def begun(self, logic: StageLogic, held: tuple[tuple[HeldRows, ...], ...] = ()) -> Manifest:
        """Return the manifest of a new worker before it has got anything: it writes by the rules of its plan.

        Those of a first micro-batch are for one that may be repeated by another version. ``held``: what each
        input has at sites.
        """
        fresh = Manifest.fresh(self.fingerprint, len(self.new_workers), len(logic.stage.inputs))
        return replace(fresh, held=held, writing=Writing.of(logic.stage, logic.shapes, logic.stretch))


def _routers(plan: PhysicalPlan, number: int, workers: tuple[int, ...]) -> tuple[Router, ...]:
    stage = plan.stages[number]
    return tuple(Router.to(plan, stage, place, workers) for place in range(len(stage.inputs)))


def own_rows(router: Router, worker: int, kept: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a worker's state that no other worker has as its own: copies are left out.

    Each row is one worker's own, the one that counts it and keeps it (``Role``); or the only one it goes to.
    """
    if router.anywhere:
        return kept
    begins = router.slicing is None or router.slicing.probes
    own = [
        rows
        for other, rows, role in router.parts(kept)
        if other == worker and role.stores and (role.counts or not begins)
    ]
    return concatenate(own) if own else kept.slice(0, 0)


def moved_rows(
    before: Router, after: Router, worker: int, kept: pa.RecordBatch
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield (new worker, the rows that it keeps) of what an old worker kept of one input."""
    own = own_rows(before, worker, kept)
    for to, rows, role in after.parts(own) if own.num_rows else ():
        if role.stores:
            yield to, rows
