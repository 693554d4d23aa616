"""Rows that leave the state: each is handed over once, as soon as nothing can join it, if somebody asks."""

import itertools
from collections import Counter
from dataclasses import replace

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from wjoin.executor.state.slices import Slice, maintain
from wjoin.executor.state.writing import FIRST_CUTTING
from wjoin.parts.kernels.runs import BoolArray, Order, RunShape, SortedRun

BY_KEY, BY_TIME = (RunShape("k0_0", ("t0",), order) for order in (Order.KEY, Order.TIME))
CUTTING = replace(FIRST_CUTTING, merged_at_once=3)

Rows = list[tuple[int, int]]
"""Keys and times."""

BATCHES = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), max_size=8),
        st.integers(0, 6),
        st.booleans(),
        st.sampled_from([BY_KEY, BY_TIME]),
    ),
    min_size=1,
    max_size=12,
)
"""Micro-batches: rows, by how much the watermark moves, whether it tells which slices live, their order."""


def run_of(shape: RunShape, rows: Rows) -> SortedRun:
    columns = {"k0_0": [key for key, _ in rows], "t0": [time for _, time in rows]}
    arrays = {name: pa.array(values, pa.int64()) for name, values in columns.items()}
    return shape.sort(pa.RecordBatch.from_pydict(arrays))


def rows_of(batch: pa.RecordBatch) -> Rows:
    return list(zip(batch["k0_0"].to_pylist(), batch["t0"].to_pylist(), strict=True))


class State:
    """Slices in memory, of which it is counted which are opened."""

    def __init__(self) -> None:
        self.slices: tuple[Slice, ...] = ()
        self.batches: dict[str, pa.RecordBatch] = {}
        self.names = map(str, itertools.count())
        self.left: Rows = []
        self.opened: set[str] = set()

    def micro_batch(self, rows: Rows, mark: int, shape: RunShape, *, settled: bool, asked: bool) -> None:
        def live(run: SortedRun) -> BoolArray:
            return run.times[0] >= mark

        def load(each: Slice) -> SortedRun:
            self.opened.add(each.name)
            batch = self.batches[each.name]
            return shape.read(batch) if each.order == shape.order_name else shape.sort(batch)

        change = maintain(
            self.slices,
            run_of(shape, rows),
            shape,
            load,
            live,
            mark if settled else None,
            CUTTING,
            (lambda run: self.left.extend(rows_of(run.batch))) if asked else None,
        )
        written = []
        for run in change.write:
            name = next(self.names)
            self.batches[name] = run.batch
            written.append(Slice(name, run.rows, run.batch.nbytes, *run.span, shape.order_name))
        self.slices = (*change.stay, *written)

    @property
    def kept(self) -> Counter[tuple[int, int]]:
        return Counter(row for each in self.slices for row in rows_of(self.batches[each.name]))


@given(BATCHES)
def test_each_row_is_handed_over_once_as_soon_as_it_expires(
    batches: list[tuple[Rows, int, bool, RunShape]],
) -> None:
    state, mark, came = State(), 0, Counter[tuple[int, int]]()
    for rows, step, settled, shape in batches:
        mark += step
        came.update(rows)
        state.micro_batch(rows, mark, shape, settled=settled, asked=True)
        assert Counter(state.left) == Counter({row: n for row, n in came.items() if row[1] < mark})
        assert state.kept == Counter({row: n for row, n in came.items() if row[1] >= mark})


def test_where_nobody_asks_expired_slices_are_dropped_unopened() -> None:
    for asked in (False, True):
        state = State()
        state.micro_batch([(1, 1), (2, 3)], 0, BY_KEY, settled=True, asked=asked)
        state.micro_batch([(1, 9)], 5, BY_KEY, settled=True, asked=asked)
        assert state.kept == Counter([(1, 9)])
        assert bool(state.opened) is asked
        assert sorted(state.left) == ([(1, 1), (2, 3)] if asked else [])
