"""Joins that tell what has no partner: over random micro-batches, each result once and when it is decided."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.local import LocalWorkers, MemoryStore
from tests.kit.planned import EVENT_TIME, block_of, plan_over, stream_of
from tests.tiers import CUTS, tiers
from wjoin.executor.counts import Counts
from wjoin.executor.state.manifest import written_manifest
from wjoin.executor.state.slices import Stored
from wjoin.executor.state.writing import Cutting
from wjoin.grammar.join_kinds import JoinKind
from wjoin.parts.routes.route import Placement
from wjoin.planner.catalog import Delay, Relation
from wjoin.planner.choose.placements import masters
from wjoin.planner.plan.block_columns import stored_column
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.probes import arranged_stage
from wjoin.planner.plan.stage_kinds import Join

SECOND = 1_000_000
Row = tuple[int, int, int, int]
"""The number of a row, its event time in seconds, its key and its value."""

KERNELS = ("HW", "MW", "NLW", "ADAPTIVE", "ORDERED")
"""What a hint can ask for, at last what needs a condition on the values of two streams."""

KEYED = ("HW", "ADAPTIVE")
"""Those of them that need an equality."""

Result = tuple[int | None, int | None]
"""The numbers of the rows of a result."""


@dataclass(frozen=True)
class Case:
    """A join with windows of ``low`` to ``high`` seconds and delays, and the rows of its micro-batches.

    ``idle``: after how many seconds each stream is silent; ``clocks``: those of the micro-batches;
    ``ends``: whether all streams end with one; ``kernels``: with which each is joined, as after a restart.
    ``keyed``: whether partners have one key; ``length``: the seconds of the slices in which rows that wait
    lie on workers, None where they lie in none.
    """

    kind: JoinKind
    low: int
    high: int
    delays: tuple[int, int]
    batches: Sequence[tuple[Sequence[Row], Sequence[Row]]]
    compared: bool
    idle: tuple[int | None, int | None] = (None, None)
    clocks: Sequence[int] = ()
    ends: Sequence[bool] = ()
    kernels: Sequence[str] = ()
    keyed: bool = True
    length: int | None = None

    def plan(self, kernel: str) -> PhysicalPlan:
        listed = "A.n AS a" if self.kind.one_sided else "A.n AS a, B.n AS b"
        on = on_of("A.k = B.k" * self.keyed, "A.v <= B.v" * self.compared)
        first, second = (f"DELAY OF INTERVAL {each} SECONDS" for each in self.delays)
        planned = plan_over(
            f"""SELECT {listed} FROM a WATERMARK ts {first} AS A {self.kind.value.removesuffix(" OUTER")} JOIN
                b WATERMARK ts {second} AS B {on}
                WINDOW (A, B) BETWEEN {self.low} SECONDS AND {self.high} SECONDS""",
            [
                silent_after(stream_of({"n": "bigint", "k": "bigint", "v": "bigint"}), each)
                for each in self.idle
            ],
            {"ALGORITHM": kernel if self.keyed or kernel not in KEYED else "MW"},
        )
        return in_slices(planned.physical, self.length)

    def meet(self, first: Row, second: Row) -> bool:
        inside = self.low <= second[1] - first[1] <= self.high
        alike = not self.keyed or first[2] == second[2]
        return alike and inside and (not self.compared or first[3] <= second[3])


def on_of(*conditions: str) -> str:
    """Return an ON with conditions, as far as there are such."""
    asked = " AND ".join(filter(None, conditions))
    return f"ON {asked}" if asked else ""


def in_slices(plan: PhysicalPlan, length: int | None) -> PhysicalPlan:
    """Return a plan whose joins without a key have the rows that wait in slices of so many seconds."""
    for number, stage in enumerate(plan.stages if length is not None else ()):
        if isinstance(stage, Join) and len(waiting := masters(stage)):
            where = Placement("atr", length=(length or 0) * SECOND, master=waiting[0])
            plan = plan.with_stage(number, arranged_stage(plan, replace(stage, placement=where), None))
    return plan


def silent_after(relation: Relation, idle: int | None) -> Relation:
    delay = Delay(0, idle_after=None if idle is None else idle * SECOND)
    return replace(relation, delays={EVENT_TIME: delay})


@st.composite
def cases(draw: st.DrawFn) -> Case:
    low = draw(st.integers(-6, 6))
    numbers = iter(range(10_000))

    def rows(step: int) -> list[Row]:
        if draw(st.integers(0, 2)) == 0:
            return []
        found = draw(
            st.lists(st.tuples(st.integers(-8, 8), st.integers(0, 2), st.integers(0, 2)), max_size=6)
        )
        return [(next(numbers), 5 * step + time, key, value) for time, key, value in found]

    idle = st.none() | st.integers(1, 12)
    steps, compared = draw(st.integers(1, 7)), draw(st.booleans())
    kernels = st.sampled_from(KERNELS if compared else KERNELS[:-1])
    return Case(
        draw(st.sampled_from([each for each in JoinKind if each is not JoinKind.INNER and not each.asof])),
        low,
        low + draw(st.integers(0, 8)),
        (draw(st.integers(0, 8)), draw(st.integers(0, 8))),
        [(rows(step), rows(step)) for step in range(steps)],
        compared,
        (draw(idle), draw(idle)),
        # A clock may be set back.
        list(itertools.accumulate(draw(st.lists(st.integers(-2, 9), min_size=steps, max_size=steps)))),
        draw(st.lists(st.integers(0, 5).map(lambda each: each == 0), min_size=steps, max_size=steps)),
        draw(st.lists(kernels, min_size=steps, max_size=steps)),
        draw(st.booleans()),
        draw(st.none() | st.sampled_from([1, 3, 10])),
    )


@dataclass
class Oracle:
    """What each micro-batch must give, by the definition: rows that are not late, and what is decided."""

    case: Case
    seen: list[float | None] = field(default_factory=lambda: [None, None])
    rows: tuple[list[Row], list[Row]] = field(default_factory=lambda: ([], []))
    given: set[Result] = field(default_factory=set)
    came: list[int | None] = field(default_factory=lambda: [None, None])

    def mark(self, side: int) -> float:
        seen = self.seen[side]
        return float("-inf") if seen is None else seen - self.case.delays[side]

    def take(self, batch: tuple[Sequence[Row], Sequence[Row]], clock: int, *, ended: bool) -> Counter[Result]:
        marks = [self.mark(0), self.mark(1)]
        for side, rows in enumerate(batch):
            self.rows[side].extend(row for row in rows if row[1] >= marks[side])
            times = [row[1] for row in rows if row[1] >= (self.seen[side] or row[1])]
            self.seen[side] = max(times, default=self.seen[side])
            last = self.came[side]
            self.came[side] = clock if last is None or (rows and clock > last) else last
        self.go_on(clock)
        if ended and self.case.kind.alone:
            self.end()
        now = set(self._results())
        new = now - self.given
        self.given |= now
        return Counter(new)

    def go_on(self, clock: int) -> None:
        """Have the watermark of one stream that is silent go on with that of the other, which is not."""
        silent = [
            limit is not None and clock - (last or 0) >= limit
            for limit, last in zip(self.case.idle, self.came, strict=True)
        ]
        if silent in ([True, False], [False, True]):
            quiet = silent.index(True)
            if self.mark(1 - quiet) > self.mark(quiet):
                self.seen[quiet] = self.mark(1 - quiet) + self.case.delays[quiet]

    def end(self) -> None:
        """Have the watermarks pass all that the rows without a partner wait for."""
        reach = (self.case.high, -self.case.low)
        seen = [*self.seen]
        for side in self.case.kind.preserved:
            last = seen[side]
            if last is not None:
                passed = last + reach[side] + 1e-6 + self.case.delays[1 - side]
                known = seen[1 - side]
                self.seen[1 - side] = passed if known is None else max(passed, known)

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


def block(plan: PhysicalPlan, stream: int, rows: Sequence[Sequence[int | None]]) -> pa.RecordBatch:
    columns = (
        [np.array(each, np.int64) for each in zip(*rows, strict=True)]
        if rows
        else [np.zeros(0, np.int64)] * 4
    )
    number, time, key, value = columns
    return block_of(plan, stream, {"n": number, "ts": time * SECOND, "k": key, "v": value})


@pytest.mark.parametrize(("partitions", "stretch"), CUTS)
def test_every_result_comes_once_in_the_micro_batch_that_decides_it(partitions: int, stretch: int) -> None:
    """Also where a micro-batch is joined in many stretches of event time."""

    @given(cases())
    def run(case: Case) -> None:
        plan = case.plan("HW")
        workers, oracle = LocalWorkers(plan, partitions, stretch), Oracle(case)
        for worker in workers._stages[0]:
            worker.store = Stamped()
        for batch, clock, ended, kernel in zip(
            case.batches, case.clocks, case.ends, case.kernels, strict=True
        ):
            workers.change(case.plan(kernel))
            blocks = {stream: block(plan, stream, rows) for stream, rows in enumerate(batch) if rows}
            found = found_in(plan, workers.run(blocks, Counts(), clock * SECOND, ended=ended))
            assert found == oracle.take(batch, clock, ended=ended)
            # As after a restart.
            for worker in workers._stages[0]:
                worker.manifest = written_manifest(worker.manifest.encode())

    run()


def assert_over_restarts(case: Case, kernels: Sequence[str]) -> None:
    """Compare the results of each micro-batch, which a restart with another kernel comes before."""
    workers, oracle = LocalWorkers(case.plan("MW"), 2), Oracle(case)
    for worker in workers._stages[0]:
        worker.store = Stamped()
    for batch, kernel in zip(case.batches, kernels, strict=True):
        plan = case.plan(kernel)
        workers.change(plan)
        for worker in workers._stages[0]:
            worker.manifest = written_manifest(worker.manifest.encode())
        blocks = {stream: block(plan, stream, rows) for stream, rows in enumerate(batch) if rows}
        assert found_in(plan, workers.run(blocks, Counts())) == oracle.take(batch, 0, ended=False)


@pytest.mark.parametrize("keyed", tiers([True, False], long=[False]))
def test_a_slice_of_another_kernel_has_its_marks_in_its_own_order(keyed: bool) -> None:
    """The first row has the greatest value; of the three only the last one has a partner."""
    first = [(0, 1, 1, 2), (1, 2, 1, 1), (2, 3, 1, 0)]
    partner, end = [(3, 4, 1, 0)], [(4, 99, 1, 9)]
    # The rules of the first micro-batch are the same for all kernels.
    batches: list[tuple[list[Row], list[Row]]] = [(first, []), ([], []), ([], partner), ([], end)]
    case = Case(JoinKind.LEFT, -5, 5, (0, 0), batches, compared=True, keyed=keyed)
    for one, other in itertools.permutations(KERNELS, 2):
        assert_over_restarts(case, [one, one, other, one])
