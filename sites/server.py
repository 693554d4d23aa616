"""The Arrow Flight server of a site: actions about streams, and streams of rows for tickets."""

import json
import logging
import os
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from wjoin.sites.access import TokenCheck, admits
from wjoin.sites.answers import answer, weight
from wjoin.sites.failures import SiteError, packed
from wjoin.sites.front import Front, raise_file_limit, tls
from wjoin.sites.http2 import Room, Rules
from wjoin.sites.limits import MOST_NAME, Calls, Lease
from wjoin.sites.protocol import decode_request, facts_to_json, read_json
from wjoin.sites.secret_files import read_secret
from wjoin.sites.site import Site

_LOG = logging.getLogger("wjoin.sites")

_NO_METHOD = SiteError("broken", "a site answers DoAction and DoGet, and no other method")

_ROOM_SHARE = 8
"""Requests that are under way take this part of the memory at the most, and so do those that are answered."""

_MOST_REQUESTS = 2
"""What is larger than a request may be is refused with a reason; what is so many times as large, unread."""


class SiteServer(flight.FlightServerBase):  # type: ignore[misc]
    """Serves a site. Failures travel as JSON beside their message (wjoin.sites.failures)."""

    def __init__(self, site: Site, token: str | None) -> None:
        config = site.config
        context = None
        if config.certificate is not None and config.key is not None:
            context = tls(read_secret(config.certificate), read_secret(config.key))
        limits = config.limits
        self.site = site
        self.check = TokenCheck(token)
        self._calls = Calls(limits.max_calls, config.memory // _ROOM_SHARE)
        raise_file_limit(limits.max_connections)
        rules = Rules(
            lambda headers: admits(token, headers),
            min(_MOST_REQUESTS * limits.max_request_bytes, config.memory // _ROOM_SHARE),
            Room(config.memory // _ROOM_SHARE),
        )
        self.front = Front(config.listen, context, rules, limits.max_connections, self._calls.waiting)
        super().__init__(f"grpc+unix://{self.front.door}", middleware={"token": self.check})
        self.front.start()

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """Return what can be asked besides rows."""
        return [
            ("streams", "names, and limits of requests"),
            ("describe", "a stream"),
            ("next", "how far the numbers go"),
            ("consumer", "what a query still needs"),
            ("release", "have a query need nothing any more"),
            ("filter", "join values that later requests name by their digest"),
            ("status", "numbers of all streams"),
            ("ping", "nothing"),
        ]

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """Answer an action with one JSON text."""
        try:
            body = action.body.to_pybytes() if action.body is not None else b""
            self.site.config.limits.check_bytes(len(body))
            found = self._push(body) if action.type == "filter" else self._act(action.type, read_json(body))
        except Exception as error:
            raise self._told(error) from error
        return iter([json.dumps(found).encode()])

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """Refuse: a site has actions and tickets only."""
        raise self._failure(_NO_METHOD)

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Refuse, as above."""
        raise self._failure(_NO_METHOD)

    do_exchange = do_put
    list_flights = get_flight_info

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """Return no columns: pyarrow answers with a traceback where this refuses, as the others do."""
        return flight.SchemaResult(pa.schema([]))

    def _push(self, body: bytes) -> dict[str, Any]:
        return {"digest": self.site.filters.push(body).digest}

    def _act(self, kind: str, given: dict[str, Any]) -> Any:
        if kind == "ping":
            return {}
        if kind == "status":
            return {"streams": self.site.status(), "pid": os.getpid()}
        if kind == "streams":
            limits = self.site.config.limits
            names = [each.name for each in self.site.config.streams]
            return {
                "streams": names,
                "max_request_rows": limits.max_request_rows,
                "max_request_bytes": limits.max_request_bytes,
            }
        if kind == "release":
            return {"released": self.site.release(_entry(given, "name", str))}
        if kind not in ("describe", "next", "consumer"):
            raise SiteError("broken", f"there is no action {kind:.60}")
        lineage = _entry(given, "lineage", str, optional=True)
        store = self.site.store(_entry(given, "stream", str), lineage)
        if kind == "describe":
            return facts_to_json(store.facts())
        if kind == "consumer":
            name, read = _entry(given, "name", str), _entry(given, "read", int)
            floor = _entry(given, "floor", int, optional=True)
            if not 0 < len(name) <= MOST_NAME or not name.isprintable():
                message = f"the name of a consumer has 1 to {MOST_NAME} characters, and all of them print"
                raise SiteError("broken", message)
            if not 0 <= read <= store.next:
                raise SiteError("broken", f"a consumer cannot have read up to row {read}")
            store.keep_for(name, read, floor)
        return {"next": store.next}

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Answer a request for rows."""
        lease: Lease | None = None
        try:
            given = ticket.ticket
            self.site.config.limits.check_bytes(len(given))
            request, body = decode_request(given)
            lease = self._calls.begin(context.peer(), weight(self.site, request, body))
            schema, blocks = answer(self.site, request, body)
            options = pa.ipc.IpcWriteOptions(compression=request.compression)
        except Exception as error:
            if lease is not None:
                lease.release()
            raise self._told(error) from error
        self.site.counts.add("requests_total", kind=request.kind, stream=request.stream)
        sent = self._counted(lease, request.kind, request.stream, blocks, options)
        return flight.GeneratorStream(schema, sent, options)

    def _counted(
        self, lease: Lease, kind: str, stream: str, blocks: Iterator[pa.RecordBatch], options: Any
    ) -> Iterator[tuple[pa.RecordBatch, bytes] | pa.RecordBatch]:
        """Yield blocks; the first has beside it how many bytes it has on the way, and without compression."""
        ratio: float | None = None
        try:
            for block in blocks:
                plain = pa.ipc.get_record_batch_size(block)
                told = None
                if ratio is None:
                    travels = plain if options.compression is None else _message_bytes(block, options)
                    ratio = travels / plain
                    told = json.dumps({"bytes": travels, "plain": plain}).encode()
                lease.sending = time.monotonic()
                yield block if told is None else (block, told)
                lease.sending = None
                counts = self.site.counts
                counts.add("sent_rows_total", block.num_rows, kind=kind, stream=stream)
                counts.add("sent_bytes_total", int(ratio * plain), kind=kind, stream=stream)
        except Exception as error:
            raise self._told(error) from error
        finally:
            lease.release()

    def _told(self, error: Exception) -> Exception:
        """Return an error as it travels."""
        return self._failure(error) if isinstance(error, SiteError) else self._unexpected(error)

    def _failure(self, error: SiteError) -> Exception:
        self.site.counts.add("errors_total", kind=error.kind)
        kind = flight.FlightUnavailableError if error.kind == "busy" else flight.FlightServerError
        return kind(error.message, packed(error))  # type: ignore[no-any-return]

    def _unexpected(self, error: Exception) -> Exception:
        _LOG.error("a request failed: %s: %s", type(error).__name__, error, exc_info=error)
        message = f"the site could not answer: {type(error).__name__}; see its log"
        return self._failure(SiteError("failed", message))


def _message_bytes(block: pa.RecordBatch, options: Any) -> int:
    sink = pa.MockOutputStream()
    with pa.ipc.new_stream(sink, block.schema, options=options) as writer:
        before = sink.size()
        writer.write_batch(block)
        return int(sink.size() - before)


def _entry(given: dict[str, Any], name: str, kind: type, *, optional: bool = False) -> Any:
    found = given.get(name)
    if found is None and optional:
        return None
    if not isinstance(found, kind) or isinstance(found, bool):
        raise SiteError("broken", f"the entry {name} of the request is missing or wrong")
    return found
