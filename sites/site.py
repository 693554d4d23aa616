"""A site as a whole: the stores of its streams, what fills them, and what is told of them."""

import logging
import resource
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from wjoin.grammar.errors import WJoinError
from wjoin.sites.config import SiteConfig, check_columns
from wjoin.sites.exposition import Metric
from wjoin.sites.failures import SiteError
from wjoin.sites.filters import Filters
from wjoin.sites.intake import Intake
from wjoin.sites.memory import Memory, memory_of_process
from wjoin.sites.metrics import RequestCounts
from wjoin.sites.retention import Consumer
from wjoin.sites.source_folder import FolderSource, first_schema
from wjoin.sites.source_kafka import KafkaSource, client_library
from wjoin.sites.source_lines import LineSource
from wjoin.sites.sources import KAFKA, STANDARD_INPUT, Source, StreamConfig
from wjoin.sites.store import StreamStore, known_schema

_LOG = logging.getLogger("wjoin.sites")


@dataclass(frozen=True)
class Served:
    """A stream that is served: its store, and what fills it."""

    store: StreamStore
    intake: Intake


_NUMBERS: tuple[tuple[str, str, str, Callable[[Served], float]], ...] = (
    ("rows_total", "counter", "Rows taken in.", lambda each: each.intake.taken),
    ("source_failing", "gauge", "1 while the source fails.", lambda each: each.intake.failing),
    ("first_row", "gauge", "The oldest row kept.", lambda each: each.store.first),
    ("next_row", "gauge", "The number of the next row.", lambda each: each.store.next),
    ("kept_rows", "gauge", "Rows kept.", lambda each: each.store.next - each.store.first),
    ("kept_bytes", "gauge", "Bytes on disk.", lambda each: each.store.disk_bytes()),
    ("dropped_rows_total", "counter", "Rows max_bytes has dropped.", lambda each: each.store.forced),
)
"""The metrics of a stream that are one number."""


