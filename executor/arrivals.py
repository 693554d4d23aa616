"""What reaches a worker in one micro-batch: new rows, in memory or on disk, and what was seen of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from wjoin.executor.blocks import concatenate
from wjoin.executor.report import Report
from wjoin.executor.sites.ranges import Announced
from wjoin.executor.spool import Spool
from wjoin.executor.stretches import Arrived, by_role, in_order
from wjoin.parts.kernels.runs import RunShape
from wjoin.parts.routes.route import Role

_PIECE_BYTES = 1 << 22
"""So many bytes of an input are set down on disk at once, in the order in which they are cut."""


@dataclass
class Arrivals:
    """What reached a worker in one micro-batch.

    ``blocks``: the new rows of each input, and as what they came. ``seen``: the greatest event time of each
    stream that sent anything. ``clock``: that of the micro-batch in microseconds, None where no stream of the
    join may be silent; ``came``: by it when the last row of each stream came that was told of. ``whole``:
    whether the state before has what later stages know. ``ended``: whether all streams end. ``told``: what
    was counted of a stream's rows on their way, at one worker only. ``announced``: the new rows of each input
    that are held at their sites. ``past``: late rows of earlier stages, on their way to a sink, on disk.
    ``ticks``: by window of rows what it counts (``executor.counted``), on disk; ``waiting``: results of a
    state that is moved which wait for that. ``by_key``: whether the rows are cut into stretches by their
    keys.
    """

    blocks: list[Arrived]
    seen: dict[int, int] = field(default_factory=dict)
    clock: int | None = None
    came: dict[int, int] = field(default_factory=dict)
    whole: bool = False
    ended: bool = False
    told: dict[int, Report] = field(default_factory=dict)
    announced: dict[int, list[Announced]] = field(default_factory=dict)
    past: list[pa.RecordBatch] = field(default_factory=list)
    ticks: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    spool: Spool = field(default_factory=Spool)
    by_key: bool = False
    _held: int = 0
    _down: dict[int, int] = field(default_factory=dict)
    _waiting: dict[int, int] = field(default_factory=dict)

    def add(
        self, number: int, role: Role, block: pa.RecordBatch, shapes: Sequence[RunShape], limit: int
    ) -> None:
        """Take more rows of an input; beyond ``limit`` bytes in memory nearly all are set down on disk.

        Raises WJoinError WJ705 where that fails.
        """
        before, self._held = self._held, self._held + block.nbytes
        self.blocks[number].append((role, block))
        self._waiting[number] = self._waiting.get(number, 0) + block.nbytes
        if before <= limit < self._held:
            for place, shape in enumerate(shapes):
                self._set_down(place, shape)
        elif self._held > limit and self._waiting[number] > _PIECE_BYTES:
            self._set_down(number, shapes[number])

    def _set_down(self, number: int, shape: RunShape) -> None:
        """Put what of an input is still in memory on disk, as one piece of each role."""
        group, done = self.blocks[number], self._down.get(number, 0)
        waiting = group[done:]
        del group[done:]
        for role, rows in by_role(waiting):
            group.append((role, self.spool.put(in_order(concatenate(rows), shape, by_key=self.by_key))))
        self._down[number], self._waiting[number] = len(group), 0
