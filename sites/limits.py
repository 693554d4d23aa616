"""What a site lets one caller, and all together, ask for."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wjoin.sites.failures import SiteError


@dataclass(frozen=True)
class Limits:
    """Bounds of requests: rows and bytes of one, blocks, filters, calls at a time and open connections."""

    max_request_rows: int = 1_000_000
    """Rows that one request may ask for."""
    max_request_bytes: int = 16_000_000
    """Bytes of a request itself: row numbers, keys."""
    max_block_bytes: int = 8_000_000
    """Bytes of a batch of an answer, before compression."""
    max_filter_bytes: int = 64_000_000
    """Bytes of filters that are kept for later requests; of more, those asked for longest ago go."""
    max_connections: int = 256
    max_calls: int = 32
    """Requests for rows that are answered at the same time; others are told to come again."""

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

    def block_rows(self, rows: int | None, size: int | None, width: float) -> int:
        """Return how many rows a block has, where a row has ``width`` bytes.

        A request may tell how many ``rows``, and how many bytes (``size``), a block has at the most.
        """
        width = max(width, 1.0)
        bounds = [self.max_block_bytes / width]
        if rows is not None:
            bounds.append(rows)
        if size is not None:
            bounds.append(size / width)
        if rows is None and size is None:
            # A megabyte is large enough to fill a link, and small enough to come soon.
            bounds.append(max(1024, 1_000_000 / width))
        return max(1, int(min(bounds)))


class Calls:
    """Counts the calls that run, and refuses more than there may be."""

    def __init__(self, most: int) -> None:
        self._free = threading.BoundedSemaphore(most)
        self._most = most

    @contextmanager
    def one(self) -> Iterator[None]:
        """Let one call run. Raises SiteError "busy"."""
        if not self._free.acquire(blocking=False):
            raise SiteError("busy", f"{self._most} requests are being answered", help="try again soon")
        try:
            yield
        finally:
            self._free.release()
