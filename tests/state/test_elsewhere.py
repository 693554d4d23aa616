"""A step takes the rows of an input from any source: here they lie in memory, and not in its state."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tests.kit.local import MemoryStore
from tests.kit.planned import block_of, plan_over, stream_of
from wjoin.executor.arrivals import Arrivals
from wjoin.executor.counts import Counts
from wjoin.executor.state.manifest import Elsewhere, Manifest
from wjoin.executor.step import StageLogic
from wjoin.parts.kernels.runs import RunShape, SortedRun
from wjoin.parts.routes.route import Role

SECOND = 1_000_000
SQL = "SELECT A.n AS a, B.n AS b FROM a A, b B WINDOW = 3 SECONDS WHERE A.k = B.k"


@dataclass
class InMemory:
    """Keeps the rows of input 0: ``new`` are those of the micro-batch, ``old`` all before."""

    new: pa.RecordBatch
    old: list[pa.RecordBatch] = field(default_factory=list)
    settled: int | None = None

    def late(self, manifest: Manifest, arrivals: Arrivals) -> int:
        return 0

    def brought(
        self,
        manifest: Manifest,
        arrivals: Arrivals,
        working: Sequence[Sequence[SortedRun]],
        shapes: Sequence[RunShape],
        stretch: int,
        worker: int,
    ) -> list[SortedRun]:
        arrivals.add(0, Role.BOTH, self.new, shapes, stretch)
        return [shapes[0].sort(each) for each in self.old]

    def after(self, manifest: Manifest, arrivals: Arrivals, settled: int | None) -> Elsewhere:
        self.old.append(self.new)
        self.settled = settled
        return ()


def results(*, elsewhere: bool) -> tuple[Counter[tuple[object, ...]], Manifest]:
    """Return the rows of ten micro-batches, each of a second, and what is in the state after them."""
    plan = plan_over(SQL, [stream_of({"n": "bigint", "k": "bigint"})] * 2).physical
    manifest, store = Manifest.fresh("", 1, 2), MemoryStore()
    source = InMemory(pa.RecordBatch.from_pydict({}))
    logic = StageLogic(plan, 0, elsewhere={0: source} if elsewhere else {})
    random, found = np.random.default_rng(3), Counter[tuple[object, ...]]()
    for second in range(10):
        blocks = []
        for number, each in enumerate(logic.stage.inputs):
            times = np.sort(random.integers(second * SECOND, (second + 1) * SECOND, 20))
            rows = {"ts": times, "n": np.arange(20) + 20 * second, "k": random.integers(0, 4, 20)}
            blocks.append(block_of(plan, number, rows).select(each.columns))
        source.new = blocks[0]
        arrived = [[] if elsewhere else [(Role.BOTH, blocks[0])], [(Role.BOTH, blocks[1])]]
        seen = dict.fromkeys(range(2), (second + 1) * SECOND - 1)
        for made in logic.stream(manifest, store, Arrivals(arrived, seen), Counts()):
            if isinstance(made, Manifest):
                manifest = made
            else:
                found.update(map(tuple, zip(*made.rows.to_pydict().values(), strict=True)))
    return found, manifest


def test_rows_of_an_input_may_be_elsewhere_than_in_the_state() -> None:
    (kept, state), (brought, without) = results(elsewhere=False), results(elsewhere=True)
    assert brought == kept
    assert len(kept) > 500
    assert [bool(group) for group in state.slices] == [True, True]
    assert [bool(group) for group in without.slices] == [False, True]


def test_rows_elsewhere_are_kept_up_to_the_limit_whatever_they_say_themselves() -> None:
    sql = SQL.replace("WINDOW = 3 SECONDS", "DWINDOW (A, B) = A.e - A.ts AT MOST 3 SECONDS")
    plan = plan_over(sql, [stream_of({"n": "bigint", "k": "bigint", "e": "timestamp"})] * 2).physical
    source = InMemory(pa.RecordBatch.from_pydict({}))
    logic = StageLogic(plan, 0, elsewhere={0: source})
    rows = {name: np.full(2, 9 * SECOND) for name in ("ts", "n", "k")}
    end = pa.array([0, 0], pa.timestamp("us"))
    blocks = [block_of(plan, n, {**rows, "e": end}).select(logic.stage.inputs[n].columns) for n in range(2)]
    source.new = blocks[0]
    arrivals = Arrivals([[], [(Role.BOTH, blocks[1])]], dict.fromkeys(range(2), 9 * SECOND))
    assert list(logic.stream(Manifest.fresh("", 1, 2), MemoryStore(), arrivals, Counts()))
    assert source.settled == 6 * SECOND
