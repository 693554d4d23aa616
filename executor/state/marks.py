"""The marks of rows that are kept: whether a row of an outer join has been in a result."""

import numpy as np
import pyarrow as pa

from wjoin.parts.kernels.runs import BoolArray, RunShape, SortedRun
from wjoin.planner.plan.stage_kinds import Join, Stage

MATCHED = "matched"
"""The column of a run that has the marks of its rows; it is kept beside them, as a value of its own."""


def preserved_inputs(stage: Stage) -> tuple[int, ...]:
    """Return the numbers of the inputs whose rows have marks."""
    if not isinstance(stage, Join) or stage.nearest is not None:
        return ()
    return tuple(n for n in range(len(stage.inputs)) if n in stage.kind.preserved)


def with_marks(run: SortedRun, shape: RunShape, marks: BoolArray) -> SortedRun:
    """Return a run whose rows have marks."""
    batch = without_marks(run.batch).append_column(MATCHED, pa.array(marks))
    return shape.read(batch, run.known_span)


def without_marks(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows without their marks."""
    return batch.drop_columns([MATCHED]) if MATCHED in batch.schema.names else batch


def marks_of(run: SortedRun) -> BoolArray:
    """Return the marks of the rows of a run, none set where they have none yet."""
    if MATCHED not in run.batch.schema.names:
        return np.zeros(run.rows, bool)
    return np.asarray(run.batch.column(MATCHED).to_numpy(zero_copy_only=False), bool)
