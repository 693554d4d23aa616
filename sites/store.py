"""The rows of one stream at a site: numbered, in segments on disk and a log, with the source's position."""

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from wjoin.sites import facts, log, segments
from wjoin.sites.dropped import load_dropped
from wjoin.sites.failures import SiteError
from wjoin.sites.held import Extent, HeldRange
from wjoin.sites.key_counts import CountsAsked, KeyCounts, counts_of
from wjoin.sites.key_index import united
from wjoin.sites.log import Frame, Log, Position
from wjoin.sites.protocol import Numbers, StreamFacts, schema_from_text, schema_to_text
from wjoin.sites.reading import Part, Settle, by_number, in_order, parts_of, rows_at
from wjoin.sites.records import empty
from wjoin.sites.reduction import Passing, Reduction, extent_of, kept_ranges
from wjoin.sites.retention import (
    Consumer,
    above,
    expired,
    is_of,
    load_consumers,
)
from wjoin.sites.segments import Piece
from wjoin.sites.sources import StreamConfig

_LOG = logging.getLogger("wjoin.sites")

_PIECES = 32
"""Small batches that are held before they are joined to one: rows by number stay quick to find."""

MOST_CONSUMERS = 1_000
"""Consumers of a stream at the most."""

_SAVED_EVERY = 1.0
_DROPPED = "dropped.json"


Fold = Callable[[Position, Position], Position]
"""How a source's step joins the position before it."""


