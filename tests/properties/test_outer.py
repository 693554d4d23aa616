"""Joins that tell what has no partner: over random micro-batches, each result once and when it is decided."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.local import LocalWorkers, MemoryStore
from tests.kit.planned import block_of, plan_over, stream_of
from wjoin.executor.counts import Counts
from wjoin.executor.state.manifest import written_manifest
from wjoin.executor.state.slices import Stored
from wjoin.executor.state.writing import Cutting
from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.grammar.join_kinds import JoinKind
from wjoin.planner.plan.block_columns import stored_column
from wjoin.planner.plan.physical import PhysicalPlan

SECOND = 1_000_000
Row = tuple[int, int, int, int]
"""The number of a row, its event time in seconds, its key and its value."""

Result = tuple[int | None, int | None]
"""The numbers of the rows of a result."""


@dataclass(frozen=True)
class Case:
    """A join with windows of ``low`` to ``high`` seconds and delays, and the rows of its micro-batches."""

    kind: JoinKind
    low: int
    high: int
    delays: tuple[int, int]
    batches: Sequence[tuple[Sequence[Row], Sequence[Row]]]
    compared: bool

    @property
    def plan(self) -> PhysicalPlan:
        listed = "A.n AS a" if self.kind.one_sided else "A.n AS a, B.n AS b"
        more = " AND A.v <= B.v" if self.compared else ""
        first, second = (f"DELAY OF INTERVAL {each} SECONDS" for each in self.delays)
        return plan_over(
            f"""SELECT {listed} FROM a WATERMARK ts {first} AS A {self.kind.value.removesuffix(" OUTER")} JOIN
                b WATERMARK ts {second} AS B ON A.k = B.k{more}
                WINDOW (A, B) BETWEEN {self.low} SECONDS AND {self.high} SECONDS""",
            [stream_of({"n": "bigint", "k": "bigint", "v": "bigint"})] * 2,
        ).physical

    def meet(self, first: Row, second: Row) -> bool:
        inside = self.low <= second[1] - first[1] <= self.high
        return first[2] == second[2] and inside and (not self.compared or first[3] <= second[3])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    low = draw(st.integers(-6, 6))
    numbers = iter(range(10_000))

    def rows(step: int) -> list[Row]:
        found = draw(
            st.lists(st.tuples(st.integers(-8, 8), st.integers(0, 2), st.integers(0, 2)), max_size=6)
        )
        return [(next(numbers), 5 * step + time, key, value) for time, key, value in found]

    return Case(
        draw(st.sampled_from([each for each in JoinKind if each is not JoinKind.INNER and not each.asof])),
        low,
        low + draw(st.integers(0, 8)),
        (draw(st.integers(0, 8)), draw(st.integers(0, 8))),
        [(rows(step), rows(step)) for step in range(draw(st.integers(1, 7)))],
        draw(st.booleans()),
    )


@dataclass
class Oracle:
    """What each micro-batch must give, by the definition: rows that are not late, and what is decided."""

    case: Case
    seen: list[int | None] = field(default_factory=lambda: [None, None])
    rows: tuple[list[Row], list[Row]] = field(default_factory=lambda: ([], []))
    given: set[Result] = field(default_factory=set)

    def mark(self, side: int) -> float:
        seen = self.seen[side]
        return float("-inf") if seen is None else seen - self.case.delays[side]

    def take(self, batch: tuple[Sequence[Row], Sequence[Row]]) -> Counter[Result]:
        marks = [self.mark(0), self.mark(1)]
        for side, rows in enumerate(batch):
            self.rows[side].extend(row for row in rows if row[1] >= marks[side])
            times = [row[1] for row in rows if row[1] >= (self.seen[side] or row[1])]
            self.seen[side] = max(times, default=self.seen[side])
        now = set(self._results())
        new = now - self.given
        self.given |= now
        return Counter(new)

    def _results(self) -> Iterator[Result]:
        kind = self.case.kind
        for first in self.rows[0]:
            partners = [second for second in self.rows[1] if self.case.meet(first, second)]
            if kind.pairs:
                yield from ((first[0], second[0]) for second in partners)
            if kind is JoinKind.SEMI and partners:
                yield first[0], None
            if (
                kind.alone
                and 0 in kind.preserved
                and not partners
                and first[1] + self.case.high < self.mark(1)
            ):
                yield first[0], None
        for second in self.rows[1] if 1 in kind.preserved else ():
            partners = [first for first in self.rows[0] if self.case.meet(first, second)]
            if not partners and second[1] - self.case.low < self.mark(0):
                yield None, second[0]


class Stamped(MemoryStore):
    """Slices with a digest, as a manifest that is read wants one."""

    def save(self, name: str, batch: pa.RecordBatch, cutting: Cutting) -> Stored:
        """Keep a slice under a new name."""
        return Stored(super().save(name, batch, cutting).size, "0" * 32)


def found_in(plan: PhysicalPlan, blocks: Sequence[pa.RecordBatch]) -> Counter[Result]:
    """Return the results in blocks, by the numbers of their rows."""
    (output,) = plan.outputs
    columns = {stream: stored_column(plan, stream, number).name for stream, number in output.columns}
    found: Counter[Result] = Counter()
    for block in blocks:
        sides = [
            block.column(columns[side]).to_pylist()
            if side in columns and columns[side] in block.schema.names
            else [None] * block.num_rows
            for side in (0, 1)
        ]
        found.update(zip(*sides, strict=True))
    return found


def block(plan: PhysicalPlan, stream: int, rows: Sequence[Row]) -> pa.RecordBatch:
    columns = (
        [np.array(each, np.int64) for each in zip(*rows, strict=True)]
        if rows
        else [np.zeros(0, np.int64)] * 4
    )
    number, time, key, value = columns
    return block_of(plan, stream, {"n": number, "ts": time * SECOND, "k": key, "v": value})


@pytest.mark.parametrize(("partitions", "stretch"), [(1, STRETCH_BYTES), (3, STRETCH_BYTES), (1, 200)])
def test_every_result_comes_once_in_the_micro_batch_that_decides_it(partitions: int, stretch: int) -> None:
    """Also where a micro-batch is joined in many stretches of event time."""

    @given(cases())
    def run(case: Case) -> None:
        plan = case.plan
        workers, oracle = LocalWorkers(plan, partitions, stretch), Oracle(case)
        for worker in workers._stages[0]:
            worker.store = Stamped()
        for batch in case.batches:
            blocks = {stream: block(plan, stream, rows) for stream, rows in enumerate(batch) if rows}
            found = found_in(plan, workers.run(blocks, Counts()))
            assert found == oracle.take(batch)
            # As after a restart.
            for worker in workers._stages[0]:
                worker.manifest = written_manifest(worker.manifest.encode())

    run()
