"""Numbers by which new rows of a stream are told apart, the same on each worker that gets them.

A row visits the same workers as others of its stream and time. So its number follows from its time and from
its place among these, in an order by what they hold; rows that hold the same may stand for each other.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from wjoin.executor.blocks import without_times
from wjoin.parts.kernels.runs import Int64Array, SortedRun

_STEP = np.uint64(0x9E3779B97F4A7C15)


def with_numbers(run: SortedRun, name: str) -> SortedRun:
    """Return new rows of one stream with a column more: the number of each, int64."""
    numbers = row_numbers(run.batch, run.times[0])
    return replace(run, batch=run.batch.append_column(name, pa.array(numbers)))


def row_numbers(batch: pa.RecordBatch, times: Int64Array) -> Int64Array:
    """Return numbers of which rows of one time have different ones, whatever order the rows come in.

    ``times``: those of the rows, int64. Numbers of other times are likely to be others, too.
    """
    order = np.argsort(times, kind="stable")
    follows = np.zeros(len(order), bool)
    follows[1:] = times[order[1:]] == times[order[:-1]]
    places = np.zeros(len(order), np.int64)
    if follows.any():
        tied = follows | np.append(follows[1:], False)
        rows = order[tied]
        columns = (without_times(column) for column in batch.take(pa.array(rows)).columns)
        contents = list(map(repr, zip(*(column.to_pylist() for column in columns), strict=True)))
        by_contents = rows[sorted(range(len(rows)), key=contents.__getitem__)]
        in_order = by_contents[np.argsort(times[by_contents], kind="stable")]
        first = np.flatnonzero(np.append(True, np.diff(times[in_order]) != 0))
        starts = np.repeat(first, np.diff(np.append(first, len(in_order))))
        places[in_order] = np.arange(len(in_order)) - starts
    mixed = times.view(np.uint64) * _STEP
    mixed ^= mixed >> np.uint64(31)
    numbers: Int64Array = (mixed + places.view(np.uint64)).view(np.int64)
    return numbers
