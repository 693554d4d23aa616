"""Spark's own engine in the shape of a join of wjoin: the same stages and no work in them."""

import os
import tempfile
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

_MESSAGES = "worker INT, block BINARY"
_WORKERS = 2


def mapped(streams: list[DataFrame]) -> DataFrame:
    """Return one message for each of two workers from every batch of rows that Python gets."""

    # Defined here, so that Spark sends it to its workers whole.
    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            # As many bytes as there are, half of them to each worker; which ones makes no difference.
            block = bytes(batch.nbytes // 2)
            yield pa.RecordBatch.from_pydict(
                {"worker": pa.array([0, 1], pa.int32()), "block": pa.array([block] * 2, pa.binary())}
            )

    return reduce(DataFrame.union, (rows.mapInArrow(pack, _MESSAGES) for rows in streams))


def shuffled(streams: list[DataFrame]) -> DataFrame:
    """Return no rows, once the messages have come to Python in the tasks of their workers."""

    def gone(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.slice(0, 0)

    return mapped(streams).repartition(_WORKERS, "worker").mapInArrow(gone, _MESSAGES)


def bare_stages(streams: list[DataFrame]) -> DataFrame:
    """Return no rows, by the shortest program that goes the way of a join of one stage on two partitions.

    A worker also reads a small file, and writes one that is on the disk before its task ends. No engine
    that joins in Python and keeps its state in files takes less.
    """
    folder = Path(tempfile.mkdtemp(prefix="bare-state-"))

    def worked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        workers: set[int] = set()
        for batch in batches:
            workers.update(batch.column("worker").to_pylist())
            yield batch.slice(0, 0)
        for worker in workers:
            state = folder / str(worker)
            before = int(state.read_text()) if state.exists() else 0
            with (new := folder / f"{worker}.new").open("w") as written:
                written.write(str(before + 1))
                written.flush()
                os.fsync(written.fileno())
            new.replace(state)

    return mapped(streams).repartition(_WORKERS, "worker").mapInArrow(worked, _MESSAGES)
