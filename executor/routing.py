"""Routing: the one place that asks a route which workers get which rows of a block, and as what."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from wjoin.parts.kernels.runs import Int64Array, int64_view
from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.routes.route import Role, Share, Slicing
from wjoin.planner.layout import code_name, time_name
from wjoin.planner.physical import PhysicalPlan, Stage
from wjoin.planner.slices import slicing

TOGETHER_BYTES = 1 << 26
"""About the most bytes of the rows that are taken at once for several workers."""


@dataclass(frozen=True)
class Router:
    """Brings tuples to the workers of a stage: to its input ``number``, whose first member is ``stream``."""

    number: int
    stream: int
    key: tuple[int, int] | None
    route: str
    workers: tuple[int, ...]
    slicing: Slicing | None = None

    @classmethod
    def to(cls, plan: PhysicalPlan, stage: Stage, number: int, workers: tuple[int, ...]) -> "Router":
        """Return the router to an input of a stage."""
        each = stage.inputs[number]
        slices = slicing(plan, stage, number)
        return cls(number, each.members[0], each.key, stage.route, workers, slices)

    def parts(self, block: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch, Role]]:
        """Yield (worker, its rows, as what it gets them)."""
        codes = None if self.key is None else int64_view(block.column(code_name(*self.key)))
        times = int64_view(block.column(time_name(self.stream)))
        # Shares are small where workers are many, and a pass over all columns costs more than its rows.
        most = block.num_rows * TOGETHER_BYTES // max(TOGETHER_BYTES, block.nbytes)
        waiting: list[tuple[Share, Int64Array]] = []
        rows = 0
        for share in ROUTES[self.route].shares(codes, times, len(self.workers), self.slicing):
            if share.rows is None:
                yield self.workers[share.worker], block, share.role
                continue
            if rows + len(share.rows) > most:
                yield from self._taken(block, waiting)
                waiting, rows = [], 0
            waiting.append((share, share.rows))
            rows += len(share.rows)
        yield from self._taken(block, waiting)

    def _taken(
        self, block: pa.RecordBatch, shares: Sequence[tuple[Share, Int64Array]]
    ) -> Iterator[tuple[int, pa.RecordBatch, Role]]:
        """Yield what some shares get of a block, taken at once."""
        if not shares:
            return
        taken = block.take(pa.array(np.concatenate([rows for _, rows in shares])))
        start = 0
        for share, rows in shares:
            yield self.workers[share.worker], taken.slice(start, len(rows)), share.role
            start += len(rows)


def worker_count(stage: Stage, partitions: int) -> int:
    """Return the number of workers of a stage, given the number of shuffle partitions."""
    route = ROUTES[stage.route]
    found = route.workers(partitions)
    return min(found, stage.workers) if route.slices and stage.workers is not None else found
