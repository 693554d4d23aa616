"""The kernel that adapts: which one it takes, and that it changes when the rows do."""

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.local import LocalWorkers
from wjoin.executor.counts import Counts
from wjoin.parts.kernels.adaptive import Meeting, preferred
from wjoin.parts.kernels.registry import kernels_of
from wjoin.parts.kernels.runs import Order, RunShape, SortedRun
from wjoin.parts.routes.route import Placement
from wjoin.planner.plan.edges import with_columns
from wjoin.planner.plan.physical import KeyCode, Output, PhysicalPlan, StreamScan, TimeKind
from wjoin.planner.plan.probes import arranged
from wjoin.planner.plan.stage_kinds import Bounds, Join, Scanned, StageEdge
from wjoin.planner.windows.bounds import Windows

WINDOW = 100


def plan(kernel: str = "adaptive") -> PhysicalPlan:
    code = KeyCode(("k",), ("bigint",), exact=True, verify=())
    scans = tuple(StreamScan(name, "ts", 0, (), (), (code,), True) for name in "AB")
    inputs = tuple(StageEdge(Scanned(n), (n, 0)) for n in range(2))
    stage = Join(inputs, Bounds.EXACT, Placement("hash"), kernels_of(kernel))
    windows = Windows.of([[0, WINDOW], [WINDOW, 0]])
    drawn = PhysicalPlan(scans, TimeKind.INTEGRAL, windows, (), (stage,), (Output("", ()),))
    return arranged(with_columns(drawn), [None])


def block(stream: int, start: int, rows: int, apart: int, keys: int) -> pa.RecordBatch:
    """Rows that are ``apart`` in time, their keys in turn."""
    times = start + np.arange(rows) * apart
    return pa.RecordBatch.from_pydict({f"t{stream}": times, f"k{stream}_0": np.arange(rows) % keys})


def runs(apart: int, keys: int, rows: int = 1000) -> list[SortedRun]:
    return [RunShape(f"k{n}_0", (f"t{n}",), Order.KEY).sort(block(n, 0, rows, apart, keys)) for n in range(2)]


@pytest.mark.parametrize(
    ("apart", "keys", "rows", "current", "wanted"),
    [
        (1, 100, 1000, "hw", "hw"),
        (1, 100, 1000, "mw", "hw"),
        (1000, 100, 1000, "hw", "mw"),
        (1, 1, 1000, "mw", "mw"),
        # Two rows in the window: neither is worth a change.
        (100, 1000, 1000, "hw", "hw"),
        (100, 1000, 1000, "mw", "mw"),
        # Too few to tell.
        (1, 100, 50, "mw", "mw"),
    ],
)
def test_dense_windows_of_many_keys_ask_for_a_hash_and_sparse_ones_for_a_merge(
    apart: int, keys: int, rows: int, current: str, wanted: str
) -> None:
    first, second = runs(apart, keys, rows)
    meetings = [Meeting(first, second, WINDOW, WINDOW), Meeting(second, first, WINDOW, WINDOW)]
    assert preferred(meetings, current) == wanted


def test_a_worker_changes_its_kernel_when_the_streams_change() -> None:
    worker = LocalWorkers(plan())
    others = {kernel: LocalWorkers(plan(kernel)) for kernel in ("hw", "mw")}
    kernels = []
    start = 0
    for apart in (1, 1, 1000, 1000, 1000, 1, 1, 1):
        blocks = {n: block(n, start, 1000, apart, 100) for n in range(2)}
        start += 1000 * apart
        counts = {kernel: Counts() for kernel in ("adaptive", *others)}
        found = sum(each.num_rows for each in worker.run(blocks, counts["adaptive"]))
        for kernel, other in others.items():
            assert sum(each.num_rows for each in other.run(blocks, counts[kernel])) == found
        compared = {kernel: each.stage["comparisons"] for kernel, each in counts.items()}
        kernels.append([kernel for kernel in others if compared[kernel] == compared["adaptive"]])
    # The rows of one micro-batch tell the kernel of the next; of sparse rows both compare as many.
    assert kernels[:2] == [["hw"], ["hw"]]
    assert kernels[3:5] == [["hw", "mw"], ["hw", "mw"]]
    assert kernels[5:] == [["mw"], ["hw"], ["hw"]]
