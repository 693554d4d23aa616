"""ASOF joins: over random micro-batches, the nearest row of each row, once and when it is decided."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.kit.local import LocalWorkers
from tests.kit.planned import plan_over, stream_of
from tests.properties.test_outer import (
    KERNELS,
    KEYED,
    SECOND,
    Result,
    Row,
    Stamped,
    block,
    found_in,
    in_slices,
    on_of,
)
from tests.tiers import CUTS
from wjoin.executor import arrivals as arriving
from wjoin.executor.counts import Counts
from wjoin.executor.spool import Spool
from wjoin.executor.state.manifest import written_manifest
from wjoin.executor.step import StageLogic
from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.grammar.join_kinds import Nearest
from wjoin.parts.routes.route import Role
from wjoin.planner.catalog import Relation
from wjoin.planner.plan.physical import PhysicalPlan

ANY = 10**12
"""Microseconds that are more than any two rows are apart."""

COLUMNS = stream_of({"v": "bigint", "n": "bigint", "k": "bigint"})
TABLE = replace(COLUMNS, streaming=False)

Batch = tuple[Sequence[Row], Sequence[Row]]

LIMITS = {
    Nearest.AT_OR_BEFORE: (None, 0),
    Nearest.BEFORE: (None, -1),
    Nearest.AT_OR_AFTER: (0, None),
    Nearest.AFTER: (1, None),
    Nearest.EITHER: (None, None),
}
"""How much later the second row must be at the least, and may be at the most, in microseconds."""


@dataclass(frozen=True)
class Case:
    """An ASOF join with a window of ``low`` to ``high`` seconds and delays, and its micro-batches.

    ``keyed``: whether partners have one key; ``length``: as of ``test_outer.Case``.
    """

    nearest: Nearest
    padded: bool
    low: int
    high: int
    delays: tuple[int, int]
    batches: Sequence[Batch]
    compared: bool
    kernels: Sequence[str]
    windowed: bool = True
    keyed: bool = True
    length: int | None = None

    def plan(self, relation: Relation, kernel: str = "HW") -> PhysicalPlan:
        window = f"WINDOW (A, B) BETWEEN {self.low} SECONDS AND {self.high} SECONDS" * self.windowed
        on = on_of("A.k = B.k" * self.keyed, "A.v <= B.v" * self.compared)
        match = "NEAREST" if self.nearest is Nearest.EITHER else f"A.ts {self.nearest.value} B.ts"
        first, second = (f"DELAY OF INTERVAL {each} SECONDS" for each in self.delays)
        planned = plan_over(
            f"""SELECT A.n AS a, B.n AS b FROM a WATERMARK ts {first} AS A {"LEFT " * self.padded}ASOF JOIN
                b WATERMARK ts {second} AS B MATCH_CONDITION ({match}) {on} {window}""",
            [relation] * 2,
            {"ALGORITHM": kernel if self.keyed or kernel not in KEYED else "MW"},
        )
        return in_slices(planned.physical, self.length)

    @property
    def range(self) -> tuple[int, int]:
        """How much later a partner is, in microseconds."""
        low, high = LIMITS[self.nearest]
        own = (self.low * SECOND, self.high * SECOND) if self.windowed else (-ANY, ANY)
        return own[0] if low is None else max(low, own[0]), own[1] if high is None else min(high, own[1])

    def result(self, first: Row, others: Sequence[Row]) -> Result | None:
        """Return what a row of A comes with, None for nothing."""
        low, high = self.range
        partners = [
            each
            for each in others
            if (not self.keyed or first[2] == each[2])
            and low <= (each[1] - first[1]) * SECOND <= high
            and (not self.compared or first[3] <= each[3])
        ]
        # Of those of one instant the least by its columns: v, then n.
        nearest = min(
            partners, key=lambda each: (abs(each[1] - first[1]), each[1], each[3], each[0]), default=None
        )
        if nearest is not None:
            return first[0], nearest[0]
        return (first[0], None) if self.padded else None


@st.composite
def cases(draw: st.DrawFn) -> Case:
    numbers = iter(range(10_000))

    def rows(step: int) -> list[Row]:
        found = draw(
            st.lists(st.tuples(st.integers(-8, 8), st.integers(0, 2), st.integers(0, 2)), max_size=6)
        )
        return [(next(numbers), 5 * step + time, key, value) for time, key, value in found]

    low, steps, compared = draw(st.integers(-8, 6)), draw(st.integers(1, 7)), draw(st.booleans())
    kernels = st.sampled_from(KERNELS if compared else KERNELS[:-1])
    case = Case(
        draw(st.sampled_from(Nearest)),
        draw(st.booleans()),
        low,
        low + draw(st.integers(0, 12)),
        (draw(st.integers(0, 8)), draw(st.integers(0, 8))),
        [(rows(step), rows(step)) for step in range(steps)],
        compared,
        draw(st.lists(kernels, min_size=steps, max_size=steps)),
        keyed=draw(st.booleans()),
        length=draw(st.none() | st.sampled_from([1, 3, 10])),
    )
    assume(case.range[0] <= case.range[1])
    return case


@dataclass
class Oracle:
    """What each micro-batch must give: of the rows of A that are decided and not late, each once."""

    case: Case
    seen: list[int | None] = field(default_factory=lambda: [None, None])
    waiting: list[Row] = field(default_factory=list)
    others: list[Row] = field(default_factory=list)

    def mark(self, side: int) -> float:
        seen = self.seen[side]
        return float("-inf") if seen is None else seen - self.case.delays[side]

    def take(self, batch: Batch) -> Counter[Result]:
        marks = [self.mark(0), self.mark(1)]
        for side, rows in enumerate(batch):
            (self.waiting, self.others)[side].extend(row for row in rows if row[1] >= marks[side])
            times = [row[1] for row in rows if row[1] >= (self.seen[side] or row[1])]
            self.seen[side] = max(times, default=self.seen[side])
        limit = self.mark(1) * SECOND
        decided = [row for row in self.waiting if row[1] * SECOND + self.case.range[1] < limit]
        self.waiting = [row for row in self.waiting if row not in decided]
        return Counter(_results(self.case, decided, self.others))


def _results(case: Case, rows: Sequence[Row], others: Sequence[Row]) -> Iterator[Result]:
    return (found for row in rows if (found := case.result(row, others)) is not None)


@pytest.mark.parametrize(("partitions", "stretch"), CUTS)
def test_every_row_comes_once_in_the_micro_batch_that_decides_it(partitions: int, stretch: int) -> None:
    """Also where a micro-batch is joined in many stretches of event time."""

    @given(cases())
    def run(case: Case) -> None:
        plan = case.plan(COLUMNS)
        workers, oracle = LocalWorkers(plan, partitions, stretch), Oracle(case)
        for worker in workers._stages[0]:
            worker.store = Stamped()
        for batch, kernel in zip(case.batches, case.kernels, strict=True):
            workers.change(case.plan(COLUMNS, kernel))
            blocks = {stream: block(plan, stream, rows) for stream, rows in enumerate(batch) if rows}
            assert found_in(plan, workers.run(blocks, Counts())) == oracle.take(batch)
            # As after a restart.
            for worker in workers._stages[0]:
                worker.manifest = written_manifest(worker.manifest.encode())

    run()


@pytest.mark.parametrize("stretch", [STRETCH_BYTES, 200])
def test_tables_have_the_nearest_row_of_each_row(stretch: int) -> None:
    """With a window, and without."""

    @given(cases(), st.booleans())
    def run(case: Case, windowed: bool) -> None:
        case = replace(case, windowed=windowed)
        plan = case.plan(TABLE, case.kernels[0])
        first, second = ([row for batch in case.batches for row in batch[side]] for side in (0, 1))
        workers = LocalWorkers(plan, 2, stretch)
        blocks = {stream: block(plan, stream, rows) for stream, rows in enumerate((first, second)) if rows}
        assert found_in(plan, workers.run(blocks, Counts())) == Counter(_results(case, first, second))

    run()


def test_tables_that_wait_on_disk_have_the_nearest_row_of_each_row() -> None:
    """Cut by keys, of which one has more rows than a stretch."""
    random = np.random.default_rng(3)
    case = Case(Nearest.AT_OR_BEFORE, True, 0, 0, (0, 0), [], False, [], windowed=False)
    plan, limit = case.plan(TABLE), 5000
    logic = StageLogic(plan, 0, limit)
    assert logic.by_key
    tables = []
    for _ in range(2):
        keys = np.where(random.random(1000) < 0.4, 7, random.integers(0, 50, 1000))
        columns = np.arange(1000), random.integers(0, 900, 1000), keys, random.integers(0, 3, 1000)
        tables.append([tuple(row) for row in np.stack(columns, axis=1).tolist()])
    spool = Spool()
    with patch.object(arriving, "_PIECE_BYTES", 2000):
        arrivals = arriving.Arrivals([[], []], spool=spool, by_key=True)
        for number, rows in enumerate(tables):
            for start in range(0, 1000, 50):
                piece = block(plan, number, rows[start : start + 50])
                arrivals.add(number, Role.BOTH, piece, logic.shapes, limit)
        assert max(len(group) for group in arrivals.blocks) > 5
        made = [each.rows for each in logic.batch(arrivals, Counts())]
    spool.close()
    assert len(made) > 10
    assert found_in(plan, made) == Counter(_results(case, *tables))


@pytest.mark.long
def test_rows_leave_the_state_once_nothing_waits_for_them() -> None:
    """Of ten minutes of micro-batches the last rows are kept, whichever stream runs ahead."""
    for ahead in (0, 40, -40):
        case = Case(Nearest.EITHER, True, -10, 10, (5, 5), [], False, [])
        plan = case.plan(COLUMNS)
        workers, oracle, found = LocalWorkers(plan), Oracle(case), 0
        for step in range(0, 600, 5):
            first = [(step + n, step + n, n % 2, 0) for n in range(5)]
            batch = (first, [(number, time + ahead, key, value) for number, time, key, value in first])
            blocks = {stream: block(plan, stream, rows) for stream, rows in enumerate(batch)}
            made = found_in(plan, workers.run(blocks, Counts()))
            assert made == oracle.take(batch)
            found += made.total()
            assert workers.state_rows < 250
        assert found > 500
