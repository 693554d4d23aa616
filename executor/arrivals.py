"""What reaches a worker in one micro-batch: new rows, in memory or on disk, and what was seen of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from wjoin.executor.report import Report
from wjoin.executor.spool import Spool
from wjoin.executor.stretches import Arrived, in_time_order
from wjoin.parts.kernels.runs import RunShape
from wjoin.parts.routes.route import Role


@dataclass
class Arrivals:
    """What reached a worker in one micro-batch.

    ``blocks``: the new rows of each input, and as what they came. ``seen``: the greatest event time of each
    stream that sent anything. ``told``: what was counted of a stream's rows on their way, at one worker only.
    """

    blocks: list[Arrived]
    seen: dict[int, int] = field(default_factory=dict)
    told: dict[int, Report] = field(default_factory=dict)
    spool: Spool = field(default_factory=Spool)
    _held: int = 0

    def add(
        self, number: int, role: Role, block: pa.RecordBatch, shapes: Sequence[RunShape], limit: int
    ) -> None:
        """Take more rows of an input; beyond ``limit`` bytes in memory all are set down on disk.

        Raises WJoinError WJ705 where that fails.
        """
        before, self._held = self._held, self._held + block.nbytes
        if self._held <= limit:
            self.blocks[number].append((role, block))
            return
        if before <= limit:
            for shape, group in zip(shapes, self.blocks, strict=True):
                group[:] = [(each, self.spool.put(in_time_order(rows, shape))) for each, rows in group]
        self.blocks[number].append((role, self.spool.put(in_time_order(block, shapes[number]))))
