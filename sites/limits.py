"""What a site lets one caller, and all together, ask for."""

import contextlib
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from wjoin.sites.block_size import LEAST_BLOCK
from wjoin.sites.failures import SiteError

WAIT_SECONDS = 2.0
"""How long a call waits for its turn before it is told to come again."""

MOST_NAME = 200
"""Characters of a name that a caller gives at the most."""

_REQUEST_SHARE, _BLOCKS_SHARE = 16, 3
"""A request takes this part of the memory at the most, and blocks of all calls together."""


@dataclass(frozen=True)
class Limits:
    """Bounds of requests: rows and bytes of one, blocks, filters, calls at a time and open connections."""

    max_request_rows: int = 1_000_000
    """Rows that one request may ask for."""
    max_request_bytes: int = 16_000_000
    """Bytes of a request itself: row numbers, a filter."""
    max_block_bytes: int = 8_000_000
    """Bytes of a batch of an answer, before compression."""
    max_filter_bytes: int = 64_000_000
    """Bytes of filters that are kept for later requests; of more, those asked for longest ago go."""
    max_connections: int = 256
    max_calls: int = 32
    """Requests for rows that are answered at the same time; others are told to come again."""

    def within(self, memory: int) -> "Limits":
        """Return the same for a process that may take so many bytes."""
        blocks = memory // (_BLOCKS_SHARE * self.max_calls)
        return replace(
            self,
            max_request_bytes=min(self.max_request_bytes, memory // _REQUEST_SHARE),
            max_block_bytes=max(LEAST_BLOCK, min(self.max_block_bytes, blocks)),
            max_filter_bytes=min(self.max_filter_bytes, memory // 4),
        )

    def check_rows(self, count: int) -> None:
        """Raise SiteError "limit" for a request of too many rows."""
        if count > self.max_request_rows:
            message = f"{count} rows are asked for at once, and the limit is {self.max_request_rows}"
            raise SiteError("limit", message, help="ask for less, or raise max_request_rows in [site.limits]")

    def check_bytes(self, count: int) -> None:
        """Raise SiteError "limit" for a request of too many bytes."""
        if count > self.max_request_bytes:
            message = f"the request has {count} bytes, and the limit is {self.max_request_bytes}"
            raise SiteError(
                "limit", message, help="ask for less, or raise max_request_bytes in [site.limits]"
            )

    def block_rows(self, size: int | None, width: float) -> int:
        """Return how many rows a block has, where a row has ``width`` bytes.

        A request may tell how many bytes (``size``) a block has at the most.
        """
        width = max(width, 1.0)
        # A megabyte is large enough to fill a link, and small enough to come soon.
        wished = max(1024 * width, 1_000_000) if size is None else size
        return max(1, int(min(self.max_block_bytes, wished) / width))


class Calls:
    """The calls that are answered at a time, and bytes of their requests; others wait for a short while."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._changed = threading.Condition()
        self._running = self._bytes = 0
        self._queue: deque[object] = deque()

    @contextlib.contextmanager
    def place(self, weight: int) -> Iterator[None]:
        """Be answered, with a request of ``weight`` bytes. Raises SiteError "busy"."""
        own = object()
        with self._changed:
            if len(self._queue) >= self._most:
                raise self._busy()
            self._queue.append(own)
            try:
                if not self._changed.wait_for(
                    lambda: self._queue[0] is own and self._fits(weight), WAIT_SECONDS
                ):
                    raise self._busy()
                self._running += 1
                self._bytes += weight
            finally:
                self._queue.remove(own)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._bytes -= weight
                self._changed.notify_all()

    def _fits(self, weight: int) -> bool:
        few = self._running < self._most
        return few and (self._bytes == 0 or self._bytes + weight <= self._most_bytes)

    def _busy(self) -> SiteError:
        return SiteError("busy", f"{self._running} requests are being answered", help="try again soon")

    def waiting(self) -> bool:
        """Return whether some wait for their turn."""
        with self._changed:
            return bool(self._queue)
