"""What a site answers over Arrow Flight: actions about streams, and rows for tickets."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from wjoin.grammar.plain import plain
from wjoin.sites.access import admits
from wjoin.sites.answers import answer, check_columns, weight
from wjoin.sites.failures import SiteError
from wjoin.sites.front import Front, raise_file_limit, tls
from wjoin.sites.held import ExtentAsked
from wjoin.sites.http2 import MessageRoom, Rules
from wjoin.sites.key_counts import COUNTED_BYTES, CountsAsked
from wjoin.sites.limits import MOST_NAME, Calls
from wjoin.sites.protocol import decode_request, facts_to_json, read_json, read_typed
from wjoin.sites.secret_files import read_secret
from wjoin.sites.site import Site
from wjoin.sites.wire import DO_ACTION, DO_GET, Blocks, Message, failure, read_action, read_ticket, result

_STRANGE = failure(SiteError("refused", "the token is missing or wrong"))
_NO_METHOD = failure(SiteError("broken", "a site answers DoAction and DoGet, and no other method"))

_ROOM_SHARE = 8
"""Requests that are under way take this part of the memory at the most, and so do those that are answered."""

_MOST_REQUESTS = 2
"""What is larger than a request may be is refused with a reason; what is so many times as large, unread."""


class SiteServer:
    """Serves a site through its ``front``; ``refused`` counts calls without the token.

    Failures travel as JSON beside their message (wjoin.sites.failures). Actions are "streams" (names, and
    limits of requests), "describe" (a stream), "next" (how far its numbers go), "consumer" (what a query
    still needs), "release" (have it need nothing any more), "filter" (join values that later requests name by
    their digest), "extent" (how many rows a range of numbers has, and their event times), "counts" (how often
    join values come there, by hash: bytes, not JSON), "status" (numbers of all streams) and "ping" (nothing).
    """

    def __init__(self, site: Site, token: str | None) -> None:
        config = site.config
        context = None
        if config.certificate is not None and config.key is not None:
            context = tls(read_secret(config.certificate), read_secret(config.key))
        limits = config.limits
        self.site = site
        self.refused = 0
        self._token = token
        self._calls = Calls(limits.max_calls, config.memory // _ROOM_SHARE)
        raise_file_limit(limits.max_connections)
        room = config.memory // _ROOM_SHARE
        rules = Rules(
            self._admits,
            self._refuses,
            min(_MOST_REQUESTS * limits.max_request_bytes, room),
            MessageRoom(room),
        )
        self.front = Front(
            config.listen,
            context,
            rules,
            limits.max_connections,
            limits.max_calls,
            self._calls.waiting,
            self._answer,
        )
        self.front.start()

    def _admits(self, authorization: str) -> bool:
        admitted = admits(self._token, authorization)
        self.refused += not admitted
        return admitted

    def _refuses(self, path: bytes, known: bool) -> bytes | None:
        if not known:
            return _STRANGE
        return None if path in (DO_ACTION, DO_GET) else _NO_METHOD

    def _answer(self, path: bytes, message: memoryview) -> Iterator[Message]:
        """Yield the answer to a request, and count it where it fails. Raises SiteError."""
        try:
            yield from self._act_on(message) if path == DO_ACTION else self._get(message)
        except Exception as error:
            kind = error.kind if isinstance(error, SiteError) else "failed"
            self.site.counts.add("errors_total", kind=kind)
            raise

    def _act_on(self, message: memoryview) -> Iterator[Message]:
        """Answer an action with one JSON text."""
        self.site.config.limits.check_bytes(len(message))
        kind, body = read_action(message)
        if kind == "counts":
            yield result(self._counts(body))
            return
        if kind == "filter":
            found: Any = {"digest": self.site.filters.push(body).digest}
        else:
            found = self._extent(body) if kind == "extent" else self._act(kind, read_json(body))
        yield result(json.dumps(found).encode())

    def _extent(self, body: bytes) -> Any:
        asked = read_typed(ExtentAsked, body)
        with self._calls.place(0):
            store = self.site.store(asked.stream, asked.lineage)
            self.site.counts.add("requests_total", kind="extent", stream=asked.stream)
            return plain(store.extent(asked.start, asked.stop, asked.ceiling, asked.mark))

    def _counts(self, body: bytes) -> bytes:
        """Answer how often join values come in a range of rows."""
        asked = read_typed(CountsAsked, body)
        asked.check()
        self.site.config.limits.check_rows(asked.stop - asked.start)
        with self._calls.place(COUNTED_BYTES * max(0, asked.stop - asked.start)):
            store = self.site.store(asked.stream, asked.lineage)
            check_columns(store, [asked.column])
            self.site.counts.add("requests_total", kind="counts", stream=asked.stream)
            found = store.counts(asked).encode()
            self.site.counts.add("sent_bytes_total", len(found), kind="counts", stream=asked.stream)
            return found

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

    def _get(self, message: memoryview) -> Iterator[Message]:
        """Answer a request for rows."""
        ticket = read_ticket(message)
        self.site.config.limits.check_bytes(len(ticket))
        request, body = decode_request(ticket)
        with self._calls.place(weight(request, body)):
            schema, found = answer(self.site, request, body)
            blocks = Blocks(schema, pa.ipc.IpcWriteOptions(compression=request.compression))
            counts = self.site.counts
            labels: Any = {"kind": request.kind, "stream": request.stream}
            counts.add("requests_total", **labels)
            yield blocks.schema
            for at, block in enumerate(found):
                block_message, size = blocks.message(block, tell=at == 0)
                yield block_message
                counts.add("sent_rows_total", block.num_rows, **labels)
                counts.add("sent_bytes_total", size, **labels)


def _entry(given: dict[str, Any], name: str, kind: type, *, optional: bool = False) -> Any:
    found = given.get(name)
    if found is None and optional:
        return None
    if not isinstance(found, kind) or isinstance(found, bool):
        raise SiteError("broken", f"the entry {name} of the request is missing or wrong")
    return found
