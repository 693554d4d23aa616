"""Joins that wait and are wrong in one way each: what compares micro-batches with the definition notices."""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from tests.kit.local import LocalWorkers
from tests.properties.test_outer import SECOND, Case, Oracle, Row, Stamped, block, found_in
from wjoin.executor import step
from wjoin.executor.counts import Counts
from wjoin.executor.partners import KeptPartners
from wjoin.executor.state.kept_rows import Keeper
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.state.marks import MATCHED, with_marks
from wjoin.executor.state.slices import Change, Slice, maintain
from wjoin.executor.state.writing import Writing
from wjoin.executor.step import MicroBatch, StageLogic
from wjoin.executor.waits import Waits
from wjoin.grammar.join_kinds import JoinKind
from wjoin.parts.kernels.runs import RunShape, SortedRun

pytestmark = pytest.mark.long

KINDS = (JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI)


def case_of(kind: JoinKind) -> Case:
    """Return a case of many small micro-batches: their slices are merged while rows still wait."""
    chance, numbers = random.Random(4), iter(range(10_000))

    def rows(batch: int) -> list[Row]:
        times = (2 * batch + chance.randint(-3, 3) for _ in range(6))
        return [(next(numbers), time, chance.randint(0, 40), 0) for time in times]

    batches = [(rows(batch), rows(batch)) for batch in range(40)]
    return Case(kind, -4, 12, (3, 3), batches, compared=False)


class Lasting(Stamped):
    """Slices that are all there when a micro-batch is repeated."""

    def remove(self, stored: Slice) -> None:
        """Keep it."""


def check(kind: JoinKind, *, repeated: bool = False) -> None:
    """Compare each micro-batch with the definition; ``repeated``: as after a crash before its commit."""
    case = case_of(kind)
    plan = case.plan("HW")
    workers, oracle = LocalWorkers(plan, 2), Oracle(case)
    for worker in workers._stages[0]:
        worker.store = Lasting()
    for batch in case.batches:
        blocks = {stream: block(plan, stream, rows) for stream, rows in enumerate(batch)}
        expected = oracle.take(batch, 0, ended=False)
        committed = [worker.manifest for worker in workers._stages[0]]
        for attempt in range(1 + repeated):
            for worker, manifest in zip(workers._stages[0], committed, strict=True):
                if attempt:
                    worker.manifest = manifest_of_last(worker.manifest, manifest)
            assert found_in(plan, workers.run(blocks, Counts())) == expected


def manifest_of_last(written: Manifest, committed: Manifest) -> Manifest:
    """Return the manifest that a repeated micro-batch begins with: what is committed."""
    del written
    return committed


@contextmanager
def marks_lost() -> Iterator[None]:
    """Have the rows of slices that are merged lose their marks."""

    def losing(
        slices: tuple[Slice, ...],
        arrived: SortedRun | None,
        shape: RunShape,
        load: Callable[[Slice], SortedRun],
        *rules: Any,
    ) -> Change:
        def bare(each: Slice) -> SortedRun:
            run = load(each)
            return (
                with_marks(run, shape, np.zeros(run.rows, bool)) if MATCHED in run.batch.schema.names else run
            )

        return maintain(slices, arrived, shape, bare, *rules)

    with patch.object(step, "maintain", losing):
        yield


def decided_by(
    change: Callable[[StageLogic, Writing, MicroBatch, KeptPartners], KeptPartners],
) -> AbstractContextManager[object]:
    """Return what has a micro-batch decide which rows have no partner in another way."""
    known = StageLogic._waits

    def waits(
        logic: StageLogic,
        batch: MicroBatch,
        writing: Writing,
        slices: list[list[Slice]],
        keepers: list[Keeper],
    ) -> list[Waits]:
        found = known(logic, batch, writing, slices, keepers)
        return [
            change(logic, writing, batch, each) if isinstance(each, KeptPartners) else each for each in found
        ]

    return patch.object(StageLogic, "_waits", waits)


def moved(seconds: int) -> AbstractContextManager[object]:
    """Have rows be decided as if the streams were so far ahead."""

    def change(logic: StageLogic, writing: Writing, batch: MicroBatch, known: KeptPartners) -> KeptPartners:
        before, after = (
            logic._keepers(writing, {stream: time + seconds * SECOND for stream, time in seen.items()})
            for seen in (batch.before.seen, batch.seen)
        )
        return replace(known, before=before, after=after)

    return decided_by(change)


def decided_again() -> AbstractContextManager[object]:
    """Have rows be decided that were so before the micro-batch, and still lie in the state."""

    def change(logic: StageLogic, writing: Writing, batch: MicroBatch, known: KeptPartners) -> KeptPartners:
        return replace(known, before=logic._keepers(writing, {}))

    return decided_by(change)


MUTATIONS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "a mark is lost where slices are merged": marks_lost,
    "a row is decided too early": lambda: moved(2),
    "a row is decided too late": lambda: moved(-2),
    "a row is decided twice": decided_again,
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_wrong_decision_is_noticed(kind: JoinKind, mutation: str) -> None:
    check(kind)
    with MUTATIONS[mutation](), pytest.raises(AssertionError):
        check(kind)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_micro_batch_that_is_repeated_decides_the_same(kind: JoinKind) -> None:
    """And one that went on from what its first attempt has written is noticed."""
    check(kind, repeated=True)

    def uncommitted(written: Manifest, committed: Manifest) -> Manifest:
        del committed
        return written

    with patch(f"{__name__}.manifest_of_last", uncommitted), pytest.raises(AssertionError):
        check(kind, repeated=True)
