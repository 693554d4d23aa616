"""How long a row waits for its results: from its file's appearing to their commit by the sink."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from command import running
from feed import STREAMS, Feed, Offered, script
from sink_log import commits


@dataclass(frozen=True)
class Latency:
    """Seconds between the appearing of the file that completes a result and the commit of the result.

    ``results`` is how many were looked at, ``batches`` in how many micro-batches they came.
    """

    p50: float
    p99: float
    results: int
    batches: int


def latency(warm_up: float, seconds: float, settings: Mapping[str, str], scratch: str | None) -> Latency:
    """Run a script as a user does while files appear, and measure for so many seconds.

    That begins ``warm_up`` seconds after the first commit: by then the query has caught up with what came
    while it was starting.

    Raises RuntimeError where the command fails.
    """
    offered = Offered()
    with tempfile.TemporaryDirectory(prefix="wjoin-latency-", dir=scratch) as folder:
        root = Path(folder)
        (root / "join.sql").write_text(script(offered, root, tidy=False))
        with running(root, settings) as process:
            with Feed(offered, root) as feed:
                begun = root / "joined" / "_spark_metadata" / "0"
                while not begun.exists() and process.poll() is None:
                    time.sleep(0.2)
                first = time.time() + warm_up
                last = first + seconds
                while time.time() < last and process.poll() is None:
                    time.sleep(0.2)
            _drain(root / "joined")
        return _measured(root / "joined", feed.appeared, offered, first, last)


def _drain(sink: Path) -> None:
    """Wait until nothing more is committed: what appeared last must not be missing among the slow ones."""
    found = commits(sink)
    while True:
        time.sleep(5)
        before, found = found, commits(sink)
        if len(found) == len(before):
            return


def _measured(
    sink: Path, appeared: Mapping[str, Sequence[float]], offered: Offered, first: float, last: float
) -> Latency:
    """Return the latency of the results whose last file appeared between two moments."""
    found, batches = [], set()
    for path, moment in commits(sink).items():
        table = pq.read_table(path, columns=[f"{stream}_line" for stream in STREAMS])
        complete = np.full(table.num_rows, -np.inf)
        for stream in STREAMS:
            files = table[f"{stream}_line"].to_numpy() // offered.file_rows
            complete = np.maximum(complete, np.asarray(appeared[stream])[files])
        counted = (complete >= first) & (complete <= last)
        found.append(moment - complete[counted])
        if counted.any():
            batches.add(moment)
    waited = np.concatenate(found)
    p50, p99 = np.quantile(waited, [0.5, 0.99])
    return Latency(float(p50), float(p99), len(waited), len(batches))
