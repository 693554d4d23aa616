"""The rows of the benchmark: three streams as Parquet files, one file a stream and micro-batch."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

STREAMS = ("a", "b", "c")
ROWS_PER_SECOND = 10_000
"""Rows that each stream sends in a second of event time."""

DISORDER = 1_000_000
"""How far, in microseconds, a row may lie behind one that was sent before it."""

_START = 1_700_000_000_000_000
_LABELS = 1000
_KEYS_PER_WINDOW_SECOND = 20_800


@dataclass(frozen=True)
class Load:
    """One set of streams: the window in seconds, rows of a micro-batch (all streams), micro-batches."""

    window: int
    batch_rows: int
    batches: int

    @property
    def keys(self) -> int:
        """How many distinct keys there are: a longer window has more, so that a row matches as often.

        A row of one stream meets 75 w²r² / 25 k² pairs of rows of the other two, for window w,
        r rows a second and k keys; this k makes it 0.23 results for each row of any stream.
        """
        return _KEYS_PER_WINDOW_SECOND * self.window


def write_streams(load: Load, folder: Path) -> None:
    """Write every stream of a load below ``folder``, files named in the order of their micro-batch."""
    random = np.random.default_rng(2002)
    rows = load.batch_rows // len(STREAMS)
    for stream in STREAMS:
        (folder / stream).mkdir(parents=True)
    for batch in range(load.batches):
        for stream in STREAMS:
            table = _rows(random, load, stream, batch * rows, rows)
            pq.write_table(table, folder / stream / f"{batch:04}.parquet")


def _rows(random: np.random.Generator, load: Load, stream: str, first: int, rows: int) -> pa.Table:
    sent = _START + (first + np.arange(rows)) * (1_000_000 // ROWS_PER_SECOND)
    times = sent - random.integers(0, DISORDER, rows)
    payload = pa.array([f"{stream}-label-{number:03}" for number in range(_LABELS)])
    return pa.table(
        {
            "id": pa.array(random.integers(0, load.keys, rows)),
            "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
            "payload": payload.take(pa.array(random.integers(0, _LABELS, rows))),
        }
    )
