"""The kernel that adapts: which one it takes, and that it changes when the rows do."""

import numpy as np
import pyarrow as pa
import pytest

from wjoin.executor.kernels.adaptive import preferred
from wjoin.executor.kernels.runs import Order, RunShape, SortedRun
from wjoin.executor.local import LocalWorker
from wjoin.executor.step import Counts
from wjoin.planner.physical import (
    Bounds,
    Kernel,
    KeyCode,
    PhysicalPlan,
    Route,
    Shipping,
    Stage,
    StageInput,
    StreamScan,
    TimeKind,
)

WINDOW = 100


def plan(kernel: Kernel = Kernel.ADAPTIVE) -> PhysicalPlan:
    code = KeyCode(("k",), ("bigint",), exact=True, verify=())
    scans = tuple(StreamScan(name, "ts", 0, (), (), (code,), True) for name in "AB")
    inputs = tuple(StageInput((n,), None, (n, 0)) for n in range(2))
    stage = Stage(inputs, Bounds.EXACT, Route.HASH, kernel, Shipping.BLOCKS, ())
    upper = ((0, WINDOW), (WINDOW, 0))
    return PhysicalPlan(scans, TimeKind.INTEGRAL, upper, (), (stage,), frozenset(), None)


def block(stream: int, start: int, rows: int, apart: int, keys: int) -> pa.RecordBatch:
    """Rows that are ``apart`` in time, their keys in turn."""
    times = start + np.arange(rows) * apart
    return pa.RecordBatch.from_pydict({f"t{stream}": times, f"k{stream}_0": np.arange(rows) % keys})


def runs(apart: int, keys: int, rows: int = 1000) -> list[SortedRun]:
    return [RunShape(f"k{n}_0", (f"t{n}",), Order.KEY).sort(block(n, 0, rows, apart, keys)) for n in range(2)]


@pytest.mark.parametrize(
    ("apart", "keys", "rows", "current", "wanted"),
    [
        (1, 100, 1000, Kernel.HW, Kernel.HW),
        (1, 100, 1000, Kernel.MW, Kernel.HW),
        (1000, 100, 1000, Kernel.HW, Kernel.MW),
        (1, 1, 1000, Kernel.MW, Kernel.MW),
        # Two rows in the window: neither is worth a change.
        (100, 1000, 1000, Kernel.HW, Kernel.HW),
        (100, 1000, 1000, Kernel.MW, Kernel.MW),
        # Too few to tell.
        (1, 100, 50, Kernel.MW, Kernel.MW),
    ],
)
def test_dense_windows_of_many_keys_ask_for_a_hash_and_sparse_ones_for_a_merge(
    apart: int, keys: int, rows: int, current: Kernel, wanted: Kernel
) -> None:
    each = plan()
    assert preferred(each, each.stages[0], runs(apart, keys, rows), current) is wanted


def test_a_worker_changes_its_kernel_when_the_streams_change() -> None:
    worker = LocalWorker(plan())
    others = {kernel: LocalWorker(plan(kernel)) for kernel in (Kernel.HW, Kernel.MW)}
    kernels = []
    start = 0
    for apart in (1, 1, 1000, 1000, 1000, 1, 1, 1):
        blocks = {n: block(n, start, 1000, apart, 100) for n in range(2)}
        start += 1000 * apart
        counts = {kernel: Counts() for kernel in (Kernel.ADAPTIVE, *others)}
        found = sum(each.num_rows for each in worker.run(blocks, counts[Kernel.ADAPTIVE]))
        for kernel, other in others.items():
            assert sum(each.num_rows for each in other.run(blocks, counts[kernel])) == found
        compared = {kernel: each.work.comparisons for kernel, each in counts.items()}
        kernels.append([kernel.value for kernel in others if compared[kernel] == compared[Kernel.ADAPTIVE]])
    # The rows of one micro-batch tell the kernel of the next; of sparse rows both compare as many.
    assert kernels[:2] == [["hw"], ["hw"]]
    assert kernels[3:5] == [["hw", "mw"], ["hw", "mw"]]
    assert kernels[5:] == [["mw"], ["hw"], ["hw"]]
