"""What asks a site for facts and rows: it waits for a site that cannot be reached, and goes on exactly."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from wjoin.grammar.plain import plain, typed
from wjoin.grammar.plurals import counted
from wjoin.sites.calls import Caller
from wjoin.sites.failures import SiteError
from wjoin.sites.held import (
    MOST_RANGES,
    RANGE_BYTES,
    Extent,
    ExtentAsked,
    HeldRange,
    Wanted,
    behind,
    disjoint,
    encode_wanted,
)
from wjoin.sites.key_counts import CountsAsked, KeyCounts
from wjoin.sites.protocol import (
    ROW,
    MeasuredLink,
    Numbers,
    RowsRequest,
    SiteAddress,
    StreamFacts,
    encode_numbers,
    encode_request,
    facts_from_json,
)
from wjoin.sites.value_filter import ValueFilter

_NEWEST_PING = 5
_LEAST_PROBE, _GREATEST_PROBE = 64_000, 4_000_000
_PROBE_GROWS = 4
_PROBE_SECONDS = 0.02
"""A probe that has taken so long, and some times the latency, tells the rate well enough."""

_PROBE_LATENCIES = 5
_REQUEST_ROWS = 262_144
"""Rows of one call at the most: it ends within its time also on a slow link, and takes little memory."""


class SiteClient:
    """Asks one site; any number of threads may, after a fork only a client that was made after it.

    All methods try again where the site cannot be reached, is slow, busy or restarting, until the address's
    ``patience`` is over, and raise SiteError. ``sent`` and ``received`` count bytes of messages by kind:
    "rows", "full", "reduced", "probe" and "action"; of compressed blocks by the first one
    of each call. ``block_bytes`` is how many bytes before compression a block of an answer has at the most
    (wjoin.sites.block_size tells it by the link), None for the site's own choice.
    """

    def __init__(
        self, address: SiteAddress, *, compression: str | None = "zstd", block_bytes: int | None = None
    ) -> None:
        self._caller = Caller(address)
        self._compression = compression
        self._block_bytes = block_bytes
        self._limits: dict[str, int] | None = None

    @property
    def sent(self) -> dict[str, int]:
        """Bytes sent by kind."""
        return dict(self._caller.sent)

    @property
    def received(self) -> dict[str, int]:
        """Bytes received by kind."""
        return dict(self._caller.received)

    def streams(self) -> tuple[str, ...]:
        """Return the names of the site's streams."""
        return tuple(self._act("streams", {})["streams"])

    def describe(self, stream: str) -> StreamFacts:
        """Return what the site knows of a stream."""
        return facts_from_json(self._act("describe", {"stream": stream}))

    def next(self, stream: str, lineage: str | None) -> int:
        """Return the number that the stream's next row gets; of any lineage where it is None."""
        return int(self._act("next", {"stream": stream, "lineage": lineage})["next"])

    def consumer(self, stream: str, lineage: str, name: str, read: int, floor: int | None) -> None:
        """Tell the site that all rows below ``read`` have been read, and which of them it must keep.

        ``floor`` is the least event time that may still be asked for, by the site's own event-time column:
        microseconds, or the unit of an integral event time; None for all.
        """
        told = {"stream": stream, "lineage": lineage, "name": name, "read": read, "floor": floor}
        self._act("consumer", told)

    def release(self, name: str) -> dict[str, list[str]]:
        """Have the site keep no rows for a consumer any more, or for all of a query by its id.

        Returns the names of those that it has forgotten, by stream; none where it knows no such consumer. A
        query that runs tells again what it needs.
        """
        found: dict[str, list[str]] = self._act("release", {"name": name})["released"]
        return found

    def status(self) -> dict[str, Any]:
        """Return the numbers of all streams, as `wjoin site status` shows them."""
        return self._act("status", {})

    def rows(
        self, stream: str, lineage: str, start: int, stop: int, columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows start..stop-1 in order: ROW first, then the columns; exactly these, or SiteError.

        A lost connection is taken up behind the last row that has come.
        """
        most = min(_REQUEST_ROWS, self._limit("max_request_rows"))
        for low in range(start, stop, most):
            what = ("rows", stream, lineage, columns, low, min(stop, low + most))
            yield from self._range(self._request(*what))

    def _range(self, request: RowsRequest) -> Iterator[pa.RecordBatch]:
        """Yield all rows of a request's range."""

        def ticket(at: int) -> bytes | None:
            return encode_request(replace(request, start=at)) if at < request.stop else None

        at, stream = request.start, request.stream
        for block in self._following(request, ticket, at, request.stop):
            before, at = at, int(block.column(0)[-1].as_py()) + 1
            if at - before != block.num_rows:
                raise self._wrong(f"of rows {before} to {at - 1} of {stream} some are missing")
            yield block
        if at < request.stop:
            raise self._wrong(f"row {at} of {stream} is missing")

    def full(self, stream: str, lineage: str, numbers: Numbers, columns: Sequence[str]) -> pa.RecordBatch:
        """Return rows by number, in the order of the numbers; each is fetched once."""
        wanted, where = np.unique(np.asarray(numbers, np.int64), return_inverse=True)
        most = min(
            _REQUEST_ROWS, self._limit("max_request_rows"), self._limit("max_request_bytes") // 8 - 1_000
        )
        parts = [
            self._full(stream, lineage, wanted[low : low + most], columns)
            for low in range(0, max(1, len(wanted)), most)
        ]
        rows = pa.concat_batches(parts) if len(parts) > 1 else parts[0]
        ascending = len(wanted) == len(where) and bool((np.diff(where) > 0).all())
        return rows if ascending else rows.take(pa.array(where))

    def _full(self, stream: str, lineage: str, numbers: Numbers, columns: Sequence[str]) -> pa.RecordBatch:
        request = self._request("full", stream, lineage, columns)
        found = self._whole(request, encode_numbers(numbers))
        rows = pa.concat_batches(found)
        if rows.num_rows != len(numbers) or rows.schema.names != [*columns]:
            raise self._wrong(f"{counted(len(numbers), 'row')} of {stream} requested, {rows.num_rows} came")
        return rows

    def _whole(self, request: RowsRequest, body: bytes) -> list[pa.RecordBatch]:
        """Return all blocks of an answer, tried again as a whole."""
        ticket = encode_request(request, body)
        return self._caller.again(lambda: [*self._caller.get(request.kind, ticket)])

    def extent(
        self, stream: str, lineage: str, start: int, stop: int, *, ceiling: int, mark: int | None = None
    ) -> Extent:
        """Return how many rows start..stop-1 are, and their event times; the rows stay at the site.

        Those with an event time above ``ceiling`` are told apart, and those below ``mark`` counted:
        microseconds, or the unit of an integral event time.
        """
        asked = ExtentAsked(stream, lineage, start, stop, ceiling, mark)
        try:
            return typed(Extent, self._act("extent", plain(asked)))
        except ValueError as error:
            raise self._wrong(f"the extent of the rows cannot be read: {error}") from error

    def counts(
        self,
        stream: str,
        lineage: str,
        column: str,
        start: int,
        stop: int,
        *,
        ceiling: int,
        low: int | None,
        bits: int,
        sample: int,
    ) -> KeyCounts:
        """Return how often the values of a column come in rows start..stop-1, by 2**``bits`` buckets.

        Rows with an event time above ``ceiling`` or below ``low`` (None: none) are not counted. One bucket of
        ``sample`` is told row by row (0: none).
        """
        most = min(_REQUEST_ROWS, self._limit("max_request_rows"))
        edges = [*range(start, stop, most), stop]
        asked = [
            CountsAsked(stream, lineage, column, *pair, ceiling, low, bits, sample)
            for pair in pairwise(edges)
        ]
        return KeyCounts.together([self._counts(each) for each in asked])

    def _counts(self, asked: CountsAsked) -> KeyCounts:
        body = json.dumps(plain(asked)).encode()
        found = self._caller.again(lambda: self._caller.act("counts", body))
        try:
            return KeyCounts.decode(found, asked.bits, asked.stop - asked.start)
        except SiteError as error:
            raise self._wrong(error.message) from error

    def reduced(
        self,
        stream: str,
        lineage: str,
        ranges: Sequence[HeldRange],
        column: str,
        columns: Sequence[str],
        *,
        filter: ValueFilter | None,
        keys: ValueFilter | None,
        high: int | None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ``ranges`` whose value of ``column`` passes ``filter`` or ``keys``.

        ROW first, then the columns. A row comes once, and in order of numbers; its event time is from its
        range's ``low`` to ``high`` (None: any). NULL never passes, and with neither of the two no row does.
        Rows that have left the site's window are "gone" only where one of them may have had such an event
        time, but for times that no clock shows (wjoin.sites.far). ``filter`` is pushed once, and again where
        the site does not have it any more; ``keys`` travel with each request. A lost connection is taken up
        behind the last row that has come.
        """
        if not any(each is not None and each.count for each in (filter, keys)):
            return
        request, whole = self._request("reduced", stream, lineage, columns), disjoint(ranges)
        most = max(1, min(MOST_RANGES, self._limit("max_request_bytes") // (2 * RANGE_BYTES)))
        digest = None if filter is None else filter.digest
        for low in range(0, len(whole), most):
            wanted = Wanted(column, whole[low : low + most], high, digest)
            yield from self._held(request, wanted, b"" if keys is None else keys.encode(), filter)

    def _held(
        self, request: RowsRequest, wanted: Wanted, keys: bytes, filter: ValueFilter | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield what one request for held rows asks for, in order of numbers."""

        def ticket(at: int) -> bytes | None:
            left = behind(wanted.ranges, at)
            asked = encode_wanted(replace(wanted, ranges=left), keys)
            return encode_request(request, asked) if left else None

        return self._following(request, ticket, wanted.ranges[0].start, wanted.ranges[-1].stop, filter)

    def _following(
        self,
        request: RowsRequest,
        ticket: Callable[[int], bytes | None],
        at: int,
        stop: int,
        filter: ValueFilter | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield a request's rows, of numbers from at..stop-1, taken up behind the last one that has come.

        ``ticket`` returns what asks for the rows from a number on, None where there are no more. ``filter``
        is pushed where the site does not have it.
        """
        tries, pushed = self._caller.tries(), False
        while (asked := ticket(at)) is not None:
            try:
                for block in self._caller.get(request.kind, asked):
                    if block.num_rows:
                        at, pushed = self._behind(block, at, stop, request.stream), False
                        tries.reset()
                        yield block
                return
            except SiteError as error:
                if error.kind != "filter" or filter is None:
                    tries.wait(error)
                    continue
            if pushed:
                # Others have pushed so many that it has gone already.
                tries.wait(
                    SiteError("busy", "the site does not keep a filter", site=self._caller.address.url)
                )
            self._caller.again(lambda: self._caller.act("filter", filter.encode()))
            pushed = True

    def _behind(self, block: pa.RecordBatch, at: int, stop: int, stream: str) -> int:
        """Return the number behind the last row of a block, whose numbers ascend from at..stop-1."""
        numbers = block.column(0).to_numpy()
        if not at <= numbers[0] <= numbers[-1] < stop or not bool((np.diff(numbers) > 0).all()):
            raise self._wrong(f"rows of {stream} came out of order")
        return int(numbers[-1]) + 1

    def _request(
        self,
        kind: str,
        stream: str,
        lineage: str,
        columns: Sequence[str],
        start: int = 0,
        stop: int = 0,
    ) -> RowsRequest:
        how = (self._compression, self._block_bytes)
        return RowsRequest(kind, stream, lineage, tuple(columns), start, stop, *how)

    def link(self) -> MeasuredLink:
        """Measure the way to the site: the best of several empty calls, and the time of some noise.

        It is 64 kB, and more where that comes too soon to tell, up to 4 MB: a slow link is not held up.
        """
        self._act("ping", {})
        latency = min(self._timed(lambda: self._act("ping", {})) for _ in range(_NEWEST_PING))
        enough = max(_PROBE_SECONDS, _PROBE_LATENCIES * latency)
        size, took = _LEAST_PROBE, self._probed(_LEAST_PROBE)
        while took < latency + enough and size < _GREATEST_PROBE:
            size = min(_GREATEST_PROBE, _PROBE_GROWS * size)
            took = self._probed(size)
        return MeasuredLink(latency, size / max(took - latency, 1e-6))

    def _probed(self, size: int) -> float:
        """Return how long so many bytes of noise take to come."""
        request = RowsRequest("probe", stop=size)
        return self._timed(lambda: self._whole(request, b""))

    def close(self) -> None:
        """Let the connection go."""
        self._caller.close()

    def __enter__(self) -> "SiteClient":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @staticmethod
    def _timed(call: Any) -> float:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    def _act(self, kind: str, given: dict[str, Any]) -> dict[str, Any]:
        answer = self._caller.again(lambda: self._caller.act(kind, json.dumps(given).encode()))
        try:
            found = json.loads(answer)
        except ValueError as error:
            raise self._wrong(f"the answer to {kind} is no JSON") from error
        if not isinstance(found, dict):
            raise self._wrong(f"the answer to {kind} is no JSON object")
        return found

    def _limit(self, name: str) -> int:
        if self._limits is None:
            self._limits = {key: n for key, n in self._act("streams", {}).items() if isinstance(n, int)}
        return self._limits[name]

    def _wrong(self, what: str) -> SiteError:
        return SiteError("broken", what, site=self._caller.address.url)


__all__ = ["ROW", "SiteClient"]
