"""Takes rows of a source into a store, in a thread of its own, and begins again where that fails."""

import logging
import math
import threading
import time

import numpy as np
import pyarrow as pa

from wjoin.grammar.plurals import counted
from wjoin.sites.far import greatest_time
from wjoin.sites.records import Read
from wjoin.sites.segments import times
from wjoin.sites.sources import Source
from wjoin.sites.store import StreamStore

_LOG = logging.getLogger("wjoin.sites")
_LONGEST_PAUSE = 30.0
_TOLD_EVERY = 10.0


class Intake:
    """The thread between a source and a store. ``taken``, ``broken`` and ``undated`` count its rows."""

    def __init__(self, store: StreamStore, source: Source) -> None:
        self.taken = 0
        self.broken = 0
        self.undated = 0
        self.failing = False
        self.ended = False
        self._told = 0
        self._told_at = -math.inf
        self._store = store
        self._source = source
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"site-{store.stream.name}", daemon=True)

    def start(self) -> None:
        """Begin to take rows in."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more rows in; returns when the last batch is whole."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        pause = 0.5
        while not self._stop.is_set():
            try:
                for taken in self._source.batches(self._store.position, self._stop):
                    self.failing, pause = False, 0.5
                    if taken is None:
                        self._store.expire()
                    else:
                        self._store.append(self._dated(taken.read), taken.step)
                    if time.monotonic() > self._told_at + _TOLD_EVERY:
                        self._tell()
                    if self._stop.is_set():
                        return
                self.ended = True
                self._tell()
                return
            except Exception as error:  # noqa: BLE001 (whatever a record does to it, the next ones are taken in)
                self.failing = True
                _LOG.error(
                    "stream %s: %s: %s; again in %.1f s",
                    *(self._store.stream.name, type(error).__name__, error, pause),
                )
                self._stop.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _tell(self) -> None:
        """Log how many rows have come since this was told last."""
        if self.taken > self._told:
            name, fresh = self._store.stream.name, self.taken - self._told
            _LOG.info(
                "stream %s: %s taken in, %d since the start", name, counted(fresh, "new row"), self.taken
            )
            self._told, self._told_at = self.taken, time.monotonic()

    def _dated(self, read: Read) -> pa.RecordBatch:
        """Return the rows that have an event time, and count the others."""
        rows, name = read.rows, self._store.stream.name
        if read.broken:
            self.broken += read.broken
            _LOG.warning(
                "stream %s: %s, such as %s", name, counted(read.broken, "broken record"), read.example
            )
        there = np.asarray(rows.column(self._store.stream.time).is_valid())
        without = len(there) - int(there.sum())
        if without:
            self.undated += without
            _LOG.warning("stream %s: %s without event time left out", name, counted(without, "row"))
            rows = rows.filter(pa.array(there))
        self.taken += rows.num_rows
        self._tell_of_far(rows)
        return rows

    def _tell_of_far(self, rows: pa.RecordBatch) -> None:
        """Log how many rows are later than any clock shows."""
        stream = self._store.stream
        far = int(
            np.count_nonzero(times(rows, stream.time) > greatest_time(stream.schema.field(stream.time).type))
        )
        if far:
            _LOG.warning(
                "stream %s: %s of the far future; they do not move its window, and joins drop them",
                *(stream.name, counted(far, "row")),
            )
