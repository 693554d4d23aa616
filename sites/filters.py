"""The filters that clients have pushed to a site: those that were asked for last, within some bytes."""

import threading
from collections import OrderedDict

from wjoin.sites.failures import SiteError
from wjoin.sites.limits import WAIT_SECONDS
from wjoin.sites.value_filter import ValueFilter


class Filters:
    """Filters by digest, ``most_bytes`` of them at the most; any number of threads may ask."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._lock = threading.Lock()
        self._unpacking = threading.Lock()
        self._size = 0
        self._known: OrderedDict[str, ValueFilter] = OrderedDict()

    @property
    def size(self) -> int:
        """Bytes that all of them have."""
        return self._size

    def push(self, encoded: bytes) -> ValueFilter:
        """Keep a filter, and let those go that were not asked for longest. Raises SiteError."""
        # One at a time: what several take while they are unpacked is more than the filters have.
        if not self._unpacking.acquire(timeout=WAIT_SECONDS):
            raise SiteError("busy", "other filters are being unpacked", help="try again soon")
        try:
            new = ValueFilter.decode(encoded, most_bytes=self._most)
        finally:
            self._unpacking.release()
        if new.size > self._most:
            message = f"the filter has {new.size} bytes, and the limit is {self._most}"
            raise SiteError("limit", message, help="raise max_filter_bytes in [site.limits]")
        with self._lock:
            before = self._known.pop(new.digest, None)
            self._size += new.size - (0 if before is None else before.size)
            self._known[new.digest] = new
            while self._size > self._most:
                _, oldest = self._known.popitem(last=False)
                self._size -= oldest.size
        return new

    def find(self, digest: str) -> ValueFilter:
        """Return a filter that was pushed. Raises SiteError "filter" where it is not there any more."""
        with self._lock:
            found = self._known.get(digest)
            if found is None:
                raise SiteError("filter", f"there is no filter {digest:.40}", help="push it again")
            self._known.move_to_end(digest)
            return found
