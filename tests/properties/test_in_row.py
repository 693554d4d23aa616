"""Bounds in the row: each result once, in the micro-batch that decides it; a row is kept to its own end."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.local import LocalWorkers
from tests.kit.planned import block_of, plan_over, stream_of
from tests.properties.test_outer import SECOND, Result, Stamped, found_in
from tests.tiers import CUTS
from wjoin.executor.counts import Counts
from wjoin.executor.state.manifest import written_manifest
from wjoin.grammar.join_kinds import JoinKind
from wjoin.planner.plan.physical import PhysicalPlan

Row = tuple[int, int, int, int | None]
"""The number of a row, its event time in seconds, its key, and for how many seconds it is; None: unknown."""

KERNELS = ("HW", "MW", "NLW", "ADAPTIVE")
STREAM = stream_of({"n": "bigint", "k": "bigint", "e": "timestamp"})
KINDS = [each for each in JoinKind if not each.asof]


@dataclass(frozen=True)
class Case:
    """A join of rows of A with those of B that come while these are, at most ``limit`` seconds."""

    kind: JoinKind
    limit: int
    delays: tuple[int, int]
    batches: Sequence[tuple[Sequence[Row], Sequence[Row]]]
    kernels: Sequence[str]
    keyed: bool

    def plan(self, kernel: str) -> PhysicalPlan:
        listed = "A.n AS a" if self.kind.one_sided else "A.n AS a, B.n AS b"
        first, second = (f"DELAY OF INTERVAL {each} SECONDS" for each in self.delays)
        kind = "JOIN" if self.kind is JoinKind.INNER else f"{self.kind.value.removesuffix(' OUTER')} JOIN"
        on = "ON A.k = B.k" if self.keyed else ""
        return plan_over(
            f"""SELECT {listed} FROM a WATERMARK ts {first} AS A {kind} b WATERMARK ts {second} AS B {on}
                DWINDOW (A, B) = A.e - A.ts AT MOST {self.limit} SECONDS""",
            [STREAM, STREAM],
            {"ALGORITHM": kernel if self.keyed or kernel in ("MW", "NLW") else "MW"},
        ).physical

    def end(self, row: Row) -> int:
        """Return after which time a row of A meets no row of B: before its own where it says nothing."""
        return -100 if row[3] is None else row[1] + min(row[3], self.limit)

    def meet(self, first: Row, second: Row) -> bool:
        alike = not self.keyed or first[2] == second[2]
        return alike and first[1] <= second[1] <= self.end(first)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    numbers = iter(range(10_000))
    says = st.none() | st.integers(-3, 12)

    def rows(step: int) -> list[Row]:
        drawn = st.lists(st.tuples(st.integers(-6, 6), st.integers(0, 1), says), max_size=6)
        return [(next(numbers), 4 * step + time, key, end) for time, key, end in draw(drawn)]

    steps = draw(st.integers(1, 8))
    return Case(
        draw(st.sampled_from(KINDS)),
        draw(st.integers(0, 9)),
        (draw(st.integers(0, 6)), draw(st.integers(0, 6))),
        [(rows(step), rows(step)) for step in range(steps)],
        draw(st.lists(st.sampled_from(KERNELS), min_size=steps, max_size=steps)),
        draw(st.booleans()),
    )


@dataclass
class Oracle:
    """What each micro-batch must give, and which rows of A it may keep, by the definition."""

    case: Case
    seen: list[float] = field(default_factory=lambda: [-math.inf, -math.inf])
    rows: tuple[list[Row], list[Row]] = field(default_factory=lambda: ([], []))
    given: set[Result] = field(default_factory=set)

    def mark(self, side: int) -> float:
        return self.seen[side] - self.case.delays[side]

    def take(self, batch: tuple[Sequence[Row], Sequence[Row]]) -> Counter[Result]:
        marks = [self.mark(0), self.mark(1)]
        for side, rows in enumerate(batch):
            self.rows[side].extend(row for row in rows if row[1] >= marks[side])
            self.seen[side] = max([self.seen[side], *(row[1] for row in rows)])
        now = set(self._results())
        new = now - self.given
        self.given |= now
        return Counter(new)

    def live(self) -> int:
        """Return how many rows of A can still meet a row of B."""
        return sum(self.case.end(row) >= self.mark(1) for row in self.rows[0])

    def _results(self) -> Iterator[Result]:
        kind = self.case.kind
        for first in self.rows[0]:
            partners = [second for second in self.rows[1] if self.case.meet(first, second)]
            if kind.pairs:
                yield from ((first[0], second[0]) for second in partners)
            if kind is JoinKind.SEMI and partners:
                yield first[0], None
            if kind.alone and 0 in kind.preserved and not partners and self.case.end(first) < self.mark(1):
                yield first[0], None
        for second in self.rows[1] if 1 in kind.preserved else ():
            partners = [first for first in self.rows[0] if self.case.meet(first, second)]
            if not partners and second[1] < self.mark(0):
                yield None, second[0]


def block(plan: PhysicalPlan, stream: int, rows: Sequence[Row]) -> pa.RecordBatch:
    number, time, key, _ = (
        np.array(each, np.int64) for each in zip(*((*r[:3], 0) for r in rows), strict=True)
    )
    ends = [None if says is None else (at + says) * SECOND for _, at, _, says in rows]
    said = {"e": pa.array(ends, pa.timestamp("us", "UTC"))}
    return block_of(plan, stream, {"n": number, "ts": time * SECOND, "k": key, **said})


@pytest.mark.parametrize(("partitions", "stretch"), CUTS)
def test_every_result_comes_once_in_the_micro_batch_that_decides_it(partitions: int, stretch: int) -> None:
    """Also after restarts with other kernels, and where a micro-batch is joined in many stretches."""

    @given(cases())
    def run(case: Case) -> None:
        workers, oracle = LocalWorkers(case.plan("MW"), partitions, stretch), Oracle(case)
        for worker in workers._stages[0]:
            worker.store = Stamped()
        for batch, kernel in zip(case.batches, case.kernels, strict=True):
            plan = case.plan(kernel)
            workers.change(plan)
            blocks = {stream: block(plan, stream, rows) for stream, rows in enumerate(batch) if rows}
            assert found_in(plan, workers.run(blocks, Counts())) == oracle.take(batch)
            kept = sum(each.rows for worker in workers._stages[0] for each in worker.manifest.slices[0])
            # Of a worker's rows a quarter may be dead.
            assert kept <= 1.25 * oracle.live()
            for worker in workers._stages[0]:
                worker.manifest = written_manifest(worker.manifest.encode())

    run()


def test_rows_leave_before_the_limit() -> None:
    """Of ten rows one is for an hour, the others for a second."""
    case = Case(JoinKind.INNER, 3600, (0, 0), [], [], keyed=True)
    workers = LocalWorkers(case.plan("HW"))
    rows = [(number, 0, 0, 3600 if number == 0 else 1) for number in range(10)]
    workers.run({0: block(case.plan("HW"), 0, rows)}, Counts())
    workers.run({1: block(case.plan("HW"), 1, [(99, 1, 5, None)])}, Counts())
    assert len(workers.manifest(0).slices[0]) == 1
    assert sum(each.rows for each in workers.manifest(0).slices[0]) == 10
    workers.run({1: block(case.plan("HW"), 1, [(99, 2, 5, None)])}, Counts())
    assert sum(each.rows for each in workers.manifest(0).slices[0]) == 1
