"""Routing: the one place that asks a route which workers get which rows of a block, and as what."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from wjoin.parts.kernels.runs import int64_view
from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.routes.route import Role
from wjoin.planner.layout import code_name, time_name
from wjoin.planner.physical import Stage


@dataclass(frozen=True)
class Router:
    """Brings tuples to the workers of a stage: to its input ``number``, whose first member is ``stream``."""

    number: int
    stream: int
    key: tuple[int, int] | None
    route: str
    workers: tuple[int, ...]

    @classmethod
    def to(cls, stage: Stage, number: int, workers: tuple[int, ...]) -> "Router":
        """Return the router to an input of a stage."""
        each = stage.inputs[number]
        return cls(number, each.members[0], each.key, stage.route, workers)

    def parts(self, block: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch, Role]]:
        """Yield (worker, its rows, as what it gets them)."""
        codes = None if self.key is None else int64_view(block.column(code_name(*self.key)))
        times = int64_view(block.column(time_name(self.stream)))
        for share in ROUTES[self.route].shares(codes, times, len(self.workers)):
            rows = block if share.rows is None else block.take(pa.array(share.rows))
            yield self.workers[share.worker], rows, share.role


def worker_count(stage: Stage, partitions: int) -> int:
    """Return the number of workers of a stage, given the number of shuffle partitions."""
    return ROUTES[stage.route].workers(partitions)
