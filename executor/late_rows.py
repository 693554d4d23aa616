"""Late rows that go to a sink: they pass by the join, with all columns of their stream.

Where rows are packed those are chosen that may be late. The first stage that has the stream tells which are:
by the watermark by which it drops them. Later stages hand them on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.executor.blocks import stable
from wjoin.executor.state.kept_rows import watermark
from wjoin.executor.state.manifest import written_manifest
from wjoin.executor.state.worker_files import numbers, read_manifest, stage_folder, worker_folder
from wjoin.parts.kernels.runs import GREATEST, LEAST, int64_view
from wjoin.planner.plan.block_columns import late_name, time_name
from wjoin.planner.plan.physical import StreamScan

LATE = "late"
"""The column of rows that leave the stages with the number of the stream of which one is a late row."""

LATE_BY, MICRO_BATCH = "late_by", "micro_batch"
"""The columns that tell how far a late row is behind the watermark, and its micro-batch."""


@dataclass(frozen=True)
class Suspects:
    """Chooses the rows of a stream that may be late.

    ``state`` is the folder of the join's state, None where this is not in files; ``stages`` are the numbers
    of the stage that tells, and of those after it, which may know more of the stream.
    """

    stream: int
    scan: StreamScan
    state: Path | None
    stages: tuple[int, ...]

    def before(self, state: Path | None, number: int) -> int:
        """Return the time before which rows may be late in micro-batch ``number``: with a ``state`` in files
        the watermark. Raises WJoinError WJ719 where the state is damaged."""
        if state is None:
            return GREATEST
        # All workers of a stage have been told the same.
        known = (_seen(worker_folder(stage_folder(state, each), 0), number) for each in self.stages)
        found = [seen[self.stream] for seen in known if self.stream in seen]
        mark = watermark(max(found, default=None), self.scan.delay)
        return LEAST if mark is None else max(mark, LEAST)

    def chosen(self, batch: pa.RecordBatch, times: pa.Array, before: int) -> pa.RecordBatch | None:
        """Return the rows of a scan with times (int64) before one, with all columns; None for none."""
        chosen = pc.fill_null(pc.less(times, pa.scalar(before, pa.int64())), False)
        if not pc.any(chosen).as_py():
            return None
        names = [late_name(self.stream, number) for number in range(len(self.scan.late))]
        columns = {name: stable(batch.column(name)) for name in names}
        return pa.RecordBatch.from_pydict({time_name(self.stream): times, **columns}).filter(chosen)


def _seen(worker: Path, number: int) -> Mapping[int, int]:
    """Return the greatest event times of streams that a worker knew of before a micro-batch."""
    earlier = [each for each in numbers(worker) if each < number]
    return written_manifest(read_manifest(worker, earlier[-1]).body).seen if earlier else {}


def told(stream: int, rows: pa.RecordBatch, mark: int) -> pa.RecordBatch | None:
    """Return the rows of a stream that are older than its watermark, and by how much; None for none."""
    times = int64_view(rows.column(time_name(stream)))
    late = times < mark
    if not late.any():
        return None
    behind = mark - times[late]
    # What 64 bits do not hold is the greatest that they do.
    behind[behind < 0] = GREATEST
    found = rows.filter(pa.array(late)).drop_columns([time_name(stream)])
    numbers = pa.array(np.full(len(behind), stream, np.int32))
    return found.append_column(LATE, numbers).append_column(LATE_BY, pa.array(behind))
