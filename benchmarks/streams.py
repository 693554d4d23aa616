"""The rows of the benchmark: streams as Parquet files, one file a stream and micro-batch."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS_PER_SECOND = 10_000
"""Rows that each stream sends in a second of event time."""

DISORDER = 1_000_000
"""How far, in microseconds, a row may lie behind one that was sent before it."""

RESULTS_PER_ROW = 0.2311
"""Results for each row of any stream, whatever the window and the number of streams."""

START = 1_700_000_000_000_000
"""When streams begin, in microseconds."""

SCHEMA = "id BIGINT, other BIGINT, ts TIMESTAMP, payload STRING"

_LABELS = 1000
_PRACTICE_ROWS = 150_000


@dataclass(frozen=True)
class Load:
    """One set of streams: the window in seconds, rows of a micro-batch (all streams), micro-batches.

    ``stages`` 1: all streams agree in ``id``. 2: the first two do, the others and the second in ``other``.
    """

    window: int
    batch_rows: int
    batches: int
    streams: int = 3
    stages: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The streams: a, b, c, …"""
        return tuple(chr(ord("a") + number) for number in range(self.streams))

    @property
    def keys(self) -> int:
        """How many distinct keys there are: a longer window has more, so that a row matches as often.

        A row of one of n streams with r rows a second and k keys is in (r w / k)^(n − 1) results, as
        n w^(n − 1) is the volume of n − 1 distances of which, with 0, no two are more than w apart.
        """
        return round(ROWS_PER_SECOND * self.window / RESULTS_PER_ROW ** (1 / (self.streams - 1)))

    @property
    def practice(self) -> "Load":
        """The micro-batches that a system repeats before it is measured."""
        return dataclasses.replace(self, batches=max(2, min(self.batches, _PRACTICE_ROWS // self.batch_rows)))

    @property
    def title(self) -> str:
        """What is joined, in a few words."""
        rows = f"{self.batch_rows:,} rows a micro-batch, window {self.window} s"
        shape = {1: "one key", 2: "two stages"}[self.stages]
        return f"{self.streams} streams, {shape}, {rows}"


def write_streams(load: Load, folder: Path) -> None:
    """Write every stream of a load below ``folder``, files named in the order of their micro-batch."""
    random = np.random.default_rng(2002)
    write_files(load, folder, lambda stream, batch: rows(random, load, stream, batch))


def write_files(
    load: Load,
    folder: Path,
    made: Callable[[str, int], pa.Table],
    save: Callable[[pa.Table, Path], None] = pq.write_table,
) -> None:
    """Write a file for each micro-batch and stream, in this order; ``made`` makes its rows."""
    for stream in load.names:
        (folder / stream).mkdir(parents=True)
    for batch in range(load.batches):
        for stream in load.names:
            save(made(stream, batch), folder / stream / f"{batch:04}.parquet")


def rows(random: np.random.Generator, load: Load, stream: str, batch: int) -> pa.Table:
    """Return the rows that a stream sends in a micro-batch."""
    count = load.batch_rows // load.streams
    sent = START + (batch * count + np.arange(count)) * (1_000_000 // ROWS_PER_SECOND)
    times = sent - random.integers(0, DISORDER, count)
    payload = pa.array([f"{stream}-label-{number:03}" for number in range(_LABELS)])
    return pa.table(
        {
            "id": pa.array(random.integers(0, load.keys, count)),
            "other": pa.array(random.integers(0, load.keys, count)),
            "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
            "payload": payload.take(pa.array(random.integers(0, _LABELS, count))),
        }
    )
