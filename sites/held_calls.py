"""What a client asks of rows that are held at a site: those of them that pass."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from wjoin.sites.calls import Caller
from wjoin.sites.failures import SiteError
from wjoin.sites.held import MOST_RANGES, RANGE_BYTES, HeldRange, Wanted, behind, disjoint, encode_wanted
from wjoin.sites.protocol import Request, encode_request
from wjoin.sites.value_filter import ValueFilter


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
        keys: ValueFilter | None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ranges that pass, asked for with as many requests as the limits want."""
        if not any(each is not None and each.count for each in (filter, keys)):
            return
        most = max(1, min(MOST_RANGES, self.limit("max_request_bytes") // (2 * RANGE_BYTES)))
        whole = disjoint(ranges)
        for low in range(0, len(whole), most):
            digest = None if filter is None else filter.digest
            wanted = Wanted(column, whole[low : low + most], high, digest)
            yield from self._one(request, wanted, b"" if keys is None else keys.encode(), filter)

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
