"""Silent streams in several stages: what is late is so for all of them, and all other rows meet."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.local import LocalWorkers
from tests.kit.planned import EVENT_TIME, block_of, plan_over, stream_of
from tests.tiers import examples, tiers
from wjoin.executor.arrivals import Arrivals
from wjoin.executor.counts import Counts
from wjoin.executor.marks import Marks
from wjoin.executor.report import Report
from wjoin.executor.silence import with_later
from wjoin.planner.catalog import Delay
from wjoin.planner.plan.block_columns import stored_column
from wjoin.planner.plan.physical import PhysicalPlan

SECOND = 1_000_000
WIDTH = 6

STATEMENTS = {
    # Two stages, on two keys.
    "keys": "SELECT A.n, B.n, C.n FROM a A, b B, c C WINDOW = 6 SECONDS WHERE A.k = B.k AND B.j = C.j",
    # In hops: no key.
    "hops": """SELECT /*+ PLAN(PSP) */ A.n, B.n, C.n FROM a A, b B, c C WINDOW = 6 SECONDS
               WHERE A.k <= B.k AND B.k <= A.k AND B.j <= C.j AND C.j <= B.j""",
}

Row = tuple[int, int, int, int]
"""The number of a row, its event time in seconds, and its keys."""


def plan_of(statement: str, delays: Sequence[int], idle: Sequence[int | None]) -> PhysicalPlan:
    """Return a plan over streams that are silent after some seconds."""
    relation = stream_of({"n": "bigint", "k": "bigint", "j": "bigint"})
    told = [
        Delay(delay * SECOND, idle_after=None if limit is None else limit * SECOND)
        for delay, limit in zip(delays, idle, strict=True)
    ]
    return plan_over(statement, [replace(relation, delays={EVENT_TIME: each}) for each in told]).physical


@dataclass
class Model:
    """By the definition: the rows that are on time, and how far each stream has come."""

    delays: Sequence[int]
    idle: Sequence[int | None]
    marks: list[float] = field(default_factory=lambda: [float("-inf")] * 3)
    came: list[float | None] = field(default_factory=lambda: [None] * 3)
    rows: list[list[Row]] = field(default_factory=lambda: [[], [], []])

    def take(self, batch: Sequence[Sequence[Row]], clock: int) -> None:
        """Take a micro-batch."""
        for stream, rows in enumerate(batch):
            self.rows[stream] += [row for row in rows if row[1] >= self.marks[stream]]
            newest = max((row[1] for row in rows), default=float("-inf")) - self.delays[stream]
            self.marks[stream] = max(self.marks[stream], newest)
            if rows or self.came[stream] is None:
                self.came[stream] = clock
        silent = [
            limit is not None and last is not None and clock - last >= limit
            for limit, last in zip(self.idle, self.came, strict=True)
        ]
        least = min(
            (mark for mark, quiet in zip(self.marks, silent, strict=True) if not quiet), default=float("-inf")
        )
        self.marks = [
            max(mark, least) if quiet else mark for mark, quiet in zip(self.marks, silent, strict=True)
        ]

    def results(self) -> Counter[tuple[int, ...]]:
        """Return what the rows that were on time make."""
        return Counter(
            (a[0], b[0], c[0])
            for a, b, c in itertools.product(*self.rows)
            if a[2] == b[2] and b[3] == c[3] and max(a[1], b[1], c[1]) - min(a[1], b[1], c[1]) <= WIDTH
        )


def block(plan: PhysicalPlan, stream: int, rows: Sequence[Row]) -> pa.RecordBatch:
    number, time, key, other = (np.array(each, np.int64) for each in zip(*rows, strict=True))
    return block_of(plan, stream, {"n": number, "ts": time * SECOND, "k": key, "j": other})


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[list[list[Row]], int]]:
    """Draw micro-batches, some without rows of a stream, with their clocks."""
    numbers = itertools.count()
    clock, found = 0, []
    for step in range(draw(st.integers(1, 8))):
        clock += draw(st.integers(0, 5))
        rows = [
            [
                (next(numbers), 4 * step + time, key, other)
                for time, key, other in draw(
                    st.just([])
                    | st.lists(
                        st.tuples(st.integers(-9, 9), st.integers(0, 1), st.integers(0, 1)), max_size=4
                    )
                )
            ]
            for _ in range(3)
        ]
        found.append((rows, clock))
    return found


@pytest.mark.parametrize("statement", tiers(STATEMENTS, long=["hops"]))
def test_all_stages_take_the_same_rows_for_late(statement: str) -> None:
    times = st.tuples(*[st.integers(0, 4)] * 3)
    limits = st.tuples(*[st.none() | st.integers(1, 9)] * 3)

    @settings(max_examples=examples(150))
    @given(batches(), times, limits, st.integers(1, 3))
    def run(
        drawn: list[tuple[list[list[Row]], int]],
        delays: Sequence[int],
        idle: Sequence[int | None],
        workers: int,
    ) -> None:
        plan = plan_of(STATEMENTS[statement], delays, idle)
        assert len(plan.stages) > 1
        local, model = LocalWorkers(plan, workers), Model(delays, idle)
        found: Counter[tuple[int, ...]] = Counter()
        for rows, clock in drawn:
            if not any(rows):
                continue
            blocks = {stream: block(plan, stream, own) for stream, own in enumerate(rows) if own}
            found.update(numbers_of(plan, local.run(blocks, Counts(), clock * SECOND)))
            model.take(rows, clock)
            seen = local.manifest(len(plan.stages) - 1).seen
            marks = [seen.get(each, float("-inf")) / SECOND - delay for each, delay in enumerate(delays)]
            if any(limit is not None for limit in idle):
                assert marks == model.marks
        assert found == model.results()

    run()


TREE = """SELECT A.n, B.n, C.n FROM a A LEFT JOIN b B ON A.k = B.k FULL JOIN c C ON A.j = C.j
    WINDOW (A, B) = 6 SECONDS AND WINDOW (A, C) = 6 SECONDS"""


@pytest.mark.parametrize("statement", tiers([*STATEMENTS.values(), TREE], long=[STATEMENTS["hops"]]))
def test_watermarks_that_are_kept_by_themselves_are_those_of_the_stages(statement: str) -> None:
    """As late rows are told by where the state is in Spark's store; also when all streams end."""
    times = st.tuples(*[st.integers(0, 4)] * 3)
    limits = st.tuples(*[st.none() | st.integers(1, 9)] * 3)

    @settings(max_examples=examples(100))
    @given(batches(), times, limits, st.booleans())
    def run(
        drawn: list[tuple[list[list[Row]], int]],
        delays: Sequence[int],
        idle: Sequence[int | None],
        ends: bool,
    ) -> None:
        plan = plan_of(statement, delays, idle)
        local, marks = LocalWorkers(plan, files=False), Marks(plan)
        known = [local.manifest(number) for number in range(len(plan.stages))]
        for place, (rows, clock) in enumerate(drawn):
            blocks = {stream: block(plan, stream, own) for stream, own in enumerate(rows) if own}
            came = Arrivals([], clock=clock * SECOND, ended=ends and place == len(drawn) - 1)
            for stream, own in enumerate(rows):
                came.told[stream] = Report()
                if own:
                    came.seen[stream] = SECOND * max(row[1] for row in own)
                    came.came = {**came.came, stream: clock * SECOND} if plan.clocked else {}
            local.run(blocks, Counts(), clock * SECOND, ended=came.ended)
            known = marks.after(known, came)
            stages = [local.manifest(number) for number in range(len(known))]
            if came.ended and plan.ends_earlier:
                stages = [with_later(each, stages[number:]) for number, each in enumerate(stages, 1)]
            assert [each.seen for each in known] == [each.seen for each in stages]
            assert not plan.clocked or [each.came for each in known] == [each.came for each in stages]

    run()


def numbers_of(plan: PhysicalPlan, made: Sequence[pa.RecordBatch]) -> Counter[tuple[int, ...]]:
    """Return results by the numbers of their rows."""
    (output,) = plan.outputs
    names = [stored_column(plan, stream, number).name for stream, number in output.columns]
    return Counter(
        each for rows in made for each in zip(*(rows.column(name).to_pylist() for name in names), strict=True)
    )
