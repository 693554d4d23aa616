"""The part of ``wjoin calibrate`` about tables: their joins by wjoin's stages and by Spark's joins.

Each cost is the difference of two jobs that differ in that much only.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wjoin.planner.cost.constants import Constants
from wjoin.planner.plan.physical import Method

if TYPE_CHECKING:
    from wjoin import Session

_REPETITIONS = 3
_SPAN = 1_000_000_000
"""Microseconds of event time that the tables span."""

_LEAST = 1e-9
"""What a unit of work costs at least: a difference of two times may fall below zero."""


@dataclass(frozen=True)
class Job:
    """A join of tables of so many rows each.

    ``keys``: values of the key, 0 for none that two tables share. ``window``: microseconds.
    ``tables``: 3 are joined in two steps. ``payload``: bytes of a further column.
    """

    rows: int
    keys: int = 0
    window: int = 1
    tables: int = 2
    payload: int = 8

    @property
    def pairs(self) -> int:
        """Pairs of rows with the same key."""
        return self.rows * self.rows // self.keys if self.keys else 0


SMALL, TWO_STEPS, LARGE = Job(10), Job(10, tables=3), Job(1_000_000)
WIDE = Job(200_000, payload=208)
# So many rows that they are in no near cache, and so many pairs that the rows hardly count.
PAIRS = Job(100_000, keys=100)
RESULTS = Job(20_000, keys=400, window=_SPAN)

_WIDTH = 16
"""Bytes that a row of these jobs carries, but for WIDE: its key and its payload."""


def table_costs(session: "Session", method: Method, known: Constants) -> dict[str, float]:
    """Return what one of the methods costs over tables; ``known`` has the costs of the kernels."""
    cores = session.spark.sparkContext.defaultParallelism

    def seconds(job: Job) -> float:
        return cores * job_seconds(session, method, job)

    # The first run is practice: Java compiles what it runs often.
    for practice in (RESULTS, LARGE):
        job_seconds(session, method, practice)
    large, found, two_steps, small = (seconds(each) for each in (LARGE, RESULTS, TWO_STEPS, SMALL))
    # Both are small: where other work of the machine falls into one of them, the other keeps its share.
    step = min(max(_LEAST, two_steps - small), small / 2)
    once = small - step
    row = max(_LEAST, (large - small) / (2 * LARGE.rows))
    result = (found - small - 2 * RESULTS.rows * row) / RESULTS.pairs
    if method is Method.NATIVE:
        pair = max(_LEAST, (seconds(PAIRS) - small - 2 * PAIRS.rows * row) / PAIRS.pairs)
        return {
            "native_table_batch": once,
            "native_table_join": step,
            "native_table_row": row,
            "native_table_pair": pair,
            "native_result": max(_LEAST, result - pair),
        }
    wide = (seconds(WIDE) - small) / (2 * WIDE.rows)
    byte = max(_LEAST / 10, (wide - row) / (WIDE.payload - LARGE.payload))
    result -= known.pair_seconds("hw") + known.tuple
    return {
        "table_batch": once,
        "table_stage": step,
        "table_row": max(_LEAST, row - _WIDTH * byte),
        "table_byte": byte,
        "table_result": max(_LEAST, result - 2 * _WIDTH * byte),
        "result": max(_LEAST, result - 2 * _WIDTH * known.byte),
    }


def job_seconds(session: "Session", method: Method, job: Job) -> float:
    """Return the median seconds of a job, from its statement to the last of its rows."""
    with tempfile.TemporaryDirectory(prefix="wjoin-calibrate-") as folder:
        statement = prepared(session, method, job, Path(folder))
        seconds = []
        for _ in range(_REPETITIONS):
            start = time.monotonic()
            session.sql(statement).write.format("noop").mode("overwrite").save()
            seconds.append(time.monotonic() - start)
    return statistics.median(seconds)


def prepared(session: "Session", method: Method, job: Job, folder: Path) -> str:
    """Write the tables of a job into a folder and register them; return the statement that joins them."""
    names = [f"wjoin_calibrate_{letter}" for letter in "abc"[: job.tables]]
    for number, name in enumerate(names):
        path = folder / name
        path.mkdir()
        _write(job, number, path, session.spark.sparkContext.defaultParallelism)
        session.stream(name, session.spark.read.parquet(str(path)), "ts")
    return _statement(method, job, names)


def _statement(method: Method, job: Job, names: Sequence[str]) -> str:
    sources = ", ".join(f"{name} {letter}" for name, letter in zip(names, "abc", strict=False))
    second = " AND b.m = c.m" if len(names) > 2 else ""
    return (
        f"SELECT /*+ PLAN({method.name}) */ a.k, a.payload, b.payload AS other FROM {sources} "
        f"WINDOW = {job.window} MICROSECONDS WHERE a.k = b.k{second}"
    )


def _write(job: Job, number: int, path: Path, files: int) -> None:
    """Write a table into as many files as there are cores, so that all of them read it."""
    place = np.arange(job.rows, dtype=np.int64)
    # In no order: a regular one would be found in the caches sooner than real keys are.
    spread = np.random.default_rng(number).permutation(place)
    values = spread % job.keys if job.keys else spread * job.tables + number
    # Instants that no other table has: a window of one microsecond then finds nothing.
    times = place * (_SPAN // job.rows) + 3 * number
    table = pa.table(
        {
            "k": values,
            "m": values,
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "payload": pa.array(["x" * job.payload] * job.rows),
        }
    )
    for file in range(files):
        pq.write_table(table.take(np.flatnonzero(place % files == file)), path / f"{file:03}.parquet")