class Site:
    """The streams of a site. A stream whose columns its first file tells is there when that file is."""

    def __init__(self, config: SiteConfig) -> None:
        self.config = config
        self.counts = RequestCounts()
        self.filters = Filters(config.limits.max_filter_bytes)
        # A piece of work maps a segment at the most, before it is seen.
        self._memory = Memory(config.memory - 2 * config.segment_bytes, self._let_go)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._served: dict[str, Served] = {}
        self._waiting: list[threading.Thread] = []
        for stream in config.streams:
            if stream.source.startswith(KAFKA):
                client_library()
            elif stream.source != STANDARD_INPUT and not Path(stream.source).is_dir():
                raise WJoinError("WJ903", f"streams.{stream.name}.source: {stream.source} is not a folder")

    def start(self) -> None:
        """Begin to take rows in. Raises WJoinError WJ903 or WJ904."""
        for stream in self.config.streams:
            schema = stream.schema or known_schema(self._folder(stream))
            if schema is not None:
                self._serve(stream, schema)
            else:
                waiting = threading.Thread(
                    target=self._wait_for_schema,
                    args=(stream,),
                    name=f"site-{stream.name}-schema",
                    daemon=True,
                )
                self._waiting.append(waiting)
                waiting.start()

    def _folder(self, stream: StreamConfig) -> Path:
        return self.config.data / stream.name

    def _wait_for_schema(self, stream: StreamConfig) -> None:
        try:
            schema = first_schema(Path(stream.source), self._stop, stream.poll, f"streams.{stream.name}")
            if schema is not None:
                self._serve(stream, schema)
        except WJoinError as error:
            _LOG.error("stream %s is not served: %s", stream.name, error)

    def _serve(self, stream: StreamConfig, schema: pa.Schema) -> None:
        check_columns(schema, stream.time, stream.keys, f"streams.{stream.name}")
        stream = replace(stream, schema=schema)
        source, how = _source(stream), (self.config.segment_bytes, self.config.sync)
        try:
            store = StreamStore(self._folder(stream), stream, source.fold, self._memory.settle, *how)
        except (OSError, SiteError, pa.ArrowException, ValueError) as error:
            raise WJoinError("WJ903", f"streams.{stream.name}: its data cannot be read: {error}") from error
        served = Served(store, Intake(store, source))
        with self._lock:
            self._served[stream.name] = served
        _LOG.info("stream %s: rows %d to before %d are there", stream.name, store.first, store.next)
        served.intake.start()

    def stop(self) -> None:
        """Take no more rows in; what was taken is whole on disk."""
        self._stop.set()
        for each in [*self.served().values()]:
            each.intake.stop()
            each.store.close()

    def served(self) -> Mapping[str, Served]:
        """Return the streams that are there, by name."""
        with self._lock:
            return dict(self._served)

    def store(self, stream: str, lineage: str | None) -> StreamStore:
        """Return a stream's store. Raises SiteError "schema" or "lineage"."""
        found = self.served().get(stream)
        if found is None:
            known = [each.name for each in self.config.streams]
            if stream in known:
                raise SiteError("busy", f"stream {stream} waits for its first file to learn its columns")
            help = f"its streams are {', '.join(known)}"
            raise SiteError("schema", f"there is no stream {stream:.100}", help=help)
        if lineage is not None and lineage != found.store.lineage:
            raise SiteError(
                "lineage",
                f"stream {stream} was started again from nothing: "
                f"its lineage is {found.store.lineage}, not {lineage:.40}",
                help="start the query with a new checkpoint, or restore the site's data folder",
            )
        return found.store

    def release(self, name: str) -> dict[str, list[str]]:
        """Forget a consumer by its name, or those of a query by its id; return their names by stream."""
        found = {stream: [*each.store.release(name)] for stream, each in self.served().items()}
        for stream, names in found.items():
            for each in names:
                _LOG.info("stream %s: nothing is kept for %s any more, as somebody has asked", stream, each)
        return {stream: names for stream, names in found.items() if names}

    def _let_go(self) -> None:
        for each in self.served().values():
            each.store.let_go()

    def metrics(self) -> Iterator[Metric]:
        """Yield the numbers of the streams, and of requests."""
        served = self.served()
        for name, kind, help, value in _NUMBERS:
            samples = tuple(({"stream": stream}, value(each)) for stream, each in served.items())
            yield Metric(f"wjoin_site_{name}", kind, help, samples)
        broken = tuple(
            ({"stream": name, "reason": reason}, float(count))
            for name, each in served.items()
            for reason, count in (("unreadable", each.intake.broken), ("no_time", each.intake.undated))
        )
        yield Metric("wjoin_site_broken_records_total", "counter", "Records left out.", broken)
        lag = tuple(
            ({"stream": name, "consumer": consumer.name}, float(each.store.next - consumer.read))
            for name, each in served.items()
            for consumer in each.store.consumers()
        )
        yield Metric("wjoin_site_consumer_lag_rows", "gauge", "Rows a consumer has not read.", lag)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        for name, help, size in (
            ("filter_bytes", "Bytes of filters.", self.filters.size),
            ("resident_bytes", "Memory now.", memory_of_process()[0]),
            ("peak_resident_bytes", "The most memory so far.", peak),
        ):
            yield Metric(f"wjoin_site_{name}", "gauge", help, (({}, float(size)),))
        yield from self.counts.metrics()

    def status(self) -> list[dict[str, Any]]:
        """Return a row for each stream of what `wjoin site status` prints."""
        served = self.served()
        return [_status(each, served.get(each.name)) for each in self.config.streams]


def _status(stream: StreamConfig, served: Served | None) -> dict[str, Any]:
    if served is None:
        return {"stream": stream.name, "state": "waits for its first file"}
    store, intake = served.store, served.intake
    state = "source fails" if intake.failing else "source has ended" if intake.ended else "takes rows"
    return {
        "stream": stream.name,
        "state": state,
        "first": store.first,
        "next": store.next,
        "bytes": store.disk_bytes(),
        "latest": store.latest,
        "broken": intake.broken + intake.undated,
        "consumers": {each.name: _consumer_status(each, store.next) for each in store.consumers()},
    }


def _consumer_status(consumer: Consumer, next: int) -> dict[str, Any]:
    silent = max(0.0, time.time() - consumer.seen)
    return {"behind": next - consumer.read, "floor": consumer.floor, "silent": round(silent, 1)}


def _source(stream: StreamConfig) -> Source:
    if stream.source == STANDARD_INPUT:
        return LineSource(stream)
    if not stream.source.startswith(KAFKA):
        return FolderSource(stream)
    servers, _, topic = stream.source.removeprefix(KAFKA).rpartition("/")
    if not servers or not topic:
        message = f"streams.{stream.name}.source: {stream.source} has no topic"
        raise WJoinError("WJ901", message, help="write kafka://host:port/topic")
    return KafkaSource(servers, topic, stream)