class StreamStore:
    """The rows of one stream. One thread appends; any number of threads read.

    Readers take the tuple of pieces at once and never see one that changes. A segment is sealed at
    ``segment_bytes``; ``sync`` has each batch on the disk before it is served.
    """

    def __init__(
        self,
        folder: Path,
        stream: StreamConfig,
        fold: Fold,
        settle: Settle = lambda: None,
        segment_bytes: int = 128_000_000,
        sync: bool = False,
    ) -> None:
        self.folder = folder
        self.stream = stream
        self._segment_bytes = segment_bytes
        self._sync = sync
        self._fold = fold
        self._settle = settle
        self._lock = threading.Lock()
        self._next = 0
        self._latest: int | None = None
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.lineage = _lineage(folder, stream)
        self._sealed: tuple[Piece, ...] = ()
        self._open: tuple[Piece, ...] = ()
        self._consumers = {each.name: each for each in load_consumers(folder / "consumers.json")}
        self._saving = threading.Lock()
        self._saved = 0.0
        self.position: Position = {}
        self.forced = 0
        self._log: Log
        self._recover()
        self._dropped = load_dropped(folder / _DROPPED, self.first)

    @property
    def next(self) -> int:
        """The number that the next row gets."""
        return self._next

    @property
    def first(self) -> int:
        """The number of the oldest row kept; ``next`` where none is."""
        pieces = self.pieces()
        return pieces[0].start if pieces else self._next

    @property
    def latest(self) -> int | None:
        """The greatest event time that there ever was and a clock shows, None before the first such row."""
        return self._latest

    def pieces(self) -> tuple[Piece, ...]:
        """Return what is kept, in order of numbers."""
        with self._lock:
            return self._sealed + self._open

    def consumers(self) -> tuple[Consumer, ...]:
        """Return the consumers whose lease goes on."""
        until = time.time() - self.stream.retention.lease
        with self._lock:
            return tuple(each for each in self._consumers.values() if each.seen >= until)

    def disk_bytes(self) -> int:
        """Return the bytes of the stream's files."""
        return sum(each.stat().st_size for each in self.folder.iterdir() if each.is_file())

    def append(self, rows: pa.RecordBatch, step: Position) -> None:
        """Take rows in, and the source's step; both are kept or, with an OSError, neither.

        Rows have the stream's schema, and no NULL as event time.
        """
        self._log.append(Frame(rows, step))
        self._take(rows, step)
        if sum(each.size for each in self._open) >= self._segment_bytes:
            self._seal()
        self.expire()

    def _take(self, rows: pa.RecordBatch, step: Position) -> None:
        self.position = self._fold(self.position, step)
        if rows.num_rows == 0:
            return
        new = segments.piece(self._next, rows, self.stream.time, self.stream.keys)
        pieces = [*self._open, new]
        # As in a log-structured merge: batches of like size are joined, so that a row is copied a few times.
        while len(pieces) > _PIECES or (len(pieces) > 1 and pieces[-2].size <= 2 * pieces[-1].size < 1 << 22):
            pieces[-2:] = [self._merged(pieces[-2:])]
        with self._lock:
            self._open = tuple(pieces)
            self._next = new.stop
            if new.latest is not None:
                self._latest = new.latest if self._latest is None else max(self._latest, new.latest)

    def _merged(self, pieces: Sequence[Piece]) -> Piece:
        rows = segments.joined(pieces)
        found = [each.sketches for each in pieces]
        sketches = {name: united([each[name] for each in found]) for name in self.stream.keys}
        least, greatest = min(each.least for each in pieces), max(each.greatest for each in pieces)
        latest, size = segments.latest_of(pieces), rows.get_total_buffer_size()
        return Piece(pieces[0].start, rows, least, greatest, latest, size, sketches=sketches)

    def _seal(self) -> None:
        """Make a segment of the log's rows, and begin a new log with where the source stands."""
        stream = self.stream
        whole = self._merged(self._open)
        sealed = segments.seal(self.folder, whole, stream.keys, self.position, self._sync)
        before = self.folder / _log_name(whole.start)
        try:
            fresh = self._new_log()
        except OSError:
            # The old log goes on. With the segment there, a restart would take it for sealed as a whole.
            segments.remove_sealed(sealed)
            raise
        self._log.close()
        self._log = fresh
        before.unlink()
        with self._lock:
            self._sealed, self._open = (*self._sealed, sealed), ()

    def _new_log(self) -> Log:
        unfinished = self.folder / "log.part"
        unfinished.unlink(missing_ok=True)
        first = Log(unfinished, self._sync)
        first.append(Frame(empty(self.stream.schema), self.position))
        first.close()
        path = unfinished.rename(self.folder / _log_name(self._next))
        return Log(path, self._sync)

    def _recover(self) -> None:
        """Read what is there: sealed segments, then the log, cut behind its last whole frame."""
        for leftover in self.folder.glob("*.part"):
            leftover.unlink()
        found = [segments.open_sealed(path, self.stream.keys) for path in sorted(self.folder.glob("*.arrow"))]
        self._sealed = tuple(piece for piece, _ in found)
        self._next = self._sealed[-1].stop if self._sealed else 0
        self._latest = segments.latest_of(self._sealed)
        if found:
            self.position = found[-1][1]
        logs = {int(path.stem): path for path in self.folder.glob("*.log")}
        for start, path in sorted(logs.items()):
            if start < self._next:
                # Its rows were sealed, and it could not be removed any more.
                path.unlink()
            else:
                self._read_log(start, path)
                return
        self._log = self._new_log()

    def _read_log(self, start: int, path: Path) -> None:
        self._next = start
        frames = log.recover(path, self.stream.schema)
        for frame in frames:
            self._take(frame.rows, frame.position)
        self._log = Log(path, self._sync)

    def expire(self) -> None:
        """Remove the segments that nobody needs, and the oldest where the disk's bound asks for it."""
        kept, consumers = self.stream.retention, self.consumers()
        sealed = self._sealed
        count = expired(sealed, self._latest, self._next, kept, consumers)
        if kept.most_bytes is not None:
            rest = sealed[count:]
            more = above(
                [*(each.size for each in rest), sum(each.size for each in self._open)], kept.most_bytes
            )
            if more:
                self._forced(rest[:more], consumers)
            count += more
        if count:
            self._drop(sealed[:count])

    def _drop(self, leaving: Sequence[Piece]) -> None:
        """Remove the oldest segments; that they have left is written first, for a kill between the two."""
        dropped = self._dropped.and_also(leaving[-1].stop, segments.latest_of(leaving))
        try:
            segments.write_whole(self.folder / _DROPPED, dropped, sync=self._sync)
        except OSError as error:
            # A full disk must get its room back. A restart sees that the file does not tell of these rows.
            _LOG.warning("stream %s: %s cannot be written: %s", self.stream.name, _DROPPED, error)
        with self._lock:
            self._sealed, self._dropped = self._sealed[len(leaving) :], dropped
        for each in leaving:
            segments.remove_sealed(each)

    def _forced(self, dropped: Sequence[Piece], consumers: Sequence[Consumer]) -> None:
        self.forced += sum(each.rows.num_rows for each in dropped)
        waiting = [each.name for each in consumers if each.read < dropped[-1].stop]
        _LOG.warning(
            "stream %s: rows below %d are dropped, as its files are larger than max_bytes%s",
            self.stream.name,
            dropped[-1].stop,
            f"; not yet read by {', '.join(waiting)}" if waiting else "",
        )

    def keep_for(self, name: str, read: int, floor: int | None) -> None:
        """Remember how far a consumer has read, and the least event time that it may still ask for.

        Raises SiteError "limit" for one more than there may be.
        """
        now = time.time()
        with self._lock:
            fresh = name not in self._consumers
            if fresh and len(self._consumers) >= MOST_CONSUMERS:
                until = now - self.stream.retention.lease
                self._consumers = {key: each for key, each in self._consumers.items() if each.seen >= until}
            if fresh and len(self._consumers) >= MOST_CONSUMERS:
                raise SiteError(
                    "limit",
                    f"stream {self.stream.name} has {MOST_CONSUMERS} consumers already",
                    help="release those that are no longer needed: wjoin site release",
                )
            self._consumers[name] = Consumer(name, read, floor, now)
        # A consumer that is told anew soon tells again: what is on disk asks for more rows, not for less.
        if fresh or now - self._saved >= _SAVED_EVERY:
            self._save_consumers()

    def release(self, name: str) -> tuple[str, ...]:
        """Forget the consumers of a name, or of a query by its id; return their names.

        Rows that nobody needs any more go when the stream is looked at next.
        """
        with self._lock:
            found = tuple(each for each in self._consumers if is_of(each, name))
            self._consumers = {key: each for key, each in self._consumers.items() if key not in found}
        if found:
            self._save_consumers()
        return found

    def _save_consumers(self) -> None:
        """Write the consumers; those who read or append do not wait for it."""
        with self._saving:
            self._saved = time.time()
            with self._lock:
                known = [*self._consumers.values()]
            segments.write_whole(self.folder / "consumers.json", known)

    def _parts(self, start: int, stop: int) -> list[Part]:
        return parts_of(self.pieces(), self._next, start, stop, self.stream.name)

    def rows(self, start: int, stop: int, columns: Sequence[str], block: int) -> Iterator[pa.RecordBatch]:
        """Return rows start..stop-1 in batches of ``block`` rows or less: ROW, then the columns.

        Raises SiteError "gone" or "broken" at once.
        """
        return in_order(self._parts(start, stop), columns, block, self._settle)

    def full(self, numbers: Numbers, columns: Sequence[str]) -> pa.RecordBatch:
        """Return rows by number, in the order of the numbers. Raises SiteError "gone" or "broken"."""
        if len(numbers) == 0:
            return empty(pa.schema([self.stream.schema.field(name) for name in columns]))
        parts = self._parts(int(numbers.min()), int(numbers.max()) + 1)
        return by_number(parts, numbers, columns, self._settle)

    def extent(self, start: int, stop: int, ceiling: int, mark: int | None) -> Extent:
        """Return how many rows start..stop-1 are, and their event times.

        Raises SiteError "gone" or "broken".
        """
        return extent_of(self._parts(start, stop), self.stream.time, ceiling, mark, self._settle)

    def counts(self, asked: CountsAsked) -> KeyCounts:
        """Return how often values of a column come in a range.

        Rows that have left the window with an event time before what is asked for are not missed. Raises
        SiteError "gone", "broken" or "schema".
        """
        with self._lock:
            pieces, dropped = self._sealed + self._open, self._dropped
        first, start = pieces[0].start if pieces else self._next, asked.start
        if start < first and dropped.only_before(start, asked.low):
            start = min(first, asked.stop)
        parts = parts_of(pieces, self._next, start, asked.stop, self.stream.name)
        return counts_of(parts, self.stream.time, asked, self._settle)

    def reduced(
        self,
        ranges: Sequence[HeldRange],
        passing: Passing,
        high: int | None,
        columns: Sequence[str],
        block: int,
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows of disjoint, ascending ranges with event times up to ``high`` that pass.

        In batches of ``block`` rows or less, in order of numbers: ROW, then the columns. Rows that have left
        the window with an event time before their range's low are not missed. Raises SiteError "gone" or
        "broken" at once.
        """
        with self._lock:
            pieces, dropped = self._sealed + self._open, self._dropped
        kept = kept_ranges(pieces, self._next, ranges, dropped, self.stream.name)
        reduction = Reduction(kept, passing, self.stream.time, high, self.stream.keys)
        return rows_at(reduction.rows(pieces), columns, block, self._settle)

    def facts(self) -> StreamFacts:
        """Return what is known of the stream."""
        stream, pieces = self.stream, self.pieces()
        least = min((each.least for each in pieces), default=None)
        latest = self._latest
        return StreamFacts(
            stream=stream.name,
            lineage=self.lineage,
            schema=stream.schema,
            time=stream.time,
            first=pieces[0].start if pieces else self._next,
            next=pieces[-1].stop if pieces else self._next,
            latest=latest,
            span=None if least is None or latest is None else max(0, latest - least),
            window=stream.retention.window,
            rate=facts.rate(pieces, stream.schema.field(stream.time).type),
            widths=self.widths(),
            distinct=facts.distinct(pieces, stream.keys),
            packed=facts.packed(pieces[-2:], stream.schema),
        )

    def widths(self) -> dict[str, float]:
        """Return the average bytes of a row by column, before compression."""
        return facts.widths(self.pieces()[-2:], self.stream.schema)

    def let_go(self) -> None:
        """Have mapped pages leave this process."""
        segments.let_go(self._sealed)

    def close(self) -> None:
        """Write no more."""
        if self._consumers:
            self._save_consumers()
        self._log.close()


def _log_name(start: int) -> str:
    return f"{start:020}.log"


def known_schema(folder: Path) -> pa.Schema | None:
    """Return the schema of a stream's folder, None where none has been made."""
    file = folder / "stream.json"
    return schema_from_text(json.loads(file.read_text("utf-8"))["schema"]) if file.exists() else None


def _lineage(folder: Path, stream: StreamConfig) -> str:
    """Return the stream's lineage, a new one where the folder is new. Raises SiteError "schema"."""
    file = folder / "stream.json"
    if file.exists():
        known = json.loads(file.read_text("utf-8"))
        if not schema_from_text(known["schema"]).equals(stream.schema):
            message = f"the columns of stream {stream.name} differ from those in its data folder {folder}"
            raise SiteError(
                "schema", message, help="delete that folder to start the stream again from nothing"
            )
        return str(known["lineage"])
    made = {"lineage": str(uuid.uuid4()), "schema": schema_to_text(stream.schema)}
    segments.write_whole(file, made, sync=True)
    return str(made["lineage"])
