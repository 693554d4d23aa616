"""What a client asks of rows that are held at a site: those of them that pass."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from wjoin.sites.calls import Caller
from wjoin.sites.failures import SiteError
from wjoin.sites.held import MOST_RANGES, RANGE_BYTES, HeldRange, Wanted, behind, disjoint, encode_wanted
from wjoin.sites.keys import encode_keys
from wjoin.sites.protocol import Request, encode_request
from wjoin.sites.value_filter import ValueFilter

_HEAD_BYTES = 10_000
"""What a request has besides ranges and keys."""


@dataclass(frozen=True)
class HeldCalls:
    """Calls of one site; ``limit`` gives its limits by name."""

    caller: Caller
    limit: Callable[[str], int]

    def reduced(
        self,
        request: Request,
        ranges: Sequence[HeldRange],
        column: str,
        high: int | None,
        filter: ValueFilter | None,
        keys: pa.Array | None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ranges that pass, asked for with as many requests as the limits want."""
        given = None if keys is None else pc.unique(keys).drop_null()
        if not given:
            given = None
        if given is None and (filter is None or filter.count == 0):
            return
        most = max(1, min(MOST_RANGES, self.limit("max_request_bytes") // (2 * RANGE_BYTES)))
        whole = disjoint(ranges)
        for low in range(0, len(whole), most):
            some = Wanted(column, whole[low : low + most], high, None if filter is None else filter.digest)
            for at, body in enumerate(self._bodies(column, given, len(some.ranges))):
                # What passes the filter has come with the first keys.
                wanted = replace(some, besides=filter is not None and at > 0)
                yield from self._one(request, wanted, body, filter)

    def _bodies(self, column: str, keys: pa.Array | None, ranges: int) -> Iterator[bytes]:
        """Yield the keys in as many parts as the site's limits want."""
        if keys is None:
            yield b""
            return
        room = self.limit("max_request_bytes") - _HEAD_BYTES - ranges * RANGE_BYTES
        most = self.limit("max_request_rows")
        waiting = [keys.slice(low, most) for low in range(0, len(keys), most)]
        while waiting:
            part = waiting.pop(0)
            body = encode_keys(pa.record_batch({column: part}))
            if max(len(body), part.nbytes) > room and len(part) > 1:
                half = len(part) // 2
                waiting[:0] = [part.slice(0, half), part.slice(half)]
            else:
                yield body

    def _one(
        self, request: Request, wanted: Wanted, keys: bytes, filter: ValueFilter | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield what one request asks for, in order of numbers, taken up behind the last row that came."""
        tries, at, pushed = self.caller.tries(), wanted.ranges[0].start, False
        while left := behind(wanted.ranges, at):
            ticket = encode_request(request, encode_wanted(replace(wanted, ranges=left), keys))
            try:
                for block in self.caller.get(request.kind, ticket):
                    if block.num_rows:
                        at = self.caller.after(block, at, left[-1].stop, request.stream)
                        tries.reset()
                        pushed = False
                        yield block
                return
            except SiteError as error:
                if error.kind != "filter" or filter is None:
                    tries.wait(error)
                    continue
            if pushed:
                # Others have pushed so many that it has gone already.
                tries.wait(SiteError("busy", "the site does not keep a filter", site=self.caller.address.url))
            self.caller.again(lambda: self.caller.act("filter", filter.encode()))
            pushed = True
