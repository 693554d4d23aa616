"""How long joins take, and how much they compare, for each tuple that arrives."""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import kit_path  # noqa: F401 (finds tests.kit)
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from loads import Load

from tests.kit.local import MemoryStore
from wjoin.executor.arrivals import Arrivals
from wjoin.executor.counts import Counts
from wjoin.executor.report import Report
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.step import StageLogic
from wjoin.parts.kernels.runs import Int64Array, int64_view
from wjoin.planner.plan.block_columns import time_name
from wjoin.planner.plan.physical import PhysicalPlan

FloatArray = npt.NDArray[np.float64]

_MULTIPLIERS = np.array([1_000_003, 998_244_353, 1_000_000_007, 2_147_483_647, 4_294_967_291, 6_700_417])


PRACTICE = 3
"""Micro-batches that every join runs before it is measured."""


class Join(Protocol):
    """A join of streams that keeps its own state from micro-batch to micro-batch."""

    def batch(self, arrivals: Arrivals, counted: Report) -> Iterator[pa.RecordBatch]:
        """Yield the results of a micro-batch and count the comparisons."""
        ...


class KernelJoin:
    """wjoin's own logic of one worker of a plan with one stage."""

    def __init__(self, plan: PhysicalPlan) -> None:
        self._logic = StageLogic(plan, 0)
        self._store = MemoryStore()
        self._manifest = Manifest.fresh("plan", 1, len(plan.stages[0].inputs))

    def batch(self, arrivals: Arrivals, counted: Report) -> Iterator[pa.RecordBatch]:
        """Yield the results of a micro-batch."""
        counts = Counts(counted)
        for result in self._logic.stream(self._manifest, self._store, arrivals, counts):
            if isinstance(result, Manifest):
                self._manifest = result
            else:
                yield result.rows
        assert not any(report["late"] for report in counts.streams.values())


@dataclass(frozen=True)
class Found:
    """The results of a run: how many, and a sum over their event times that depends on no order."""

    count: int
    checksum: int


@dataclass(frozen=True)
class Service:
    """What a run took: rows, processor seconds and comparisons of each micro-batch, and its results."""

    rows: Int64Array
    seconds: FloatArray
    comparisons: Int64Array
    found: Found
    fill: int

    @property
    def microseconds(self) -> float:
        """Mean service time of an arriving tuple, in microseconds, once the windows are full."""
        return float(self.seconds[self.fill :].sum() / self.rows[self.fill :].sum() * 1e6)

    @property
    def compared(self) -> float:
        """Mean comparisons for an arriving tuple, once the windows are full."""
        return float(self.comparisons[self.fill :].sum() / self.rows[self.fill :].sum())

    def series(self, every: int = 1000) -> tuple[FloatArray, FloatArray]:
        """Return tuples arrived so far and mean service time (microseconds) of each ``every`` tuples."""
        arrived = np.cumsum(self.rows)
        ends = np.flatnonzero(np.diff(arrived // every, prepend=0))
        starts = np.concatenate(([0], ends[:-1] + 1)).astype(np.int64)
        groups = [slice(start, end + 1) for start, end in zip(starts, ends, strict=True)]
        means = [self.seconds[group].sum() / self.rows[group].sum() * 1e6 for group in groups]
        return arrived[ends].astype(np.float64), np.array(means, np.float64)


class DisagreementError(Exception):
    """Two joins gave different results on the same load."""


def measure(joins: Mapping[str, Callable[[], Join]], load: Load, repetitions: int) -> dict[str, Service]:
    """Run every join over the load so many times, by turns; return the median time of each micro-batch.

    Raises DisagreementError where two joins do not have the same results.
    """
    practice = replace(load, batches=load.batches[:PRACTICE])
    for make in joins.values():
        serve(make(), practice)
    runs: dict[str, list[Service]] = {name: [] for name in joins}
    for _ in range(repetitions):
        for name, make in joins.items():
            runs[name].append(serve(make(), load))
    found = {name: each.found for name, group in runs.items() for each in group}
    if len(set(found.values())) > 1:
        raise DisagreementError(f"the joins differ in their results: {found}")
    return {name: _median(group) for name, group in runs.items()}


def serve(join: Join, load: Load) -> Service:
    """Run a join over a load, once."""
    seconds, comparisons = [], []
    count = checksum = 0
    gc.collect()
    for arrivals in load.batches:
        counted = Report()
        # Processor time: that of other jobs on the machine does not count.
        start = time.process_time()
        results = list(join.batch(arrivals, counted))
        seconds.append(time.process_time() - start)
        comparisons.append(counted["comparisons"])
        for each in results:
            count += each.num_rows
            checksum = (checksum + _checksum(each, len(arrivals.blocks))) % (1 << 64)
    return Service(
        load.rows, np.array(seconds), np.array(comparisons, np.int64), Found(count, checksum), load.fill
    )


def _checksum(results: pa.RecordBatch, streams: int) -> int:
    """Return the sum over all combinations of a mix of their event times, modulo 2^64."""
    mixed = np.zeros(results.num_rows, np.uint64)
    for stream in range(streams):
        times = int64_view(results.column(time_name(stream))).astype(np.uint64)
        mixed = (mixed ^ times) * np.uint64(_MULTIPLIERS[stream])
        mixed ^= mixed >> np.uint64(29)
    return int(mixed.sum(dtype=np.uint64))


def _median(group: list[Service]) -> Service:
    first = group[0]
    seconds = np.median(np.stack([each.seconds for each in group]), axis=0)
    return Service(first.rows, seconds, first.comparisons, first.found, first.fill)
