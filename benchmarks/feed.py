"""Streams whose files appear in real time, and the script that joins them."""

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

STREAMS = ("a", "b", "c")

_SCRIPT = """
CREATE STREAM {stream} (id BIGINT, line BIGINT, ts TIMESTAMP, payload STRING)
USING parquet OPTIONS (path '{source}/{stream}'{clean})
WATERMARK ts DELAY OF INTERVAL 1 SECOND{idle};
"""
_QUERY = """
CREATE SINK joined USING parquet OPTIONS (path '{sink}'{retention});
INSERT INTO joined
SELECT a.id, a.line AS a_line, b.line AS b_line, c.line AS c_line, a.ts AS a_ts, b.payload AS b_payload
FROM a, b, c WINDOW = {window} SECONDS
WHERE a.id = b.id AND b.id = c.id;
"""
_LEFT_QUERY = """
CREATE SINK joined USING parquet OPTIONS (path '{sink}'{retention});
INSERT INTO joined
SELECT a.id, a.line AS a_line, b.line AS b_line, a.ts AS a_ts, b.payload AS b_payload
FROM a LEFT JOIN b ON a.id = b.id WINDOW (a, b) = {window} SECONDS;
"""


@dataclass(frozen=True)
class Offered:
    """What is offered: rows a second and files a second of each stream, and the window in seconds.

    With ``silent_after`` a LEFT JOIN of the first two streams takes the place of the join of three, and
    the second one sends nothing more after so many seconds; ``idle`` is what its IDLE AFTER says.
    """

    rate: int = 5_000
    files: int = 2
    window: int = 5
    silent_after: int | None = None
    idle: str = ""

    @property
    def file_rows(self) -> int:
        """The rows of a file."""
        return self.rate // self.files

    @property
    def keys(self) -> int:
        """As many keys as make 0.23 results for each row, see ``streams.Load``."""
        return round(2.08 * self.rate * self.window)


def script(offered: Offered, root: Path, *, tidy: bool) -> str:
    """Return the script that joins the files below ``root``/source into ``root``/joined.

    ``tidy`` lets Spark delete files that it has read, and forget in the sink's log what is old.
    """
    clean, retention = (", cleanSource 'delete'", ", retention '120s'") if tidy else ("", "")
    source = root / "source"
    idle = f" IDLE AFTER INTERVAL {offered.idle}" if offered.idle else ""
    streams = (_SCRIPT.format(stream=stream, source=source, clean=clean, idle=idle) for stream in STREAMS)
    query = _QUERY if offered.silent_after is None else _LEFT_QUERY
    query = query.format(sink=root / "joined", window=offered.window, retention=retention)
    return "".join(streams) + query


@dataclass
class Feed:
    """Renames one file a stream into its folder whenever it is due, from ``with`` to its end.

    ``appeared`` has the moment (seconds since the epoch) of each file, by stream and number. Line n of a
    stream is in file n // ``file_rows``. Streams take turns: their files do not appear together.
    """

    offered: Offered
    root: Path
    appeared: dict[str, list[float]] = field(default_factory=lambda: {stream: [] for stream in STREAMS})
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        (self.root / "ready").mkdir()
        for stream in STREAMS:
            (self.root / "source" / stream).mkdir(parents=True)

    def __enter__(self) -> "Feed":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        random, began, number = np.random.default_rng(2002), time.monotonic(), 0
        pause = 1 / self.offered.files / len(STREAMS)
        try:
            while True:
                for place, stream in enumerate(STREAMS):
                    if self._is_silent(stream, number):
                        continue
                    path = self.root / "ready" / f"{stream}-{number:07}.parquet"
                    pq.write_table(self._rows(random, stream, number), path)
                    due = began + (number * len(STREAMS) + place) * pause
                    if self._stop.wait(max(0.0, due - time.monotonic())):
                        return
                    path.rename(self.root / "source" / stream / path.name)
                    self.appeared[stream].append(time.time())
                number += 1
        except OSError as error:
            self.error = error

    def _is_silent(self, stream: str, number: int) -> bool:
        after = self.offered.silent_after
        return after is not None and stream == STREAMS[1] and number >= after * self.offered.files

    def _rows(self, random: np.random.Generator, stream: str, number: int) -> pa.Table:
        count = self.offered.file_rows
        lines = number * count + np.arange(count)
        sent = 1_700_000_000_000_000 + lines * 1_000_000 // self.offered.rate
        labels = pa.array([f"{stream}-label-{each:03}" for each in range(1000)])
        return pa.table(
            {
                "id": random.integers(0, self.offered.keys, count),
                "line": lines,
                "ts": pa.array(sent - random.integers(0, 500_000, count)).cast(pa.timestamp("us", tz="UTC")),
                "payload": labels.take(pa.array(random.integers(0, 1000, count))),
            }
        )
